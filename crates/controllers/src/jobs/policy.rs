//! What a Job makes of the ways in which its pods end.

#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::{
    Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::indexes::Indexes;
use crate::part::text;

/// What the failure of a pod means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It counts.
    Counts,
    /// It does not.
    Ignored,
    /// Its index has failed.
    FailsIndex,
    /// The Job has failed; why.
    FailsJob(String),
}

impl Failure {
    /// What the first rule that fits says.
    pub(super) fn of(job: &Job, pod: &Pod) -> Self {
        let policy = job.spec.as_ref().and_then(|spec| spec.pod_failure_policy.as_ref());
        let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
        let fits = |(position, rule): (usize, &PodFailurePolicyRule)| {
            Some((rule.action.clone(), evidence(rule, pod)?, position))
        };
        match rules.iter().enumerate().find_map(fits) {
            Some((action, evidence, position)) => match action.as_str() {
                "Ignore" => Failure::Ignored,
                "FailIndex" => Failure::FailsIndex,
                "FailJob" => Failure::FailsJob(format!(
                    "{evidence} matching FailJob rule at index {position}"
                )),
                _ => Failure::Counts,
            },
            None => Failure::Counts,
        }
    }

    pub(super) fn counts(&self) -> bool {
        *self != Failure::Ignored
    }
}

/// What about a pod fits a rule, if anything does.
fn evidence(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let name = format!("{}/{}", text(&pod.metadata.namespace), text(&pod.metadata.name));
    let status = pod.status.as_ref()?;
    if let Some(codes) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().flatten();
        let mut containers = containers.chain(status.init_container_statuses.iter().flatten());
        let (container, code) =
            containers.find_map(|it| Some((&it.name, exit_code(it, codes)?)))?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let patterns = rule.on_pod_conditions.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|condition| {
        let mut patterns = patterns.iter();
        patterns.any(|it| {
            it.type_ == condition.type_
                && it.status.as_deref().unwrap_or("True") == condition.status
        })
    })?;
    Some(format!("Pod {name} has condition {}", condition.type_))
}

/// The code a container has failed with, if a rule is about it.
fn exit_code(
    container: &ContainerStatus,
    rule: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<i32> {
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let is_meant = rule.container_name.as_ref().is_none_or(|name| *name == container.name);
    let fits = match rule.operator.as_str() {
        "In" => rule.values.contains(&code),
        "NotIn" => !rule.values.contains(&code),
        _ => false,
    };
    (code != 0 && is_meant && fits).then_some(code)
}

/// Why a Job has succeeded before all of its indexes have, if it has.
pub(super) fn success(job: &Job, succeeded: &Indexes, below: u32) -> Option<String> {
    let policy = job.spec.as_ref()?.success_policy.as_ref()?;
    let fits = |rule: &SuccessPolicyRule| {
        let count = rule.succeeded_count.and_then(|count| usize::try_from(count).ok());
        match &rule.succeeded_indexes {
            Some(indexes) => {
                let wanted = Indexes::parse(indexes, below);
                let common = wanted.common(succeeded);
                wanted.len() > 0
                    && (common == wanted.len() || count.is_some_and(|count| common >= count))
            }
            None => count.is_some_and(|count| succeeded.len() >= count),
        }
    };
    if succeeded.len() == 0 {
        return None;
    }
    let position = policy.rules.iter().position(fits)?;
    Some(format!("Matched rules at index {position}"))
}
