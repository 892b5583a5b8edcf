//! What a budget has to spend.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString as Wire;
use kube::api::ObjectMeta;
use kube::core::{Selector, SelectorExt as _};
use kubewright::condition::{self, Conditions as _};
use kubewright_apimachinery::int_or_string::{IntOrString, Rounding};

use crate::part::text;

/// How long it may take that a pod whose eviction was granted is seen to go.
const DELETION_MAX: SignedDuration = SignedDuration::from_mins(2);

/// What the status of a budget should be, and what comes with it.
#[derive(Debug, PartialEq)]
pub(super) struct Plan<'a> {
    pub(super) status: PodDisruptionBudgetStatus,
    /// Whether there are pods that nobody will replace.
    pub(super) has_unmanaged: bool,
    /// Pods whose eviction was granted and that are still there.
    pub(super) overdue: Vec<&'a Pod>,
    /// When a grant expires.
    pub(super) again_after: Option<SignedDuration>,
}

/// How many pods a controller wants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scale {
    uid: String,
    replicas: i32,
}

impl Scale {
    pub(super) fn new(uid: &str, replicas: Option<i32>) -> Self {
        Scale { uid: uid.to_owned(), replicas: replicas.unwrap_or(0) }
    }
}

/// Counts what a budget has to spend. `pods` are those it selects, `scales` what each of their
/// controllers is part of.
///
/// # Errors
/// Why it cannot be counted.
pub(super) fn plan<'a>(
    budget: &PodDisruptionBudget,
    pods: &[&'a Pod],
    scales: &BTreeMap<String, Scale>,
    now: Timestamp,
) -> Result<Plan<'a>, String> {
    let spec = budget.spec.clone().unwrap_or_default();
    // Replica sets of one deployment share its scale.
    let expected = scales.values().collect::<BTreeSet<_>>().into_iter().map(|it| it.replicas).sum();
    let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    let (expected, desired) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(max), _) => (expected, (expected - scaled(max, expected)?).max(0)),
        (None, Some(Wire::Int(min))) => (count, *min),
        (None, Some(min)) => (expected, scaled(min, expected)?),
        (None, None) => (0, 0),
    };
    let status = budget.status.clone().unwrap_or_default();
    let granted = status.disrupted_pods.clone().unwrap_or_default();
    let (mut pending, mut overdue, mut again_after) = (BTreeMap::new(), Vec::new(), None);
    for pod in pods.iter().copied().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let Some(at) = granted.get(text(&pod.metadata.name)) else { continue };
        let left = DELETION_MAX - now.duration_since(at.0);
        if left.is_negative() {
            overdue.push(pod);
            continue;
        }
        again_after = Some(again_after.map_or(left, |known: SignedDuration| known.min(left)));
        pending.insert(text(&pod.metadata.name).to_owned(), at.clone());
    }
    let is_healthy = |pod: &&&Pod| {
        pod.metadata.deletion_timestamp.is_none()
            && is_ready(pod)
            && !pending.contains_key(text(&pod.metadata.name))
    };
    let healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let is_managed = |pod: &&Pod| controller_of(&pod.metadata).is_some();
    let has_unmanaged = needs_scale(budget) && !pods.iter().all(is_managed);
    let (is_allowed, reason) = match allowed > 0 {
        true => (true, "SufficientPods"),
        false => (false, "InsufficientPods"),
    };
    let mut conditions = status.conditions.unwrap_or_default();
    let mut condition = condition::new("DisruptionAllowed", is_allowed, reason, "", now);
    condition.observed_generation = budget.metadata.generation;
    conditions.set(condition);
    Ok(Plan {
        status: PodDisruptionBudgetStatus {
            conditions: Some(conditions),
            current_healthy: Some(healthy),
            desired_healthy: Some(desired),
            disrupted_pods: Some(pending)
                .filter(|pending: &BTreeMap<String, Time>| !pending.is_empty()),
            disruptions_allowed: Some(allowed),
            expected_pods: Some(expected),
            observed_generation: budget.metadata.generation,
        },
        has_unmanaged,
        overdue,
        again_after,
    })
}

/// The status of a budget that cannot be counted: nothing is spent.
pub(super) fn fail_safe(
    budget: &PodDisruptionBudget,
    why: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    let mut condition = condition::new("DisruptionAllowed", false, "SyncFailed", why, now);
    condition.observed_generation = status.observed_generation;
    status.conditions.get_or_insert_default().set(condition);
    status
}

/// Whether it must be known how many pods there should be.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    budget.spec.as_ref().is_some_and(|spec| {
        spec.max_unavailable.is_some() || matches!(spec.min_available, Some(Wire::String(_)))
    })
}

/// Whether a budget is about a pod. One without a selector is about none.
pub(super) fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    let none = BTreeMap::new();
    let labels = pod.metadata.labels.as_ref().unwrap_or(&none);
    selector.is_some_and(|selector| selector.matches(labels))
}

/// What people are told of pods that nobody will replace.
pub(super) fn unmanaged(budget: &PodDisruptionBudget) -> String {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions = selector.match_expressions.iter().flatten().map(|it| {
        let values = it.values.clone().unwrap_or_default().join(" ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            it.key, it.operator
        )
    });
    let expressions: String = expressions.collect();
    format!(
        "Pods selected by this PodDisruptionBudget (selector: \
         &LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}) were found to be \
         unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may \
         result in undefined behavior. To account for these pods please set \
         \".spec.minAvailable\" field of the PDB to an integer value."
    )
}

pub(super) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn scaled(value: &Wire, total: i32) -> Result<i32, String> {
    let value = match value {
        Wire::Int(number) => return Ok(*number),
        Wire::String(text) => IntOrString::String(text.clone()),
    };
    let scaled = value.scaled(total.into(), Rounding::Up).map_err(|error| error.to_string())?;
    i32::try_from(scaled).map_err(|error| error.to_string())
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
