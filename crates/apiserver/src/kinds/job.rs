//! Jobs: pods that end.

mod index;
mod spec;
mod status;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::{LabelSelector, Leniency, Selector};
use serde_json::{Map, Value, json};

use super::workload::{self, TEMPLATE};
use super::{Context, Field, Part, Rules, check, edit, internal, pod_spec, typed};
pub(super) use spec::check_spec;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[(
        "status",
        Part {
            prepare_update: prepare_status_update,
            validate_update: status::validate_update,
            ..Part::STATUS
        },
    )],
    reset: &["status"],
    fields: &[Field::Made("status.successful", |job| {
        job["status"]["succeeded"].as_i64().unwrap_or_default().to_string()
    })],
    ..Rules::PLAIN
};

/// What the pods of a job are labelled with, and what these labels were called before.
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const OLD_UID_LABEL: &str = "controller-uid";
const OLD_NAME_LABEL: &str = "job-name";

const INDEXED: &str = "Indexed";
/// So many completions with so many pods at once may be more than a status can tell.
const COMPLETIONS_SOFT_MAX: i32 = 100_000;
const PARALLELISM_SOFT_MAX: i32 = 10_000;

fn default(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        edit::fill(spec, "completions", 1);
    }
    edit::fill(spec, "parallelism", 1);
    let has_limit_per_index = !spec["backoffLimitPerIndex"].is_null();
    edit::fill(spec, "backoffLimit", if has_limit_per_index { i32::MAX } else { 6 });
    edit::fill(spec, "completionMode", "NonIndexed");
    edit::fill(spec, "suspend", false);
    let policy = match spec["podFailurePolicy"].is_null() {
        true => "TerminatingOrFailed",
        false => "Failed",
    };
    edit::fill(spec, "podReplacementPolicy", policy);
    edit::fill(spec, "manualSelector", false);
    default_pods(spec);
}

/// A job without labels has those of its pods, generated ones too. That makes this no default like
/// the others, which come before there are any.
pub(crate) fn label(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if !labels.is_null() {
        edit::fill(&mut object["metadata"], "labels", labels);
    }
}

/// What a job spec says of its pods when its author does not; all that the template of a CronJob
/// gets.
pub(super) fn default_pods(spec: &mut Value) {
    for rule in edit::items(spec, "/podFailurePolicy/rules") {
        for pattern in edit::items(rule, "/onPodConditions") {
            edit::fill_text(pattern, "status", "True");
        }
    }
    pod_spec::default_template(&mut spec["template"]);
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    if object["spec"]["manualSelector"] != true {
        generate_selector(object);
    }
    label(object);
    workload::drop_disabled(object, None, TEMPLATE);
    object["status"] = json!({});
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    label(object);
    workload::drop_disabled(object, Some(old), TEMPLATE);
    edit::keep_status(object, old, context);
}

fn prepare_status_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    label(object);
    edit::keep_spec(object, old, context);
    label(object);
}

/// Makes the job select its own pods only. Labels that are there already stay; whether they
/// contradict is for validation to say.
fn generate_selector(object: &mut Value) {
    let uid = json!(edit::text(object, "/metadata/uid"));
    let name = json!(edit::text(object, "/metadata/name"));
    let spec = &mut object["spec"];
    let metadata = &mut spec["template"]["metadata"];
    edit::fill(metadata, "labels", json!({}));
    for (label, value) in
        [(OLD_NAME_LABEL, &name), (NAME_LABEL, &name), (OLD_UID_LABEL, &uid), (UID_LABEL, &uid)]
    {
        edit::fill(&mut metadata["labels"], label, value.clone());
    }
    metadata["labels"].as_object_mut().map(Map::sort_keys);
    edit::fill(spec, "selector", json!({}));
    edit::fill(&mut spec["selector"], "matchLabels", json!({}));
    edit::fill(&mut spec["selector"]["matchLabels"], UID_LABEL, uid);
}

fn validate(object: &Value) -> Vec<Error> {
    check_job(object, None)
}

