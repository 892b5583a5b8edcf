//! What a pod needs as a whole.

use serde_json::Value;

use super::{items, text};
use crate::kinds::pod_spec::resources::{Amounts, Need, amounts, is_pod_level, total};

/// Which side of a container's resources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Requests,
    Limits,
}

impl Side {
    pub(super) fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }

    /// What one container says.
    pub(super) fn of(self, container: &Value) -> Amounts {
        amounts(container["resources"].get(self.field()))
    }
}

/// What all containers need together, where `one` says what one of them does.
pub(super) fn of_containers(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let spec = &pod["spec"];
    let first = items(&spec["initContainers"]).iter().map(|container| match lasts(container) {
        true => Need::FromThenOn(one(container)),
        false => Need::AtFirst(one(container)),
    });
    let main = items(&spec["containers"]).iter().map(|container| Need::Always(one(container)));
    total(main.chain(first))
}

/// Whether an init container runs on beside the others.
pub(super) fn lasts(container: &Value) -> bool {
    text(&container["restartPolicy"]) == "Always"
}

/// Lets the resources of the pod as a whole take the place of those of its containers.
pub(super) fn override_with_pod_level(
    amounts: &mut Amounts,
    pod: &Value,
    side: Side,
    is_supported: fn(&str) -> bool,
) {
    let whole = side.of(&pod["spec"]);
    amounts.extend(whole.into_iter().filter(|(name, _)| is_supported(name)));
}

/// What a pod counts for, its overhead included.
pub(super) fn requests(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut requests = of_containers(pod, one);
    override_with_pod_level(&mut requests, pod, Side::Requests, is_pod_level);
    for (name, amount) in overhead(pod) {
        requests.entry(name).or_default().add(&amount);
    }
    requests
}

/// What a pod is held to, its overhead included where there is a limit.
pub(super) fn limits(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut limits = of_containers(pod, one);
    override_with_pod_level(&mut limits, pod, Side::Limits, is_pod_level);
    for (name, amount) in overhead(pod) {
        if let Some(limit) = limits.get_mut(&name).filter(|limit| !limit.is_zero()) {
            limit.add(&amount);
        }
    }
    limits
}

fn overhead(pod: &Value) -> Amounts {
    amounts(pod["spec"].get("overhead"))
}
