//! What a plain scalar means, by the rules of YAML 1.1 as upstream's library has them.

use serde_json::{Number, Value};

use crate::json;

/// What a scalar is read as.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Past the signed range.
    Uint(u64),
    Float(f64),
    /// Looks like a date, and stays the text that it is.
    Timestamp,
    Text,
}

impl Scalar {
    /// What a scalar without quotes and tag is.
    pub(super) fn of_plain(text: &str) -> Self {
        if let Some(word) = of_word(text) {
            return word;
        }
        match text.as_bytes() {
            [b'.', ..] if separates_digits(text) => of_float(&text.replace('_', "")),
            [b'.', ..] => Scalar::Text,
            [b'0'..=b'9' | b'+' | b'-', ..] if is_timestamp(text) => Scalar::Timestamp,
            [b'0'..=b'9' | b'+' | b'-', ..] => of_number(&text.replace('_', "")),
            _ => Scalar::Text,
        }
    }

    /// The tag that fits.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "bool",
            Scalar::Int(_) | Scalar::Uint(_) => "int",
            Scalar::Float(_) => "float",
            Scalar::Timestamp => "timestamp",
            Scalar::Text => "str",
        }
    }

    /// In a tree; `None` for the numbers that JSON does not have.
    pub(super) fn to_value(&self, text: &str) -> Option<Value> {
        Some(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Int(value) => Value::from(*value),
            Scalar::Uint(value) => Value::from(*value as f64),
            // Upstream goes through the text of JSON, where 1.0 is 1.
            Scalar::Float(value) => {
                let number = Value::Number(Number::from_f64(*value)?);
                json::decode(json::to_string(&number).as_bytes()).ok()?.value
            }
            Scalar::Timestamp | Scalar::Text => Value::from(text),
        })
    }
}

fn of_word(text: &str) -> Option<Scalar> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// A text that begins with a digit or a sign, without its underscores.
fn of_number(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (digits, 8)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    // `from_str_radix` would take a second sign.
    let is_unsigned = !digits.starts_with(['+', '-']);
    if let Some(magnitude) = u64::from_str_radix(digits, radix).ok().filter(|_| is_unsigned) {
        let signed = match text.starts_with('-') {
            true => 0_i64.checked_sub_unsigned(magnitude),
            false => i64::try_from(magnitude).ok(),
        };
        match signed {
            Some(value) => return Scalar::Int(value),
            None if !text.starts_with(['+', '-']) => return Scalar::Uint(magnitude),
            None => {}
        }
    }
    let is_float = unsigned.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
    if is_float && unsigned != "." { of_float(text) } else { Scalar::Text }
}

/// Whether each underscore stands between two digits, as in Go's own numbers. Elsewhere in YAML
/// they may stand anywhere; after a leading point upstream leaves the number to Go.
fn separates_digits(text: &str) -> bool {
    let is_digit = |at: Option<usize>| {
        at.is_some_and(|at| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit))
    };
    text.match_indices('_').all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
}

fn of_float(text: &str) -> Scalar {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Scalar::Float(value),
        _ => Scalar::Text,
    }
}

/// Whether a text would be read as a date or a time, so that it must be quoted to stay a text.
pub(super) fn is_timestamp(text: &str) -> bool {
    read_timestamp(text).is_some()
}

/// `2006-1-2`, or that and a time after `T`, `t` or a space.
fn read_timestamp(text: &str) -> Option<()> {
    let (year, rest) = text.split_at_checked(4)?;
    let year: i16 = digits(year)?.try_into().ok()?;
    let (month, rest) = number(rest.strip_prefix('-')?)?;
    let (day, rest) = number(rest.strip_prefix('-')?)?;
    jiff::civil::Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    if rest.is_empty() {
        return Some(());
    }
    let with_zone = !rest.starts_with(' ');
    let (hour, rest) = number(rest.strip_prefix(['T', 't', ' '])?)?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, mut rest) = number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == fraction.len() {
            return None;
        }
    }
    match (with_zone, rest) {
        (false, "") | (true, "Z") => Some(()),
        (true, zone) => {
            let zone = zone.strip_prefix(['+', '-'])?;
            let (hours, minutes) = zone.split_once(':')?;
            let in_range = hours.len() == 2 && minutes.len() == 2;
            (in_range && digits(hours)? <= 24 && digits(minutes)? <= 60).then_some(())
        }
        _ => None,
    }
}

/// One digit or two, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(count);
    Some((digits(number)?, rest))
}

fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
