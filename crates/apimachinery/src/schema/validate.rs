//! Whether the values of an object are what its schema says, in upstream's words.
//!
//! The walk allocates nothing while all is well: where it is becomes text only in a complaint.
//!
//! On update, what was already wrong and has not changed may stay (*ratcheting*): a complaint
//! about a value is dropped when the value equals the one it replaces. That is looked into only
//! after a plain walk has found something to complain about.

mod number;
pub(super) mod ratchet;

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::Value;

use super::coerce::{printed, validate_embedded};
use super::list::validate_lists;
use super::{AdditionalProperties, Constraints, Structural, Type};
use crate::field::{self, ErrorKind, Path};
use crate::json;

/// Beyond this many complaints the object is plainly wrong; more would only cost memory.
const COMPLAINTS_MAX: usize = 10_000;

/// What is wrong with a custom resource: its values, the metadata of objects embedded in it, and
/// what stands twice in lists that are sets or maps.
///
/// `old` is the object it replaces, if any. The object's own metadata is not looked at.
pub fn validate(object: &Value, old: Option<&Value>, schema: &Structural) -> Vec<field::Error> {
    let mut errors = validate_values(object, old, schema, &Path::ROOT, Reading::AsServed);
    errors.extend(validate_embedded(object, schema));
    errors.extend(new_list_errors(object, old, schema));
    errors
}

/// The same for a write that can change nothing but `status`.
pub fn validate_status(object: &Value, old: &Value, schema: &Structural) -> Vec<field::Error> {
    let mut errors = Vec::new();
    if let (Some(status), Some(schema)) = (object.get("status"), schema.properties.get("status")) {
        let old = old.get("status");
        let at = Path::new("status");
        errors.extend(validate_values(status, old, schema, &at, Reading::AsServed));
    }
    errors.extend(new_list_errors(object, Some(old), schema));
    errors
}

/// Lists that already held something twice are left alone altogether.
fn new_list_errors(object: &Value, old: Option<&Value>, schema: &Structural) -> Vec<field::Error> {
    let errors = validate_lists(object, schema);
    match old {
        Some(old) if !errors.is_empty() && !validate_lists(old, schema).is_empty() => Vec::new(),
        _ => errors,
    }
}

/// Upstream reads a schema in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// For objects: unknown formats are ignored, int-or-string is a type of its own.
    AsServed,
    /// For defaults: as it is written.
    AsWritten,
}

/// What is wrong with the values; `base` is where the value stands.
pub(super) fn validate_values(
    value: &Value,
    old: Option<&Value>,
    schema: &Structural,
    base: &Path<'_>,
    reading: Reading,
) -> Vec<field::Error> {
    let walk = Walk { reading, complaints_left: Cell::new(COMPLAINTS_MAX) };
    let mut outcome = walk.node(value, None, schema, &At::Root);
    if outcome.failed && old.is_some() {
        walk.complaints_left.set(COMPLAINTS_MAX);
        outcome = walk.node(value, old, schema, &At::Root);
    }
    let mut said = HashSet::new();
    outcome.complaints.retain(|complaint| said.insert(complaint.message.clone()));
    outcome.complaints.into_iter().map(|complaint| complaint.into_error(base)).collect()
}

