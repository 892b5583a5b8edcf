//! PodTemplates: what pods are made from, as an object of its own.

use k8s_openapi::api::core::v1::PodTemplate;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Context, Rules, edit, pod_spec, typed, workload};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    if let Some(template) = object.get_mut("template") {
        pod_spec::default_template(template);
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    workload::drop_disabled(object, None, "/template");
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    workload::drop_disabled(object, Some(old), "/template");
    edit::next_generation(object, old, "template");
}

fn validate(object: &Value) -> Vec<Error> {
    check(&typed(object), None)
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    check(&typed(object), Some(&typed(old)))
}

fn check(template: &PodTemplate, old: Option<&PodTemplate>) -> Vec<Error> {
    let old = old.and_then(|old| old.template.as_ref());
    let template = template.template.clone().unwrap_or_default();
    pod_spec::validate_template(&template, old, &Path::new("template"))
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    match workload::is_another(object, old) {
        true => workload::template_warnings(object, "/template", &Path::new("template")),
        false => Vec::new(),
    }
}
