//! When the spec of a job makes sense, be it of a Job or in the template of a CronJob.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule, SuccessPolicyRule,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::name;
use serde_json::json;

use super::{COMPLETIONS_SOFT_MAX, INDEXED, PARALLELISM_SOFT_MAX, index};
use crate::kinds::{check, internal, pod_spec};

/// Bounds that keep a status with one entry per index from growing too large.
const PARALLELISM_MAX: i32 = 100_000;
const FAILED_INDEXES_MAX: i32 = 100_000;
const FAILED_INDEXES_SOFT_MAX: i32 = 10_000;
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const MANAGED_BY_BYTES_MAX: usize = 63;
const SUCCEEDED_INDEXES_BYTES_MAX: usize = 64 << 10;

/// What is wrong with a spec, its selector apart.
pub(in crate::kinds) fn check_spec(
    spec: &JobSpec,
    old: Option<&JobSpec>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = check_numbers(spec, path);
    if let Some(manager) = &spec.managed_by {
        let path = path.child("managedBy");
        errors.extend(name::domain_prefixed_path(&path, manager));
        if manager.len() > MANAGED_BY_BYTES_MAX {
            errors.push(Error::too_long(&path, MANAGED_BY_BYTES_MAX));
        }
    }
    errors.extend(check_mode(spec, path));
    if let Some(policy) = &spec.pod_failure_policy {
        let path = path.child("podFailurePolicy");
        let path = path.child("rules");
        if policy.rules.len() > RULES_MAX {
            errors.push(Error::too_many(&path, policy.rules.len(), RULES_MAX));
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            errors.extend(check_failure_rule(spec, rule, &path.index(index)));
        }
    }
    errors.extend(check_success_policy(spec, &path.child("successPolicy")));
    errors.extend(check_replacement(spec, &path.child("podReplacementPolicy")));
    let template_path = path.child("template");
    let old_template = old.map(|old| &old.template);
    errors.extend(pod_spec::validate_template(&spec.template, old_template, &template_path));
    let pod_path = template_path.child("spec");
    errors.extend(check_restarts(spec, &pod_path.child("restartPolicy")));
    errors
}

fn check_numbers(spec: &JobSpec, path: &Path<'_>) -> Vec<Error> {
    let numbers = [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ];
    let mut errors: Vec<Error> = numbers
        .into_iter()
        .filter_map(|(name, number)| check::non_negative(&path.child(name), number?))
        .collect();
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        errors.push(Error::required(
            &path.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        ));
    }
    errors
}

fn check_mode(spec: &JobSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    match spec.completion_mode.as_deref() {
        None | Some("NonIndexed") => {
            for (name, number) in [
                ("backoffLimitPerIndex", spec.backoff_limit_per_index),
                ("maxFailedIndexes", spec.max_failed_indexes),
            ] {
                if let Some(number) = number {
                    let path = path.child(name);
                    let detail = "requires indexed completion mode";
                    errors.push(Error::invalid(&path, number, detail));
                }
            }
        }
        Some(INDEXED) => errors.extend(check_indexed(spec, path)),
        Some(other) => {
            let modes = ["NonIndexed", INDEXED];
            errors.push(Error::not_supported(&path.child("completionMode"), other, &modes));
        }
    }
    errors
}

