//! Whether a value has the shape its schema gives it.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::super::path::PathElement;
use super::super::schema::{List, Map, Scalar, Schema, TypeId};
use super::{Form, form};
use crate::json::go;

/// Whether items of a set or a keyed list may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Duplicates {
    /// Objects written by other means than apply may have them.
    Allowed,
    Refused,
}

/// Checks `value` against the root type of `schema`.
///
/// The error is upstream's text: one line for one finding, a list for several.
pub(in super::super) fn validate(
    schema: &Schema,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), String> {
    let mut walk =
        Walk { schema, duplicates, path: Vec::new(), findings: Vec::new(), findings_bytes: 0 };
    walk.value(schema.root(), value);
    match walk.findings.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => {
            Err(several.iter().fold("errors:".to_owned(), |text, finding| text + "\n  " + finding))
        }
    }
}

/// Findings are kept up to this many bytes. A long key above many misfits would otherwise be
/// printed once for each.
const FINDINGS_BYTES_MAX: usize = 1 << 20;

struct Walk<'a> {
    schema: &'a Schema,
    duplicates: Duplicates,
    path: Vec<Step<'a>>,
    findings: Vec<String>,
    findings_bytes: usize,
}

enum Step<'a> {
    Field(&'a str),
    /// The position, and what the list calls the item; the name is made only for a finding.
    Item(&'a List, &'a Value, usize),
}

impl<'a> Walk<'a> {
    fn value(&mut self, ty: TypeId, value: &'a Value) {
        if ty.takes_anything() {
            return;
        }
        match form(self.schema.get(ty), value) {
            Form::Scalar(scalar) => self.scalar(scalar, value),
            Form::List(list) => self.list(list, value),
            Form::Map(map) => self.map(map, value),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let fits = match (scalar, value) {
            (_, Value::Null) => true,
            (Scalar::Numeric, value) => value.is_number(),
            (Scalar::String, value) => value.is_string(),
            (Scalar::Boolean, value) => value.is_boolean(),
            (Scalar::Untyped, value) => !value.is_array() && !value.is_object(),
        };
        if fits {
            return;
        }
        let finding = match scalar {
            Scalar::Numeric => {
                format!("expected numeric (int or float), got {}", go::type_name(value))
            }
            Scalar::String => {
                format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    go::syntax(value)
                )
            }
            Scalar::Boolean => format!("expected boolean, got &{{{}}}", go::plain(value)),
            Scalar::Untyped => format!("expected any scalar, got &{{{}}}", go::plain(value)),
        };
        self.report(&finding);
    }

    fn list(&mut self, list: &'a List, value: &'a Value) {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return,
            other => return self.report(&format!("expected list, got &{{{}}}", go::plain(other))),
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if !list.is_atomic() {
                if let Err(error) = list.check_item(item) {
                    // Without a name for the item there is nothing to say about what follows.
                    return self.report(&format!("element {index}: {error}"));
                }
                if self.duplicates == Duplicates::Refused
                    && let Ok(element) = list.element_of(item)
                    && let Some(twice) = seen.replace(element)
                {
                    self.report(&format!("duplicate entries for key {twice}"));
                }
            }
            self.path.push(Step::Item(list, item, index));
            self.value(list.element, item);
            self.path.pop();
        }
    }

    fn map(&mut self, map: &'a Map, value: &'a Value) {
        let entries = match value {
            Value::Object(entries) => entries,
            Value::Null => return,
            other => return self.report(&format!("expected map, got &{{{}}}", go::plain(other))),
        };
        for (key, value) in entries {
            self.path.push(Step::Field(key));
            match map.value_type(key) {
                Some(ty) => self.value(ty, value),
                None => self.report("field not declared in schema"),
            }
            self.path.pop();
            if map.value_type(key).is_none() {
                return;
            }
        }
    }

    fn report(&mut self, finding: &str) {
        if self.findings_bytes > FINDINGS_BYTES_MAX {
            return;
        }
        let mut text = String::new();
        for step in &self.path {
            let written = match step {
                Step::Field(name) => write!(text, ".{name}"),
                Step::Item(list, item, index) => match list.element_of(item) {
                    Ok(element) => write!(text, "{element}"),
                    Err(_) => write!(text, "{}", PathElement::Index(*index as i64)),
                },
            };
            written.expect("a string takes all text");
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(finding);
        self.findings_bytes += text.len();
        self.findings.push(text);
    }
}
