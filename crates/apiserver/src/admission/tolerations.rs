//! DefaultTolerationSeconds: a pod stays for five minutes on a node that went away, unless it says
//! otherwise.

use serde_json::{Value, json};

use super::{Attributes, Operation, Scene, items, list_of, text};
use crate::refusal::Refusal;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: u32 = 300;

pub(super) fn admit(
    _scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
    if attributes.part.is_some() || !is_write {
        return Ok(());
    }
    let tolerates = |taint: &str| {
        items(&pod["spec"]["tolerations"]).iter().any(|toleration| {
            let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
            (key == taint || key.is_empty()) && matches!(effect, "NoExecute" | "")
        })
    };
    let missing = TAINTS.map(|taint| (taint, !tolerates(taint)));
    for (taint, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
        list_of(&mut pod["spec"], "tolerations").push(json!({
            "key": taint, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": SECONDS,
        }));
    }
    Ok(())
}
