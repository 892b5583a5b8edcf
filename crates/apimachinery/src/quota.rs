//! What a ResourceQuota counts: how much an object uses, under which names, and in which scopes.
//!
//! The server charges a quota with it before a write, a controller counts anew with it what is
//! there. Neither is done here.

mod claim;
mod device;
mod pod;
mod service;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::quantity::{Format, Quantity};
use crate::resources::{Amounts, items, text};

pub use claim::{BETA_STORAGE_CLASS, storage_class};
pub use pod::is_terminating;

/// Counts the objects of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// By number only, under these names; the object itself is not looked at.
    Objects(Vec<String>),
}

/// What a quota can see of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub usage: Amounts,
    /// What the object is in the language of scopes. A scope that is not here does not cover it.
    traits: BTreeMap<&'static str, Trait>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Trait {
    /// The scope covers the object, whatever its operator.
    Holds,
    /// The scope covers the object if one of these, or their absence, is what it selects.
    Classes(BTreeSet<String>),
}

impl Evaluator {
    /// `None` for what is never counted: questions, and Events, which come and go.
    pub fn of(group: &str, resource: &str) -> Option<Evaluator> {
        Some(match (group, resource) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::Claims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::DeviceClaims,
            ("", "bindings" | "componentstatuses" | "events") | ("events.k8s.io", "events") => {
                return None;
            }
            ("authentication.k8s.io" | "authorization.k8s.io", _) => return None,
            (
                "",
                name @ ("configmaps" | "replicationcontrollers" | "resourcequotas" | "secrets"),
            ) => Evaluator::Objects(vec![format!("count/{name}"), name.to_owned()]),
            ("", name) => Evaluator::Objects(vec![format!("count/{name}")]),
            (group, name) => Evaluator::Objects(vec![format!("count/{name}.{group}")]),
        })
    }

    /// Whether a quota for this is about such objects.
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => pod::counts(name),
            Evaluator::Services => service::counts(name),
            Evaluator::Claims => claim::counts(name),
            Evaluator::DeviceClaims => device::counts(name),
            Evaluator::Objects(names) => names.iter().any(|own| own == name),
        }
    }

    /// Whether an object says what is needed to count it; if not, what is missing.
    pub fn check(&self, restricted: &[&str], object: &Value) -> Result<(), String> {
        match self {
            Evaluator::Pods => pod::check(restricted, object),
            _ => Ok(()),
        }
    }

    pub fn measure(&self, object: &Value, now: Timestamp) -> Footprint {
        let (usage, traits) = match self {
            Evaluator::Pods => (pod::usage(object, now), pod::traits(object)),
            Evaluator::Services => (service::usage(object), BTreeMap::new()),
            Evaluator::Claims => (claim::usage(object), claim::traits(object)),
            Evaluator::DeviceClaims => (device::usage(object), BTreeMap::new()),
            Evaluator::Objects(names) => {
                (names.iter().map(|name| (name.clone(), count(1))).collect(), BTreeMap::new())
            }
        };
        Footprint { usage, traits }
    }
}

impl Footprint {
    /// Whether a quota with this `spec` is about the object, as far as scopes say.
    pub fn is_in_scope(&self, spec: &Value) -> bool {
        let mut named = items(&spec["scopes"]).iter();
        let mut selected = items(&spec["scopeSelector"]["matchExpressions"]).iter();
        named.all(|scope| self.is_covered(text(scope), EXISTS, &[]))
            && selected.all(|one| {
                let (name, operator) = (text(&one["scopeName"]), text(&one["operator"]));
                self.is_covered(name, operator, items(&one["values"]))
            })
    }

    fn is_covered(&self, scope: &str, operator: &str, values: &[Value]) -> bool {
        let classes = match self.traits.get(scope) {
            None => return false,
            Some(Trait::Holds) => return true,
            Some(Trait::Classes(classes)) => classes,
        };
        let is_listed = |class: &String| values.iter().any(|value| value == class);
        match operator {
            "In" => classes.iter().any(is_listed),
            "NotIn" => classes.is_empty() || !classes.iter().all(is_listed),
            EXISTS => !classes.is_empty(),
            _ => classes.is_empty(),
        }
    }
}

const EXISTS: &str = "Exists";

/// A number of things.
fn count(number: i64) -> Quantity {
    Quantity::new(number, 0, Format::DecimalSi)
}
