//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! Unlike labels, a kind says which of its fields can be selected by; nothing else is known.

use std::fmt;

use crate::gvk::GroupVersionKind;
use crate::json::go_quote;

/// What an object's fields must be. None means that anything will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    pub terms: Vec<Term>,
}

/// One condition on one field. A field that is not there is the empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub field: String,
    pub operator: Operator,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equals,
    NotEquals,
}

/// Why a text is no field selector. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator { selector: String, term: String },
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// Upstream gives the number of the character.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// A kind that cannot be selected by this field. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedField {
    /// Kinds that know more fields than name and namespace.
    #[error("field label not supported: {0}")]
    Label(String),
    /// Some of those say which kind they are.
    #[error("field label not supported for {kind}: {field}")]
    LabelOfKind { kind: GroupVersionKind, field: String },
    /// All other kinds.
    #[error(
        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        go_quote(.0)
    )]
    NotMetadata(String),
}

impl Selector {
    /// Reads the text of a query. Terms come out in the order of their texts; one that names
    /// neither field nor value asks for nothing.
    pub fn parse(selector: &str) -> Result<Self, ParseError> {
        let mut parts = split_terms(selector);
        parts.sort_unstable();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let terms = parts.map(|part| {
            let (field, operator, value) = split_term(part).ok_or_else(|| {
                ParseError::NoOperator { selector: selector.to_owned(), term: part.to_owned() }
            })?;
            Ok(Term { field: field.to_owned(), operator, value: unescape(value)? })
        });
        let mut terms = terms.collect::<Result<Vec<_>, _>>()?;
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        Ok(Selector { terms })
    }

    /// `field` gives the text of an object's field, empty when it is not there.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| match term.operator {
            Operator::Equals => field(&term.field) == term.value,
            Operator::NotEquals => field(&term.field) != term.value,
        })
    }

    /// Whether anything will do.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The one value that a field must have, if there is one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let is_exact = |term: &&Term| term.operator == Operator::Equals && term.field == field;
        self.terms.iter().find(is_exact).map(|term| term.value.as_str())
    }

    /// The same selector in other words: a version of a kind may call its fields differently.
    /// A term that loses both field and value is left out.
    pub fn convert<E>(
        self,
        mut convert: impl FnMut(String, String) -> Result<(String, String), E>,
    ) -> Result<Self, E> {
        let mut terms = Vec::new();
        for term in self.terms {
            let (field, value) = convert(term.field, term.value)?;
            if !field.is_empty() || !value.is_empty() {
                terms.push(Term { field, operator: term.operator, value });
            }
        }
        Ok(Selector { terms })
    }

    /// Refuses fields other than these.
    pub fn only(&self, known: &[impl AsRef<str>]) -> Result<(), UnsupportedField> {
        let is_known = |field: &str| known.iter().any(|known| known.as_ref() == field);
        match self.terms.iter().find(|term| !is_known(&term.field)) {
            Some(term) => Err(UnsupportedField::Label(term.field.clone())),
            None => Ok(()),
        }
    }

    /// Refuses fields other than the two that every kind has.
    pub fn only_metadata(&self) -> Result<(), UnsupportedField> {
        self.only(&["metadata.name", "metadata.namespace"]).map_err(|error| match error {
            UnsupportedField::Label(field) => UnsupportedField::NotMetadata(field),
            other => other,
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, term) in self.terms.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            Operator::Equals => "=",
            Operator::NotEquals => "!=",
        };
        write!(f, "{}{operator}{}", self.field, escape(&self.value))
    }
}

/// A value as it must be written in a selector.
pub fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

fn unescape(value: &str) -> Result<String, ParseError> {
    let mut unescaped = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(special @ ('\\' | ',' | '=')) => unescaped.push(special),
                Some(other) => return Err(ParseError::Escape(format!("\\{other}"))),
                None => return Err(ParseError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(ParseError::Unescaped(character)),
            plain => unescaped.push(plain),
        }
    }
    Ok(unescaped)
}

/// The parts between commas that are not escaped.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, character) in selector.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[start..]);
    terms
}

/// Field, operator and value. Fields know no escapes, so the first operator splits.
fn split_term(term: &str) -> Option<(&str, Operator, &str)> {
    let at = term
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| term[at..].starts_with('=') || term[at..].starts_with("!="))?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, Operator::NotEquals, value));
    }
    let value = rest.strip_prefix("==").unwrap_or(&rest[1..]);
    Some((field, Operator::Equals, value))
}

#[cfg(test)]
mod tests;
