//! Expressions of admission: what webhooks and policies say in the Common Expression Language.
//!
//! All of them see the same variables ([`Subject`]); which of these are declared, and which types
//! a result may have, depends on where an expression stands ([`Environment`], [`Wants`]). An
//! expression is compiled when it is written, to tell its author what is wrong, and again when it
//! is first needed; running it costs what upstream says, out of a [`Budget`] that a group of
//! expressions shares.

mod authorizer;
pub(crate) mod conditions;
pub(crate) mod request;

#[cfg(test)]
mod tests;

pub(crate) use kubewright_apimachinery::cel::Environment;
use kubewright_apimachinery::cel::{
    ADMISSION_VARIABLES, Composition, Dialect, Expression, Failure, Named, Outcome, Program, Type,
    Val,
};
use serde_json::Value;

pub(crate) use authorizer::Asker;

/// What is not there.
pub(crate) static NOTHING: Value = Value::Null;

/// What one run of an expression may cost.
const RUN_COST_MAX: u64 = 1_000_000;

/// What expressions look at. What is not there is null.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
    /// The request as [`request::describe`] tells it.
    pub(crate) request: &'a Value,
    pub(crate) namespace: &'a Value,
    pub(crate) params: &'a Value,
    pub(crate) asker: &'a Asker,
}

/// Which types the result of an expression may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    Anything,
    Bool,
    Text,
    TextOrNull,
    /// Part of what the object should look like.
    Object,
    /// Steps of a JSON patch.
    Patch,
}

/// An expression that can be run, or why it cannot.
#[derive(Debug)]
pub(crate) struct Compiled {
    text: Box<str>,
    program: Result<Program, Mistake>,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mistake {
    /// Its author's.
    #[error("{0}")]
    Invalid(String),
    /// It is sound, and yet cannot be run.
    #[error("{0}")]
    Internal(String),
}

/// What a group of expressions may still cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget(u64);

/// A group of expressions cost more than it may; none of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "validation failed due to running out of cost budget, no further validation rules will be run"
)]
pub(crate) struct OutOfBudget;

impl Budget {
    /// For the expressions of a policy, per binding and parameter.
    pub(crate) const POLICY: Budget = Budget(10_000_000);
    /// For the conditions of a webhook or a policy.
    pub(crate) const CONDITIONS: Budget = Budget(2_500_000);

    fn spend(&mut self, cost: u64) -> Result<(), OutOfBudget> {
        self.0 = self.0.checked_sub(cost).ok_or(OutOfBudget)?;
        Ok(())
    }
}

impl<'a> Subject<'a> {
    /// The values of all variables, among them those of named expressions. Whoever shares one
    /// composition shares what these come to.
    pub(crate) fn compose(&self, named: &'a [Named]) -> Composition<'a> {
        self.compose_with(named, [Ok(self.asker.to_val()), Ok(self.asker.to_requested())])
    }

    /// The same with nobody to ask for permissions, also if an expression was compiled to.
    pub(crate) fn compose_without_authorizer(&self, named: &'a [Named]) -> Composition<'a> {
        let missing = ["authorizer", "authorizer.requestResource"]
            .map(|name| Err(Failure::new(format!("no such attribute(s): {name}"))));
        self.compose_with(named, missing)
    }

    fn compose_with(&self, named: &'a [Named], asker: [Outcome<'a>; 2]) -> Composition<'a> {
        let seen = [self.object, self.old, self.namespace, self.request, self.params];
        let mut values: Vec<Outcome<'a>> =
            seen.into_iter().map(|value| Ok(Val::of_json(value))).collect();
        values.extend(asker);
        values.push(Ok(Val::Composed));
        Composition::new(named, values, RUN_COST_MAX)
    }
}

impl Compiled {
    pub(crate) fn new(text: &str, wants: Wants, environment: &Environment) -> Self {
        let program = compile(text, wants, environment).map(|(program, _)| program);
        Compiled { text: text.into(), program }
    }

    /// Runs it. The inner error says what went wrong, in words that begin with the expression.
    pub(crate) fn run<'v>(
        &'v self,
        composition: &mut Composition<'v>,
        budget: &mut Budget,
    ) -> Result<Result<Val<'v>, String>, OutOfBudget> {
        let program = match &self.program {
            Ok(program) => program,
            Err(mistake) => return Ok(Err(format!("compilation error: {mistake}"))),
        };
        let run = program.run_composed(composition);
        budget.spend(composition.take_cost())?;
        budget.spend(run.cost)?;
        Ok(run.outcome.map_err(|failure: Failure| {
            format!("expression '{}' resulted in error: {failure}", self.text)
        }))
    }

    pub(crate) fn mistake(&self) -> Option<&Mistake> {
        self.program.as_ref().err()
    }
}

/// Compiles an expression, and says of which type its results are.
pub(crate) fn compile(
    text: &str,
    wants: Wants,
    environment: &Environment,
) -> Result<(Program, Type), Mistake> {
    let dialect = match wants {
        Wants::Object | Wants::Patch => Dialect::Patch,
        _ => Dialect::Plain,
    };
    let expression = Expression::check_in(dialect, text, &environment.declared())
        .map_err(|issues| Mistake::Invalid(format!("compilation failed: {issues}")))?;
    let found = expression.result_type();
    wants.check(found)?;
    let program = expression
        .program(&ADMISSION_VARIABLES)
        .map_err(|failure| Mistake::Internal(format!("program instantiation failed: {failure}")))?;
    Ok((program, found.clone()))
}

/// Compiles expressions that have names, in their order: each may use those before it. What is
/// wrong with them shows when they are used.
pub(crate) fn compile_named(
    variables: &[(&str, &str)],
    environment: &mut Environment,
) -> Vec<Named> {
    let compiled = variables.iter().map(|(name, text)| {
        let program = compile_variable(name, text, environment);
        Named { name: (*name).into(), program: program.map_err(|mistake| mistake.to_string()) }
    });
    compiled.collect()
}

/// Compiles an expression that has a name, and makes the name known.
pub(crate) fn compile_variable(
    name: &str,
    text: &str,
    environment: &mut Environment,
) -> Result<Program, Mistake> {
    let compiled = compile(text, Wants::Anything, environment);
    environment.declare(name, compiled.as_ref().ok().map(|(_, type_)| type_));
    compiled.map(|(program, _)| program)
}

impl Wants {
    fn check(self, found: &Type) -> Result<(), Mistake> {
        let types = match self {
            Wants::Anything => return Ok(()),
            Wants::Bool => vec![Type::Bool],
            Wants::Text => vec![Type::String],
            Wants::TextOrNull => vec![Type::String, Type::Null],
            Wants::Object => vec![Type::named("Object")],
            Wants::Patch => vec![Type::list(Type::named("JSONPatch"))],
        };
        if types.contains(found) {
            return Ok(());
        }
        let (names, found): (Vec<_>, _) =
            (types.iter().map(Type::full_name).collect(), found.full_name());
        Err(Mistake::Invalid(match names.as_slice() {
            [only] => format!("must evaluate to {only} but got {found}"),
            many => format!("must evaluate to one of [{}] but got {found}", many.join(" ")),
        }))
    }
}
