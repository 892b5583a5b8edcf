//! Typed decoding: reads a tree the way Go's decoder reads JSON into a struct, and gives it back the
//! way Go prints that struct.
//!
//! What the type does not know is reported and dropped. The first value of a wrong JSON type is the
//! error, unless a type that reads itself (a time, a quantity) refuses its text: Go goes on after the
//! former and stops at the latter. Of a list given twice Go merges the elements; a tree has no
//! fields given twice, so here the last one counts.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::draft::{Draft, zero_of};
use super::go::{self, Frame, Place};
use super::{Kind, SchemaOr, Ty, Type, base64};
use crate::int_or_string::IntOrString;
use crate::json::strict::Violation;
use crate::json::{self, Decoded};
use crate::quantity::Quantity;
use crate::time::{GoDuration, MicroTime, Time};

/// Why a tree is not an object of its type. Displays as Go's decoder words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A JSON type that the Go type does not take.
    #[error("json: cannot unmarshal {found} into Go {place} of type {expected}")]
    Type {
        /// `string`, `number 1.5`.
        found: String,
        place: Place,
        /// The Go type.
        expected: String,
    },
    /// A text or number that its type cannot read.
    #[error("{message}")]
    Value { message: String },
}

/// Reads a tree as an object of a kind. The result is in normal form: as upstream prints it.
///
/// The violations are the fields that the kind does not have. For those of a document, fields given
/// twice among them, decode it with [`super::shape`].
pub fn decode(kind: &Kind, mut value: Value) -> Result<Decoded, DecodeError> {
    // In normal form nothing is empty, but to say that nobody manages anything is not to say
    // nothing. An entry that says nothing means the same.
    let metadata = value.get_mut("metadata");
    if let Some(Value::Array(entries)) = metadata.and_then(|it| it.get_mut("managedFields"))
        && entries.is_empty()
    {
        entries.push(Value::Object(Map::new()));
    }
    decode_as(kind.ty(), value)
}

/// [`decode`] for structs that are no kinds, as the metadata of custom resources.
pub fn decode_as(ty: &'static Type, value: Value) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder { strict: true, ..Decoder::default() };
    let value = decoder.whole(ty, value)?;
    Ok(Decoded { value, violations: decoder.violations })
}

/// Upstream reports no more than this.
const VIOLATIONS_MAX: usize = 100;

#[derive(Default)]
struct Decoder {
    /// Unknown fields are reported.
    strict: bool,
    /// The first error that did not stop the decoder.
    first: Option<DecodeError>,
    violations: Vec<Violation>,
    /// Where we are, as violations print it.
    path: String,
}

/// A Go type: what it holds and how Go writes it.
#[derive(Clone, Copy)]
struct Target<'a> {
    ty: &'a Ty,
    go: &'static str,
}

type Decode<T = Value> = Result<T, DecodeError>;

impl Decoder {
    fn whole(&mut self, ty: &'static Type, value: Value) -> Decode {
        let decoded = match value {
            Value::Object(fields) => self.fields(ty, fields, None)?,
            // Go leaves a struct as it is.
            Value::Null => Draft::new(ty).finish(),
            other => {
                self.refuse(describe(&other), ty.name, None);
                Value::Null
            }
        };
        self.first.take().map_or(Ok(decoded), Err)
    }

    /// In the order of the document, because that decides which error is the first.
    fn fields(
        &mut self,
        ty: &'static Type,
        fields: Map<String, Value>,
        outer: Option<&Frame<'_>>,
    ) -> Decode {
        let mut draft = Draft::new(ty);
        for (name, value) in fields {
            let Some(member) = ty.position(&name) else {
                self.report_unknown(&name);
                continue;
            };
            let field = ty.members[member];
            let frame = Frame { outer, ty, member };
            let base = self.enter(&name);
            let target = Target { ty: &field.ty, go: field.go.trim_start_matches('*') };
            // To a pointer, null is nil: the type behind it never sees it.
            if !(value.is_null() && field.pointer) {
                *draft.value(member) = self.value(target, value, &frame)?;
            }
            self.path.truncate(base);
        }
        Ok(draft.finish())
    }