/// Upstream judges the job as a new one, and then once more as a changed one.
fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = check_job(object, Some(old));
    let (new_job, old_job): (Job, Job) = (typed(object), typed(old));
    let (new, old_spec) = (new_job.spec.unwrap_or_default(), old_job.spec.unwrap_or_default());
    let path = Path::new("spec");
    errors.extend(check_selected(&new, Some(&old_spec), &path));
    errors.extend(check_completions(&new, &old_spec, &path.child("completions")));
    errors.extend(workload::check_same_selector(object, old));
    errors.extend(check_template_update(object, old, &old_job.status.unwrap_or_default()));
    for (field, type_name) in [
        ("completionMode", ""),
        ("podFailurePolicy", "k8s.io/api/batch/v1.PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "k8s.io/api/batch/v1.SuccessPolicy"),
    ] {
        if !edit::same(object, old, &["spec", field]) {
            let given = &object["spec"][field];
            let shown = match type_name {
                "" => given.clone(),
                type_name => internal::shown(type_name, given),
            };
            errors.push(Error::invalid(&path.child(field), shown, "field is immutable"));
        }
    }
    errors
}

fn check_job(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let spec_of = |object: &Value| {
        let job: Job = typed(object);
        job.spec.unwrap_or_default()
    };
    let (spec, old_spec) = (spec_of(object), old.map(spec_of));
    let mut errors = check_generated(object, &spec, old_spec.as_ref());
    errors.extend(check_selected(&spec, old_spec.as_ref(), &Path::new("spec")));
    if let Some(completions) = spec.completions.filter(|completions| *completions > 0)
        && spec.completion_mode.as_deref() == Some(INDEXED)
    {
        // The name that the last of its pods would have.
        let job = edit::text(object, "/metadata/name");
        let host = format!("{job}-{}", completions - 1);
        if !name::dns1123_label(&host).is_empty() {
            errors.push(Error::invalid(
                &Path::new("metadata").child("name"),
                job,
                format!("will not able to create pod with invalid DNS label: {host}"),
            ));
        }
    }
    errors
}

/// Labels and selector must be those that were generated.
fn check_generated(object: &Value, spec: &JobSpec, old: Option<&JobSpec>) -> Vec<Error> {
    let Some(selector) = workload::selector_of(&object["spec"]) else { return Vec::new() };
    if spec.manual_selector == Some(true) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let metadata = Path::new("metadata");
    let uid = edit::text(object, "/metadata/uid");
    let name = edit::text(object, "/metadata/name");
    if uid.is_empty() {
        errors.push(Error::required(&metadata.child("uid"), ""));
    }
    let mut expected = vec![(OLD_UID_LABEL, uid), (OLD_NAME_LABEL, name)];
    // Jobs from before there were these labels need not have them.
    let had = |old: &JobSpec| {
        let labels = labels_of(old);
        labels.is_some_and(|l| l.contains_key(NAME_LABEL) && l.contains_key(UID_LABEL))
    };
    if old.is_none_or(had) {
        expected.extend([(UID_LABEL, uid), (NAME_LABEL, name)]);
    }
    let labels = labels_of(spec);
    let path = Path::new("spec");
    let path = path.child("template");
    let path = path.child("metadata");
    let path = path.child("labels");
    for (label, value) in &expected {
        let path = path.key(label);
        let detail = format!("must be '{value}'");
        match labels.and_then(|labels| labels.get(*label)) {
            None => errors.push(Error::required(&path, detail)),
            Some(found) if found == value => {}
            Some(_) => errors.push(Error::invalid(&path, json!(labels), detail)),
        }
    }
    let expected = expected.iter().map(|(label, value)| ((*label).to_owned(), json!(value)));
    let expected: Map<String, Value> = expected.collect();
    if selector.to_selector().is_ok_and(|selector| !selector.matches(&expected)) {
        let path = Path::new("spec");
        let shown = check::shown(&selector);
        errors.push(Error::invalid(
            &path.child("selector"),
            shown,
            "`selector` not auto-generated",
        ));
    }
    errors
}

fn labels_of(spec: &JobSpec) -> Option<&std::collections::BTreeMap<String, String>> {
    spec.template.metadata.as_ref()?.labels.as_ref()
}

/// A spec with a selector, which must select its own pods.
fn check_selected(spec: &JobSpec, old: Option<&JobSpec>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = check_spec(spec, old, path);
    let selector = spec.selector.as_ref().map(check::label_selector);
    match &selector {
        None => errors.push(Error::required(&path.child("selector"), "")),
        Some(selector) => errors.extend(selector.validate(leniency(old), &path.child("selector"))),
    }
    let selected = selector.as_ref().map_or(Ok(Selector::Nothing), LabelSelector::to_selector);
    if let Ok(selector) = selected {
        errors.extend(workload::check_labels(&selector, &spec.template, &path.child("template")));
    }
    errors
}

