//! ReplicaSets: so many pods of a template at all times.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::workload::{self, TEMPLATE};
use super::{Context, Part, Rules, check, edit, pod_spec, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings: workload::warnings,
    parts: &[("status", Part { validate_update: validate_status_update, ..Part::STATUS })],
    reset: &["status"],
    ..Rules::PLAIN
};

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
    errors.extend(workload::check_same_selector(object, old));
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
    errors.extend(check_template(spec, &new_template, old_template.as_ref()));
    errors
}

/// A selector, and a template whose pods are selected and last. The words are upstream's also
/// where they are about Deployments, which are judged by the same rules.
pub(super) fn check_template(
    spec: &Value,
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
) -> Vec<Error> {
    let (path, selector_path) = (Path::new("spec.template"), Path::new("spec.selector"));
    let selector = workload::selector_of(spec);
    let mut errors = workload::check_selector(selector.as_ref(), "deployment", &selector_path);
    match workload::meaning(selector.as_ref()) {
        Ok(selector) => {
            if !selector.is_everything() {
                errors.extend(workload::check_labels(&selector, template, &path));
            }
            errors.extend(pod_spec::validate_template(template, old, &path));
            errors.extend(workload::check_lasting(template, "ReplicaSet", &path));
        }
        Err(_) => {
            let shown = check::shown(&selector);
            errors.push(Error::invalid(&selector_path, shown, "invalid label selector"));
        }
    }
    errors
}

/// ReplicationControllers, which do not count those that go, are judged by the same rules.
pub(super) fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
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
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(workload::check_replicas(status, &parts, "readyReplicas"));
    errors
}
