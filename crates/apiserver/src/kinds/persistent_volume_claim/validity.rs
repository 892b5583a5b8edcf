//! When a claim is valid.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources;
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::json;

use super::super::{check, internal};
use super::BETA_CLASS;

const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const SPEC: &str = "k8s.io/api/core/v1.PersistentVolumeClaimSpec";

/// What an old claim is forgiven.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::kinds) struct Forgiven {
    selector: Leniency,
    api_groups: bool,
}

pub(super) fn check(
    claim: &PersistentVolumeClaim,
    old: Option<&PersistentVolumeClaim>,
) -> Vec<Error> {
    let spec = claim.spec.clone().unwrap_or_default();
    let old = old.and_then(|old| old.spec.as_ref());
    check_spec(&spec, old.map(Forgiven::of).unwrap_or_default(), &Path::new("spec"))
}

/// The spec of a claim, also of one that is a template of claims.
pub(in crate::kinds) fn check_spec(
    spec: &PersistentVolumeClaimSpec,
    forgiven: Forgiven,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(Error::required(&at.child("accessModes"), detail));
    }
    if let Some(selector) = &spec.selector {
        let selector = check::label_selector(selector);
        errors.extend(selector.validate(forgiven.selector, &at.child("selector")));
    }
    errors.extend(check_access_modes(modes, &at.child("accessModes")));

    let resources_at = at.child("resources");
    let storage_at = resources_at.key("storage");
    let resources = spec.resources.as_ref();
    match resources.and_then(|resources| resources.requests.as_ref()?.get("storage")) {
        None => errors.push(Error::required(&storage_at, "")),
        Some(amount) => errors.extend(check_positive(&check::quantity(amount), &storage_at)),
    }
    if let Some(class) = spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        errors.extend(check::dns_subdomain(&at.child("storageClassName"), class));
    }
    if let Some(mode) = &spec.volume_mode {
        errors.extend(check::one_of(&at.child("volumeMode"), mode, &super::VOLUME_MODES));
    }
    errors.extend(check_data_sources(spec, forgiven, at));
    let class = spec.volume_attributes_class_name.as_deref();
    if let Some(class) = class.filter(|class| !class.is_empty()) {
        errors.extend(check::dns_subdomain(&at.child("volumeAttributesClassName"), class));
    }
    errors
}

