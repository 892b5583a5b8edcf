//! What policies decided, and whom match conditions left out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::histogram::{CHECK_SECONDS, CONDITION_SECONDS, Histogram};
use super::text::{Family, Kind, Page};
use crate::admission::{Operation, Role};

/// An expression of a policy was run, and something came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyCheck<'a> {
    pub(crate) policy: &'a str,
    pub(crate) binding: &'a str,
    pub(crate) failure: Option<Failure>,
    pub(crate) elapsed: Duration,
}

/// Why an expression came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Compilation,
    OutOfBudget,
    Other,
}

/// What became of a request when a policy that judges had looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// The policy failed, and may.
    Allow,
    Deny,
    Audit,
    Warn,
}

/// Conditions of a webhook or a policy were asked about a request that they do not mean, or that
/// they failed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionsTried<'a> {
    /// Of the webhook or the policy.
    pub(crate) name: &'a str,
    /// `webhook` or `policy`.
    pub(crate) kind: &'a str,
    /// `admit`, `validating` or `validate`, as upstream has it.
    pub(crate) role: &'a str,
    pub(crate) operation: &'a str,
    /// How many conditions failed.
    pub(crate) failures: usize,
    pub(crate) elapsed: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Policies(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By enforcement, failure, policy and binding.
    judged: BTreeMap<[String; 4], Histogram>,
    /// By failure, policy and binding.
    changed: BTreeMap<[String; 3], Histogram>,
    /// By kind, name, operation and role.
    conditions: BTreeMap<[String; 4], Conditions>,
    /// Webhooks that were not asked, by name, operation and role.
    excluded: BTreeMap<(String, &'static str, &'static str), u64>,
}

#[derive(Debug)]
struct Conditions {
    failures: u64,
    durations: Histogram,
}

impl Failure {
    /// By what is told of it.
    pub(crate) fn of(why: &str) -> Self {
        if why.starts_with("compilation") {
            Failure::Compilation
        } else if why.starts_with("validation failed due to running out of cost budget") {
            Failure::OutOfBudget
        } else {
            Failure::Other
        }
    }

    fn word(failure: Option<Self>) -> &'static str {
        match failure {
            None => "no_error",
            Some(Failure::Compilation) => "compile_error",
            Some(Failure::OutOfBudget) => "out_of_budget",
            Some(Failure::Other) => "invalid_error",
        }
    }
}

impl Enforcement {
    fn as_str(self) -> &'static str {
        match self {
            Enforcement::Allow => "allow",
            Enforcement::Deny => "deny",
            Enforcement::Audit => "audit",
            Enforcement::Warn => "warn",
        }
    }
}

impl Policies {
    pub(super) fn judged(&self, check: &PolicyCheck<'_>, enforcement: Enforcement) {
        let words =
            [enforcement.as_str(), Failure::word(check.failure), check.policy, check.binding];
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = counts.judged.entry(words.map(str::to_owned));
        durations.or_insert_with(|| Histogram::new(&CHECK_SECONDS)).observe_time(check.elapsed);
    }

    pub(super) fn changed(&self, check: &PolicyCheck<'_>) {
        let words = [Failure::word(check.failure), check.policy, check.binding];
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = counts.changed.entry(words.map(str::to_owned));
        durations.or_insert_with(|| Histogram::new(&CHECK_SECONDS)).observe_time(check.elapsed);
    }

    pub(super) fn tried(&self, tried: &ConditionsTried<'_>) {
        let words = [tried.kind, tried.name, tried.operation, tried.role];
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let conditions = counts.conditions.entry(words.map(str::to_owned));
        let new = || Conditions { failures: 0, durations: Histogram::new(&CONDITION_SECONDS) };
        let conditions = conditions.or_insert_with(new);
        conditions.failures += tried.failures as u64;
        conditions.durations.observe_time(tried.elapsed);
    }

