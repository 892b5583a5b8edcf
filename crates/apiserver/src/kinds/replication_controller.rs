//! ReplicationControllers: so many pods of a template at all times; what ReplicaSets grew out of.

use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerSpec, ReplicationControllerStatus,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Selector;
use serde_json::{Value, json};

use super::{Context, Field, Part, Rules, check, edit, pod_spec, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[("status", STATUS)],
    reset: &["status"],
    fields: &[Field::Made("status.replicas", replicas)],
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    prepare_update: edit::keep_spec,
    validate_update: validate_status_update,
    reset: &["spec"],
    ..Part::PLAIN
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
    if let Some(template) = object["spec"].get_mut("template") {
        pod_spec::drop_disabled_template_fields(template, None);
    }
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    if let Some(template) = object["spec"].get_mut("template") {
        pod_spec::drop_disabled_template_fields(template, old["spec"].get("template"));
    }
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
    let at = Path::new("spec");
    let mut errors = Vec::new();
    errors
        .extend(non_negative(spec.min_ready_seconds.map(i64::from), &at.child("minReadySeconds")));
    let selector = Selector::from_labels(spec.selector.iter().flatten());
    if selector.is_everything() {
        errors.push(Error::required(&at.child("selector"), ""));
    }
    errors.extend(non_negative(spec.replicas.map(i64::from), &at.child("replicas")));

    let at = at.child("template");
    let Some(template) = &spec.template else {
        errors.push(Error::required(&at, ""));
        return errors;
    };
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    if !selector.matches(&labels) {
        errors.push(Error::invalid(
            &at.child("metadata").child("labels"),
            json!(labels),
            "`selector` does not match template `labels`",
        ));
    }
    errors.extend(pod_spec::validate_template(template, old, &at));
    let at = at.child("spec");
    if let Some(pod) = &template.spec {
        let policy = pod.restart_policy.as_deref().unwrap_or_default();
        if policy != "Always" {
            errors.push(Error::not_supported(&at.child("restartPolicy"), policy, &["Always"]));
        }
        if pod.active_deadline_seconds.is_some() {
            errors.push(Error::forbidden(
                &at.child("activeDeadlineSeconds"),
                "activeDeadlineSeconds in ReplicationController is not Supported",
            ));
        }
    }
    errors
}

fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
    let controller: ReplicationController = typed(object);
    let ReplicationControllerStatus {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        observed_generation,
        ..
    } = controller.status.unwrap_or_default();
    let at = Path::new("status");
    let counts = [
        ("fullyLabeledReplicas", fully_labeled_replicas),
        ("readyReplicas", ready_replicas),
        ("availableReplicas", available_replicas),
    ];
    let mut errors = Vec::new();
    errors.extend(non_negative(Some(replicas.into()), &at.child("replicas")));
    for (name, count) in counts {
        errors.extend(non_negative(count.map(i64::from), &at.child(name)));
    }
    errors.extend(non_negative(observed_generation, &at.child("observedGeneration")));
    for (name, count) in counts {
        if let Some(count) = count.filter(|count| *count > replicas) {
            errors.push(Error::invalid(
                &at.child(name),
                count,
                "cannot be greater than status.replicas",
            ));
        }
    }
    if let Some(available) = available_replicas.filter(|n| *n > ready_replicas.unwrap_or_default())
    {
        errors.push(Error::invalid(
            &at.child("availableReplicas"),
            available,
            "cannot be greater than readyReplicas",
        ));
    }
    errors
}

fn non_negative(value: Option<i64>, path: &Path<'_>) -> Option<Error> {
    check::non_negative(path, value?)
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let controller: ReplicationController = typed(object);
    let path = Path::new("spec");
    let path = path.child("template");
    let Some(old) = old else {
        let name = controller.metadata.name.unwrap_or_default();
        let mut warnings = Vec::new();
        let problems = name::dns1123_label(&name);
        if !problems.is_empty() {
            warnings.push(format!(
                "metadata.name: this is used in Pod names and hostnames, which can result in \
                 surprising behavior; a DNS label is recommended: [{}]",
                problems.join(" ")
            ));
        }
        let template = controller.spec.and_then(|spec| spec.template);
        warnings.extend(template.iter().flat_map(|t| pod_spec::template_warnings(t, &path)));
        return warnings;
    };
    let old: ReplicationController = typed(old);
    if old.metadata.generation == controller.metadata.generation {
        return Vec::new();
    }
    // Upstream takes the old template for the new one here.
    let template = old.spec.and_then(|spec| spec.template);
    template.iter().flat_map(|template| pod_spec::template_warnings(template, &path)).collect()
}

fn replicas(object: &Value) -> String {
    object["status"]["replicas"].as_i64().unwrap_or_default().to_string()
}