    /// Reads a value; `None` leaves the zero value in its place.
    fn value(
        &mut self,
        target: Target<'_>,
        value: Value,
        frame: &Frame<'_>,
    ) -> Decode<Option<Value>> {
        let read = match (target.ty, value) {
            // Without a type of their own, objects are maps to Go.
            (Ty::Json, mut value) if target.go == "any" => {
                json::sort_keys(&mut value);
                return Ok(Some(value));
            }
            (Ty::RawExtension | Ty::FieldsV1 | Ty::Json, value) => return Ok(Some(value)),
            (
                Ty::Time
                | Ty::MicroTime
                | Ty::Duration
                | Ty::Quantity
                | Ty::IntOrString
                | Ty::SchemaOr(..),
                value,
            ) => {
                return read_itself(target.ty, value)
                    .map_err(|error| error.inside(frame))
                    .map(Some);
            }
            (Ty::List(_) | Ty::Map(_) | Ty::Bytes, Value::Null) => Ok(Value::Null),
            (_, Value::Null) => return Ok(None),
            (Ty::Bool, value @ Value::Bool(_)) => Ok(value),
            (Ty::String, value @ Value::String(_)) => Ok(value),
            (Ty::Int32, Value::Number(number)) => match number.as_i64() {
                Some(integer) if i32::try_from(integer).is_ok() => Ok(Value::Number(number)),
                _ => Err(describe_number(Value::Number(number))),
            },
            (Ty::Int64, Value::Number(number)) => match number.as_i64() {
                Some(_) => Ok(Value::Number(number)),
                None => Err(describe_number(Value::Number(number))),
            },
            (Ty::Float64, Value::Number(number)) => Ok(Value::Number(number)),
            (Ty::Bytes, Value::String(text)) => match base64::decode(&text) {
                Ok(bytes) => Ok(base64::encode(&bytes).into()),
                Err(at) => {
                    let message = format!("illegal base64 data at input byte {at}");
                    self.first.get_or_insert(DecodeError::Value { message });
                    return Ok(None);
                }
            },
            (Ty::Bytes, Value::Array(items)) => Ok(self.bytes(items, frame)),
            (Ty::List(of), Value::Array(items)) => {
                Ok(self.items(Target { ty: of, go: go::element(target.go) }, items, frame)?)
            }
            (Ty::Map(of), Value::Object(entries)) => {
                Ok(self.entries(Target { ty: of, go: go::element(target.go) }, entries, frame)?)
            }
            (Ty::Struct(id), Value::Object(fields)) => {
                Ok(self.fields(id.get(), fields, Some(frame))?)
            }
            (_, other) => Err(describe(&other)),
        };
        match read {
            Ok(value) => Ok(Some(value)),
            Err(found) => {
                self.refuse(found, target.go, Some(frame));
                Ok(None)
            }
        }
    }

    fn items(&mut self, of: Target<'_>, items: Vec<Value>, frame: &Frame<'_>) -> Decode {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let base = self.path.len();
            if self.strict {
                write!(self.path, "[{index}]").expect("a string takes all text");
            }
            let item = self.value(of, item, frame)?;
            read.push(item.unwrap_or_else(|| zero_of(of.ty)));
            self.path.truncate(base);
        }
        Ok(Value::Array(read))
    }

    fn entries(
        &mut self,
        of: Target<'_>,
        entries: Map<String, Value>,
        frame: &Frame<'_>,
    ) -> Decode {
        let mut read = Map::new();
        for (key, value) in entries {
            let base = self.enter(&key);
            let value = self.value(of, value, frame)?;
            read.insert(key, value.unwrap_or_else(|| zero_of(of.ty)));
            self.path.truncate(base);
        }
        Ok(Value::Object(read))
    }

    /// To Go, a list of small numbers is a string of bytes too.
    fn bytes(&mut self, items: Vec<Value>, frame: &Frame<'_>) -> Value {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            let byte = item.as_u64().and_then(|number| u8::try_from(number).ok());
            if byte.is_none() && !item.is_null() {
                let found = if item.is_number() { describe_number(item) } else { describe(&item) };
                self.refuse(found, "uint8", Some(frame));
            }
            bytes.push(byte.unwrap_or(0));
        }
        base64::encode(&bytes).into()
    }

    fn refuse(&mut self, found: String, go: &'static str, frame: Option<&Frame<'_>>) {
        self.first.get_or_insert_with(|| {
            let place = frame.map_or(Place::default(), Frame::place);
            DecodeError::Type { found, place, expected: go::display(go) }
        });
    }

    /// Steps the path into a field or key; gives what to cut it back to.
    fn enter(&mut self, name: &str) -> usize {
        let base = self.path.len();
        if self.strict {
            if base > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
        base
    }

    fn report_unknown(&mut self, name: &str) {
        if self.strict && self.violations.len() < VIOLATIONS_MAX {
            let base = self.enter(name);
            self.violations.push(Violation::UnknownField(self.path.clone()));
            self.path.truncate(base);
        }
    }
}

