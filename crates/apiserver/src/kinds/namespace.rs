//! Namespaces, which go only when the last of their finalizers is gone.

use k8s_openapi::api::core::v1::Namespace;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Field, Part, Rules, check, edit, typed};
use crate::meta;

/// Selectors find namespaces by their names through this label.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The controller of namespaces removes it when nothing is left inside.
const FINALIZER: &str = "kubernetes";
/// Finalizers that need no domain before them.
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];

pub(super) const RULES: Rules = Rules {
    default,
    name: name::Rule::Label,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    parts: &[
        (
            "status",
            Part {
                prepare_update: |object, old, _| edit::restore(object, old, "spec"),
                validate_update: validate_status,
                reset: &["spec"],
                ..Part::PLAIN
            },
        ),
        (
            "finalize",
            Part {
                prepare_update: |object, old, _| edit::restore(object, old, "status"),
                validate_update: validate_finalize,
                reset: &["status"],
                ..Part::PLAIN
            },
        ),
    ],
    reset: &["status"],
    fields: &[Field::At("status.phase")],
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    put_name(object);
    edit::fill(object, "status", json!({}));
    edit::fill_text(&mut object["status"], "phase", "Active");
}

/// A namespace whose name is yet to be generated gets its label later.
fn put_name(object: &mut Value) {
    let name = edit::text(object, "/metadata/name").to_owned();
    if !name.is_empty() {
        meta::put(object, "labels", NAME_LABEL, &name);
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    put_name(object);
    object["status"] = json!({ "phase": "Active" });
    edit::fill(object, "spec", json!({}));
    edit::fill(&mut object["spec"], "finalizers", json!([]));
    let finalizers = object["spec"]["finalizers"].as_array_mut().expect("filled in above");
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    put_name(object);
    edit::restore(&mut object["spec"], &old["spec"], "finalizers");
    edit::restore(object, old, "status");
}

fn validate(object: &Value) -> Vec<Error> {
    let namespace: Namespace = typed(object);
    let spec = Path::new("spec");
    // Upstream does not say which of them is wrong.
    let at = spec.child("finalizers");
    finalizers(&namespace).flat_map(|finalizer| check_finalizer(finalizer, &at)).collect()
}

fn validate_update(object: &Value, _: &Value) -> Vec<Error> {
    validate(object)
}

fn validate_status(object: &Value, _: &Value) -> Vec<Error> {
    let namespace: Namespace = typed(object);
    let phase = namespace.status.and_then(|status| status.phase).unwrap_or_default();
    let (expected, problem) = match namespace.metadata.deletion_timestamp {
        None => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        Some(_) => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    if phase == expected {
        return Vec::new();
    }
    vec![Error::invalid(&Path::new("status").child("Phase"), phase, problem)]
}

fn validate_finalize(object: &Value, _: &Value) -> Vec<Error> {
    let namespace: Namespace = typed(object);
    let spec = Path::new("spec");
    let at = spec.child("finalizers");
    finalizers(&namespace)
        .enumerate()
        .flat_map(|(index, finalizer)| check_finalizer(finalizer, &at.index(index)))
        .collect()
}

fn finalizers(namespace: &Namespace) -> impl Iterator<Item = &str> {
    namespace.spec.iter().flat_map(|spec| spec.finalizers.iter().flatten()).map(String::as_str)
}

fn check_finalizer(finalizer: &str, at: &Path<'_>) -> Vec<Error> {
    let mut errors = check::qualified_name(at, finalizer);
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        let problem = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(Error::invalid(at, finalizer, problem));
    }
    errors
}
