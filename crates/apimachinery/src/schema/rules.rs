//! Rules of a schema (`x-kubernetes-validations`), enforced on objects.
//!
//! Rules are compiled once, into a tree as deep as the schema has rules. An object is then walked
//! along that tree only. Each rule may cost so much, and all of them together ten times that; when
//! the budget is used up the object is refused.

pub(super) mod compile;

use std::collections::HashMap;

use serde_json::Value;

use self::compile::Compiled;
use super::validate::ratchet::{self, OldItems};
use super::{Rule, Structural, Type};
use crate::cel::{Data, Declared, Failure, Outcome, Val};
use crate::field::{Error, ErrorKind, Path};

/// What one run of an expression may cost.
const CALL_COST_MAX: u64 = 1_000_000;
/// What all rules together may cost for one object.
pub(super) const BUDGET: i64 = 10_000_000;
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// The rules of a schema, ready to run.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// What the rules say about an object.
#[derive(Debug, Default)]
pub struct Findings {
    pub errors: Vec<Error>,
    /// What would be wrong, but was so before and has not changed.
    pub warnings: Vec<String>,
}

#[derive(Debug, Default)]
struct Node {
    rules: Vec<(Rule, Compiled)>,
    is_resource: bool,
    items: Option<Box<Node>>,
    properties: Vec<(Box<str>, Node)>,
    additional: Option<Box<Node>>,
}

impl Rules {
    /// Compiles the rules of a custom resource; `None` when it has none.
    pub fn new(schema: &Structural) -> Option<Self> {
        Rules::of(schema, true)
    }

    /// The same for part of a schema.
    pub(super) fn of(schema: &Structural, is_resource: bool) -> Option<Self> {
        node(schema, is_resource).map(|root| Rules { root })
    }

    /// Runs the rules on an object that may replace `old`. After `errors` of certain kinds they
    /// are not run at all, which is one more error.
    pub fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        schema: &Structural,
        errors: &[Error],
    ) -> Findings {
        if errors.iter().any(|error| blocks(error.kind)) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            let error = Error::invalid(&Path::ROOT, Value::Null, detail);
            return Findings { errors: vec![error], warnings: Vec::new() };
        }
        let current = old.map(|old| Pair { value: object, old, schema });
        let correlation = Correlation { current, nearest: None };
        let mut run = Run::new(BUDGET);
        // Out of budget or not, everything found is said.
        let _ = run.node(&self.root, Spot { value: object, old, schema, correlation }, &Path::ROOT);
        run.findings
    }

    /// Runs the rules on a value by itself, within what is left of a budget.
    pub(super) fn validate_value(
        &self,
        value: &Value,
        old: Option<&Value>,
        schema: &Structural,
        at: &Path<'_>,
        budget: i64,
    ) -> (Vec<Error>, i64) {
        let mut run = Run::new(budget);
        let correlation = Correlation::default();
        let done = run.node(&self.root, Spot { value, old, schema, correlation }, at);
        (run.findings.errors, if done.is_ok() { run.budget } else { -1 })
    }
}

/// Rules rely on what these say.
fn blocks(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotSupported
            | ErrorKind::Required
            | ErrorKind::TooLong
            | ErrorKind::TooMany
            | ErrorKind::TypeInvalid
    )
}

fn node(schema: &Structural, is_resource: bool) -> Option<Node> {
    let rules = &schema.extensions.validations;
    let declared = match rules.is_empty() {
        true => None,
        false => Declared::new(schema, is_resource, compile::SELF_TYPE),
    };
    let below = |schema: &Structural| node(schema, schema.extensions.embedded_resource);
    let node = Node {
        rules: rules
            .iter()
            .map(|rule| (rule.clone(), compile::rule(rule, schema, declared.as_deref())))
            .collect(),
        is_resource,
        items: schema.items.as_deref().and_then(below).map(Box::new),
        properties: schema
            .properties
            .iter()
            .filter_map(|(name, property)| Some((name.into(), below(property)?)))
            .collect(),
        additional: schema.additional_schema().and_then(below).map(Box::new),
    };
    let is_needed = !node.rules.is_empty()
        || node.items.is_some()
        || !node.properties.is_empty()
        || node.additional.is_some();
    is_needed.then_some(node)
}

/// A value and the one it replaces.
#[derive(Clone, Copy)]
struct Pair<'v> {
    value: &'v Value,
    old: &'v Value,
    schema: &'v Structural,
}

/// What tells whether a complaint is about something that has not changed.
#[derive(Clone, Copy, Default)]
struct Correlation<'v> {
    current: Option<Pair<'v>>,
    /// The closest value around it whose old one is known.
    nearest: Option<Pair<'v>>,
}

