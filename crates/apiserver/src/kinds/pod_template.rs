//! PodTemplates: what pods are made from, as an object of its own.

use k8s_openapi::api::core::v1::PodTemplate;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Context, Rules, edit, pod_spec, typed};

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
    pod_spec::drop_disabled_template_fields(&mut object["template"], None);
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    pod_spec::drop_disabled_template_fields(&mut object["template"], old.get("template"));
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
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    let PodTemplate { template, .. } = typed(object);
    pod_spec::template_warnings(&template.unwrap_or_default(), &Path::new("template"))
}
