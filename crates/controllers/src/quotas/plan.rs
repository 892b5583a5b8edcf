//! What the status of a quota should say.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubewright_apimachinery::quota::Evaluator;
use kubewright_apimachinery::resources::{Amounts, amounts};
use serde_json::{Value, json};

/// The objects of one resource, in the namespace of a quota.
pub(super) struct Count {
    pub(super) evaluator: Evaluator,
    /// None if they could not be read.
    pub(super) objects: Option<Vec<Value>>,
}

/// The status that a quota should have, if it has another. Of what could not be counted, the last
/// count stands.
pub(super) fn plan(quota: &Value, counts: &[Count], now: Timestamp) -> Option<Value> {
    let (spec, status) = (&quota["spec"], &quota["status"]);
    let hard = amounts(spec.get("hard"));
    let before = amounts(status.get("used"));
    let mut used = before.clone();
    used.extend(usage(spec, &hard, counts, now));
    used.retain(|name, _| hard.contains_key(name));
    let is_right = amounts(status.get("hard")) == hard && before == used;
    (!is_right).then(|| json!({ "hard": spec.get("hard"), "used": used }))
}

/// What is used of everything that could be counted.
fn usage(spec: &Value, hard: &Amounts, counts: &[Count], now: Timestamp) -> Amounts {
    let mut usage = Amounts::new();
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for Count { evaluator, objects } in counts {
        let names = hard.keys().map(String::as_str).filter(|name| evaluator.counts(name));
        let Some(objects) = objects else {
            unknown.extend(names);
            continue;
        };
        // Of what nobody uses, nothing is used.
        for name in names {
            usage.entry(name.to_owned()).or_default();
        }
        let footprints = objects.iter().map(|object| evaluator.measure(object, now));
        for footprint in footprints.filter(|footprint| footprint.is_in_scope(spec)) {
            for (name, amount) in &footprint.usage {
                if let Some(sum) = usage.get_mut(name).filter(|_| evaluator.counts(name)) {
                    sum.add(amount);
                }
            }
        }
    }
    usage.retain(|name, _| !unknown.contains(name.as_str()));
    usage
}
