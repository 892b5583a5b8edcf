//! Numbers: bounds, multiples, and equality across integers and floats.
//!
//! A JSON number that fits is an `int64` in Go, every other one a `float64`, and bounds are always
//! `float64`. How the three meet, upstream settles case by case; the corners are kept as they are.

use serde_json::{Number, Value};

use super::{At, Outcome, Walk};
use crate::json;
use crate::schema::{Constraints, Format, Type};

impl Walk {
    pub(super) fn number(
        &self,
        number: &Number,
        type_: Option<&Type>,
        format: Option<&Format>,
        constraints: Option<&Constraints>,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let found = Found::new(number);
        let capacity = Capacity::new(type_, format);
        if !capacity.holds(found) {
            let message = capacity.complaint("Checked", at);
            self.plain(outcome, message);
        }
        let Some(constraints) = constraints else { return };
        if let Some(factor) = constraints.multiple_of {
            self.multiple_of(found, factor, capacity, at, outcome);
        }
        if let Some(minimum) = constraints.minimum {
            let bound = Bound {
                limit: minimum,
                exclusive: constraints.exclusive_minimum,
                relation: "greater than",
                name: "Minimum boundary",
                is_met: |ordering| ordering == std::cmp::Ordering::Greater,
            };
            self.bound(found, &bound, capacity, at, outcome);
        }
        if let Some(maximum) = constraints.maximum {
            let bound = Bound {
                limit: maximum,
                exclusive: constraints.exclusive_maximum,
                relation: "less than",
                name: "Maximum boundary",
                is_met: |ordering| ordering == std::cmp::Ordering::Less,
            };
            self.bound(found, &bound, capacity, at, outcome);
        }
    }

    fn bound(
        &self,
        found: Found,
        bound: &Bound,
        capacity: Capacity,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let fits = capacity.holds(Found::Float(bound.limit));
        if !fits {
            self.plain(outcome, capacity.complaint(bound.name, at));
        }
        let (ordering, limit, value) = match found {
            Found::Integer(found) if fits => {
                let limit = to_int64(bound.limit);
                (Some(found.cmp(&limit)), limit.to_string(), Value::from(found))
            }
            found => {
                let found = found.float();
                let limit = json::go_float(bound.limit);
                (found.partial_cmp(&bound.limit), limit, Value::from(found))
            }
        };
        let Some(ordering) = ordering else { return };
        if (bound.is_met)(ordering) || ordering.is_eq() && !bound.exclusive {
            return;
        }
        let relation = bound.relation;
        let or_equal = if bound.exclusive { "" } else { " or equal to" };
        self.invalid(outcome, at, value, &format!("should be {relation}{or_equal} {limit}"));
    }

    fn multiple_of(
        &self,
        found: Found,
        factor: f64,
        capacity: Capacity,
        at: &At<'_>,
        outcome: &mut Outcome,
    ) {
        let fits = capacity.holds(Found::Float(factor));
        if !fits {
            self.plain(outcome, capacity.complaint("MultipleOf", at));
        }
        let (is_multiple, factor_text, value, factor_value) = match found {
            Found::Integer(found) if fits => {
                let factor = to_int64(factor);
                let is_multiple = (factor > 0).then(|| found % factor == 0);
                (is_multiple, factor.to_string(), Value::from(found), Value::from(factor))
            }
            found => {
                let found = found.float();
                let quotient = if factor < 1.0 { 1.0 / factor * found } else { found / factor };
                let is_multiple = (factor > 0.0).then(|| is_json_integer(quotient));
                (is_multiple, json::go_float(factor), Value::from(found), Value::from(factor))
            }
        };
        match is_multiple {
            Some(true) => {}
            Some(false) => {
                let message = format!("should be a multiple of {factor_text}");
                self.invalid(outcome, at, value, &message);
            }
            None => {
                let name = at.text();
                let message = format!(
                    "factor MultipleOf declared for {name} must be positive: {factor_text}"
                );
                outcome.failed = true;
                self.push(
                    outcome,
                    super::Complaint {
                        name: Some(name),
                        kind: super::ErrorKind::Invalid,
                        bad_value: factor_value,
                        detail: message.clone(),
                        message,
                    },
                );
            }
        }
    }
}

