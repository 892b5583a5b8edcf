//! The steps from an object's root to one of its fields, as managed fields name them.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::value::{self, Escape};

/// One step into an object.
///
/// The order is upstream's: fields by name, then list items by key, then members of a set by
/// value, then positions. Numbers compare by value, so `1` and `1.0` name the same item.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of a struct or an entry of a map.
    Field(Box<str>),
    /// The item of a keyed list whose key fields have these values; sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The member of a set with this value.
    Value(Box<Value>),
    /// The item of a list at this position.
    Index(i64),
}

/// The text between the quotes names no path element that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathElementError {
    /// A newer writer may know this kind of element; readers skip it.
    #[error("unknown path element type")]
    UnknownType,
    #[error("parse the path element {0:?}")]
    Malformed(String),
}

impl PathElement {
    pub fn field(name: &str) -> Self {
        PathElement::Field(name.into())
    }

    /// Reads `f:name`, `k:{"a":1}`, `v:"x"` or `i:0`.
    ///
    /// # Errors
    /// [`PathElementError::UnknownType`] for any other letter before the colon.
    pub fn parse(text: &str) -> Result<Self, PathElementError> {
        let malformed = || PathElementError::Malformed(text.to_owned());
        let (kind, rest) = match text.as_bytes() {
            [kind, b':', ..] => (*kind, &text[2..]),
            _ => return Err(malformed()),
        };
        match kind {
            b'f' => Ok(PathElement::field(rest)),
            b'v' => Ok(PathElement::Value(Box::new(first_json_value(rest).ok_or_else(malformed)?))),
            b'k' => {
                // `null` reads as no keys at all, as upstream's reader has it.
                let fields = match first_json_value(rest) {
                    Some(Value::Object(fields)) => fields,
                    Some(Value::Null) => serde_json::Map::new(),
                    _ => return Err(malformed()),
                };
                Ok(PathElement::key(
                    fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                ))
            }
            b'i' => rest.parse().map(PathElement::Index).map_err(|_| malformed()),
            _ => Err(PathElementError::UnknownType),
        }
    }

    /// The item with these key fields, in any order.
    pub fn key(mut fields: Vec<(Box<str>, Value)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        PathElement::Key(fields.into())
    }

    /// The text that [`PathElement::parse`] reads.
    pub fn encode(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => {
                let mut out = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    value::write_json_string(&mut out, name, Escape::Plain);
                    out.push(':');
                    value::write_element_json(&mut out, value);
                }
                out.push('}');
                out
            }
            PathElement::Value(value) => {
                let mut out = String::from("v:");
                value::write_element_json(&mut out, value);
                out
            }
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                let fields = a.iter().zip(b).map(|((name_a, value_a), (name_b, value_b))| {
                    name_a.cmp(name_b).then_with(|| value::compare(value_a, value_b))
                });
                fields
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (PathElement::Value(a), PathElement::Value(b)) => value::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// As conflicts print it: `.name`, `[name="a",port=80]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}=")?;
                    value::write_path_text(f, value)?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => {
                f.write_str("[=")?;
                value::write_path_text(f, value)?;
                f.write_str("]")
            }
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Reads one JSON value and ignores what follows it. Every number becomes a float, as upstream's
/// reader has it; a conflict on the item `port=1000000` is printed as `port=1e+06`.
fn first_json_value(text: &str) -> Option<Value> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut value = stream.next()?.ok()?;
    numbers_to_floats(&mut value);
    Some(value)
}

fn numbers_to_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers_to_floats),
        Value::Object(map) => map.values_mut().for_each(numbers_to_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
