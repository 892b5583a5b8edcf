//! Amounts of resources as typed objects have them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_apimachinery::quantity::Quantity;

pub(crate) use kubewright_apimachinery::resources::pod::{Need, total};
pub(crate) use kubewright_apimachinery::resources::{
    Amounts, CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, amounts, is_extended, is_huge_page,
    is_native, is_overcommit_allowed, is_pod_level,
};

/// Reads amounts of a typed object.
pub(crate) fn typed_amounts(list: Option<&BTreeMap<String, Text>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.map(|(name, amount)| (name.clone(), quantity(amount))).collect()
}

/// Reads an amount of a typed object.
pub(crate) fn quantity(text: &Text) -> Quantity {
    Quantity::parse(&text.0).expect("an object in normal form has sound quantities")
}