/// A minimum or a maximum.
struct Bound {
    limit: f64,
    exclusive: bool,
    relation: &'static str,
    name: &'static str,
    is_met: fn(std::cmp::Ordering) -> bool,
}

/// A number as Go holds it.
#[derive(Clone, Copy)]
enum Found {
    Integer(i64),
    Float(f64),
}

impl Found {
    fn new(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => Found::Integer(integer),
            None => Found::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        }
    }

    fn float(self) -> f64 {
        match self {
            Found::Integer(integer) => integer as f64,
            Found::Float(float) => float,
        }
    }
}

/// What numbers a type and format can hold.
#[derive(Clone, Copy)]
enum Capacity {
    Int32,
    Int64 { named: bool },
    Float32,
    Any,
}

impl Capacity {
    fn new(type_: Option<&Type>, format: Option<&Format>) -> Self {
        match (type_, format.map(|format| &*format.name)) {
            (Some(Type::Integer), Some("int32")) => Capacity::Int32,
            (Some(Type::Integer), format) => Capacity::Int64 { named: format == Some("int64") },
            (Some(Type::Number), Some("float")) => Capacity::Float32,
            _ => Capacity::Any,
        }
    }

    fn holds(self, found: Found) -> bool {
        let integer = match found {
            Found::Integer(integer) => Some(integer),
            // Exactly the floats that are written without a fraction and can be read back.
            Found::Float(float) => (float.fract() == 0.0
                && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float))
            .then_some(float as i64),
        };
        match self {
            Capacity::Int32 => integer.is_some_and(|integer| i32::try_from(integer).is_ok()),
            Capacity::Int64 { .. } => integer.is_some(),
            Capacity::Float32 => (found.float() as f32).is_finite(),
            Capacity::Any => true,
        }
    }

    fn complaint(self, what: &str, at: &At<'_>) -> String {
        let expected = match self {
            Capacity::Int32 => "integer with format int32",
            Capacity::Int64 { named: true } => "integer with format int64",
            Capacity::Int64 { named: false } => "integer (default format)",
            Capacity::Float32 => "number with format float",
            Capacity::Any => "number (default format)",
        };
        format!("{what} value must be of type {expected} in {}", at.text())
    }
}

/// As Go converts on the usual machines: what does not fit becomes the smallest integer.
fn to_int64(float: f64) -> i64 {
    match (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        true => float as i64,
        false => i64::MIN,
    }
}

/// Whether a float counts as an integer.
pub(super) fn is_integral(value: &Value) -> bool {
    value.as_f64().is_some_and(is_json_integer)
}

/// Within the integers that every JSON reader keeps, and no further from one than rounding errors
/// carry.
fn is_json_integer(float: f64) -> bool {
    const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;
    if !float.is_finite() || float.abs() > INTEGER_MAX {
        return false;
    }
    if float.fract() == 0.0 {
        return true;
    }
    // Upstream compares with the truncated number, and for negative ones with nothing sensible.
    let truncated = if float < 0.0 { return false } else { float.trunc() };
    truncated != 0.0 && (float - truncated) / (float + truncated) < 1e-9
}

/// Whether a value is the one enumerated, after Go's conversion to its type.
pub(super) fn converts(value: &Value, one: &Value) -> bool {
    match (value, one) {
        (Value::Number(value), Value::Number(one)) => match (Found::new(value), Found::new(one)) {
            (Found::Integer(value), Found::Integer(one)) => value == one,
            (Found::Float(value), Found::Integer(one)) => to_int64(value) == one,
            (value, Found::Float(one)) => value.float() == one,
        },
        // Go makes a string of one character from an integer.
        (Value::Number(value), Value::String(one)) => {
            let code = value.as_i64().and_then(|code| u32::try_from(code).ok());
            let character =
                value.is_i64().then(|| code.and_then(char::from_u32).unwrap_or('\u{FFFD}'));
            character.is_some_and(|character| one.chars().eq([character]))
        }
        (Value::Null, _) => false,
        (value, one) => value == one,
    }
}
