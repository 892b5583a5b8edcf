//! TaintNodesByCondition: nothing is scheduled to a new node before it says that it is ready.

use serde_json::{Value, json};

use super::{Attributes, Scene, items, list_of};
use crate::refusal::Refusal;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn admit(
    _scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    node: &mut Value,
) -> Result<(), Refusal> {
    let is_tainted = |node: &Value| {
        let mut taints = items(&node["spec"]["taints"]).iter();
        taints.any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule")
    };
    if attributes.creates() && !is_tainted(node) {
        let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
        list_of(&mut node["spec"], "taints").push(taint);
    }
    Ok(())
}
