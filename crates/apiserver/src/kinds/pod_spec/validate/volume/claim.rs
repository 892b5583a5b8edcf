//! Claims that are made for a volume of one pod.

use k8s_openapi::api::core::v1::PersistentVolumeClaimTemplate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name::object_meta;
use serde_json::json;

use crate::kinds::persistent_volume_claim::{self, Forgiven};

pub(super) fn validate_template(
    template: &PersistentVolumeClaimTemplate,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(metadata) = &template.metadata {
        errors.extend(validate_metadata(metadata, &path.child("metadata")));
    }
    let forgiven = Forgiven::default();
    errors.extend(persistent_volume_claim::check_spec(
        &template.spec,
        forgiven,
        &path.child("spec"),
    ));
    errors
}

/// Labels and annotations are all that a claim can take over.
pub(in crate::kinds) fn validate_metadata(metadata: &ObjectMeta, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let tree = |map: &Option<std::collections::BTreeMap<String, String>>| match json!(map) {
        serde_json::Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    errors.extend(object_meta::validate_annotations(
        &tree(&metadata.annotations),
        &path.child("annotations"),
    ));
    errors.extend(object_meta::validate_labels(&tree(&metadata.labels), &path.child("labels")));
    let others = [
        ("name", metadata.name.is_some()),
        ("generateName", metadata.generate_name.is_some()),
        ("namespace", metadata.namespace.is_some()),
        ("selfLink", metadata.self_link.is_some()),
        ("uID", metadata.uid.is_some()),
        ("resourceVersion", metadata.resource_version.is_some()),
        ("generation", metadata.generation.is_some()),
        ("creationTimestamp", metadata.creation_timestamp.is_some()),
        ("deletionTimestamp", metadata.deletion_timestamp.is_some()),
        ("deletionGracePeriodSeconds", metadata.deletion_grace_period_seconds.is_some()),
        ("ownerReferences", metadata.owner_references.is_some()),
        ("finalizers", metadata.finalizers.is_some()),
        ("managedFields", metadata.managed_fields.is_some()),
    ];
    let set = others.iter().filter(|(_, is_set)| *is_set);
    errors.extend(set.map(|(name, _)| Error::forbidden(&path.child(name), "cannot be set")));
    errors
}
