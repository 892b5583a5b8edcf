//! Conditions under which a webhook or a policy is about a request at all.

use std::time::Instant;

use kubewright_apimachinery::cel::{Named, Val};
use serde_json::Value;

use super::{Budget, Compiled, Environment, NOTHING, Subject, Wants};
use crate::admission::{items, text};
use crate::authz::aggregate;
use crate::metrics::{ConditionsTried, Metrics};

/// Conditions, of which all must hold.
#[derive(Debug)]
pub(crate) struct Conditions {
    owner: Owner,
    list: Vec<Condition>,
}

/// Whose conditions they are, as metrics have it.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) kind: &'static str,
    pub(crate) role: &'static str,
    pub(crate) name: String,
}

#[derive(Debug)]
struct Condition {
    name: String,
    expression: Compiled,
}

/// What becomes of a request that conditions are asked about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    Yes,
    /// The first condition that does not hold.
    No(String),
}

impl Conditions {
    /// Compiles a list of `matchConditions`; there are none where it is absent.
    pub(crate) fn compile(owner: Owner, conditions: &Value, environment: &Environment) -> Self {
        let compile = |condition: &Value| Condition {
            name: text(&condition["name"]).to_owned(),
            expression: Compiled::new(text(&condition["expression"]), Wants::Bool, environment),
        };
        Conditions { owner, list: items(conditions).iter().map(compile).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a request is meant. One condition that does not hold settles it, whatever went
    /// wrong with others. `named` are the expressions that conditions may call by name.
    ///
    /// # Errors
    /// What went wrong, in upstream's words. The failure policy says what becomes of the request:
    /// with `Fail` it is refused, with `Ignore` it is not meant.
    pub(crate) fn matched(
        &self,
        subject: &Subject<'_>,
        named: &[Named],
        metrics: &Metrics,
    ) -> Result<Matched, String> {
        if self.list.is_empty() {
            return Ok(Matched::Yes);
        }
        let begun = Instant::now();
        let mut failures = Vec::new();
        let matched = self.try_all(subject, named, &mut failures);
        // Those that hold are not worth counting to upstream.
        if matched != Ok(Matched::Yes) {
            let Owner { kind, role, name } = &self.owner;
            metrics.tried_conditions(&ConditionsTried {
                name,
                kind,
                role,
                operation: text(&subject.request["operation"]),
                failures: failures.len(),
                elapsed: begun.elapsed(),
            });
        }
        matched
    }

    /// What went wrong before a condition did not hold goes to `failures`.
    fn try_all(
        &self,
        subject: &Subject<'_>,
        named: &[Named],
        failures: &mut Vec<String>,
    ) -> Result<Matched, String> {
        // Nobody shows the namespace to conditions.
        let subject = Subject { namespace: &NOTHING, ..*subject };
        let mut composition = subject.compose(named);
        let mut budget = Budget::CONDITIONS;
        let mut unmet = None;
        for condition in &self.list {
            match condition.expression.run(&mut composition, &mut budget) {
                Err(out_of_budget) => {
                    failures.clear();
                    return Err(out_of_budget.to_string());
                }
                Ok(Err(failure)) if unmet.is_none() => failures.push(failure),
                Ok(Ok(Val::Bool(false))) => {
                    unmet.get_or_insert(&condition.name);
                }
                Ok(_) => {}
            }
        }
        match unmet {
            Some(name) => Ok(Matched::No(name.clone())),
            None if failures.is_empty() => Ok(Matched::Yes),
            None => {
                let mut told = failures.clone();
                told.dedup();
                Err(aggregate(told.iter()))
            }
        }
    }
}
