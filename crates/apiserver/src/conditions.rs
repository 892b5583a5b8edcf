//! Conditions: what a status says of an object, one entry for each thing that may be said.

use serde_json::{Value, json};

/// Whether a status says so.
pub(crate) fn is_true(status: &Value, what: &str) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == what && condition["status"] == "True")
}

/// Sets a condition of a status. When it became true stays as it is unless the state changes.
pub(crate) fn set(status: &mut Value, mut condition: Value) {
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] && known["lastTransitionTime"].is_string() {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