fn check_indexed(spec: &JobSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut at_most = |name: &str, number: Option<i32>, max: i32, when: &str| {
        if let Some(number) = number.filter(|number| *number > max) {
            let detail = format!("must be less than or equal to {max}{when}");
            errors.push(Error::invalid(&path.child(name), number, detail));
        }
    };
    let when_indexed = format!(" when completion mode is {INDEXED}");
    at_most("parallelism", spec.parallelism, PARALLELISM_MAX, &when_indexed);
    at_most("maxFailedIndexes", spec.max_failed_indexes, FAILED_INDEXES_MAX, "");
    let is_above = spec.completions.is_some_and(|n| n > COMPLETIONS_SOFT_MAX);
    let is_large = is_above && spec.backoff_limit_per_index.is_some();
    if is_large {
        let when_large = format!(
            " when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per \
             index"
        );
        at_most("parallelism", spec.parallelism, PARALLELISM_SOFT_MAX, &when_large);
        let failed = spec.max_failed_indexes;
        at_most("maxFailedIndexes", failed, FAILED_INDEXES_SOFT_MAX, &when_large);
    }
    match (spec.completions, spec.max_failed_indexes) {
        (None, _) => errors.push(Error::required(
            &path.child("completions"),
            format!("when completion mode is {INDEXED}"),
        )),
        (Some(completions), Some(failed)) if failed > completions => errors.push(Error::invalid(
            &path.child("maxFailedIndexes"),
            failed,
            "must be less than or equal to completions",
        )),
        (Some(_), None) if is_large => errors.push(Error::required(
            &path.child("maxFailedIndexes"),
            format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}"),
        )),
        _ => {}
    }
    errors
}

