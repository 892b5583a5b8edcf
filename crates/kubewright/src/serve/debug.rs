//! What parts of an operator say about themselves, for people.

use std::fmt::Write as _;
use std::sync::Arc;

use http::{Request, StatusCode, header};
use serde_json::Value;

use super::{Answer, json, text};

/// Something that can say how it is.
pub trait Report: Send + Sync {
    fn report(&self) -> Value;
}

/// A page below `/debug/`: an outline, or JSON for those who accept only that.
pub struct Page {
    path: String,
    report: Arc<dyn Report>,
}

impl Page {
    /// The page `/debug/<name>`, such as `controllers`.
    pub fn new(name: &str, report: Arc<dyn Report>) -> Self {
        Page { path: format!("/debug/{name}"), report }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn answer<B>(&self, request: &Request<B>) -> Answer {
        let report = self.report.report();
        let accepted = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
        if accepted.is_some_and(|accepted| accepted.starts_with("application/json")) {
            return json(StatusCode::OK, &report);
        }
        let mut outlined = String::new();
        outline(&mut outlined, &report, 0);
        text(StatusCode::OK, outlined)
    }
}

/// A line for each fact, indented below what it is about.
fn outline(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let mut entry = |name: &str, value: &Value| {
        let is_group = match value {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        let fact = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing to a text cannot fail.
        let _ = match is_group {
            true => writeln!(out, "{indent}{name}"),
            false => writeln!(out, "{indent}{name} {fact}"),
        };
        if is_group {
            outline(out, value, depth + 1);
        }
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| entry(name, value)),
        Value::Array(items) => items.iter().for_each(|item| entry("-", item)),
        fact => entry("", fact),
    }
}