/// Values that no label can have may stay.
fn leniency(old: Option<&JobSpec>) -> Leniency {
    let old = old.and_then(|old| old.selector.as_ref());
    let expressions = old.and_then(|old| old.match_expressions.as_ref()).into_iter().flatten();
    let mut values = expressions.flat_map(|expression| expression.values.iter().flatten());
    let invalid_values = values.any(|value| !name::label_value(value).is_empty());
    Leniency { invalid_values, ..Leniency::default() }
}

/// Indexed jobs may be scaled, all pods at once.
fn check_completions(new: &JobSpec, old: &JobSpec, path: &Path<'_>) -> Option<Error> {
    if new.completion_mode.as_deref() != Some(INDEXED) {
        return check::immutable(path, &new.completions, &old.completions);
    }
    let completions = new.completions.filter(|_| new.completions != old.completions)?;
    (Some(completions) != new.parallelism).then(|| {
        let detail = "can only be modified in tandem with spec.parallelism";
        Error::invalid(path, completions, detail)
    })
}

/// The template of a job is fixed. While the job is suspended and has no pods, where they run and
/// what they need may still change.
fn check_template_update(object: &Value, old: &Value, old_status: &JobStatus) -> Option<Error> {
    const WHOLE: &str = "k8s.io/api/core/v1.PodTemplateSpec";
    const POD: &str = "k8s.io/api/core/v1.PodSpec";
    let new = &object["spec"]["template"];
    let mut old_template = old["spec"]["template"].clone();
    let is_suspended = old["spec"]["suspend"] == true;
    let is_idle = (old_status.start_time.is_none() || status::is_true(old_status, "Suspended"))
        && old_status.active.unwrap_or_default() == 0;
    let path = Path::new("spec");
    let path = path.child("template");
    let same = |type_name: &str, a: &Value, b: &Value| {
        builtin::equal(builtin::type_named(type_name).expect("the type is there"), a, b)
    };
    if !is_suspended || !is_idle {
        return (!same(WHOLE, new, &old_template))
            .then(|| Error::invalid(&path, internal::shown(WHOLE, new), "field is immutable"));
    }
    let (new, old_pod) = (&new["spec"], &mut old_template["spec"]);
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        edit::restore(old_pod, new, field);
    }
    allow_node_affinity(new, old_pod);
    for containers in ["containers", "initContainers"] {
        allow_resources(new, old_pod, containers);
    }
    (!same(POD, new, old_pod)).then(|| {
        let shown = internal::shown(POD, new);
        Error::invalid(&path.child("spec"), shown, "field is immutable")
    })
}

fn allow_node_affinity(new: &Value, old: &mut Value) {
    match (new.get("affinity"), old.get_mut("affinity")) {
        (Some(new), Some(old)) => edit::restore(old, new, "nodeAffinity"),
        (Some(new), None) => {
            old["affinity"] = json!({});
            edit::restore(&mut old["affinity"], new, "nodeAffinity");
        }
        (None, Some(affinity)) => {
            edit::remove(affinity, "nodeAffinity");
            if affinity.as_object().is_some_and(Map::is_empty) {
                edit::remove(old, "affinity");
            }
        }
        (None, None) => {}
    }
}

fn allow_resources(new: &Value, old: &mut Value, containers: &str) {
    let new = new[containers].as_array().map(Vec::as_slice).unwrap_or_default();
    let old = old.get_mut(containers).and_then(Value::as_array_mut);
    let Some(old) = old.filter(|old| old.len() == new.len()) else { return };
    for (new, old) in new.iter().zip(old).filter(|(new, old)| new["name"] == old["name"]) {
        edit::restore(old, new, "resources");
    }
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = workload::name_warnings(object, old);
    if workload::is_another(object, old) {
        warnings.extend(spec_warnings(object, "/spec", &Path::new("spec")));
    }
    warnings
}

/// What to tell about the job spec at a JSON pointer, which stands at the path.
pub(super) fn spec_warnings(object: &Value, pointer: &str, path: &Path<'_>) -> Vec<String> {
    let Some(spec) = object.pointer(pointer) else { return Vec::new() };
    let is_above =
        |field: &str, max: i32| spec[field].as_i64().is_some_and(|number| number > i64::from(max));
    let is_large = spec["completionMode"] == INDEXED
        && is_above("completions", COMPLETIONS_SOFT_MAX)
        && is_above("parallelism", PARALLELISM_SOFT_MAX);
    let mut warnings = Vec::new();
    if is_large {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    warnings.extend(workload::template_warnings(spec, "/template", &path.child("template")));
    warnings
}
