//! What can be done to a pod besides changing it: it is bound to a node, or asked to leave one.
//!
//! Either is told by an object that plugins see like any other, and that is never stored.

mod binding;
mod eviction;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

pub(crate) use binding::bind;
pub(crate) use eviction::evict;

/// Sets a condition of a status. When it became true stays as it is unless the state changes.
fn set_condition(status: &mut Value, mut condition: Value) {
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
