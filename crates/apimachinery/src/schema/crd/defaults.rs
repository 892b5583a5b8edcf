//! Defaults are values like any other: known to the schema, and valid.

use serde_json::{Value, json};

use crate::field::{Error, Path};
use crate::schema::coerce::{Malformed, coerce_at, printed, validate_embedded_value};
use crate::schema::prune::prune_value;
use crate::schema::rules::{self, Rules};
use crate::schema::validate::{Reading, validate_values};
use crate::schema::{Structural, is_meta_field};
use crate::status;

const UNKNOWN_FIELDS: &str = "must not have unknown fields";

/// Whether a default may hold what its schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    Allowed,
}

pub(super) fn validate(schema: &Structural, unknown: Unknown, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let around = Around { object: schema, way: Vec::new(), inside_meta: false };
    let mut budget = rules::BUDGET;
    node(schema, true, around, (unknown, &mut budget), at, &mut errors);
    errors
}

/// The object that a node is part of: the resource, or the innermost one embedded in it.
struct Around<'s> {
    object: &'s Structural,
    way: Vec<Step<'s>>,
    /// Within its `apiVersion`, `kind` or `metadata`.
    inside_meta: bool,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Field(&'s str),
    Item,
}

impl<'s> Around<'s> {
    fn step(&self, step: Step<'s>, enters_meta: bool) -> Self {
        let mut way = self.way.clone();
        way.push(step);
        let inside_meta = self.inside_meta || enters_meta;
        Around { object: self.object, way, inside_meta }
    }

    /// The object with nothing in it but the value, and what makes it an object.
    fn build(&self, value: Value) -> Value {
        let mut object = self.way.iter().rev().fold(value, |inner, step| match step {
            Step::Field(name) => json!({*name: inner}),
            Step::Item => json!([inner]),
        });
        if let Value::Object(map) = &mut object {
            map.entry("kind").or_insert_with(|| "Validation".into());
            map.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        object
    }
}

fn node<'s>(
    schema: &'s Structural,
    is_root: bool,
    around: Around<'s>,
    (unknown, budget): (Unknown, &mut i64),
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    // When the rules have used it up, nothing more is looked at.
    if *budget < 0 {
        return;
    }
    let is_object = schema.is_embedded(is_root);
    let around = match is_object {
        true => Around { object: schema, way: Vec::new(), inside_meta: false },
        false => around,
    };
    if let Some(default) = &schema.default {
        let at = at.child("default");
        let n_errors = errors.len();
        match around.inside_meta {
            true => errors.extend(default_in_meta(default, schema, &around, &at)),
            false => errors.extend(default_of(default, schema, is_object, unknown, &at)),
        }
        let only_unknown = errors[n_errors..].iter().all(|error| error.detail == UNKNOWN_FIELDS);
        if only_unknown {
            errors.extend(broken_rules(default, schema, is_object, budget, &at));
        }
    }
    if let Some(items) = &schema.items {
        let around = around.step(Step::Item, false);
        node(items, false, around, (unknown, &mut *budget), &at.child("items"), errors);
    }
    for (name, property) in schema.properties.iter() {
        let around = around.step(Step::Field(name), is_object && is_meta_field(name));
        let at = at.child("properties");
        node(property, false, around, (unknown, &mut *budget), &at.key(name), errors);
    }
}

fn default_of(
    default: &Value,
    schema: &Structural,
    is_object: bool,
    unknown: Unknown,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if unknown == Unknown::Refused {
        let mut pruned = default.clone();
        prune_value(&mut pruned, schema, is_object);
        if pruned != *default {
            errors.push(Error::invalid(at, printed(default), UNKNOWN_FIELDS));
        }
    }
    let mut coerced = default.clone();
    if let Err(error) = coerce_at(&mut coerced, schema, is_object, Malformed::Refuse, at) {
        errors.push(*error);
        return errors;
    }
    let wrong_meta = validate_embedded_value(&coerced, schema, is_object, at);
    errors.extend(match wrong_meta.is_empty() {
        true => validate_values(&coerced, None, schema, at, Reading::AsWritten),
        false => wrong_meta,
    });
    errors
}

/// What breaks the rules, be the default there from the start or anew.
fn broken_rules(
    default: &Value,
    schema: &Structural,
    is_object: bool,
    budget: &mut i64,
    at: &Path<'_>,
) -> Vec<Error> {
    let Some(rules) = Rules::of(schema, is_object) else { return Vec::new() };
    let (errors, left) = rules.validate_value(default, Some(default), schema, at, *budget);
    if !errors.is_empty() {
        *budget = left;
        return errors;
    }
    let (errors, left_anew) = rules.validate_value(default, None, schema, at, *budget);
    *budget = left.min(left_anew);
    errors
}

/// A default for part of an object's metadata is right when it makes metadata that is.
fn default_in_meta(
    default: &Value,
    schema: &Structural,
    around: &Around<'_>,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut object = around.build(default.clone());
    let root = around.object;
    let wrong = match coerce_at(&mut object, root, true, Malformed::Refuse, &Path::ROOT) {
        Err(error) => vec![*error],
        Ok(_) => validate_embedded_value(&object, root, true, &Path::ROOT),
    };
    if wrong.is_empty() {
        return validate_values(default, None, schema, at, Reading::AsWritten);
    }
    let detail = format!("must result in valid metadata: {}", status::aggregate(&wrong));
    vec![Error::invalid(at, printed(default), detail)]
}
