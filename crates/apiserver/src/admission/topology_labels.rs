//! PodTopologyLabels: a pod that is created on a node, or bound to one, learns in which zone and
//! region it is.

use serde_json::Value;

use super::{Attributes, Scene, text};
use crate::meta;
use crate::refusal::Refusal;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> Result<(), Refusal> {
    let node = match attributes.part {
        None if attributes.creates() => text(&object["spec"]["nodeName"]),
        // What a binding says of a pod's metadata becomes the pod's.
        Some("binding") if object["target"]["kind"] == "Node" => text(&object["target"]["name"]),
        _ => "",
    };
    if node.is_empty() {
        return Ok(());
    }
    let Some(node) = scene.get(&format!("/registry/minions/{node}")) else { return Ok(()) };
    for label in LABELS {
        if let Some(value) = node["metadata"]["labels"].get(label) {
            meta::put(object, "labels", label, text(value));
        }
    }
    Ok(())
}
