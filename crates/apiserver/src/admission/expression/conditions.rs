//! Conditions under which a webhook or a policy is about a request at all.

use kubewright_apimachinery::cel::{Named, Val};
use serde_json::Value;

use super::{Budget, Compiled, Environment, NOTHING, Subject, Wants};
use crate::admission::{items, text};
use crate::authz::aggregate;

/// Conditions, of which all must hold.
#[derive(Debug, Default)]
pub(crate) struct Conditions(Vec<Condition>);

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
    pub(crate) fn compile(conditions: &Value, environment: &Environment) -> Self {
        let compile = |condition: &Value| Condition {
            name: text(&condition["name"]).to_owned(),
            expression: Compiled::new(text(&condition["expression"]), Wants::Bool, environment),
        };
        Conditions(items(conditions).iter().map(compile).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
    ) -> Result<Matched, String> {
        if self.0.is_empty() {
            return Ok(Matched::Yes);
        }
        // Nobody shows the namespace to conditions.
        let subject = Subject { namespace: &NOTHING, ..*subject };
        let mut composition = subject.compose(named);
        let mut budget = Budget::CONDITIONS;
        let mut failures = Vec::new();
        let mut unmet = None;
        for condition in &self.0 {
            match condition.expression.run(&mut composition, &mut budget) {
                Err(out_of_budget) => return Err(out_of_budget.to_string()),
                Ok(Err(failure)) if !failures.contains(&failure) => failures.push(failure),
                Ok(Ok(Val::Bool(false))) => {
                    unmet.get_or_insert(&condition.name);
                }
                Ok(_) => {}
            }
        }
        match unmet {
            Some(name) => Ok(Matched::No(name.clone())),
            None if failures.is_empty() => Ok(Matched::Yes),
            None => Err(aggregate(failures.iter())),
        }
    }
}
