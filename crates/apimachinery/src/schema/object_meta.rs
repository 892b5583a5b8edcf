//! The `metadata` of an object, brought into the form it has after Go has read and written it.
//!
//! Custom resources are trees of any shape, but their metadata is not: upstream reads it into the
//! type it has everywhere, which drops unknown fields, drops what is empty, and fails on values of
//! a wrong type.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::coerce::Malformed;
use crate::json::{self, go};

/// Metadata in its normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalized {
    pub metadata: Map<String, Value>,
    /// Fields that were dropped because nobody knows them, relative to the metadata.
    pub unknown: Vec<String>,
}

/// Brings metadata into its normal form. Fields of a wrong type are dropped or are an error, which
/// reads as Go's decoder words it.
pub fn normalize(metadata: &Value, malformed: Malformed) -> Result<Normalized, String> {
    let mut reader = Reader { unknown: Vec::new(), error: None };
    let normal = reader.object("v1.ObjectMeta", metadata, OBJECT_META, &At::Root);
    match (reader.error, malformed) {
        (None, _) => Ok(Normalized { metadata: normal, unknown: reader.unknown }),
        (Some(error), Malformed::Refuse) => Err(error),
        (Some(_), Malformed::Drop) => field_by_field(metadata),
    }
}

/// Takes every field that can be read on its own.
fn field_by_field(metadata: &Value) -> Result<Normalized, String> {
    let Value::Object(map) = metadata else {
        let found = go::type_name(metadata);
        return Err(format!("invalid metadata: expected object, got {found}"));
    };
    let mut all = Normalized { metadata: Map::new(), unknown: Vec::new() };
    for (name, value) in map {
        let single = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        if let Ok(one) = normalize(&single, Malformed::Refuse) {
            all.metadata.extend(one.metadata);
            all.unknown.extend(one.unknown);
        }
    }
    Ok(all)
}

/// A Go type, as far as metadata is made of them.
enum Shape {
    Text,
    Bool,
    Integer,
    Time,
    /// Raw JSON.
    Raw,
    Texts,
    TextMap,
    /// A list of structs: the name of their type, and their fields.
    Structs(&'static str, &'static [Field]),
}

struct Field {
    name: &'static str,
    shape: Shape,
    when_empty: WhenEmpty,
}

#[derive(PartialEq, Eq)]
enum WhenEmpty {
    Omit,
    /// Written even then.
    Write,
    /// A pointer: only null is empty.
    Keep,
}

const fn field(name: &'static str, shape: Shape, when_empty: WhenEmpty) -> Field {
    Field { name, shape, when_empty }
}

const OBJECT_META: &[Field] = &[
    field("name", Shape::Text, WhenEmpty::Omit),
    field("generateName", Shape::Text, WhenEmpty::Omit),
    field("namespace", Shape::Text, WhenEmpty::Omit),
    field("selfLink", Shape::Text, WhenEmpty::Omit),
    field("uid", Shape::Text, WhenEmpty::Omit),
    field("resourceVersion", Shape::Text, WhenEmpty::Omit),
    field("generation", Shape::Integer, WhenEmpty::Omit),
    field("creationTimestamp", Shape::Time, WhenEmpty::Omit),
    field("deletionTimestamp", Shape::Time, WhenEmpty::Keep),
    field("deletionGracePeriodSeconds", Shape::Integer, WhenEmpty::Keep),
    field("labels", Shape::TextMap, WhenEmpty::Omit),
    field("annotations", Shape::TextMap, WhenEmpty::Omit),
    field("ownerReferences", Shape::Structs("OwnerReference", OWNER_REFERENCE), WhenEmpty::Omit),
    field("finalizers", Shape::Texts, WhenEmpty::Omit),
    field("managedFields", Shape::Structs("ManagedFieldsEntry", MANAGED_FIELDS), WhenEmpty::Omit),
];

const OWNER_REFERENCE: &[Field] = &[
    field("apiVersion", Shape::Text, WhenEmpty::Write),
    field("kind", Shape::Text, WhenEmpty::Write),
    field("name", Shape::Text, WhenEmpty::Write),
    field("uid", Shape::Text, WhenEmpty::Write),
    field("controller", Shape::Bool, WhenEmpty::Keep),
    field("blockOwnerDeletion", Shape::Bool, WhenEmpty::Keep),
];

const MANAGED_FIELDS: &[Field] = &[
    field("manager", Shape::Text, WhenEmpty::Omit),
    field("operation", Shape::Text, WhenEmpty::Omit),
    field("apiVersion", Shape::Text, WhenEmpty::Omit),
    field("time", Shape::Time, WhenEmpty::Keep),
    field("fieldsType", Shape::Text, WhenEmpty::Omit),
    field("fieldsV1", Shape::Raw, WhenEmpty::Keep),
    field("subresource", Shape::Text, WhenEmpty::Omit),
];

/// Where the reader is: for errors, the struct and the fields on the way; for unknown fields, the
/// path.
enum At<'a> {
    Root,
    Field { parent: &'a At<'a>, owner: &'a str, name: &'a str },
    Index { parent: &'a At<'a>, index: usize },
}

impl At<'_> {
    /// The struct that holds the field, and the fields that led there.
    fn owner(&self) -> Option<(String, String)> {
        match self {
            At::Root => None,
            At::Index { parent, .. } => parent.owner(),
            At::Field { parent, owner, name } => {
                let way = match parent.owner() {
                    Some((_, way)) => format!("{way}.{name}"),
                    None => (*name).to_owned(),
                };
                Some(((*owner).to_owned(), way))
            }
        }
    }

    fn path(&self) -> String {
        match self {
            At::Root => String::new(),
            At::Index { parent, index } => format!("{}[{index}]", parent.path()),
            At::Field { parent: At::Root, name, .. } => (*name).to_owned(),
            At::Field { parent, name, .. } => format!("{}.{name}", parent.path()),
        }
    }
}

