//! PodTopologyLabels: a pod that is created on a node learns in which zone and region it is.

use serde_json::Value;

use super::{Attributes, Scene, put_meta, text};
use crate::refusal::Refusal;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    let node = text(&pod["spec"]["nodeName"]);
    if !attributes.creates() || node.is_empty() {
        return Ok(());
    }
    let Some(node) = scene.get(&format!("/registry/minions/{node}")) else { return Ok(()) };
    for label in LABELS {
        if let Some(value) = node["metadata"]["labels"].get(label) {
            put_meta(pod, "labels", label, text(value));
        }
    }
    Ok(())
}
