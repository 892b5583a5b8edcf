//! Amounts of resources, and what their names say about them.

pub mod pod;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::name;
use crate::quantity::Quantity;

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub const HUGE_PAGES_PREFIX: &str = "hugepages-";
const NATIVE_NAMESPACE: &str = "kubernetes.io/";
const QUOTA_PREFIX: &str = "requests.";

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// Reads amounts of a tree in normal form.
pub fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_value(amount).ok()?)))
        .collect()
}

/// Adds each amount to its sum.
pub fn add(sum: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        match sum.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => {
                sum.insert(name.clone(), amount.clone());
            }
        }
    }
}

pub fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

/// A resource that Kubernetes itself knows: one without a domain, or of its own.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE_NAMESPACE)
}

/// A resource that somebody else has named, and that can be counted by quota.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(QUOTA_PREFIX)
        && name::label_key(&format!("{QUOTA_PREFIX}{name}")).is_empty()
}

/// More may be promised of it than there is.
pub fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Can be asked for a pod as a whole.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, CPU | MEMORY) || is_huge_page(name)
}

/// The items of a list, of which there are none when it is absent.
pub(crate) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a value, empty when it is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
