//! How much a pod counts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{Trait, count};
use crate::resources::pod::{self as pod_resources, Side};
use crate::resources::{
    Amounts, CPU, EPHEMERAL_STORAGE, MEMORY, amounts, is_extended, is_huge_page, is_native,
    is_pod_level, items, text,
};
use crate::time::Time;

const REQUESTS: &str = "requests.";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// Every container must say these if a quota is about them.
const NEEDED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const NATIVE: [&str; 3] = [CPU, MEMORY, EPHEMERAL_STORAGE];

/// Whether a quota for this is about pods.
pub(super) fn counts(name: &str) -> bool {
    let bare = name.strip_prefix(REQUESTS);
    match name {
        "count/pods" | "pods" => true,
        name if is_huge_page(name) || bare.is_some_and(is_huge_page) => true,
        name if bare.is_some_and(|bare| !is_native(name) || bare.starts_with(DEVICE_CLASS)) => true,
        name => {
            let bare = bare.or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
            NATIVE.contains(&bare)
        }
    }
}

/// Whether all containers say what they need of what is restricted.
pub(super) fn check(restricted: &[&str], pod: &Value) -> Result<(), String> {
    let spec = &pod["spec"];
    let sides = [Side::Requests, Side::Limits];
    if sides.iter().any(|side| side.of(spec).keys().any(|name| is_pod_level(name))) {
        return Ok(());
    }
    let needed: Vec<&str> =
        restricted.iter().copied().filter(|name| NEEDED.contains(name)).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in items(&spec["containers"]).iter().chain(items(&spec["initContainers"])) {
        let said = named(Side::Requests.of(container), Side::Limits.of(container));
        for name in needed.iter().filter(|name| !said.contains_key(**name)) {
            missing.entry(name).or_default().insert(text(&container["name"]));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    Err(format!("must specify {}", missing.collect::<Vec<_>>().join("; ")))
}

/// Whether a pod has an end.
pub fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

pub(super) fn traits(pod: &Value) -> BTreeMap<&'static str, Trait> {
    let spec = &pod["spec"];
    let ends = if is_terminating(pod) { "Terminating" } else { "NotTerminating" };
    let is_best_effort = pod["status"]["qosClass"] == "BestEffort";
    let effort = if is_best_effort { "BestEffort" } else { "NotBestEffort" };
    let class = Some(text(&spec["priorityClassName"])).filter(|class| !class.is_empty());
    let mut traits = BTreeMap::from([
        (ends, Trait::Holds),
        (effort, Trait::Holds),
        ("PriorityClass", Trait::Classes(class.map(str::to_owned).into_iter().collect())),
    ]);
    if crosses_namespaces(&spec["affinity"]) {
        traits.insert("CrossNamespacePodAffinity", Trait::Holds);
    }
    traits
}

/// Whether a pod minds those of other namespaces.
fn crosses_namespaces(affinity: &Value) -> bool {
    let crosses = |term: &Value| {
        !items(&term["namespaces"]).is_empty() || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &affinity[*kind];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"];
        items(required).iter().any(crosses)
            || items(preferred).iter().any(|term| crosses(&term["podAffinityTerm"]))
    })
}

pub(super) fn usage(pod: &Value, now: Timestamp) -> Amounts {
    let mut usage = match is_counted(pod, now) {
        true => {
            let statuses = Statuses::of(pod);
            let requests = pod_resources::requests(pod, |one| statuses.requests(one));
            let limits = pod_resources::limits(pod, |one| statuses.limits(one));
            named(requests, limits)
        }
        false => Amounts::new(),
    };
    usage.insert("count/pods".to_owned(), count(1));
    usage
}

/// Pods that are over, or should be, use nothing.
fn is_counted(pod: &Value, now: Timestamp) -> bool {
    if matches!(text(&pod["status"]["phase"]), "Failed" | "Succeeded") {
        return false;
    }
    let end = Time::parse(text(&pod["metadata"]["deletionTimestamp"]));
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    match (end, grace) {
        (Ok(end), Some(grace)) => now.as_second() <= end.unix_seconds() + grace,
        _ => true,
    }
}

/// Resources under the names that quotas have for them.
fn named(requests: Amounts, limits: Amounts) -> Amounts {
    let mut named = Amounts::from([("pods".to_owned(), count(1))]);
    for (name, amount) in requests {
        let is_plain = NATIVE.contains(&name.as_str()) || is_huge_page(&name);
        if is_plain || is_extended(&name) || name.starts_with(DEVICE_CLASS) {
            named.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
        if is_plain {
            named.insert(name, amount);
        }
    }
    for (name, amount) in limits {
        if NATIVE.contains(&name.as_str()) {
            named.insert(format!("limits.{name}"), amount);
        }
    }
    named
}

/// What containers were given, which may be more than they now ask for.
struct Statuses<'a> {
    by_name: BTreeMap<&'a str, &'a Value>,
    /// The node cannot give what is asked for, so only what was given counts.
    is_infeasible: bool,
}

impl<'a> Statuses<'a> {
    fn of(pod: &'a Value) -> Self {
        let status = &pod["status"];
        let lists = ["containerStatuses", "initContainerStatuses"];
        let all = lists.iter().flat_map(|list| items(&status[*list]));
        let mut pending =
            items(&status["conditions"]).iter().filter(|one| one["type"] == "PodResizePending");
        Statuses {
            by_name: all.map(|status| (text(&status["name"]), status)).collect(),
            is_infeasible: pending.next().is_some_and(|one| one["reason"] == "Infeasible"),
        }
    }

    fn requests(&self, container: &Value) -> Amounts {
        let asked = Side::Requests.of(container);
        let Some(status) = self.given(container) else { return asked };
        let allocated = amounts(status.get("allocatedResources"));
        self.most(asked, [Side::Requests.of(status), allocated])
    }

    fn limits(&self, container: &Value) -> Amounts {
        let asked = Side::Limits.of(container);
        let Some(status) = self.given(container) else { return asked };
        self.most(asked, [Side::Limits.of(status)])
    }

    fn given(&self, container: &Value) -> Option<&'a Value> {
        let status = self.by_name.get(text(&container["name"]))?;
        status["resources"].is_object().then_some(*status)
    }

    fn most<const N: usize>(&self, asked: Amounts, given: [Amounts; N]) -> Amounts {
        let mut most = if self.is_infeasible { Amounts::new() } else { asked };
        for (name, amount) in given.into_iter().flatten() {
            let found = most.entry(name).or_insert_with(|| amount.clone());
            if amount > *found {
                *found = amount;
            }
        }
        most
    }
}