impl<'v> Correlation<'v> {
    fn field(self, name: &str) -> Self {
        let Some(pair) = self.current else { return self };
        // The version an object was written in is not part of it, so it cannot be compared.
        if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Correlation::default();
        }
        let values = pair.value.get(name).zip(pair.old.get(name)).zip(pair.schema.field(name));
        let current = values.map(|((value, old), schema)| Pair { value, old, schema });
        Correlation { current, nearest: Some(pair) }
    }

    fn item(self, value: &'v Value, old: Option<&'v Value>) -> Self {
        let Some(pair) = self.current else { return self };
        let known = old.zip(pair.schema.items.as_deref());
        let current = known.map(|(old, schema)| Pair { value, old, schema });
        Correlation { current, nearest: Some(pair) }
    }
}

/// Nothing more is run.
struct OutOfBudget;

struct Run {
    budget: i64,
    findings: Findings,
    /// Whether values are as they were, by where they are: many items may ask about one list.
    unchanged: HashMap<*const Value, bool>,
}

/// What rules are run on.
#[derive(Clone, Copy)]
struct Spot<'v> {
    value: &'v Value,
    old: Option<&'v Value>,
    schema: &'v Structural,
    correlation: Correlation<'v>,
}

impl Run {
    fn new(budget: i64) -> Self {
        Run { budget, findings: Findings::default(), unchanged: HashMap::new() }
    }

    fn node<'v>(
        &mut self,
        node: &'v Node,
        spot: Spot<'v>,
        at: &Path<'_>,
    ) -> Result<(), OutOfBudget> {
        // Rules are about what is there; whether it may be null is for the rules around it.
        if spot.value.is_null() {
            return Ok(());
        }
        let spot = Spot { old: spot.old.filter(|old| !old.is_null()), ..spot };
        self.rules(node, spot, at)?;
        let Spot { value, old, schema, correlation } = spot;
        match value {
            Value::Array(items) => self.items(node, items, spot, at),
            Value::Object(map) => {
                let old = old.and_then(Value::as_object);
                let old_field = |name: &str| old.and_then(|old| old.get(name));
                for (name, value) in map {
                    let correlation = correlation.field(name);
                    let old = old_field(name);
                    if let Some((below, schema)) =
                        node.additional.as_deref().zip(schema.additional_schema())
                    {
                        let spot = Spot { value, old, schema, correlation };
                        self.node(below, spot, &at.key(name))?;
                    }
                    let known = node.properties.iter().find(|(known, _)| **known == **name);
                    if let Some(((_, below), schema)) = known.zip(schema.properties.get(name)) {
                        let spot = Spot { value, old, schema, correlation };
                        self.node(below, spot, &at.child(name))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn items<'v>(
        &mut self,
        node: &'v Node,
        items: &'v [Value],
        list: Spot<'v>,
        at: &Path<'_>,
    ) -> Result<(), OutOfBudget> {
        let Some((below, schema)) = node.items.as_deref().zip(list.schema.items.as_deref()) else {
            return Ok(());
        };
        let old_items = OldItems::new(list.old, list.schema);
        for (index, value) in items.iter().enumerate() {
            let old = old_items.as_ref().and_then(|old_items| old_items.get(value));
            let correlation = list.correlation.item(value, old);
            let spot = Spot { value, old, schema, correlation };
            self.node(below, spot, &at.index(index))?;
        }
        Ok(())
    }

    fn rules<'v>(
        &mut self,
        node: &'v Node,
        spot: Spot<'v>,
        at: &Path<'_>,
    ) -> Result<(), OutOfBudget> {
        if node.rules.is_empty() {
            return Ok(());
        }
        let Spot { value, old, schema, correlation } = spot;
        let type_name = schema.type_name();
        if self.budget <= 0 {
            self.findings.errors.push(Error::invalid(at, type_name, OUT_OF_BUDGET));
            return Err(OutOfBudget);
        }
        let val = |value| Data { value, schema, is_resource: node.is_resource }.to_val();
        let self_val = val(value);
        let old_val = old.map(val);
        for (rule, compiled) in &node.rules {
            let program = match &compiled.program {
                Ok(Some(program)) => program,
                Ok(None) => continue,
                Err(detail) => {
                    let detail = format!("rule compile error: {detail}");
                    self.findings.errors.push(Error::invalid(at, type_name, detail));
                    continue;
                }
            };
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let variables = || vec![self_val.clone(), old_self(old_val.as_ref(), is_optional)];
            let run = program.run(variables(), CALL_COST_MAX);
            self.pay(run.cost, type_name, at)?;
            let text = rule.error_text();
            let invalid = |detail: String| Error::invalid(at, type_name, detail);
            match run.outcome {
                Ok(Val::Bool(true)) => continue,
                Ok(_) => {}
                Err(Failure::CostLimit) => {
                    self.findings.errors.push(invalid(format!(
                        "'{}': no further validation rules will be run due to call cost exceeds \
                         limit for rule: {text}",
                        Failure::CostLimit
                    )));
                    return Err(OutOfBudget);
                }
                Err(Failure::Error(error)) => {
                    let detail = match error.starts_with("no such overload") {
                        true => format!(
                            "'{error}': call arguments did not match a supported operator, \
                             function or macro signature for rule: {text}"
                        ),
                        false => format!("{error} evaluating rule: {text}"),
                    };
                    self.findings.errors.push(invalid(detail));
                    continue;
                }
            }
            let may_stay = !compiled.uses_old_self && self.is_unchanged(correlation);
            let at = match &*compiled.field_path {
                "" => *at,
                path => at.child(path),
            };
            let written = match &compiled.message {
                Some(Ok(message)) => self.message(&message.program, variables(), rule),
                _ => Ok(None),
            };
            let (error, result) = match written {
                Ok(written) => {
                    let detail = written.unwrap_or_else(|| rule.message_or_default());
                    (broken(rule, value, schema, detail, &at), Ok(()))
                }
                Err(detail) => (Error::invalid(&at, type_name, detail), Err(OutOfBudget)),
            };
            match may_stay {
                true => self.findings.warnings.push(error.to_string()),
                false => self.findings.errors.push(error),
            }
            result?;
        }
        Ok(())
    }

    fn is_unchanged(&mut self, correlation: Correlation<'_>) -> bool {
        let Some(Pair { value, old, schema }) = correlation.current.or(correlation.nearest) else {
            return false;
        };
        let known = self.unchanged.entry(std::ptr::from_ref(value));
        *known.or_insert_with(|| ratchet::unchanged(value, old, schema))
    }

    fn pay(&mut self, cost: u64, type_name: &str, at: &Path<'_>) -> Result<(), OutOfBudget> {
        match i64::try_from(cost).ok().filter(|cost| *cost <= self.budget) {
            Some(cost) => {
                self.budget -= cost;
                Ok(())
            }
            None => {
                self.findings.errors.push(Error::invalid(at, type_name, OUT_OF_BUDGET));
                Err(OutOfBudget)
            }
        }
    }

    /// The message that an expression makes; `None` when it makes none that can be shown. An error
    /// when it costs too much.
    fn message<'v>(
        &mut self,
        program: &'v crate::cel::Program,
        variables: Vec<Outcome<'v>>,
        rule: &Rule,
    ) -> Result<Option<String>, String> {
        let run = program.run(variables, CALL_COST_MAX);
        let cost = i64::try_from(run.cost).unwrap_or(i64::MAX);
        if cost > self.budget {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no \
                        further validation rules will be run"
                    .to_owned(),
            );
        }
        if run.outcome.as_ref().err() == Some(&Failure::CostLimit) {
            let quoted = crate::json::go_quote(&rule.message_expression);
            return Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {quoted}"
            ));
        }
        self.budget -= cost;
        let Ok(Val::String(text)) = run.outcome else { return Ok(None) };
        let text = text.trim();
        let is_shown = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        Ok(is_shown.then(|| text.to_owned()))
    }
}