/// Where the walk is, below the value it started from.
enum At<'a> {
    Root,
    /// A property.
    Field(&'a At<'a>, &'a str),
    /// One of the additional properties. Upstream puts a dot before those even at the root.
    Additional(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    fn write(&self, out: &mut String) {
        match self {
            At::Root => {}
            At::Field(parent, name) => {
                parent.write(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            At::Additional(parent, name) => {
                parent.write(out);
                out.push('.');
                out.push_str(name);
            }
            At::Index(parent, index) => {
                parent.write(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }
}

/// One thing that is wrong, in the validator's words.
struct Complaint {
    /// The field; `None` for complaints about the value as a whole.
    name: Option<String>,
    kind: ErrorKind,
    bad_value: Value,
    /// What is shown after the value.
    detail: String,
    /// Upstream says the same thing only once, and this is what it compares.
    message: String,
}

impl Complaint {
    fn into_error(self, base: &Path<'_>) -> field::Error {
        let name = self.name.as_deref().map(|name| name.strip_prefix('.').unwrap_or(name));
        let field = match name {
            None | Some("") => base.to_string(),
            Some(name) => base.child(name).to_string(),
        };
        let bad_value = match self.kind {
            ErrorKind::Required | ErrorKind::TooLong => None,
            _ => Some(self.bad_value),
        };
        field::Error { kind: self.kind, field, bad_value, detail: self.detail }
    }
}

/// What came of looking at a value.
#[derive(Default)]
struct Outcome {
    failed: bool,
    complaints: Vec<Complaint>,
    /// How many checks were passed. Of alternatives that all fail, the complaints of the one that
    /// got furthest are shown.
    matched: u32,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.failed |= other.failed;
        self.matched += other.matched;
        if self.complaints.is_empty() {
            self.complaints = other.complaints;
        } else {
            self.complaints.extend(other.complaints);
        }
    }
}

struct Walk {
    reading: Reading,
    complaints_left: Cell<usize>,
}

impl Walk {
    /// Looks at one value and all below it. `old` is the value it replaces, where the two can be
    /// told to belong together.
    fn node(
        &self,
        value: &Value,
        old: Option<&Value>,
        schema: &Structural,
        at: &At<'_>,
    ) -> Outcome {
        let mut outcome = match value {
            Value::Null => self.null(schema, at),
            value => self.checks(value, old, schema, at),
        };
        if outcome.failed && old.is_some_and(|old| ratchet::unchanged(value, old, schema)) {
            outcome.failed = false;
            outcome.complaints.clear();
        }
        outcome
    }

    fn null(&self, schema: &Structural, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let types = self.types(schema);
        match types.is_empty() || schema.nullable {
            true => outcome.matched += 1,
            false => self.type_invalid(&mut outcome, at, &types.words(), "null"),
        }
        if let Some(constraints) = &schema.constraints {
            self.enumeration(&Value::Null, constraints, at, &mut outcome);
        }
        outcome
    }

    fn checks(
        &self,
        value: &Value,
        old: Option<&Value>,
        schema: &Structural,
        at: &At<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let constraints = schema.constraints.as_deref();
        let types = self.types(schema);
        let format = self.format(schema);
        if !types.is_empty() || format.is_some() {
            self.type_(value, types, format, at, &mut outcome);
            outcome.matched += 1;
        }
        if let Some(constraints) = constraints {
            self.junctions(value, constraints, at, &mut outcome);
        }
        outcome.matched += 2;
        match value {
            Value::String(text) => {
                self.string(text, constraints, format, at, &mut outcome);
            }
            Value::Number(number) => {
                let type_ = schema.type_.as_ref().filter(|_| types.len() == 1);
                self.number(number, type_, format, constraints, at, &mut outcome);
                outcome.matched += 2;
            }
            Value::Array(items) => {
                self.array(items, old, schema, at, &mut outcome);
                outcome.matched += 2;
            }
            _ => {}
        }
        if let Some(constraints) = constraints {
            self.enumeration(value, constraints, at, &mut outcome);
        }
        outcome.matched += 1;
        if let Value::Object(_) = value {
            self.object(value, old, schema, at, &mut outcome);
            outcome.matched += 1;
        }
        outcome.matched += 1;
        outcome
    }

    fn types<'s>(&self, schema: &'s Structural) -> Types<'s> {
        match &schema.type_ {
            _ if schema.extensions.int_or_string && self.reading == Reading::AsServed => {
                Types::IntOrString
            }
            Some(type_) => Types::One(type_),
            None => Types::None,
        }
    }

    /// The name of the format, when it counts.
    fn format<'s>(&self, schema: &'s Structural) -> Option<&'s super::Format> {
        let format = schema.constraints.as_ref()?.format.as_ref()?;
        let type_ = schema.type_.as_ref().filter(|_| !schema.extensions.int_or_string);
        let counts = self.reading == Reading::AsWritten || format.is_recognized(type_);
        counts.then_some(format)
    }

    fn type_(
        &self,
        value: &Value,
        types: Types<'_>,
        format: Option<&super::Format>,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let (found, found_format) = type_of(value);
        let accepted = types.contain(found)
            || found == "number" && types.contain("integer") && number::is_integral(value)
            || found == "integer" && types.contain("number");
        let is_text_or_list = matches!(value, Value::String(_) | Value::Array(_));
        match format {
            Some(format) if !is_text_or_list && !accepted && *format.name != *found_format => {
                return self.type_invalid(outcome, at, &format.name, found_format);
            }
            // The format speaks for strings; that a list gets past here is upstream's slip.
            Some(_) if is_text_or_list && !types.contain("number") && !types.contain("integer") => {
                outcome.matched += 1;
                return;
            }
            _ => {}
        }
        match accepted {
            true => outcome.matched += 1,
            false => self.type_invalid(outcome, at, &types.words(), found),
        }
    }

    fn string(
        &self,
        text: &str,
        constraints: Option<&Constraints>,
        format: Option<&super::Format>,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        outcome.matched += 1;
        if let Some(constraints) = constraints {
            self.text_constraints(text, constraints, at, outcome);
        }
        if let Some(format) = format.filter(|format| format.is_recognized(None)) {
            outcome.matched += 1;
            if !format.accepts(text) {
                self.type_invalid(outcome, at, &format.name, text);
            }
        }
    }

    /// Only the first of these is told.
    fn text_constraints(
        &self,
        text: &str,
        constraints: &Constraints,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let Constraints { max_length, min_length, pattern, .. } = constraints;
        let length = || text.chars().count() as i64;
        if let Some(max) = max_length.filter(|max| length() > *max) {
            let message = format!("should be at most {max} chars long");
            let detail = match max {
                max if max < 0 => "value is too long".to_owned(),
                1 => "may not be more than 1 byte".to_owned(),
                max => format!("may not be more than {max} bytes"),
            };
            self.complain(outcome, at, ErrorKind::TooLong, Value::Null, &message, Some(detail));
        } else if let Some(min) = min_length.filter(|min| length() < *min) {
            let message = format!("should be at least {min} chars long");
            self.invalid(outcome, at, text, &message);
        } else if let Some(pattern) = pattern {
            let message = match &pattern.compiled {
                Ok(regex) if regex.is_match(text) => return,
                Ok(_) => format!("should match '{}'", pattern.text),
                Err(error) => {
                    format!("should match '{}, but pattern is invalid: {error}'", pattern.text)
                }
            };
            self.invalid(outcome, at, text, &message);
        }
    }

    fn array(
        &self,
        items: &[Value],
        old: Option<&Value>,
        schema: &Structural,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        if let Some(item_schema) = &schema.items {
            let old_items = ratchet::OldItems::new(old, schema);
            for (index, item) in items.iter().enumerate() {
                let old = old_items.as_ref().and_then(|old_items| old_items.get(item));
                outcome.merge(self.node(item, old, item_schema, &At::Index(at, index)));
            }
        }
        let Some(constraints) = &schema.constraints else { return };
        let size = items.len() as i64;
        if let Some(min) = constraints.min_items.filter(|min| size < *min) {
            self.invalid(outcome, at, size, &format!("should have at least {min} items"));
        }
        if let Some(max) = constraints.max_items.filter(|max| size > *max) {
            self.too_many(outcome, at, size, max, "items");
        }
        if constraints.unique_items {
            let mut seen = HashSet::with_capacity(items.len());
            if !items.iter().all(|item| seen.insert(item)) {
                self.invalid(outcome, at, "", "shouldn't contain duplicates");
            }
        }
    }

    fn object(
        &self,
        object: &Value,
        old: Option<&Value>,
        schema: &Structural,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let Value::Object(map) = object else { return };
        let size = map.len() as i64;
        let constraints = schema.constraints.as_deref();
        if let Some(constraints) = constraints {
            if let Some(min) = constraints.min_properties.filter(|min| size < *min) {
                self.invalid(outcome, at, size, &format!("should have at least {min} properties"));
            }
            if let Some(max) = constraints.max_properties.filter(|max| size > *max) {
                self.too_many(outcome, at, size, max, "properties");
            }
        }
        let old = old.and_then(Value::as_object);
        match &schema.additional_properties {
            Some(AdditionalProperties::Allowed(false)) => {
                for name in map.keys().filter(|name| schema.properties.get(name).is_none()) {
                    outcome.failed = true;
                    let path = at.text();
                    let message = format!("{path}.{name} in body is a forbidden property");
                    self.push(
                        outcome,
                        Complaint {
                            name: Some(path),
                            kind: ErrorKind::Invalid,
                            bad_value: name.as_str().into(),
                            detail: message.clone(),
                            message,
                        },
                    );
                }
            }
            Some(AdditionalProperties::Schema(additional)) => {
                for (name, value) in map {
                    if schema.properties.get(name).is_none() {
                        let old = old.and_then(|old| old.get(name));
                        outcome.merge(self.node(value, old, additional, &At::Additional(at, name)));
                    }
                }
            }
            _ => {}
        }
        for (name, property) in schema.properties.iter() {
            let Some(value) = map.get(name) else { continue };
            // The version an object was written in is not part of it, so it cannot be compared.
            let is_type_meta = matches!(at, At::Root) && matches!(name, "apiVersion" | "kind");
            let old = old.and_then(|old| old.get(name)).filter(|_| !is_type_meta);
            outcome.merge(self.node(value, old, property, &At::Field(at, name)));
        }
        for name in constraints.iter().flat_map(|constraints| &constraints.required) {
            if !map.contains_key(&**name) {
                outcome.failed = true;
                let name = format!("{}.{name}", at.text());
                self.push(
                    outcome,
                    Complaint {
                        kind: ErrorKind::Required,
                        bad_value: Value::Null,
                        detail: String::new(),
                        message: format!("{name} in body is required"),
                        name: Some(name),
                    },
                );
            }
        }
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`. Nothing below them is compared with an old value.
    fn junctions(
        &self,
        value: &Value,
        constraints: &Constraints,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        if !constraints.any_of.is_empty() {
            self.any_of(value, &constraints.any_of, at, outcome);
        }
        if !constraints.one_of.is_empty() {
            self.one_of(value, &constraints.one_of, at, outcome);
        }
        if !constraints.all_of.is_empty() {
            let mut valid = 0;
            for schema in &constraints.all_of {
                let alternative = self.node(value, None, schema, at);
                valid += usize::from(!alternative.failed);
                outcome.merge(alternative);
            }
            if valid < constraints.all_of.len() {
                let end = if valid == 0 { ". None validated" } else { "" };
                self.whole(outcome, at, &format!("must validate all the schemas (allOf){end}"));
            }
        }
        if let Some(schema) = &constraints.not
            && !self.node(value, None, schema, at).failed
        {
            self.whole(outcome, at, "must not validate the schema (not)");
        }
    }

    fn any_of(
        &self,
        value: &Value,
        alternatives: &[Structural],
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        for schema in alternatives {
            let alternative = self.node(value, None, schema, at);
            if !alternative.failed {
                outcome.merge(alternative);
                return;
            }
            if best.as_ref().is_none_or(|best| alternative.matched > best.matched) {
                best = Some(alternative);
            }
        }
        self.whole(outcome, at, "must validate at least one schema (anyOf)");
        outcome.merge(best.unwrap_or_default());
    }

    fn one_of(
        &self,
        value: &Value,
        alternatives: &[Structural],
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        let mut first_valid: Option<Outcome> = None;
        let mut valid = 0;
        for schema in alternatives {
            let alternative = self.node(value, None, schema, at);
            if !alternative.failed {
                valid += 1;
                first_valid.get_or_insert(alternative);
            } else if best.as_ref().is_none_or(|best| alternative.matched > best.matched) {
                best = Some(alternative);
            }
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            1 => return outcome.merge(first_valid.unwrap_or_default()),
            valid => format!("Found {valid} valid alternatives"),
        };
        let message = format!("must validate one and only one schema (oneOf). {found}");
        self.whole(outcome, at, &message);
        if valid == 0 {
            outcome.merge(best.unwrap_or_default());
        }
    }

    fn enumeration(
        &self,
        value: &Value,
        constraints: &Constraints,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let Constraints { enumeration, .. } = constraints;
        if enumeration.is_empty() || enumeration.iter().any(|one| number::converts(value, one)) {
            return;
        }
        let words: Vec<String> = enumeration
            .iter()
            .map(|one| match one {
                Value::String(text) => text.clone(),
                other => json::to_string(&printed(other)),
            })
            .collect();
        let quoted: Vec<String> = words.iter().map(|word| json::go_quote(word)).collect();
        let message = format!("should be one of [{}]", words.join(" "));
        let detail = format!("supported values: {}", quoted.join(", "));
        let kind = ErrorKind::NotSupported;
        self.complain(outcome, at, kind, printed(value), &message, Some(detail));
    }

    fn type_invalid(&self, outcome: &mut Outcome, at: &At<'_>, expected: &str, found: &str) {
        let message = format!("must be of type {expected}: {}", json::go_quote(found));
        self.complain(outcome, at, ErrorKind::TypeInvalid, found.into(), &message, None);
    }

    fn invalid(&self, outcome: &mut Outcome, at: &At<'_>, value: impl Into<Value>, message: &str) {
        self.complain(outcome, at, ErrorKind::Invalid, value.into(), message, None);
    }

    fn too_many(&self, outcome: &mut Outcome, at: &At<'_>, size: i64, max: i64, noun: &str) {
        let message = format!("should have at most {max} {noun}");
        let detail = match max {
            max if max < 0 => "has too many items".to_owned(),
            1 => "must have at most 1 item".to_owned(),
            max => format!("must have at most {max} items"),
        };
        self.complain(outcome, at, ErrorKind::TooMany, size.into(), &message, Some(detail));
    }

    /// A complaint about a field. The message is what is shown, unless there is a `detail`.
    fn complain(
        &self,
        outcome: &mut Outcome,
        at: &At<'_>,
        kind: ErrorKind,
        bad_value: Value,
        message: &str,
        detail: Option<String>,
    ) {
        outcome.failed = true;
        let name = at.text();
        let message = format!("{name} in body {message}");
        let detail = detail.unwrap_or_else(|| message.clone());
        self.push(outcome, Complaint { name: Some(name), kind, bad_value, detail, message });
    }

    /// A complaint that names its field only in its text.
    fn whole(&self, outcome: &mut Outcome, at: &At<'_>, message: &str) {
        self.plain(outcome, format!("{} {message}", json::go_quote(&at.text())));
    }

    fn plain(&self, outcome: &mut Outcome, message: String) {
        outcome.failed = true;
        self.push(
            outcome,
            Complaint {
                name: None,
                kind: ErrorKind::Invalid,
                bad_value: "".into(),
                detail: message.clone(),
                message,
            },
        );
    }

    fn push(&self, outcome: &mut Outcome, complaint: Complaint) {
        if let Some(left) = self.complaints_left.get().checked_sub(1) {
            self.complaints_left.set(left);
            outcome.complaints.push(complaint);
        }
    }
}

/// The types a value may have.
#[derive(Clone, Copy)]
enum Types<'s> {
    None,
    One(&'s Type),
    IntOrString,
}

impl Types<'_> {
    fn len(self) -> usize {
        match self {
            Types::None => 0,
            Types::One(_) => 1,
            Types::IntOrString => 2,
        }
    }

    fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn contain(self, name: &str) -> bool {
        match self {
            Types::None => false,
            Types::One(type_) => type_.as_str() == name,
            Types::IntOrString => matches!(name, "integer" | "string"),
        }
    }

    fn words(self) -> String {
        match self {
            Types::None => String::new(),
            Types::One(type_) => type_.as_str().to_owned(),
            Types::IntOrString => "integer,string".to_owned(),
        }
    }
}

/// The type of a value, and the format Go's number has.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}
