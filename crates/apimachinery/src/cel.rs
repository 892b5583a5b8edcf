//! The Common Expression Language, as Kubernetes speaks it.
//!
//! An expression goes through these stages, each of which may refuse it in upstream's words:
//!
//! 1. it is read into a tree (`parse`), which also expands macros;
//! 2. the types of all parts are found (`check`), and some constants looked into (`lint`);
//! 3. what it may cost at most is estimated ([`Expression::max_cost`]), from what a schema says
//!    about the sizes of things ([`Declared`]);
//! 4. it is prepared to run ([`Program`]), and then run as often as there are objects.
//!
//! Nothing here waits, reads a clock or keeps state. Running an expression is bounded by its cost.

mod admission;
mod ast;
mod check;
mod cost;
mod declared;
pub(crate) mod escape;
mod function;
mod lex;
mod lint;
mod open_api;
mod parse;
mod program;
mod source;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use self::admission::{Environment, VARIABLES as ADMISSION_VARIABLES};
use self::check::Checked;
pub use self::declared::Declared;
pub use self::escape::is_identifier;
pub use self::open_api::UnknownKind;
pub use self::program::{Composition, Named, Program, Run};
pub use self::source::Issues;
pub use self::types::{Object, Type};
pub use self::value::{Data, Failure, Foreign, Large, Outcome, Struct, Text, Val};

/// What an expression may be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Plain,
    /// It may also make objects and steps of JSON patches.
    Patch,
}

/// An expression whose types are known.
#[derive(Debug)]
pub struct Expression {
    checked: Checked,
}

impl Expression {
    /// Reads an expression that may refer to `variables`.
    pub fn check(text: &str, variables: &[(&str, Type)]) -> Result<Self, Issues> {
        Self::check_in(Dialect::Plain, text, variables)
    }

    /// The same in another dialect.
    pub fn check_in(
        dialect: Dialect,
        text: &str,
        variables: &[(&str, Type)],
    ) -> Result<Self, Issues> {
        let checked = check::check(parse::parse(text)?, variables, dialect)?;
        lint::lint(&checked)?;
        Ok(Expression { checked })
    }

    pub fn result_type(&self) -> &Type {
        self.checked.type_of(self.checked.expr.id)
    }

    /// Whether it refers to a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.checked.variables.iter().any(|used| **used == *variable)
    }

    /// The most that a run may cost. `root` is what every variable is declared as.
    pub fn max_cost(&self, root: &Declared) -> u64 {
        cost::estimate(&self.checked, root)
    }

    /// Prepares it to run, with values for the variables it was checked with, in their order.
    pub fn program(&self, variables: &[&str]) -> Result<Program, Failure> {
        Program::new(&self.checked, variables)
    }
}
