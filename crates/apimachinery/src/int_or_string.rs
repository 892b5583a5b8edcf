//! A number or a text: ports by number or name, bounds by count or percentage.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use crate::json::go_quote;

/// `80`, `"http"`, `"25%"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(i32),
    String(String),
}

/// Why a value is neither.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found} into Go value of type int32")]
pub struct TypeError {
    found: String,
}

/// Why there is no number to be had of one. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotAPercentage,
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {problem}",
        go_quote(.text),
        go_quote(.text.strip_suffix('%').unwrap_or(.text))
    )]
    NotANumber { text: String, problem: &'static str },
}

/// What to do with what a percentage does not divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    Up,
    Down,
}

impl IntOrString {
    /// A number when the text is one that 32 bits hold, else the text.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String(text.to_owned()),
        }
    }

    /// Reads a field of a tree. Null is zero.
    pub fn from_value(value: &Value) -> Result<Self, TypeError> {
        let refuse = |found: &str| Err(TypeError { found: found.to_owned() });
        match value {
            Value::Null => Ok(IntOrString::Int(0)),
            Value::String(text) => Ok(IntOrString::String(text.clone())),
            Value::Number(number) => match number.as_i64().and_then(|n| i32::try_from(n).ok()) {
                Some(number) => Ok(IntOrString::Int(number)),
                None => refuse(&format!("number {}", crate::json::to_string(value))),
            },
            Value::Bool(_) => refuse("bool"),
            Value::Array(_) => refuse("array"),
            Value::Object(_) => refuse("object"),
        }
    }

    /// The number, also of a text that is one; zero of any other.
    pub fn int_value(&self) -> i64 {
        match self {
            IntOrString::Int(number) => (*number).into(),
            IntOrString::String(text) => text.parse().unwrap_or_default(),
        }
    }

    /// The number, or that share of `total` which the percentage says.
    pub fn scaled(&self, total: i64, rounding: Rounding) -> Result<i64, ScaleError> {
        let text = match self {
            IntOrString::Int(number) => return Ok((*number).into()),
            IntOrString::String(text) => text,
        };
        let digits = text.strip_suffix('%').ok_or(ScaleError::NotAPercentage)?;
        let percent = digits.parse::<i64>().map_err(|error| ScaleError::NotANumber {
            text: text.clone(),
            problem: match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            },
        })?;
        let share = percent as f64 * total as f64 / 100.0;
        Ok(match rounding {
            Rounding::Up => share.ceil() as i64,
            Rounding::Down => share.floor() as i64,
        })
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrString::Int(number) => write!(f, "{number}"),
            IntOrString::String(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        IntOrString::from_value(&value).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
