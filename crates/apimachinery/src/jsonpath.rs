//! JSONPath in Kubernetes' dialect, as printer columns use it.
//!
//! A template is text with expressions in braces, as in `{.metadata.name}: {.spec.x}`; a printer
//! column is one expression without the braces ([`Template::parse_column`]). The parser's errors
//! are upstream's. `range` and `end`, which only kubectl's templates have, are refused when
//! evaluated.

mod eval;
mod parse;
mod print;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

pub use eval::EvalError;
pub use parse::ParseError;
pub use print::print;

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Expression(Vec<Step>),
}

/// One step of an expression: from some values to others.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// The value is this, whatever it was.
    Literal(Value),
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Filter(Box<Filter>),
    Union(Vec<Vec<Step>>),
    Identifier(String),
}

/// `[start:end:step]`; an index alone has the end behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// The end was made of an index, not written.
    end_is_derived: bool,
}

/// `[?(left operator right)]`, or `[?(left)]` for items that have such a value.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Option<(String, Vec<Step>)>,
}

impl Template {
    /// Parses text with expressions in braces.
    pub fn parse(text: &str) -> Result<Template, ParseError> {
        parse::template(text)
    }

    /// Parses the path of a printer column, such as `.spec.replicas`.
    pub fn parse_column(path: &str) -> Result<Template, ParseError> {
        parse::template(&format!("{{{path}}}"))
    }

    /// The values that each part finds, in order. Missing keys find nothing.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<Vec<Cow<'v, Value>>>, EvalError> {
        let visits = eval::Visits::default();
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Ok(vec![Cow::Owned(Value::String(text.clone()))]),
                Part::Expression(steps) => eval::walk(vec![Cow::Borrowed(value)], steps, &visits),
            })
            .collect()
    }

    /// All parts as text.
    pub fn render(&self, value: &Value) -> Result<String, EvalError> {
        Ok(self.find(value)?.iter().map(|found| print(found)).collect())
    }
}

/// Looks up a simple path such as `.spec.replicas`: the paths of selectable fields and of the
/// scale subresource. Keys are taken as they are, without any syntax.
pub fn simple<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.strip_prefix('.')?.split('.').try_fold(value, |value, key| value.get(key))
}
