//! Rules of a definition: whether they compile, and what they may cost.
//!
//! A rule is judged by the most it can cost, times how often the value it is about can occur. What
//! bounds neither a list nor a string makes nearly every rule too expensive; the messages say so.

use super::internal;
use crate::cel::Declared;
use crate::field::{Error, Path};
use crate::schema::rules::compile::{self, SELF_TYPE};
use crate::schema::{AdditionalProperties, Rule, Structural, Type};

/// The most that one rule may be estimated at.
const RULE_COST_MAX: u64 = 10_000_000;
/// The most that all rules of a schema may.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the most expensive rules are named, and from which cost on.
const NAMED_MAX: usize = 4;
const NAMED_COST_MIN: u64 = SCHEMA_COST_MAX / 100;

/// Whether a rule by itself may cost too much, as it may when the schema has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Costs {
    Limited,
    Tolerated,
}

/// What is wrong with the rules of a schema. `others` is what else is wrong with it: rules are
/// not looked at where that is the case for the schema they are about.
pub(super) fn validate(
    schema: &Structural,
    costs: Costs,
    others: &[Error],
    at: &Path<'_>,
) -> Vec<Error> {
    let mut judge =
        Judge { costs, others, errors: Vec::new(), total: 0, most_expensive: Vec::new() };
    let place =
        Place { is_root: true, cardinality: Some(1), scope: Scope::Outside, forbids_old: None };
    judge.node(schema, &place, at);
    judge.finish(at)
}

struct Judge<'e> {
    costs: Costs,
    others: &'e [Error],
    errors: Vec<Error>,
    total: u64,
    most_expensive: Vec<(u64, String)>,
}

/// What the way to a node says about it.
#[derive(Clone)]
struct Place {
    is_root: bool,
    /// How often its value can occur, if anything says so.
    cardinality: Option<u64>,
    scope: Scope,
    /// The outermost list around it whose items cannot be told apart.
    forbids_old: Option<String>,
}

/// Whether rules are about the value around a node, and whether that could be declared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Outside,
    Declared,
    Undeclared,
}

impl Judge<'_> {
    fn node(&mut self, schema: &Structural, place: &Place, at: &Path<'_>) {
        let has_rules = !schema.extensions.validations.is_empty();
        let is_resource = place.is_root || schema.extensions.embedded_resource;
        let mut scope = place.scope;
        let mut declared = None;
        if has_rules && scope != Scope::Undeclared {
            declared = Declared::new(schema, is_resource, SELF_TYPE);
            scope = if declared.is_some() { Scope::Declared } else { Scope::Undeclared };
        }
        let factor = elements_max(schema);
        let below = Place {
            is_root: false,
            cardinality: place.cardinality.zip(factor).map(|(a, b)| a.saturating_mul(b)),
            scope,
            forbids_old: place.forbids_old.clone(),
        };
        if let Some(AdditionalProperties::Schema(additional)) = &schema.additional_properties {
            self.node(additional, &below, &at.child("additionalProperties"));
        }
        for (name, property) in schema.properties.iter() {
            self.node(property, &below, &at.child("properties").key(name));
        }
        if let Some(items) = &schema.items {
            let mut below = below.clone();
            if !schema.is_list_type("map") && below.forbids_old.is_none() {
                below.forbids_old = Some(at.to_string());
            }
            self.node(items, &below, &at.child("items"));
        }
        if !has_rules || self.is_wrong_otherwise(at) {
            return;
        }
        let at = at.child("x-kubernetes-validations");
        let Some(declared) = declared else {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural schema to \
                          CEL declarations";
            self.errors.push(Error::internal(&at, detail));
            return;
        };
        for (index, rule) in schema.extensions.validations.iter().enumerate() {
            self.rule(rule, schema, &declared, place, &at.index(index));
        }
    }

    /// Whether something was found at this place or below it.
    fn is_wrong_otherwise(&self, at: &Path<'_>) -> bool {
        let prefix = at.to_string();
        self.others.iter().any(|error| {
            let rest = error.field.strip_prefix(&*prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn rule(
        &mut self,
        rule: &Rule,
        schema: &Structural,
        declared: &Declared,
        place: &Place,
        at: &Path<'_>,
    ) {
        let compiled = compile::rule(rule, schema, Some(declared));
        let rule_at = at.child("rule");
        let cardinality = place.cardinality.unwrap_or_else(|| declared.cardinality_max());
        let cost = compiled.cost_max.saturating_mul(cardinality);
        self.charge(cost, "estimated rule cost", &rule_at);
        if let Err(detail) = &compiled.program {
            self.errors.push(Error::invalid(&rule_at, internal::rule(rule), detail.as_str()));
        }
        let message_at = at.child("messageExpression");
        match &compiled.message {
            Some(Err(detail)) => {
                self.errors.push(Error::invalid(
                    &message_at,
                    internal::rule(rule),
                    detail.as_str(),
                ));
            }
            Some(Ok(message)) => {
                self.charge(message.cost_max, "estimated messageExpression cost", &message_at);
            }
            None => {}
        }
        if compiled.uses_old_self {
            if let Some(list) = &place.forbids_old {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {list}"
                );
                self.errors.push(Error::invalid(&rule_at, rule.rule.as_str(), detail));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(Error::invalid(&at.child("optionalOldSelf"), optional, detail));
        }
    }

    /// Adds to the total, and complains about a single expression.
    fn charge(&mut self, cost: u64, name: &str, at: &Path<'_>) {
        if self.costs == Costs::Limited && cost > RULE_COST_MAX {
            self.errors.push(Error::forbidden(at, over(name, cost, RULE_COST_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= NAMED_COST_MIN {
            self.most_expensive.push((cost, at.to_string()));
            self.most_expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most_expensive.truncate(NAMED_MAX);
        }
    }

    fn finish(mut self, at: &Path<'_>) -> Vec<Error> {
        if self.total > SCHEMA_COST_MAX {
            for (_, field) in self.most_expensive {
                let detail = "contributed to estimated rule cost total exceeding cost limit for \
                              entire OpenAPIv3 schema";
                let mut error = Error::forbidden(&Path::ROOT, detail);
                error.field = field;
                self.errors.push(error);
            }
            let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 \
                        schema";
            self.errors.push(Error::forbidden(at, over(name, self.total, SCHEMA_COST_MAX)));
        }
        self.errors
    }
}

/// How many values below it a value may have, per occurrence of its own.
fn elements_max(schema: &Structural) -> Option<u64> {
    let constraints = schema.constraints.as_deref();
    let max = |max: Option<i64>| max.map(|max| max.max(0) as u64);
    match schema.type_ {
        Some(Type::Object) if schema.additional_properties.is_some() => {
            max(constraints.and_then(|constraints| constraints.max_properties))
        }
        Some(Type::Array) => max(constraints.and_then(|constraints| constraints.max_items)),
        _ => Some(1),
    }
}

fn over(name: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