struct Reader {
    unknown: Vec<String>,
    /// Go reads on after a wrong type and tells the first.
    error: Option<String>,
}

impl Reader {
    fn object(
        &mut self,
        type_: &str,
        value: &Value,
        fields: &[Field],
        at: &At<'_>,
    ) -> Map<String, Value> {
        let mut normal = Map::new();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => &Map::new(),
            other => {
                self.wrong_type::<()>(other, type_, at);
                return normal;
            }
        };
        let owner = type_.rsplit('.').next().unwrap_or(type_);
        for (name, value) in map {
            let at = At::Field { parent: at, owner, name };
            let Some(field) = fields.iter().find(|field| field.name == name) else {
                self.unknown.push(at.path());
                continue;
            };
            if let Some(value) = self.value(value, field, &at) {
                normal.insert(name.clone(), value);
            }
        }
        for field in fields.iter().filter(|field| field.when_empty == WhenEmpty::Write) {
            normal.entry(field.name).or_insert_with(|| "".into());
        }
        normal
    }

    /// The value in its normal form; `None` when it is empty and left out.
    fn value(&mut self, value: &Value, field: &Field, at: &At<'_>) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        let normal = match &field.shape {
            Shape::Text => self.text(value, at)?,
            Shape::Bool => match value {
                Value::Bool(_) => value.clone(),
                other => return self.wrong_type(other, "bool", at),
            },
            Shape::Integer => match integer(value) {
                Some(integer) => integer.into(),
                None => return self.wrong_type(value, "int64", at),
            },
            Shape::Time => self.time(value)?,
            Shape::Raw => value.clone(),
            Shape::Texts => match value {
                Value::Array(items) => {
                    let texts = items.iter().map(|item| self.text_or_empty(item, at)).collect();
                    Value::Array(texts)
                }
                other => return self.wrong_type(other, "[]string", at),
            },
            Shape::TextMap => match value {
                Value::Object(map) => {
                    let texts = map
                        .iter()
                        .map(|(key, value)| (key.clone(), self.text_or_empty(value, at)))
                        .collect();
                    Value::Object(texts)
                }
                other => return self.wrong_type(other, "map[string]string", at),
            },
            Shape::Structs(type_, fields) => match value {
                Value::Array(items) => {
                    let structs = items.iter().enumerate().map(|(index, item)| {
                        let at = At::Index { parent: at, index };
                        Value::Object(self.object(&format!("v1.{type_}"), item, fields, &at))
                    });
                    Value::Array(structs.collect())
                }
                other => return self.wrong_type(other, &format!("[]v1.{type_}"), at),
            },
        };
        let is_empty = match &normal {
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        (!is_empty || field.when_empty != WhenEmpty::Omit).then_some(normal)
    }

    fn text(&mut self, value: &Value, at: &At<'_>) -> Option<Value> {
        match value {
            Value::String(_) => Some(value.clone()),
            other => self.wrong_type(other, "string", at),
        }
    }

    /// In lists and maps null is the empty string.
    fn text_or_empty(&mut self, value: &Value, at: &At<'_>) -> Value {
        match value {
            Value::Null => "".into(),
            value => self.text(value, at).unwrap_or_else(|| "".into()),
        }
    }

    /// In UTC and without fractions of a second.
    fn time(&mut self, value: &Value) -> Option<Value> {
        let Value::String(text) = value else {
            let found = go::word(value);
            return self
                .fail(format!("json: cannot unmarshal {found} into Go value of type string"));
        };
        match text.parse::<Timestamp>() {
            Ok(time) if is_rfc3339(text) => {
                let seconds =
                    Timestamp::from_second(time.as_nanosecond().div_euclid(1_000_000_000) as i64);
                seconds.ok().map(|time| time.to_string().into())
            }
            _ => {
                let quoted = json::go_quote(text);
                self.fail(format!(
                    "parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\""
                ))
            }
        }
    }

    fn wrong_type<T>(&mut self, value: &Value, type_: &str, at: &At<'_>) -> Option<T> {
        let found = match (value, type_) {
            (Value::Number(number), "int64") => format!("number {number}"),
            (value, _) => go::word(value).to_owned(),
        };
        let place = match at.owner() {
            Some((owner, way)) => format!("Go struct field {owner}.{way}"),
            None => "Go value".to_owned(),
        };
        self.fail(format!("json: cannot unmarshal {found} into {place} of type {type_}"))
    }

    fn fail<T>(&mut self, error: String) -> Option<T> {
        self.error.get_or_insert(error);
        None
    }
}

/// An integer, also when written as `1.0`: the tree was written out once more before it is read.
fn integer(value: &Value) -> Option<i64> {
    let float = || value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15);
    value.as_i64().or_else(|| float().map(|float| float as i64))
}

/// `2006-01-02T15:04:05`, a fraction, and `Z` or an offset; nothing more liberal.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    is_digits(0..4)
        && bytes.get(4) == Some(&b'-')
        && is_digits(5..7)
        && bytes.get(10) == Some(&b'T')
        && is_digits(11..13)
        && bytes.get(13) == Some(&b':')
        && bytes.get(16) == Some(&b':')
        && is_digits(17..19)
        && (text.ends_with('Z') || bytes.get(bytes.len() - 3) == Some(&b':'))
}
