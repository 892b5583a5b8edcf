//! What strict decoding refuses: fields nobody knows and fields given twice.
//!
//! A reader that is not strict only warns, so a violation is a fact about a document that was
//! read, not an error. Whoever asked decides: [`error`] joins them as the answer to a strict
//! request words it, [`warnings`] gives one text for each.

use std::collections::HashSet;
use std::fmt;

use super::go_quote;

/// What a decoder needs to know of the type that it decodes into.
pub trait Shape: Copy {
    /// The shape of a field, or of the value under a key; `None` when there is no such field.
    fn field(self, name: &str) -> Option<Self>;

    /// The shape of the elements of a list.
    fn item(self) -> Self;

    /// Whether the type reads itself from raw bytes (as times, quantities and raw extensions
    /// do). Nothing is reported inside such a value.
    fn is_opaque(self) -> bool {
        false
    }
}

/// The shape of a tree without types: every field is known, and duplicates are still reported.
#[derive(Debug, Clone, Copy)]
pub struct AnyShape;

impl Shape for AnyShape {
    fn field(self, _name: &str) -> Option<Self> {
        Some(self)
    }

    fn item(self) -> Self {
        self
    }
}

/// One thing that a strict reader refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Violation {
    /// The type has no such field. The path is as `spec.containers[0].nme`.
    UnknownField(String),
    DuplicateField(String),
    /// The schema of a custom resource has no such field.
    UnspecifiedField(String),
    /// What a YAML reader said of duplicate keys: a heading, then a line for each.
    Yaml(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::UnknownField(path) => write!(f, "unknown field {}", go_quote(path)),
            Violation::DuplicateField(path) => write!(f, "duplicate field {}", go_quote(path)),
            // Upstream puts these between quotes as they are.
            Violation::UnspecifiedField(path) => write!(f, "unknown field \"{path}\""),
            Violation::Yaml(text) => f.write_str(text),
        }
    }
}

/// The message of the error that answers a strict request.
pub fn error(violations: &[Violation]) -> String {
    let texts: Vec<_> = violations.iter().map(Violation::to_string).collect();
    format!("strict decoding error: {}", texts.join(", "))
}

/// The texts of the warnings that answer a request that asked to be warned.
pub fn warnings(violations: &[Violation]) -> Vec<String> {
    violations.iter().flat_map(warning_lines).collect()
}

fn warning_lines(violation: &Violation) -> Vec<String> {
    const HEADINGS: [&str; 2] =
        ["yaml: unmarshal errors:\n", "error converting YAML to JSON: yaml: unmarshal errors:\n"];
    let text = violation.to_string();
    match HEADINGS.iter().find_map(|heading| text.strip_prefix(heading)) {
        Some(lines) => lines.split('\n').map(|line| line.trim().to_owned()).collect(),
        None => vec![text],
    }
}

/// Distinct violations in the order found, up to the number upstream stops at.
#[derive(Debug)]
pub(super) struct Violations {
    found: Vec<Violation>,
    seen: HashSet<Violation>,
    path_bytes_left: usize,
}

impl Default for Violations {
    fn default() -> Self {
        // A million repetitions of one key under a path a megabyte long are one violation, but
        // telling so reads the path each time. Past this much of that, nothing more is reported.
        let path_bytes_left = 16 << 20;
        Violations { found: Vec::new(), seen: HashSet::new(), path_bytes_left }
    }
}

impl Violations {
    const COUNT_MAX: usize = 100;

    pub(super) fn add(&mut self, path: &str, kind: fn(String) -> Violation) {
        if self.found.len() == Self::COUNT_MAX || self.path_bytes_left < path.len() {
            return;
        }
        self.path_bytes_left -= path.len();
        let violation = kind(path.to_owned());
        if self.seen.insert(violation.clone()) {
            self.found.push(violation);
        }
    }

    pub(super) fn into_vec(self) -> Vec<Violation> {
        self.found
    }
}
