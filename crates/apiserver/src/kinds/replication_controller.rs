//! ReplicationControllers: so many pods of a template at all times; what ReplicaSets grew out of.

use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerSpec,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::selector::label::Selector;
use serde_json::{Value, json};

use super::workload::{self, TEMPLATE};
use super::{Context, Field, Part, Rules, check, edit, pod_spec, replica_set, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[(
        "status",
        Part { validate_update: replica_set::validate_status_update, ..Part::STATUS },
    )],
    reset: &["status"],
    fields: &[Field::Made("status.replicas", replicas)],
    ..Rules::PLAIN
};

/// Annotations under which a conversion kept what it could not convert.
const NON_CONVERTIBLE: &str = "non-convertible.kubernetes.io/";

fn default(object: &mut Value) {
    if let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() {
        edit::fill(&mut object["spec"], "selector", labels.clone());
        edit::fill(&mut object["metadata"], "labels", labels);
    }
    edit::within(object, "spec", |spec| {
        edit::fill(spec, "replicas", 1);
        edit::within(spec, "template", pod_spec::default_template);
    });
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
    let controller: ReplicationController = typed(object);
    check_spec(&controller.spec.unwrap_or_default(), None)
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (ReplicationController, ReplicationController) = (typed(object), typed(old));
    let (spec, old_spec) = (new.spec.unwrap_or_default(), old.spec.unwrap_or_default());
    let mut errors = check_spec(&spec, old_spec.template.as_ref());
    for (key, value) in old.metadata.annotations.iter().flatten() {
        let Some(field) = key.strip_prefix(NON_CONVERTIBLE) else { continue };
        if !field.contains("selector") {
            let mut error = Error::not_found(&Path::new(field), value.as_str());
            error.detail = "unknown non-convertible field".to_owned();
            errors.push(error);
        } else if spec.selector != old_spec.selector {
            let at = Path::new("spec");
            errors.push(Error::invalid(
                &at.child("selector"),
                json!(spec.selector),
                "cannot update non-convertible selector",
            ));
        }
    }
    errors
}

fn check_spec(spec: &ReplicationControllerSpec, old: Option<&PodTemplateSpec>) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    let count = |name: &str, count: Option<i32>| check::non_negative(&path.child(name), count?);
    errors.extend(count("minReadySeconds", spec.min_ready_seconds));
    let selector = Selector::from_labels(spec.selector.iter().flatten());
    if selector.is_everything() {
        errors.push(Error::required(&path.child("selector"), ""));
    }
    errors.extend(count("replicas", spec.replicas));
    let template_path = path.child("template");
    match &spec.template {
        Some(template) => {
            errors.extend(workload::check_labels(&selector, template, &template_path));
            errors.extend(pod_spec::validate_template(template, old, &template_path));
            let owner = "ReplicationController";
            errors.extend(workload::check_lasting(template, owner, &template_path));
        }
        None => errors.push(Error::required(&template_path, "")),
    }
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        // Upstream takes the old template for the new one here.
        Some(old) if workload::is_another(object, Some(old)) => {
            workload::template_warnings(old, TEMPLATE, &Path::new("spec.template"))
        }
        old => workload::warnings(object, old),
    }
}

fn replicas(object: &Value) -> String {
    object["status"]["replicas"].as_i64().unwrap_or_default().to_string()
}
