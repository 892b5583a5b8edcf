//! What is sent to the API when a status has changed: no more than that.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use serde_json::{Map, Value, json};

use crate::pod::CONDITIONS;

/// The patch that makes one status of another. It holds only for the pod that it is made for, not
/// for another of the same name.
pub(crate) fn status(pod: &Pod, old: &PodStatus, new: &PodStatus) -> Value {
    let object = |status: &PodStatus| match serde_json::to_value(status) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (old, new) = (object(old), object(new));
    let mut changes = Map::new();
    for (name, value) in &new {
        if old.get(name) == Some(value) {
            continue;
        }
        let value = match name.as_str() {
            "conditions" => conditions(value, old.get(name)),
            // These would be merged by address, and old ones stay.
            "podIPs" | "hostIPs" => replaced(value),
            _ => value.clone(),
        };
        changes.insert(name.clone(), value);
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        if OURS.contains(&name.as_str()) {
            changes.insert(name.clone(), Value::Null);
        }
    }
    json!({"metadata": {"uid": pod.metadata.uid}, "status": changes})
}

/// What may be taken away again; the rest of a status belongs to others.
const OURS: [&str; 4] = ["podIP", "podIPs", "reason", "message"];

/// Conditions are merged by type, and what one does not mention stays as it was: so it mentions
/// all. Those that are there no more are taken away by name.
fn conditions(value: &Value, old: Option<&Value>) -> Value {
    let mut conditions = value.clone();
    for condition in conditions.as_array_mut().into_iter().flatten() {
        if let Value::Object(condition) = condition {
            for name in ["reason", "message"] {
                condition.entry(name).or_insert(Value::Null);
            }
        }
    }
    let types = |list: &Value| -> Vec<Value> {
        list.as_array().into_iter().flatten().map(|it| it["type"].clone()).collect()
    };
    let (kept, before) = (types(value), old.map(types).unwrap_or_default());
    if let Value::Array(all) = &mut conditions {
        let gone = before.into_iter().filter(|type_| !kept.contains(type_));
        all.extend(gone.map(|type_| json!({"$patch": "delete", "type": type_})));
    }
    conditions
}

fn replaced(value: &Value) -> Value {
    let mut list = value.as_array().cloned().unwrap_or_default();
    list.push(json!({"$patch": "replace"}));
    Value::Array(list)
}

/// Takes over what others have written into a status.
pub(crate) fn take_foreign(ours: &mut PodStatus, theirs: Option<&PodStatus>) {
    let Some(theirs) = theirs else { return };
    let is_ours = |type_: &str| CONDITIONS.contains(&type_);
    let mut conditions: Vec<_> =
        theirs.conditions.iter().flatten().filter(|it| !is_ours(&it.type_)).cloned().collect();
    let kept = ours.conditions.take().unwrap_or_default();
    conditions.extend(kept.into_iter().filter(|it| is_ours(&it.type_)));
    ours.conditions = Some(conditions);
    ours.qos_class.clone_from(&theirs.qos_class);
}

/// Takes over what others have made of our own part of a status, so that it is put right: pods of
/// a node that was silent, for example, are taken for not ready.
pub(crate) fn take_altered(ours: &mut PodStatus, theirs: Option<&PodStatus>) {
    let Some(theirs) = theirs else { return };
    for theirs in theirs.conditions.iter().flatten() {
        let known = ours.conditions.iter_mut().flatten().find(|it| it.type_ == theirs.type_);
        if let Some(known) = known.filter(|known| known.status != theirs.status) {
            known.clone_from(theirs);
        }
    }
    if matches!(theirs.phase.as_deref(), Some("Succeeded" | "Failed")) {
        // Nothing leads out of these, whoever said it.
        ours.phase.clone_from(&theirs.phase);
    } else if ours.phase != theirs.phase {
        ours.phase = None;
    }
    ours.pod_ip.clone_from(&theirs.pod_ip);
    let lists = [
        (&mut ours.init_container_statuses, &theirs.init_container_statuses),
        (&mut ours.container_statuses, &theirs.container_statuses),
        (&mut ours.ephemeral_container_statuses, &theirs.ephemeral_container_statuses),
    ];
    for (ours, theirs) in lists {
        // Not what the API may show in other words, as times: that would be put right without end.
        let seen = |all: &Option<Vec<ContainerStatus>>| -> Vec<_> {
            let all = all.iter().flatten();
            all.map(|it| (it.name.clone(), it.ready, it.restart_count, kind(&it.state))).collect()
        };
        if seen(ours) != seen(theirs) {
            ours.clone_from(theirs);
        }
    }
}

/// Whether a container waits, runs or has ended.
fn kind(state: &Option<ContainerState>) -> [bool; 3] {
    let state = state.as_ref();
    let has = |has: fn(&ContainerState) -> bool| state.is_some_and(has);
    [
        has(|it| it.waiting.is_some()),
        has(|it| it.running.is_some()),
        has(|it| it.terminated.is_some()),
    ]
}
