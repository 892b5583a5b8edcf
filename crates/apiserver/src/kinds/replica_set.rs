//! ReplicaSets: so many pods of a template at all times.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::selector::label::Selector;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, pod_spec, typed, workload};

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
            prepare_update: edit::keep_spec,
            validate_update: validate_status_update,
            reset: &["spec"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    ..Rules::PLAIN
};

const TEMPLATE: &str = "/spec/template";

fn default(object: &mut Value) {
    edit::fill(&mut object["spec"], "replicas", 1);
    pod_spec::default_template(&mut object["spec"]["template"]);
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({ "replicas": 0 });
    workload::drop_disabled(object, None, TEMPLATE);
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    workload::drop_disabled(object, Some(old), TEMPLATE);
    edit::keep_status(object, old, context);
}

fn validate(object: &Value) -> Vec<Error> {
    check_spec(object, None)
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = check_spec(object, Some(old));
    let selectors = [object, old].map(|object| workload::selector_of(&object["spec"]));
    let path = Path::new("spec");
    errors.extend(check::immutable(&path.child("selector"), &selectors[0], &selectors[1]));
    errors
}

fn check_spec(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let template = |object: &Value| {
        let set: ReplicaSet = typed(object);
        set.spec.unwrap_or_default().template.unwrap_or_default()
    };
    let (new_template, old_template) = (template(object), old.map(template));
    let path = Path::new("spec");
    let spec = &object["spec"];
    let mut errors = workload::check_counts(spec, &["replicas", "minReadySeconds"], &path);
    let selector = workload::selector_of(spec);
    let selector_path = path.child("selector");
    // The word is upstream's.
    errors.extend(workload::check_selector(selector.as_ref(), "deployment", &selector_path));
    match workload::meaning(selector.as_ref()) {
        Ok(selector) => errors.extend(check_template(
            &new_template,
            old_template.as_ref(),
            &selector,
            &path.child("template"),
        )),
        Err(_) => {
            let shown = check::shown(&selector);
            errors.push(Error::invalid(&selector_path, shown, "invalid label selector"));
        }
    }
    errors
}

/// A template whose pods are selected and last.
pub(super) fn check_template(
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
    selector: &Selector,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if !selector.is_everything() {
        errors.extend(workload::check_labels(selector, template, path));
    }
    errors.extend(pod_spec::validate_template(template, old, path));
    errors.extend(workload::check_lasting(template, "ReplicaSet", path));
    errors
}

fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
    let status = &object["status"];
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let mut errors = workload::check_counts(status, &counts, &Path::new("status"));
    for name in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        let detail = "cannot be greater than status.replicas";
        errors.extend(workload::check_at_most(status, name, "replicas", detail));
    }
    let detail = "cannot be greater than readyReplicas";
    errors.extend(workload::check_at_most(status, "availableReplicas", "readyReplicas", detail));
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let name = old.is_none().then(|| workload::name_warning(object)).flatten();
    let mut warnings: Vec<String> = name.into_iter().collect();
    if workload::is_another(object, old) {
        let path = Path::new("spec");
        let path = path.child("template");
        warnings.extend(workload::template_warnings(object, TEMPLATE, &path));
    }
    warnings
}
