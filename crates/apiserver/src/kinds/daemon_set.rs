//! DaemonSets: one pod of a template on each node.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::selector::label::{LabelSelector, Leniency};
use serde_json::{Value, json};

use super::workload::{self, TEMPLATE};
use super::{Context, Part, Rules, check, edit, internal, pod_spec, typed};
use crate::meta;
use crate::query::parse_int;

pub(super) const RULES: Rules = Rules {
    unreadable,
    default,
    prepare_create,
    prepare_update,
    validate: |object| check_spec(object, None),
    validate_update,
    warnings,
    parts: &[(
        "status",
        Part {
            prepare_update: prepare_status_update,
            validate_update: validate_status_update,
            ..Part::STATUS
        },
    )],
    reset: &["status"],
    ..Rules::PLAIN
};

/// Where `spec.templateGeneration` of versions past is kept: how often the template changed. The
/// server alone says what it is.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn unreadable(object: &Value) -> Option<String> {
    let generation = object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str()?;
    parse_int(generation).err()
}

fn default(object: &mut Value) {
    // What upstream works on has it as a number, so that everybody who writes says something.
    set_template_generation(object, template_generation(object));
    let spec = &mut object["spec"];
    workload::default_strategy(&mut spec["updateStrategy"], json!(1), json!(0));
    edit::fill(spec, "revisionHistoryLimit", 10);
    pod_spec::default_template(&mut spec["template"]);
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({
        "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
        "numberReady": 0,
    });
    workload::drop_disabled(object, None, TEMPLATE);
    edit::first_generation(object);
    let generation = template_generation(object).max(1);
    set_template_generation(object, generation);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    workload::drop_disabled(object, Some(old), TEMPLATE);
    let generation = template_generation(old);
    let changed = !edit::same(object, old, &["spec", "template"]);
    // The first number is the client's, and may be the last there is.
    set_template_generation(object, generation.wrapping_add(i64::from(changed)));
    edit::keep_status(object, old, context);
}

fn prepare_status_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    set_template_generation(object, template_generation(old));
    edit::keep_spec(object, old, context);
}

fn template_generation(object: &Value) -> i64 {
    let annotation = object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    annotation.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    meta::put(object, "annotations", TEMPLATE_GENERATION, &generation.to_string());
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors: Vec<_> = workload::check_same_selector(object, old).into_iter().collect();
    errors.extend(check_spec(object, Some(old)));
    errors
}

fn check_spec(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let spec = |object: &Value| {
        let set: DaemonSet = typed(object);
        set.spec.unwrap_or_default()
    };
    let (new, old_spec) = (spec(object), old.map(spec));
    let tree = &object["spec"];
    let path = Path::new("spec");
    let template_path = path.child("template");
    let selector_path = path.child("selector");
    let mut errors = Vec::new();
    let selector = workload::selector_of(tree);
    if let Some(selector) = &selector {
        errors.extend(selector.validate(leniency(old), &selector_path));
    }
    if let Ok(selector) = workload::meaning(selector.as_ref()) {
        errors.extend(workload::check_labels(&selector, &new.template, &template_path));
    }
    if let Some(selector) = &selector {
        errors.extend(workload::refuse_empty(selector, "daemonset", &selector_path));
    }
    let old_template = old_spec.as_ref().map(|old| &old.template);
    errors.extend(pod_spec::validate_template(&new.template, old_template, &template_path));
    errors.extend(workload::check_lasting(&new.template, "DaemonSet", &template_path));
    let counts = ["minReadySeconds", "revisionHistoryLimit"];
    errors.extend(workload::check_counts(tree, &counts, &path));
    let strategy = new.update_strategy.unwrap_or_default();
    errors.extend(check_strategy(&strategy, &path.child("updateStrategy")));
    errors
}

/// Values that no label can have may stay.
fn leniency(old: Option<&Value>) -> Leniency {
    let selector = old.and_then(|old| workload::selector_of(&old["spec"])).unwrap_or_default();
    let selector = LabelSelector { match_labels: Default::default(), ..selector };
    let strictly = selector.validate(Leniency::default(), &Path::ROOT).len();
    let lenient = Leniency { invalid_values: true, ..Leniency::default() };
    let invalid_values = selector.validate(lenient, &Path::ROOT).len() < strictly;
    Leniency { invalid_values, ..Leniency::default() }
}

fn check_strategy(strategy: &DaemonSetUpdateStrategy, path: &Path<'_>) -> Vec<Error> {
    let rolling_path = path.child("rollingUpdate");
    match (strategy.type_.as_deref().unwrap_or_default(), &strategy.rolling_update) {
        ("OnDelete", _) => Vec::new(),
        ("RollingUpdate", Some(update)) => check_rolling_update(update, &rolling_path),
        ("RollingUpdate", None) => vec![Error::required(&rolling_path, "")],
        _ => {
            let type_name = "k8s.io/api/apps/v1.DaemonSetUpdateStrategy";
            let shown = internal::shown(type_name, &check::shown(strategy));
            vec![Error::not_supported(path, shown, &["RollingUpdate", "OnDelete"])]
        }
    }
}

fn check_rolling_update(update: &RollingUpdateDaemonSet, path: &Path<'_>) -> Vec<Error> {
    let unavailable = update.max_unavailable.clone().unwrap_or_default();
    let surge = update.max_surge.clone().unwrap_or_default();
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let mut errors = check::int_or_percent(&unavailable_path, &unavailable);
    errors.extend(check::int_or_percent(&surge_path, &surge));
    errors.extend(check::at_most_100_percent(&unavailable_path, &unavailable));
    errors.extend(check::at_most_100_percent(&surge_path, &surge));
    let is_something = |bound| check::int_or_percent_value(bound) != 0;
    match (is_something(&unavailable), is_something(&surge)) {
        (true, true) => errors.push(Error::invalid(
            &surge_path,
            check::shown(&surge),
            "may not be set when maxUnavailable is non-zero",
        )),
        (false, false) => {
            errors.push(Error::required(&unavailable_path, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
    errors
}

fn validate_status_update(object: &Value, old: &Value) -> Vec<Error> {
    let status = &object["status"];
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut errors = workload::check_counts(status, &counts, &Path::new("status"));
    errors.extend(workload::check_collisions(status, &old["status"]));
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| template_generation(old) == template_generation(object)) {
        return Vec::new();
    }
    workload::template_warnings(object, TEMPLATE, &Path::new("spec.template"))
}
