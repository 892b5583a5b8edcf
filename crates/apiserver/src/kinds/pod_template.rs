//! PodTemplates: what pods are made from, as an object of its own.

use k8s_openapi::api::core::v1::PodTemplate;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Context, Rules, pod_spec, typed};

pub(super) const RULES: Rules =
    Rules { default, prepare_create, prepare_update, validate, validate_update, ..Rules::PLAIN };

fn default(object: &mut Value) {
    if let Some(template) = object.get_mut("template") {
        pod_spec::default_template(template);
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["metadata"]["generation"] = 1.into();
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
    let changed = object["template"] != old["template"];
    object["metadata"]["generation"] = (generation + i64::from(changed)).into();
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
