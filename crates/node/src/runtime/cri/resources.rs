//! What a container may use, in the units of the kernel, as kubelet computes them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::pod::{Side, of_containers};

use super::api::{HugepageLimit, LinuxContainerResources};

const SHARES_PER_CPU: i64 = 1024;
const SHARES_MIN: i64 = 2;
const SHARES_MAX: i64 = 262_144;
/// Microseconds.
const QUOTA_PERIOD: i64 = 100_000;
const QUOTA_MIN: i64 = 1_000;

/// How soon the kernel ends something when memory runs out: never, at once, and in between.
const OOM_GUARANTEED: i64 = -997;
const OOM_BEST_EFFORT: i64 = 1000;
/// Pods of this class keep their node running.
const NODE_CRITICAL: &str = "system-node-critical";

/// The limits of a container on a machine with so much memory.
pub(super) fn limits(
    pod: &Pod,
    container: &Container,
    memory_bytes: u64,
) -> LinuxContainerResources {
    let resources = container.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let limits = &effective_limits(pod, container);
    let limits = Some(limits);
    let cpu_limit = milli(limits, "cpu");
    let cpu_request = match requests.is_some_and(|requests| requests.contains_key("cpu")) {
        true => milli(requests, "cpu"),
        false => cpu_limit,
    };
    let shares = cpu_request.saturating_mul(SHARES_PER_CPU) / 1000;
    let quota = match cpu_limit {
        0 => 0,
        limit => (limit.saturating_mul(QUOTA_PERIOD) / 1000).max(QUOTA_MIN),
    };
    LinuxContainerResources {
        cpu_shares: shares.clamp(SHARES_MIN, SHARES_MAX),
        cpu_period: QUOTA_PERIOD,
        cpu_quota: quota,
        memory_limit_in_bytes: value(limits, "memory"),
        oom_score_adj: oom_score(pod, container, memory_bytes),
        hugepage_limits: hugepages(limits),
    }
}

/// The memory that a container is to be held to, if that is less than before.
pub(super) fn smaller_memory(
    before: &LinuxContainerResources,
    after: &LinuxContainerResources,
) -> Option<u64> {
    let bytes = |it: &LinuxContainerResources| {
        u64::try_from(it.memory_limit_in_bytes).ok().filter(|bytes| *bytes > 0)
    };
    bytes(after).filter(|after| bytes(before).is_none_or(|before| *after < before))
}

/// Whether a container can be held to so much memory, which uses this much.
pub(super) fn is_enough(name: &str, limit: u64, used: Option<u64>) -> Result<(), String> {
    let why = match used {
        Some(used) if used < limit => return Ok(()),
        Some(used) => format!(
            "attempting to set container {name:?} memory limit ({limit}) below current usage ({used})"
        ),
        None => format!("missing container {name:?} memory usage"),
    };
    Err(format!("cannot decrease memory limits: {why}"))
}

/// What a container may use at most: what it does not say itself, its pod says for it. Pods have no
/// control group of their own here, which would hold all of them to it together.
fn effective_limits(pod: &Pod, container: &Container) -> BTreeMap<String, Text> {
    let whole = pod.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.limits.clone());
    let own = container.resources.as_ref().and_then(|resources| resources.limits.clone());
    let is_set =
        |(_, limit): &(String, Text)| Quantity::parse(&limit.0).is_ok_and(|limit| !limit.is_zero());
    let mut limits = whole.unwrap_or_default();
    limits.extend(own.unwrap_or_default().into_iter().filter(is_set));
    limits
}

/// How soon the kernel ends this container when memory runs out.
fn oom_score(pod: &Pod, container: &Container, memory_bytes: u64) -> i64 {
    let spec = pod.spec.as_ref();
    if spec.and_then(|spec| spec.priority_class_name.as_deref()) == Some(NODE_CRITICAL) {
        return OOM_GUARANTEED;
    }
    match pod.status.as_ref().and_then(|status| status.qos_class.as_deref()) {
        Some("Guaranteed") => return OOM_GUARANTEED,
        Some("BestEffort") => return OOM_BEST_EFFORT,
        _ => {}
    }
    let share = unclaimed_memory(pod);
    let own = burstable_score(container, share, memory_bytes);
    if container.restart_policy.as_deref() != Some("Always") {
        return own;
    }
    // A sidecar does not go before all of those whom it serves.
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    let first = main.map(|container| burstable_score(container, share, memory_bytes)).max();
    first.map_or(own, |first| own.min(first))
}

/// The share of each container in what is asked for the pod as a whole and by none of them.
fn unclaimed_memory(pod: &Pod) -> i64 {
    let Some(spec) = &pod.spec else { return 0 };
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let Some(whole) = quantity(whole, "memory") else { return 0 };
    let tree = serde_json::to_value(pod).unwrap_or_default();
    let claimed = of_containers(&tree, |one| Side::Requests.of(one));
    let claimed = claimed.get("memory").map_or(0, Quantity::value);
    let count = spec.containers.len() + spec.init_containers.iter().flatten().count();
    let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
    (whole.value() - claimed).max(0) / count
}

fn memory_request(container: &Container) -> i64 {
    value(container.resources.as_ref().and_then(|it| it.requests.as_ref()), "memory")
}

/// The less of the machine's memory a container asks for, the sooner. `share` is asked for it.
fn burstable_score(container: &Container, share: i64, memory_bytes: u64) -> i64 {
    let capacity = i64::try_from(memory_bytes).unwrap_or(i64::MAX).max(1);
    let request = memory_request(container).saturating_add(share);
    let score = 1000 - request.saturating_mul(1000) / capacity;
    // Later than those that asked for nothing, and sooner than those that were promised all.
    score.clamp(1000 + OOM_GUARANTEED, OOM_BEST_EFFORT - 1)
}

fn hugepages(limits: Option<&BTreeMap<String, Text>>) -> Vec<HugepageLimit> {
    let limits = limits.into_iter().flatten();
    let sized = limits.filter_map(|(name, limit)| {
        let size = Quantity::parse(name.strip_prefix("hugepages-")?).ok()?.value();
        let limit = u64::try_from(Quantity::parse(&limit.0).ok()?.value()).ok()?;
        let page_size = match size {
            size if size % (1 << 30) == 0 => format!("{}GB", size >> 30),
            size if size % (1 << 20) == 0 => format!("{}MB", size >> 20),
            size => format!("{}KB", size >> 10),
        };
        Some(HugepageLimit { page_size, limit })
    });
    sized.collect()
}

fn milli(amounts: Option<&BTreeMap<String, Text>>, name: &str) -> i64 {
    quantity(amounts, name).map_or(0, |quantity| quantity.milli_value())
}

fn value(amounts: Option<&BTreeMap<String, Text>>, name: &str) -> i64 {
    quantity(amounts, name).map_or(0, |quantity| quantity.value())
}

fn quantity(amounts: Option<&BTreeMap<String, Text>>, name: &str) -> Option<Quantity> {
    Quantity::parse(&amounts?.get(name)?.0).ok()
}