/// What `oldSelf` stands for.
fn old_self<'v>(old: Option<&Outcome<'v>>, is_optional: bool) -> Outcome<'v> {
    match (old, is_optional) {
        (Some(old), false) => old.clone(),
        (Some(old), true) => old.clone().map(|old| Val::Optional(Some(old.into()))),
        (None, true) => Ok(Val::Optional(None)),
        (None, false) => Err(Failure::new("no such attribute(s): oldSelf")),
    }
}

fn broken(rule: &Rule, value: &Value, schema: &Structural, detail: String, at: &Path<'_>) -> Error {
    let shown = match schema.type_ {
        Some(Type::Object | Type::Array) => None,
        _ => Some(value.clone()),
    };
    let (kind, detail) = match rule.reason.as_deref() {
        Some("FieldValueForbidden") => (ErrorKind::Forbidden, detail),
        Some("FieldValueRequired") => (ErrorKind::Required, detail),
        Some("FieldValueDuplicate") => (ErrorKind::Duplicate, String::new()),
        _ => (ErrorKind::Invalid, detail),
    };
    Error { kind, field: at.to_string(), bad_value: shown, detail }
}

impl Rule {
    fn error_text(&self) -> &str {
        let text = if self.message.is_empty() { &self.rule } else { &self.message };
        text.trim()
    }

    fn message_or_default(&self) -> String {
        match self.message.is_empty() {
            true => format!("failed rule: {}", self.error_text()),
            false => self.message.trim().to_owned(),
        }
    }
}
