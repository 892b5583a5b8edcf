//! What a Job asks for, and what its pods are to it.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::part::text;

/// Holds a pod until it is counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The index of a pod; an annotation and a label.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the index had failed before this pod.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often more it had failed, in ways that do not count.
pub(super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Jobs are looked after by this controller, unless they name another.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The words of a Job, with what they mean if they are not said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a>(pub(super) &'a Job);

impl Terms<'_> {
    pub(super) fn is_ours(self) -> bool {
        self.spec().and_then(|spec| spec.managed_by.as_deref()).is_none_or(|by| by == MANAGER)
    }

    pub(super) fn is_finished(self) -> bool {
        self.0
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|it| matches!(it.type_.as_str(), "Complete" | "Failed") && it.status == "True")
    }

    pub(super) fn is_known_mode(self) -> bool {
        matches!(self.mode(), None | Some("NonIndexed" | "Indexed"))
    }

    pub(super) fn is_indexed(self) -> bool {
        self.mode() == Some("Indexed")
    }

    pub(super) fn is_suspended(self) -> bool {
        self.spec().and_then(|spec| spec.suspend) == Some(true)
    }

    pub(super) fn is_deleting(self) -> bool {
        self.0.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn parallelism(self) -> usize {
        count(self.spec().and_then(|spec| spec.parallelism).unwrap_or(1))
    }

    pub(super) fn completions(self) -> Option<usize> {
        self.spec().and_then(|spec| spec.completions).map(count)
    }

    /// The bound of indexes.
    pub(super) fn indexes(self) -> u32 {
        u32::try_from(self.completions().unwrap_or_default()).unwrap_or(u32::MAX)
    }

    pub(super) fn backoff_limit(self) -> i32 {
        self.spec().and_then(|spec| spec.backoff_limit).unwrap_or(6)
    }

    pub(super) fn limit_per_index(self) -> Option<i32> {
        self.spec().and_then(|spec| spec.backoff_limit_per_index)
    }

    /// Whether a pod is replaced only when it is over, and not already when it is told to end.
    pub(super) fn replaces_only_failed(self) -> bool {
        self.spec().is_some_and(|spec| {
            spec.pod_replacement_policy.as_deref() == Some("Failed")
                || spec.pod_failure_policy.is_some()
        })
    }

    /// Whether a pod will not do what it was made for.
    pub(super) fn has_failed(self, pod: &Pod) -> bool {
        match phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => !self.replaces_only_failed() && pod.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether a pod has an index that the Job wants; any pod does if the Job has no indexes.
    pub(super) fn has_place_for(self, pod: &Pod) -> bool {
        !self.is_indexed() || index(pod).is_some_and(|index| index < self.indexes())
    }

    fn mode(&self) -> Option<&str> {
        self.spec().and_then(|spec| spec.completion_mode.as_deref())
    }

    fn spec(&self) -> Option<&k8s_openapi::api::batch::v1::JobSpec> {
        self.0.spec.as_ref()
    }
}

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().map_or("", |status| text(&status.phase))
}

pub(super) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(super) fn is_active(pod: &Pod) -> bool {
    !is_over(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether a pod was told to end, and has not yet.
pub(super) fn is_terminating(pod: &Pod) -> bool {
    !is_over(pod) && pod.metadata.deletion_timestamp.is_some()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a pod is not counted yet.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

pub(super) fn index(pod: &Pod) -> Option<u32> {
    annotation(pod, INDEX)?.parse().ok()
}

/// How often its index had failed before a pod, in ways that count.
pub(super) fn failures(pod: &Pod) -> i32 {
    annotation(pod, FAILURES).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// How often its index had failed before a pod, in ways that do not count.
pub(super) fn ignored_failures(pod: &Pod) -> i32 {
    annotation(pod, IGNORED_FAILURES).and_then(|text| text.parse().ok()).unwrap_or_default()
}

pub(super) fn uid(pod: &Pod) -> &str {
    text(&pod.metadata.uid)
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}
