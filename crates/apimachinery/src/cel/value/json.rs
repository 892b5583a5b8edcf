//! From JSON without a schema to values, and from values to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as Json, Number, Value};

use super::{Items, List, ListKind, Map, Text, Val};
use crate::cel::function::convert;

/// Whole numbers beyond this are not the same as doubles, in which some readers keep all numbers.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// What becomes of whole numbers that a double cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Large {
    Number,
    Text,
}

impl<'v> Val<'v> {
    /// The value of a piece of an object that has no schema: a time in it is a text, and null is
    /// a value.
    pub fn of_json(value: &'v Value) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Val::Int(whole),
                None => Val::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Val::String(Text::Borrowed(text)),
            Value::Array(items) => {
                Val::List(List { items: Items::Plain(items), kind: ListKind::Made })
            }
            Value::Object(map) => Val::Map(Map::Plain(map)),
        }
    }

    /// The value as JSON; why there is none, if it holds something that JSON has no place for.
    pub fn to_json(&self, large: Large) -> Result<Value, String> {
        Ok(match self {
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(value) if large == Large::Text && value.unsigned_abs() > SAFE_MAX => {
                Value::String(value.to_string())
            }
            Val::Int(value) => Value::from(*value),
            Val::Uint(value) if large == Large::Text && *value > SAFE_MAX => {
                Value::String(value.to_string())
            }
            Val::Uint(value) => Value::from(*value),
            Val::Double(value) => double(*value, large)?,
            Val::String(text) => Value::String(text.to_string()),
            Val::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
            Val::Duration(_) | Val::Timestamp(_) => {
                match convert::to_string(std::slice::from_ref(self)) {
                    Ok(Val::String(text)) => Value::String(text.to_string()),
                    _ => return Err(self.no_json()),
                }
            }
            Val::List(list) => {
                let items = list.to_vec().map_err(|failure| failure.to_string())?;
                items.iter().map(|item| item.to_json(large)).collect::<Result<_, _>>()?
            }
            Val::Map(Map::Plain(map)) if large == Large::Number => Value::Object((*map).clone()),
            Val::Map(map) => {
                let entries = map.entries().map_err(|failure| failure.to_string())?;
                let mut json = Json::new();
                for (key, value) in entries {
                    let Val::String(key) = &key else { return Err(key.no_key()) };
                    json.insert(key.to_string(), value.to_json(large)?);
                }
                Value::Object(json)
            }
            Val::Struct(made) => made.to_json(large)?,
            Val::Optional(Some(value)) => value.to_json(large)?,
            Val::Preserved(value) => (*value).clone(),
            _ => return Err(self.no_json()),
        })
    }

    fn no_json(&self) -> String {
        format!("unsupported native conversion from type '{}'", self.type_name())
    }

    fn no_key(&self) -> String {
        format!("map key {:?} is of type {}, not string", self.to_string(), self.type_name())
    }
}

/// A double that is whole is written as a whole number.
fn double(value: f64, large: Large) -> Result<Value, String> {
    if large == Large::Text && value.fract() == 0.0 && value.abs() <= SAFE_MAX as f64 {
        return Ok(Value::from(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Value::Number).ok_or_else(|| format!("json: unsupported value: {value}"))
}
