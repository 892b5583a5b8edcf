//! What a pod needs as a whole.

use serde_json::Value;

use super::{Amounts, add, amounts, is_pod_level, items, text};

/// Which side of a container's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Requests,
    Limits,
}

impl Side {
    pub fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }

    /// What one container says.
    pub fn of(self, container: &Value) -> Amounts {
        amounts(container["resources"].get(self.field()))
    }
}

/// What one container needs, and when.
pub enum Need {
    /// As long as the pod runs.
    Always(Amounts),
    /// Before the others start, beside the lasting ones that were started before it.
    AtFirst(Amounts),
    /// From its turn among the init containers on, as long as the pod runs.
    FromThenOn(Amounts),
}

/// What all containers of a pod need together: the most that is in use at any one time.
pub fn total(needs: impl IntoIterator<Item = Need>) -> Amounts {
    let mut total = Amounts::new();
    let mut lasting = Amounts::new();
    let mut at_first = Amounts::new();
    for need in needs {
        match need {
            Need::Always(amounts) => add(&mut total, &amounts),
            Need::AtFirst(mut amounts) => {
                add(&mut amounts, &lasting);
                raise(&mut at_first, &amounts);
            }
            Need::FromThenOn(amounts) => {
                add(&mut total, &amounts);
                add(&mut lasting, &amounts);
                raise(&mut at_first, &lasting);
            }
        }
    }
    raise(&mut total, &at_first);
    total
}

/// What all containers need together, where `one` says what one of them does.
pub fn of_containers(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let spec = &pod["spec"];
    let first = items(&spec["initContainers"]).iter().map(|container| match lasts(container) {
        true => Need::FromThenOn(one(container)),
        false => Need::AtFirst(one(container)),
    });
    let main = items(&spec["containers"]).iter().map(|container| Need::Always(one(container)));
    total(main.chain(first))
}

/// Lets the resources of the pod as a whole take the place of those of its containers.
pub fn override_with_pod_level(
    amounts: &mut Amounts,
    pod: &Value,
    side: Side,
    is_supported: fn(&str) -> bool,
) {
    let whole = side.of(&pod["spec"]);
    amounts.extend(whole.into_iter().filter(|(name, _)| is_supported(name)));
}

/// What a pod counts for, its overhead included.
pub fn requests(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut requests = of_containers(pod, one);
    override_with_pod_level(&mut requests, pod, Side::Requests, is_pod_level);
    for (name, amount) in overhead(pod) {
        requests.entry(name).or_default().add(&amount);
    }
    requests
}

/// What a pod is held to, its overhead included where there is a limit.
pub fn limits(pod: &Value, one: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut limits = of_containers(pod, one);
    override_with_pod_level(&mut limits, pod, Side::Limits, is_pod_level);
    for (name, amount) in overhead(pod) {
        if let Some(limit) = limits.get_mut(&name).filter(|limit| !limit.is_zero()) {
            limit.add(&amount);
        }
    }
    limits
}

/// Whether an init container runs on beside the others.
fn lasts(container: &Value) -> bool {
    text(&container["restartPolicy"]) == "Always"
}

fn raise(most: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        if most.get(name).is_none_or(|most| amount > most) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

fn overhead(pod: &Value) -> Amounts {
    amounts(pod["spec"].get("overhead"))
}
