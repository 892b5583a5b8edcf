//! Expressions with names that other expressions call them by.

use super::Program;
use crate::cel::value::{Failure, Outcome};

/// An expression with a name, or why it cannot be run.
#[derive(Debug)]
pub struct Named {
    pub name: Box<str>,
    pub program: Result<Program, String>,
}

/// The values that expressions are run with, among them those of named expressions, of which each
/// is computed when somebody asks for it, and only once.
pub struct Composition<'v> {
    named: &'v [Named],
    pub(super) values: Vec<Outcome<'v>>,
    pub(super) cost_max: u64,
    computed: Vec<Option<Outcome<'v>>>,
    cost: u64,
}

impl<'v> Composition<'v> {
    /// `values` are those of the variables of all these expressions, with [`Val::Composed`] for
    /// the one by which the named ones are found. No run may cost more than `cost_max`.
    ///
    /// [`Val::Composed`]: crate::cel::Val::Composed
    pub fn new(named: &'v [Named], values: Vec<Outcome<'v>>, cost_max: u64) -> Self {
        Composition { named, values, cost_max, computed: vec![None; named.len()], cost: 0 }
    }

    /// What computing named expressions has cost since this was last asked.
    pub fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    /// The value of a named expression, if there is one of that name. Of several the last counts.
    pub(super) fn find(&mut self, name: &str) -> Result<Option<crate::cel::Val<'v>>, Failure> {
        let Some(at) = self.named.iter().rposition(|named| *named.name == *name) else {
            return Ok(None);
        };
        if let Some(known) = &self.computed[at] {
            return known.clone().map(Some);
        }
        let outcome = match &self.named[at].program {
            Err(why) => {
                Err(Failure::new(format!("composited variable {name:?} fails to compile: {why}")))
            }
            Ok(program) => {
                let run = program.run_composed(self);
                self.cost = self.cost.saturating_add(run.cost);
                run.outcome.map_err(|failure| {
                    let text = format!("composited variable {name:?} fails to evaluate: {failure}");
                    Failure::new(text)
                })
            }
        };
        self.computed[at] = Some(outcome.clone());
        outcome.map(Some)
    }
}
