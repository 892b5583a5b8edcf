//! Amounts of resources, and what the containers of a pod need of them together.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_apimachinery::name;
use kubewright_apimachinery::quantity::Quantity;
use serde_json::Value;

pub(crate) const CPU: &str = "cpu";
pub(crate) const MEMORY: &str = "memory";
pub(crate) const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub(crate) const HUGE_PAGES_PREFIX: &str = "hugepages-";
const NATIVE_NAMESPACE: &str = "kubernetes.io/";
const QUOTA_PREFIX: &str = "requests.";

/// Amounts by resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// What one container needs, and when.
pub(crate) enum Need {
    /// As long as the pod runs.
    Always(Amounts),
    /// Before the others start, beside the lasting ones that were started before it.
    AtFirst(Amounts),
    /// From its turn among the init containers on, as long as the pod runs.
    FromThenOn(Amounts),
}

/// Reads amounts of a tree in normal form.
pub(crate) fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_value(amount).ok()?)))
        .collect()
}

/// Reads amounts of a typed object.
pub(crate) fn typed_amounts(list: Option<&BTreeMap<String, Text>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.map(|(name, amount)| (name.clone(), quantity(amount))).collect()
}

/// Reads an amount of a typed object.
pub(crate) fn quantity(text: &Text) -> Quantity {
    Quantity::parse(&text.0).expect("an object in normal form has sound quantities")
}

/// What all containers of a pod need together: the most that is in use at any one time.
pub(crate) fn total(needs: impl IntoIterator<Item = Need>) -> Amounts {
    let mut total = Amounts::new();
    let mut lasting = Amounts::new();
    let mut at_first = Amounts::new();
    for need in needs {
        match need {
            Need::Always(amounts) => add(&mut total, &amounts),
            Need::AtFirst(mut amounts) => {
                add(&mut amounts, &lasting);
                raise(&mut at_first, &amounts);
            }
            Need::FromThenOn(amounts) => {
                add(&mut total, &amounts);
                add(&mut lasting, &amounts);
                raise(&mut at_first, &lasting);
            }
        }
    }
    raise(&mut total, &at_first);
    total
}

fn add(sum: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        match sum.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => {
                sum.insert(name.clone(), amount.clone());
            }
        }
    }
}

fn raise(most: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        if most.get(name).is_none_or(|most| amount > most) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

/// A resource that Kubernetes itself knows: one without a domain, or of its own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE_NAMESPACE)
}

/// A resource that somebody else has named, and that can be counted by quota.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(QUOTA_PREFIX)
        && name::label_key(&format!("{QUOTA_PREFIX}{name}")).is_empty()
}

/// More may be promised of it than there is.
pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Can be asked for a pod as a whole.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, CPU | MEMORY) || is_huge_page(name)
}