    pub(super) fn excluded(&self, name: &str, role: Role, operation: Operation) {
        // The same role has another name when conditions are timed.
        let role = match role {
            Role::Mutating => "admit",
            Role::Validating => "validate",
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.excluded.entry((name.to_owned(), operation.as_str(), role)).or_default() += 1;
    }

    pub(super) fn write_conditions(&self, page: &mut Page) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        const NAMES: [&str; 4] = ["kind", "name", "operation", "type"];
        page.family(
            "apiserver_admission_match_condition_evaluation_errors_total",
            Kind::Counter,
            "[ALPHA] Admission match condition evaluation errors count, identified by name of \
             resource containing the match condition and broken out for each kind containing \
             matchConditions (webhook or policy), operation and admission type (validate or admit).",
        );
        for (words, conditions) in &counts.conditions {
            if conditions.failures > 0 {
                page.sample(&labelled(NAMES, words), conditions.failures as f64);
            }
        }
        page.family(
            "apiserver_admission_match_condition_evaluation_seconds",
            Kind::Histogram,
            "[ALPHA] Admission match condition evaluation time in seconds, identified by name and \
             broken out for each kind containing matchConditions (webhook or policy), operation and \
             type (validate or admit).",
        );
        for (words, conditions) in &counts.conditions {
            page.histogram(&labelled(NAMES, words), &conditions.durations);
        }
        page.family(
            "apiserver_admission_match_condition_exclusions_total",
            Kind::Counter,
            "[ALPHA] Admission match condition evaluation exclusions count, identified by name of \
             resource containing the match condition and broken out for each kind containing \
             matchConditions (webhook or policy), operation and admission type (validate or admit).",
        );
        for ((name, operation, role), count) in &counts.excluded {
            let labels =
                [("kind", "webhook"), ("name", name), ("operation", operation), ("type", *role)];
            page.sample(&labels, *count as f64);
        }
    }
    pub(super) fn write_changes(&self, page: &mut Page) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write_checks(
            page,
            &counts.changed,
            ["error_type", "policy", "policy_binding"],
            Family {
                name: "apiserver_mutating_admission_policy_check_duration_seconds",
                kind: Kind::Histogram,
                help: "[ALPHA] Mutation admission latency for individual mutation expressions in \
                       seconds, labeled by policy and binding.",
            },
            Family {
                name: "apiserver_mutating_admission_policy_check_total",
                kind: Kind::Counter,
                help: "[ALPHA] Mutation admission policy check total, labeled by policy and further \
                       identified by binding.",
            },
        );
    }

    pub(super) fn write_judgements(&self, page: &mut Page) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write_checks(
            page,
            &counts.judged,
            ["enforcement_action", "error_type", "policy", "policy_binding"],
            Family {
                name: "apiserver_validating_admission_policy_check_duration_seconds",
                kind: Kind::Histogram,
                help: "[BETA] Validation admission latency for individual validation expressions in \
                       seconds, labeled by policy and further including binding and enforcement \
                       action taken.",
            },
            Family {
                name: "apiserver_validating_admission_policy_check_total",
                kind: Kind::Counter,
                help: "[BETA] Validation admission policy check total, labeled by policy and further \
                       identified by binding and enforcement action taken.",
            },
        );
    }
}

/// How long checks took, and how many there were.
fn write_checks<const N: usize>(
    page: &mut Page,
    checks: &BTreeMap<[String; N], Histogram>,
    names: [&'static str; N],
    durations: Family,
    count: Family,
) {
    page.family(durations.name, durations.kind, durations.help);
    for (words, durations) in checks {
        page.histogram(&labelled(names, words), durations);
    }
    page.family(count.name, count.kind, count.help);
    for (words, durations) in checks {
        page.sample(&labelled(names, words), durations.count() as f64);
    }
}

fn labelled<'a, const N: usize>(
    names: [&'static str; N],
    words: &'a [String; N],
) -> [(&'static str, &'a str); N] {
    std::array::from_fn(|at| (names[at], words[at].as_str()))
}
