//! How well a pod is served when a node runs short.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::resources::{Amounts, CPU, MEMORY};

use crate::kinds::resource_name;

/// `Guaranteed` when everything that is limited is requested in full, `BestEffort` when nothing is
/// asked for, and else `Burstable`.
pub(super) fn class(spec: &PodSpec) -> &'static str {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let of_containers: Vec<_> =
        containers.map(|container| container.resources.clone().unwrap_or_default()).collect();
    // What is asked for the whole decides alone.
    let all: Vec<&ResourceRequirements> = match &spec.resources {
        Some(resources) => vec![resources],
        None => of_containers.iter().collect(),
    };
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    for resources in &all {
        add(&mut requests, resources.requests.as_ref());
        let limited = add(&mut limits, resources.limits.as_ref());
        // A pod that limits nothing as a whole is not looked at for what it leaves out.
        let may_be_absent = spec.resources.is_some() && resources.limits.is_none();
        all_limited &= limited || may_be_absent;
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds what counts, and tells whether all that counts was there.
fn add(sum: &mut Amounts, amounts: Option<&BTreeMap<String, Quantity>>) -> bool {
    let mut amounts = resource_name::amounts(amounts);
    amounts.retain(|name, amount| {
        matches!(name.as_str(), CPU | MEMORY) && !amount.is_zero() && !amount.is_negative()
    });
    let is_complete = amounts.len() == 2;
    for (name, amount) in amounts {
        match sum.get_mut(&name) {
            Some(sum) => sum.add(&amount),
            None => {
                sum.insert(name, amount);
            }
        }
    }
    is_complete
}