/// Known ones, and one that excludes all others alone.
pub(in crate::kinds) fn check_access_modes(modes: &[String], at: &Path<'_>) -> Vec<Error> {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let unknown = modes.iter().filter_map(|mode| check::one_of(at, mode, &MODES));
    let mut errors: Vec<Error> = unknown.collect();
    let is_sole = |mode: &&String| *mode == "ReadWriteOncePod";
    let (sole, others): (Vec<&String>, Vec<&String>) =
        modes.iter().filter(|mode| MODES.contains(&mode.as_str())).partition(is_sole);
    if !sole.is_empty() && !others.is_empty() {
        errors.push(Error::forbidden(at, "may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

pub(in crate::kinds) fn check_positive(amount: &Quantity, at: &Path<'_>) -> Option<Error> {
    (amount.is_negative() || amount.is_zero())
        .then(|| Error::invalid(at, amount.to_string(), "must be greater than zero"))
}

fn check_data_sources(
    spec: &PersistentVolumeClaimSpec,
    forgiven: Forgiven,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(source) = &spec.data_source {
        let group = source.api_group.as_deref();
        let at = at.child("dataSource");
        errors.extend(check_source(group, &source.kind, &source.name, forgiven, &at));
    }
    let Some(reference) = &spec.data_source_ref else { return errors };
    let group = reference.api_group.as_deref();
    let reference_at = at.child("dataSourceRef");
    errors.extend(check_source(group, &reference.kind, &reference.name, forgiven, &reference_at));
    // Upstream shows the path to the field here, of which nothing can be seen.
    let refuse = |detail: &str| Error::invalid(at, json!({}), detail);
    let namespace = reference.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace {
        errors.extend(check::dns_label(&reference_at.child("namespace"), namespace));
        if spec.data_source.is_some() {
            errors.push(refuse("may not be specified when dataSourceRef.namespace is specified"));
        }
    } else if let Some(source) = &spec.data_source
        && (source.api_group.as_deref(), &source.kind, &source.name)
            != (group, &reference.kind, &reference.name)
    {
        errors.push(refuse("must match dataSourceRef"));
    }
    errors
}

fn check_source(
    group: Option<&str>,
    kind: &str,
    name: &str,
    forgiven: Forgiven,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(Error::required(&at.child("name"), ""));
    }
    if kind.is_empty() {
        errors.push(Error::required(&at.child("kind"), ""));
    }
    match group.unwrap_or_default() {
        "" if kind != "PersistentVolumeClaim" => {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(Error::invalid(at, kind, detail));
        }
        "" => {}
        _ if forgiven.api_groups => {}
        group => errors.extend(check::dns_subdomain(&at.child("apiGroup"), group)),
    }
    errors
}

/// A claim may be bound once. When it is, it may ask for more, and for other attributes.
pub(super) fn check_update(new: &PersistentVolumeClaim, old: &PersistentVolumeClaim) -> Vec<Error> {
    let mut errors = check(new, Some(old));
    let at = Path::new("spec");
    let (new_spec, old_spec) =
        (new.spec.clone().unwrap_or_default(), old.spec.clone().unwrap_or_default());
    let (mut new_fixed, mut old_fixed) = (new_spec.clone(), old_spec.clone());
    if old_spec.volume_name.as_deref().unwrap_or_default().is_empty() {
        old_fixed.volume_name.clone_from(&new_spec.volume_name);
    }
    errors.extend(fix_class(&mut new_fixed, &old_fixed, &new.metadata, &old.metadata));
    let is_bound = new.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    if is_bound {
        let old_requests = old_spec.resources.as_ref().and_then(|all| all.requests.as_ref());
        let old_storage = old_requests.and_then(|requests| requests.get("storage"));
        let requests = new_fixed.resources.as_mut().and_then(|all| all.requests.as_mut());
        if let (Some(requests), Some(storage)) = (requests, old_storage) {
            requests.insert("storage".to_owned(), storage.clone());
        }
        new_fixed.volume_attributes_class_name.clone_from(&old_fixed.volume_attributes_class_name);
    }
    if !is_same(&new_fixed, &old_fixed) {
        let changed = internal::diff(SPEC, &check::shown(&old_fixed), &check::shown(&new_fixed));
        errors.push(Error::forbidden(
            &at,
            format!(
                "spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims\n{changed}"
            ),
        ));
    }
    if requested(&new_spec) < requested(&old_spec) && requested(&new_spec) <= capacity(old) {
        let resources = at.child("resources");
        let requests = resources.child("requests");
        let detail = "field can not be less than status.capacity";
        errors.push(Error::forbidden(&requests.child("storage"), detail));
    }
    errors.extend(check::immutable(
        &Path::new("volumeMode"),
        &new_spec.volume_mode,
        &old_spec.volume_mode,
    ));
    errors.extend(check_attributes_change(&new_spec, old));
    errors
}

/// Takes a change of class that is allowed out of the comparison.
fn fix_class(
    new: &mut PersistentVolumeClaimSpec,
    old: &PersistentVolumeClaimSpec,
    new_metadata: &ObjectMeta,
    old_metadata: &ObjectMeta,
) -> Option<Error> {
    let annotation =
        |metadata: &ObjectMeta| metadata.annotations.as_ref()?.get(BETA_CLASS).cloned();
    let (new_class, old_class) = (annotation(new_metadata), annotation(old_metadata));
    let is_moved = old_class.is_some()
        && old.storage_class_name.is_none()
        && new.storage_class_name == old_class
        && (new_class.is_none() || new_class == old_class);
    if is_moved {
        new.storage_class_name = None;
        return None;
    }
    let is_given = new.storage_class_name.is_some()
        && old.storage_class_name.is_none()
        && (old_class.is_none() || new.storage_class_name == old_class);
    if is_given {
        new.storage_class_name = None;
    }
    let (new_text, old_text) = (new_class.unwrap_or_default(), old_class.unwrap_or_default());
    (new_text != old_text).then(|| {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        Error::invalid(&annotations.child(BETA_CLASS), new_text, "field is immutable")
    })
}

fn check_attributes_change(
    new: &PersistentVolumeClaimSpec,
    old: &PersistentVolumeClaim,
) -> Option<Error> {
    let old_class = old.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_ref());
    let current = old.status.as_ref()?.current_volume_attributes_class_name.as_ref();
    let new_class = new.volume_attributes_class_name.as_ref();
    if new_class == old_class || current.is_none() {
        return None;
    }
    let to = match new_class.map(String::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return None,
    };
    let at = Path::new("spec");
    Some(Error::forbidden(
        &at.child("volumeAttributesClassName"),
        format!(
            "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        ),
    ))
}

pub(super) fn check_status(claim: &PersistentVolumeClaim) -> Vec<Error> {
    let mut errors = Vec::new();
    let status = claim.status.clone().unwrap_or_default();
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    if modes.is_none_or(Vec::is_empty) {
        let spec = Path::new("Spec");
        errors.push(Error::required(&spec.child("accessModes"), ""));
    }
    let at = Path::new("status");
    let capacity_at = at.child("capacity");
    for (resource, amount) in status.capacity.iter().flatten() {
        errors.extend(check_amount(&check::quantity(amount), &capacity_at.key(resource)));
    }
    let statuses_at = at.child("allocatedResourceStatuses");
    for (resource, status) in status.allocated_resource_statuses.iter().flatten() {
        errors.extend(check_resource(resource, &statuses_at));
        if !RESIZE_STATUSES.contains(&status.as_str()) {
            // Upstream shows the resource, not its status.
            let error = Error::not_supported(&statuses_at, resource.as_str(), &RESIZE_STATUSES);
            errors.push(error);
        }
    }
    let resources_at = at.child("allocatedResources");
    for (resource, amount) in status.allocated_resources.iter().flatten() {
        let at = resources_at.key(resource);
        match check_resource(resource, &resources_at) {
            found if found.is_empty() => {
                errors.extend(check_amount(&check::quantity(amount), &at));
            }
            found => errors.extend(found),
        }
    }
    errors
}

fn check_resource(resource: &str, at: &Path<'_>) -> Vec<Error> {
    let errors: Vec<Error> = check::qualified_name(at, resource);
    if errors.is_empty() && resources::is_native(resource) {
        return check::one_of(at, resource, &["storage"]).into_iter().collect();
    }
    errors
}

pub(in crate::kinds) fn check_amount(amount: &Quantity, at: &Path<'_>) -> Option<Error> {
    (amount.value() < 0)
        .then(|| Error::invalid(at, amount.value(), "must be a valid resource quantity"))
}

impl Forgiven {
    fn of(old: &PersistentVolumeClaimSpec) -> Self {
        let selector = old.selector.as_ref().map(check::label_selector).unwrap_or_default();
        let complaints = selector.validate(Leniency::default(), &Path::ROOT);
        let source_group = old.data_source.as_ref().and_then(|source| source.api_group.as_ref());
        let reference = old.data_source_ref.as_ref();
        let reference_group = reference.and_then(|reference| reference.api_group.as_ref());
        Forgiven {
            selector: Leniency { invalid_values: !complaints.is_empty(), ..Leniency::default() },
            api_groups: source_group.is_some() || reference_group.is_some(),
        }
    }
}

/// Amounts are the same however they are written.
fn is_same(one: &PersistentVolumeClaimSpec, other: &PersistentVolumeClaimSpec) -> bool {
    let plain = |spec: &PersistentVolumeClaimSpec| {
        let mut spec = spec.clone();
        if let Some(resources) = &mut spec.resources {
            for amounts in [&mut resources.requests, &mut resources.limits].into_iter().flatten() {
                for amount in amounts.values_mut() {
                    let quantity = check::quantity(amount);
                    amount.0 =
                        quantity.value().to_string() + "/" + &quantity.milli_value().to_string();
                }
            }
        }
        spec
    };
    plain(one) == plain(other)
}

fn requested(spec: &PersistentVolumeClaimSpec) -> Quantity {
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    storage(requests.and_then(|requests| requests.get("storage")))
}

fn capacity(claim: &PersistentVolumeClaim) -> Quantity {
    let capacity = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    storage(capacity.and_then(|capacity| capacity.get("storage")))
}

fn storage(amount: Option<&k8s_openapi::apimachinery::pkg::api::resource::Quantity>) -> Quantity {
    amount.map(check::quantity).unwrap_or_default()
}
