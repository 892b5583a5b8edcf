//! DefaultStorageClass and DefaultIngressClass: a claim or an ingress that names no class gets the
//! default one.

use std::cmp::Reverse;

use kubewright_apimachinery::quota::BETA_STORAGE_CLASS;
use kubewright_apimachinery::time::Time;
use serde_json::Value;

use super::{Attributes, Scene};
use crate::meta;
use crate::refusal::Refusal;

const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
const DEFAULT_STORAGE_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

pub(super) fn admit_claim(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    claim: &mut Value,
) -> Result<(), Refusal> {
    if attributes.creates() && !names_class(claim, BETA_STORAGE_CLASS, "storageClassName") {
        let class = default(scene, "/registry/storageclasses/", &DEFAULT_STORAGE_CLASS);
        set(claim, "storageClassName", class);
    }
    Ok(())
}

pub(super) fn admit_ingress(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    ingress: &mut Value,
) -> Result<(), Refusal> {
    if attributes.creates() && !names_class(ingress, INGRESS_CLASS, "ingressClassName") {
        let class = default(scene, "/registry/ingressclasses/", &DEFAULT_INGRESS_CLASS);
        set(ingress, "ingressClassName", class);
    }
    Ok(())
}

fn names_class(object: &Value, annotation: &str, field: &str) -> bool {
    object["metadata"]["annotations"].get(annotation).is_some()
        || object["spec"].get(field).is_some_and(|class| !class.is_null())
}

/// The class that is marked as default; the newest, should there be several.
fn default(scene: &Scene<'_>, prefix: &str, marks: &[&str]) -> Option<Value> {
    let is_default = |class: &Value| {
        let annotations = &class["metadata"]["annotations"];
        marks.iter().any(|mark| annotations[*mark] == "true")
    };
    let age = |class: &Value| {
        let made = Time::parse(meta::text(class, "creationTimestamp"));
        Reverse(made.map_or(0, Time::unix_seconds))
    };
    // The first by name, among those of one second.
    scene.list(prefix).into_iter().filter(is_default).min_by_key(age)
}

fn set(object: &mut Value, field: &str, class: Option<Value>) {
    if let Some(class) = class {
        object["spec"][field] = meta::text(&class, "name").into();
    }
}
