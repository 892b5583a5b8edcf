//! Claims that are made for a volume of one pod.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, TypedLocalObjectReference,
    TypedObjectReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name::object_meta;
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::json;

use crate::kinds::check::{self, list, text};
use crate::kinds::pod_spec::resources;

const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const ALONE: &str = "ReadWriteOncePod";
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const CLAIM: &str = "PersistentVolumeClaim";

pub(super) fn validate_template(
    template: &PersistentVolumeClaimTemplate,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(metadata) = &template.metadata {
        errors.extend(validate_metadata(metadata, &path.child("metadata")));
    }
    errors.extend(validate_spec(&template.spec, &path.child("spec")));
    errors
}

/// Labels and annotations are all that a claim can take over.
fn validate_metadata(metadata: &ObjectMeta, path: &Path<'_>) -> Vec<Error> {
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

fn validate_spec(spec: &PersistentVolumeClaimSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let modes_path = path.child("accessModes");
    let modes = list(&spec.access_modes);
    if modes.is_empty() {
        errors.push(Error::required(&modes_path, "at least 1 access mode is required"));
    }
    errors.extend(check::selector(
        &path.child("selector"),
        spec.selector.as_ref(),
        Leniency::default(),
    ));
    errors.extend(modes.iter().filter_map(|m| check::one_of(&modes_path, m, ACCESS_MODES)));
    let is_shared = |mode: &String| mode != ALONE && ACCESS_MODES.contains(&mode.as_str());
    if modes.iter().any(|mode| mode == ALONE) && modes.iter().any(is_shared) {
        let problem = "may not use ReadWriteOncePod with other access modes";
        errors.push(Error::forbidden(&modes_path, problem));
    }
    errors.extend(validate_size(spec, path));
    if let Some(class) = spec.storage_class_name.as_ref().filter(|class| !class.is_empty()) {
        errors.extend(check::dns_subdomain(&path.child("storageClassName"), class));
    }
    if let Some(mode) = &spec.volume_mode {
        errors.extend(check::one_of(&path.child("volumeMode"), mode, VOLUME_MODES));
    }
    errors.extend(validate_sources(spec, path));
    let attributes = spec.volume_attributes_class_name.as_ref();
    if let Some(class) = attributes.filter(|class| !class.is_empty()) {
        errors.extend(check::dns_subdomain(&path.child("volumeAttributesClassName"), class));
    }
    errors
}

fn validate_size(spec: &PersistentVolumeClaimSpec, path: &Path<'_>) -> Option<Error> {
    let path = path.child("resources");
    let path = path.key("storage");
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    match requests.and_then(|requests| requests.get("storage")).map(resources::quantity) {
        None => Some(Error::required(&path, "")),
        Some(size) => (size.is_negative() || size.is_zero())
            .then(|| Error::invalid(&path, size.to_string(), "must be greater than zero")),
    }
}

fn validate_sources(spec: &PersistentVolumeClaimSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    // Upstream puts a path where the value should be, which prints as nothing at all.
    let refuse = |problem: &str| Error::invalid(path, json!({}), problem);
    if let Some(TypedLocalObjectReference { api_group, kind, name }) = &spec.data_source {
        errors.extend(validate_source(name, kind, text(api_group), &path.child("dataSource")));
    }
    let Some(reference) = &spec.data_source_ref else { return errors };
    let TypedObjectReference { api_group, kind, name, namespace } = reference;
    let reference_path = path.child("dataSourceRef");
    errors.extend(validate_source(name, kind, text(api_group), &reference_path));
    let namespace = text(namespace);
    if !namespace.is_empty() {
        errors.extend(check::dns_label(&reference_path.child("namespace"), namespace));
    }
    if let Some(source) = &spec.data_source {
        if !namespace.is_empty() {
            errors.push(refuse("may not be specified when dataSourceRef.namespace is specified"));
        } else if (&source.api_group, &source.kind, &source.name) != (api_group, kind, name) {
            errors.push(refuse("must match dataSourceRef"));
        }
    }
    errors
}

fn validate_source(name: &str, kind: &str, group: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("name"), name));
    errors.extend(check::required(&path.child("kind"), kind));
    if group.is_empty() && kind != CLAIM {
        let problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(Error::invalid(path, kind, problem));
    }
    if !group.is_empty() {
        let path = path.child("apiGroup");
        errors.extend(check::dns_subdomain(&path, group));
    }
    errors
}
