//! One rule, from its text to a program.

use crate::cel::{Declared, Expression, Program, Type};
use crate::schema::crd::field_path::{self, Brackets};
use crate::schema::{Rule, Structural};

/// What the type of `self` is called in complaints. Upstream puts a number behind it that nobody
/// can rely on.
pub(in crate::schema) const SELF_TYPE: &str = "selfType0";

const VARIABLES: [&str; 2] = ["self", "oldSelf"];

/// What became of a rule.
#[derive(Debug)]
pub(in crate::schema) struct Compiled {
    /// Nothing for an empty rule; an error in upstream's words.
    pub(in crate::schema) program: Result<Option<Program>, String>,
    pub(in crate::schema) uses_old_self: bool,
    /// The most one run may cost.
    pub(in crate::schema) cost_max: u64,
    pub(in crate::schema) message: Option<Result<Message, String>>,
    /// Where a complaint points, below the value that the rule is about.
    pub(in crate::schema) field_path: Box<str>,
}

#[derive(Debug)]
pub(in crate::schema) struct Message {
    pub(in crate::schema) program: Program,
    pub(in crate::schema) cost_max: u64,
}

/// Compiles a rule about values of `schema`, which declares `declared` to it.
pub(in crate::schema) fn rule(
    rule: &Rule,
    schema: &Structural,
    declared: Option<&Declared>,
) -> Compiled {
    let mut compiled = Compiled {
        program: Ok(None),
        uses_old_self: false,
        cost_max: 0,
        message: None,
        field_path: "".into(),
    };
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    let Some(declared) = declared else {
        compiled.program = Err("failed to convert to declType for CEL validation rules".to_owned());
        return compiled;
    };
    let self_type = declared.type_.clone();
    let old_type = match rule.optional_old_self {
        Some(true) => Type::optional(self_type.clone()),
        _ => self_type.clone(),
    };
    let variables = [(VARIABLES[0], self_type), (VARIABLES[1], old_type)];

    let expression = match Expression::check(&rule.rule, &variables) {
        Ok(expression) => expression,
        Err(issues) => {
            compiled.program = Err(format!("compilation failed: {issues}"));
            return compiled;
        }
    };
    if *expression.result_type() != Type::Bool {
        compiled.program = Err("cel expression must evaluate to a bool".to_owned());
        return compiled;
    }
    compiled.uses_old_self = expression.uses(VARIABLES[1]);
    match expression.program(&VARIABLES) {
        Ok(program) => compiled.program = Ok(Some(program)),
        Err(failure) => {
            compiled.program = Err(format!("program instantiation failed: {failure}"));
            return compiled;
        }
    }
    compiled.cost_max = expression.max_cost(declared);
    if !rule.message_expression.is_empty() {
        let message = message(&rule.message_expression, &variables, declared);
        let failed = message.is_err();
        compiled.message = Some(message);
        if failed {
            return compiled;
        }
    }
    if let Ok(path) = field_path::resolve(&rule.field_path, schema, Brackets::Allowed) {
        compiled.field_path = path.text.into();
    }
    compiled
}

fn message(text: &str, variables: &[(&str, Type)], declared: &Declared) -> Result<Message, String> {
    let expression = Expression::check(text, variables)
        .map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
    if *expression.result_type() != Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let program = expression
        .program(&VARIABLES)
        .map_err(|failure| format!("messageExpression instantiation failed: {failure}"))?;
    Ok(Message { program, cost_max: expression.max_cost(declared) })
}
