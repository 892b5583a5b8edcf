//! PodResizeValidator: a pod is not asked to become larger than its node.

use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::resources::amounts;
use kubewright_apimachinery::resources::pod::{self, Side};
use kubewright_apimachinery::status::Cause;
use serde_json::Value;

use super::{Attributes, Operation, Scene, text};
use crate::refusal::Refusal;

pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Refusal> {
    let node = text(&pod["spec"]["nodeName"]);
    let is_resize = attributes.operation == Operation::Update && attributes.part == Some("resize");
    let is_same = attributes
        .old
        .is_some_and(|old| old["metadata"]["generation"] == pod["metadata"]["generation"]);
    if !is_resize || node.is_empty() || is_same {
        return Ok(());
    }
    let Some(found) = scene.get(&format!("/registry/minions/{node}")) else {
        return Err(attributes.forbid(Some(pod), format!("node {} not found", go_quote(node))));
    };
    let refuse = |reason: &str, why: String| {
        let mut status = attributes.forbid(Some(pod), why);
        status.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: String::new(),
            field: String::new(),
        });
        Err(status)
    };
    let system = found["metadata"]["labels"]["kubernetes.io/os"].as_str().unwrap_or("linux");
    if system != "linux" {
        let why = format!(
            "pod resize is only supported on linux nodes, node {} is {}",
            go_quote(node),
            go_quote(system)
        );
        return refuse("UnsupportedPlatform", why);
    }
    let problems = excess(pod, &found);
    match problems.is_empty() {
        true => Ok(()),
        false => refuse(
            "NodeCapacity",
            format!("node didn't have enough allocatable resources: {}", problems.join("; ")),
        ),
    }
}

/// What a pod wants more of than its node has.
fn excess(pod: &Value, node: &Value) -> Vec<String> {
    let mut wanted = pod::requests(pod, |container| Side::Requests.of(container));
    let mut there = amounts(node["status"].get("allocatable"));
    let mut problems = Vec::new();
    for name in ["cpu", "memory"] {
        let wanted = wanted.remove(name).unwrap_or_default();
        let there = there.remove(name).unwrap_or_default();
        if wanted > there {
            let (wanted, there) = match name {
                "cpu" => (wanted.milli_value(), there.milli_value()),
                _ => (wanted.value(), there.value()),
            };
            problems.push(format!("{name}, requested: {wanted}, allocatable: {there}"));
        }
    }
    problems
}