fn check_failure_rule(spec: &JobSpec, rule: &PodFailurePolicyRule, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let action_path = path.child("action");
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    match rule.action.as_str() {
        "FailIndex" if spec.backoff_limit_per_index.is_none() => errors.push(Error::invalid(
            &action_path,
            "FailIndex",
            "requires the backoffLimitPerIndex to be set",
        )),
        action => errors.extend(one_of(action, &actions, &action_path)),
    }
    if let Some(codes) = &rule.on_exit_codes {
        errors.extend(check_exit_codes(spec, codes, &path.child("onExitCodes")));
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    errors.extend(check_pod_conditions(conditions, &path.child("onPodConditions")));
    match (rule.on_exit_codes.is_some(), !conditions.is_empty()) {
        (true, true) => errors.push(check::invalid_unshown(
            path,
            "specifying both OnExitCodes and OnPodConditions is not supported",
        )),
        (false, false) => errors.push(check::invalid_unshown(
            path,
            "specifying one of OnExitCodes and OnPodConditions is required",
        )),
        _ => {}
    }
    errors
}

/// One of a few words; when there is none, all are told.
fn one_of(word: &str, words: &[&str], path: &Path<'_>) -> Option<Error> {
    match word {
        "" => {
            let quoted: Vec<String> = words.iter().map(|word| go_quote(word)).collect();
            Some(Error::required(path, format!("valid values: [{}]", quoted.join(" "))))
        }
        word => (!words.contains(&word)).then(|| Error::not_supported(path, word, words)),
    }
}

fn check_exit_codes(
    spec: &JobSpec,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(one_of(&codes.operator, &["In", "NotIn"], &path.child("operator")));
    if let Some(container) = &codes.container_name
        && !has_container(spec, container)
    {
        errors.push(Error::invalid(
            &path.child("containerName"),
            container.as_str(),
            "must be one of the container or initContainer names in the pod template",
        ));
    }
    let path = path.child("values");
    if codes.values.is_empty() {
        errors.push(Error::invalid(&path, json!(null), "at least one value is required"));
    } else if codes.values.len() > EXIT_CODES_MAX {
        errors.push(Error::too_many(&path, codes.values.len(), EXIT_CODES_MAX));
    }
    let mut seen = BTreeSet::new();
    for (index, code) in codes.values.iter().enumerate() {
        let path = path.index(index);
        if codes.operator == "In" && *code == 0 {
            errors.push(Error::invalid(&path, *code, "must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(Error::duplicate(&path, *code));
        }
    }
    if !codes.values.is_sorted() {
        errors.push(Error::invalid(&path, json!(codes.values), "must be ordered"));
    }
    errors
}

fn has_container(spec: &JobSpec, name: &str) -> bool {
    let pod = spec.template.spec.as_ref();
    let containers = pod.map(|pod| pod.containers.iter()).into_iter().flatten();
    let init = pod.and_then(|pod| pod.init_containers.as_ref()).into_iter().flatten();
    containers.chain(init).any(|container| container.name == name)
}

fn check_pod_conditions(
    conditions: &[PodFailurePolicyOnPodConditionsPattern],
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if conditions.len() > CONDITIONS_MAX {
        errors.push(Error::too_many(path, conditions.len(), CONDITIONS_MAX));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        errors.extend(check::qualified_name(&path.child("type"), &condition.type_));
        let status = condition.status.as_deref().unwrap_or_default();
        errors.extend(one_of(status, &["False", "True", "Unknown"], &path.child("status")));
    }
    errors
}

fn check_success_policy(spec: &JobSpec, path: &Path<'_>) -> Vec<Error> {
    let Some(policy) = &spec.success_policy else { return Vec::new() };
    if spec.completion_mode.as_deref() != Some(INDEXED) {
        let type_name = "k8s.io/api/batch/v1.SuccessPolicy";
        let shown = internal::shown(type_name, &check::shown(policy));
        return vec![Error::invalid(path, shown, "requires indexed completion mode")];
    }
    let mut errors = Vec::new();
    let path = path.child("rules");
    if policy.rules.is_empty() {
        errors.push(Error::required(
            &path,
            "at least one rules must be specified when the successPolicy is specified",
        ));
    }
    if policy.rules.len() > RULES_MAX {
        errors.push(Error::too_many(&path, policy.rules.len(), RULES_MAX));
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        errors.extend(check_success_rule(rule, spec.completions, &path.index(index)));
    }
    errors
}

fn check_success_rule(
    rule: &SuccessPolicyRule,
    completions: Option<i32>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        errors.push(Error::required(
            path,
            "at least one of succeededCount or succeededIndexes must be specified",
        ));
    }
    // That there are none is refused elsewhere.
    let Some(completions) = completions else { return errors };
    let mut indexed = None;
    if let Some(indexes) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > SUCCEEDED_INDEXES_BYTES_MAX {
            errors.push(Error::too_long(&path, SUCCEEDED_INDEXES_BYTES_MAX));
        }
        let counted = index::count(indexes, completions);
        indexed = Some(counted.clone().unwrap_or_default());
        if let Err(problem) = counted {
            let detail = format!("error parsing succeededIndexes: {problem}");
            errors.push(Error::invalid(&path, indexes.as_str(), detail));
        }
    }
    if let Some(count) = rule.succeeded_count {
        let path = path.child("succeededCount");
        errors.extend(check::non_negative(&path, count));
        let bounds = [
            (Some(completions), "the number of specified completions"),
            (indexed, "the number of indexes in the specified succeededIndexes field"),
        ];
        for (bound, what) in bounds {
            if let Some(bound) = bound.filter(|bound| count > *bound) {
                let detail = format!("must be less than or equal to {bound} ({what})");
                errors.push(Error::invalid(&path, count, detail));
            }
        }
    }
    errors
}

fn check_replacement(spec: &JobSpec, path: &Path<'_>) -> Option<Error> {
    let policy = spec.pod_replacement_policy.as_deref()?;
    let policies: &[&str] = match spec.pod_failure_policy {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    (!policies.contains(&policy)).then(|| Error::not_supported(path, policy, policies))
}

/// A pod that is always restarted never ends.
fn check_restarts(spec: &JobSpec, path: &Path<'_>) -> Option<Error> {
    let pod = spec.template.spec.as_ref();
    match pod.and_then(|pod| pod.restart_policy.as_deref()).unwrap_or_default() {
        "" | "Always" => Some(Error::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "Never" => None,
        policy @ "OnFailure" => spec.pod_failure_policy.as_ref().map(|_| {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            Error::invalid(path, policy, detail)
        }),
        other => Some(Error::not_supported(path, other, &["OnFailure", "Never"])),
    }
}