impl DecodeError {
    /// The error of a type that reads itself, told from the field that holds it.
    fn inside(mut self, frame: &Frame<'_>) -> Self {
        if let DecodeError::Type { place, .. } = &mut self {
            *place = frame.place().around(place);
        }
        self
    }
}

/// Reads a value of a type that has its own idea of its JSON. Every error stops the decoder.
fn read_itself(ty: &Ty, value: Value) -> Decode {
    let message = |error: &dyn std::error::Error| DecodeError::Value { message: error.to_string() };
    match ty {
        Ty::Time => match text(value)? {
            Some(text) => Ok(Time::parse(&text).map_err(|error| message(&error))?.to_value()),
            None => Ok(Value::Null),
        },
        Ty::MicroTime => match text(value)? {
            Some(text) => {
                let time = MicroTime::parse(&text).map_err(|error| message(&error))?;
                let is_zero =
                    (time.unix_seconds(), time.subsec_nanos()) == (Time::ZERO.unix_seconds(), 0);
                Ok(if is_zero { Value::Null } else { time.to_string().into() })
            }
            None => Ok(Value::Null),
        },
        Ty::Duration => {
            let text = text(value)?.unwrap_or_default();
            let duration = GoDuration::parse(&text).map_err(|error| message(&error))?;
            Ok(duration.to_string().into())
        }
        Ty::Quantity => {
            let quantity = Quantity::from_value(&value).map_err(|error| message(&error))?;
            Ok(quantity.to_string().into())
        }
        Ty::IntOrString => match IntOrString::from_value(&value) {
            Ok(IntOrString::Int(number)) => Ok(number.into()),
            Ok(IntOrString::String(text)) => Ok(text.into()),
            Err(_) if value.is_number() => Err(mismatch(describe_number(value), "int32")),
            Err(_) => Err(mismatch(describe(&value), "int32")),
        },
        Ty::SchemaOr(or, schema) => read_schema_or(*or, schema.get(), value),
        _ => unreachable!("the other types do not read themselves"),
    }
}

fn read_schema_or(or: SchemaOr, schema: &'static Type, value: Value) -> Decode {
    // A decoder within: it has a path of its own, and does not look for unknown fields.
    let mut decoder = Decoder::default();
    match (or, value) {
        (_, value @ Value::Object(_)) => decoder.whole(schema, value),
        (SchemaOr::Bool, value @ Value::Bool(_)) => Ok(value),
        (SchemaOr::Bool, _) => {
            Err(DecodeError::Value { message: "boolean or JSON schema expected".to_owned() })
        }
        (SchemaOr::Schemas, Value::Array(items)) => {
            let read = items.into_iter().map(|item| decoder.whole(schema, item));
            read.collect::<Decode<_>>().map(Value::Array)
        }
        (SchemaOr::Strings, Value::Array(items)) => {
            for item in &items {
                if !item.is_string() && !item.is_null() {
                    return Err(mismatch(describe(item), "string"));
                }
            }
            let text = |item: Value| if item.is_null() { "".into() } else { item };
            Ok(Value::Array(items.into_iter().map(text).collect()))
        }
        // Anything else is no schema, and goes unnoticed.
        _ => Ok(Value::Null),
    }
}

/// The string in a value; `None` for null.
fn text(value: Value) -> Decode<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(mismatch(describe(&other), "string")),
    }
}

fn mismatch(found: String, expected: &str) -> DecodeError {
    DecodeError::Type { found, place: Place::default(), expected: expected.to_owned() }
}

fn describe(value: &Value) -> String {
    json::go::word(value).to_owned()
}

/// A number that does not fit is told with its digits.
fn describe_number(number: Value) -> String {
    format!("number {}", json::to_string(&number))
}
