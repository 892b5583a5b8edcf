//! What resources are called where one asks for them, limits them or counts them, and which amounts
//! they can come in.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::{self, Amounts};
use serde_json::Value;

use super::check;

const REQUESTED_HUGE_PAGES_PREFIX: &str = "requests.hugepages-";
/// Amounts finer than a thousandth are rounded up.
const EXPONENT_MIN: i32 = -3;

/// What a container can have some of.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What a namespace can have some of.
const OF_QUOTAS: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
/// Objects, of which there are no halves.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Rounds the amounts of a list up to thousandths, as defaulting does.
pub(super) fn round_amounts(list: Option<&mut Value>) {
    for amount in list.and_then(Value::as_object_mut).into_iter().flat_map(|list| list.values_mut())
    {
        if let Ok(mut quantity) = Quantity::from_value(amount)
            && !quantity.round_up(EXPONENT_MIN)
        {
            *amount = quantity.to_string().into();
        }
    }
}

/// Reads amounts of a typed object.
pub(super) fn amounts(list: Option<&BTreeMap<String, resource::Quantity>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.map(|(name, amount)| (name.clone(), check::quantity(amount))).collect()
}

/// The name of any resource.
pub(super) fn validate(resource: &str, path: &Path<'_>) -> Vec<Error> {
    let errors = check::qualified_name(path, resource);
    if errors.is_empty() && !resource.contains('/') && !is_standard(resource) {
        let detail = "must be a standard resource type or fully qualified";
        return vec![Error::invalid(path, resource, detail)];
    }
    errors
}

/// The name of a resource that containers can ask for.
pub(super) fn validate_of_container(resource: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = validate(resource, path);
    if !resource.contains('/') {
        if !OF_CONTAINERS.contains(&resource) && !resources::is_huge_page(resource) {
            let detail = "must be a standard resource for containers";
            errors.push(Error::invalid(path, resource, detail));
        }
    } else if !resources::is_native(resource) && !resources::is_extended(resource) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(Error::invalid(path, resource, detail));
    }
    errors
}

/// The name of a resource that a quota can limit.
pub(super) fn validate_of_quota(resource: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = validate(resource, path);
    if !resource.contains('/') && !is_of_quota(resource) {
        errors.push(Error::invalid(path, resource, "must be a standard resource for quota"));
    }
    errors
}

/// An amount of a resource.
pub(super) fn validate_amount(resource: &str, amount: &Quantity, path: &Path<'_>) -> Vec<Error> {
    let mut errors: Vec<_> = amount.validate_non_negative(path).into_iter().collect();
    if COUNTED.contains(&resource) || resources::is_extended(resource) {
        errors.extend(amount.validate_integer(path));
    }
    errors
}

/// Whether quotas know the resource; they take others only with a prefix.
pub(super) fn is_of_quota(resource: &str) -> bool {
    OF_QUOTAS.contains(&resource)
        || resources::is_huge_page(resource)
        || resource.starts_with(REQUESTED_HUGE_PAGES_PREFIX)
}

fn is_standard(resource: &str) -> bool {
    resource == "storage" || is_of_quota(resource)
}
