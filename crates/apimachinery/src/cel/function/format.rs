//! `string.format`: text with clauses such as `%s` and `%.2f`.
//!
//! The same reading serves to fill a format in and to check one that is known beforehand.

use std::fmt::Write as _;

use super::convert;
use super::strings::text;
use crate::cel::value::{Failure, Outcome, TEXT_BYTES_MAX, Val};
use crate::json;

const PRECISION: usize = 6;

/// What a clause asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cel) enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

impl Clause {
    /// What is wrong with an argument of that type.
    pub(in crate::cel) fn refusal(self, type_name: &str) -> String {
        let words = match self {
            Clause::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            Clause::Decimal => "decimal clause can only be used on integers",
            Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
            Clause::Scientific(_) => "scientific clause can only be used on doubles",
            Clause::Binary => "only integers and bools can be formatted as binary",
            Clause::Hex { .. } => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            Clause::Octal => "octal clause can only be used on integers",
        };
        format!("{words}, was given {type_name}")
    }
}

/// Reads a format. Each clause is handed to `clause` with its number, and replaced by what it
/// answers.
pub(in crate::cel) fn read<E: From<String>>(
    format: &str,
    n_args: usize,
    mut clause: impl FnMut(usize, Clause) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    let mut index = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        // The end is noticed first when there is no argument to blame.
        if index >= n_args {
            return Err(format!("index {index} out of range").into());
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned().into());
        }
        let (kind, after) =
            read_clause(rest).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        out.push_str(&clause(index, kind)?);
        if out.len() > TEXT_BYTES_MAX {
            return Err(format!("the text is longer than {TEXT_BYTES_MAX} bytes").into());
        }
        rest = after;
        index += 1;
    }
    out.push_str(rest);
    Ok(out)
}

fn read_clause(text: &str) -> Result<(Clause, &str), String> {
    let mut rest = text;
    let mut precision = None;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let wrong = |why: &str| format!("error while parsing precision: {why}");
        if digits == after.len() {
            return Err(wrong("could not find end of precision specifier"));
        }
        let number = &after[..digits];
        precision = Some(number.parse::<usize>().map_err(|_| {
            let quoted = json::go_quote(number);
            wrong(&format!(
                "error while converting precision to integer: strconv.Atoi: parsing {quoted}: \
                 invalid syntax"
            ))
        })?);
        rest = &after[digits..];
    }
    let letter = rest.chars().next().unwrap_or_default();
    let precision = precision.unwrap_or(PRECISION);
    let clause = match letter {
        's' => Clause::String,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' => Clause::Hex { upper: false },
        'X' => Clause::Hex { upper: true },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, &rest[letter.len_utf8()..]))
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::new(text)
    }
}

pub(super) fn format<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let Val::List(list) = &args[1] else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let filled = read(text(args, 0)?, list.len(), |index, clause| {
        let during = |failure| match failure {
            Failure::Error(text) => Failure::new(format!("error during formatting: {text}")),
            limit => limit,
        };
        fill(clause, &list.at(index)?).map_err(during)
    })?;
    Ok(Val::text(filled))
}

/// No number has more digits after the point than this; the rest are zeros.
const DIGITS_MAX: usize = 1100;

fn fixed(value: f64, precision: usize) -> Result<String, Failure> {
    if precision > TEXT_BYTES_MAX {
        return Err(Failure::CostLimit);
    }
    let digits = precision.min(DIGITS_MAX);
    let mut text = grouped(&format!("{value:.digits$}"));
    if value.is_finite() {
        text.extend(std::iter::repeat_n('0', precision - digits));
    }
    Ok(text)
}

fn fill(clause: Clause, value: &Val<'_>) -> Result<String, Failure> {
    let refusal = || Failure::new(clause.refusal(value.type_name()));
    Ok(match (clause, value) {
        (Clause::String, value) => string(value)?.ok_or_else(refusal)?,
        (Clause::Decimal, Val::Int(value)) => value.to_string(),
        (Clause::Decimal, Val::Uint(value)) => value.to_string(),
        (Clause::Fixed(precision), value) => fixed(double(value).ok_or_else(refusal)?, precision)?,
        (Clause::Scientific(_), value) => scientific(double(value).ok_or_else(refusal)?),
        (Clause::Binary, Val::Bool(value)) => u8::from(*value).to_string(),
        (Clause::Binary, Val::Int(value)) => signed(*value, |magnitude| format!("{magnitude:b}")),
        (Clause::Binary, Val::Uint(value)) => format!("{value:b}"),
        (Clause::Octal, Val::Int(value)) => signed(*value, |magnitude| format!("{magnitude:o}")),
        (Clause::Octal, Val::Uint(value)) => format!("{value:o}"),
        (Clause::Hex { upper }, value) => {
            let hex = match value {
                Val::Int(value) => signed(*value, |magnitude| format!("{magnitude:x}")),
                Val::Uint(value) => format!("{value:x}"),
                Val::String(text) => hex_bytes(text.as_bytes()),
                Val::Bytes(bytes) => hex_bytes(bytes),
                _ => return Err(refusal()),
            };
            if upper { hex.to_uppercase() } else { hex }
        }
        _ => return Err(refusal()),
    })
}

fn signed(value: i64, write: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", write(value.unsigned_abs()))
}

fn hex_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes everything");
        hex
    })
}

fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(value) => Some(*value),
        Val::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// As the American locale writes it: thousands are set apart, what is no number is spelled so.
fn grouped(number: &str) -> String {
    let (sign, number) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    match number {
        "inf" => return format!("{sign}∞"),
        "NaN" => return "NaN".to_owned(),
        _ => {}
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// As the American locale writes it: `1.234560 × 10⁰³`.
fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return grouped(&format!("{value}"));
    }
    let written = format!("{value:.6e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", exponent),
    };
    let raised: String = format!("{digits:0>2}")
        .chars()
        .map(|digit| match digit {
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            other => char::from_u32(0x2070 + u32::from(other) - u32::from('0')).unwrap_or(other),
        })
        .collect();
    format!("{mantissa}×10{sign}{raised}")
}

/// `%s`; `None` for what has no text.
fn string(value: &Val<'_>) -> Result<Option<String>, Failure> {
    Ok(Some(match value {
        Val::List(list) => {
            let items: Result<Vec<String>, Failure> =
                list.iter().map(|item| nested(&item?)).collect();
            format!("[{}]", items?.join(", "))
        }
        Val::Map(map) => {
            let mut pairs = Vec::with_capacity(map.len());
            for (key, value) in map.entries()? {
                pairs.push((nested(&key)?, nested(&value)?));
            }
            pairs.sort();
            let pairs: Vec<String> =
                pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Val::Null => "null".to_owned(),
        Val::Int(_)
        | Val::Uint(_)
        | Val::Double(_)
        | Val::Bool(_)
        | Val::String(_)
        | Val::Timestamp(_)
        | Val::Bytes(_)
        | Val::Duration(_)
        | Val::Type(_) => return plain(value).map(Some),
        _ => return Ok(None),
    }))
}

fn plain(value: &Val<'_>) -> Result<String, Failure> {
    match convert::to_string(std::slice::from_ref(value)) {
        Ok(Val::String(text)) => Ok(text.to_string()),
        Ok(_) => Err(Failure::NO_SUCH_OVERLOAD),
        Err(failure) => {
            let quoted = json::go_quote(&failure.to_string());
            Err(Failure::new(format!("could not convert argument {quoted} to string")))
        }
    }
}

/// Within a list or a map, where text is quoted.
fn nested(value: &Val<'_>) -> Result<String, Failure> {
    Ok(match value {
        Val::String(text) => json::go_quote(text),
        Val::Bytes(_) => format!("b{}", json::go_quote(&plain(value)?)),
        Val::Double(value) if value.is_finite() => format!("{value:.6}"),
        Val::Double(value) => json::go_quote(&convert::double_text(*value)),
        Val::Timestamp(_) => format!("timestamp({})", json::go_quote(&plain(value)?)),
        Val::Duration(_) => format!("duration({})", json::go_quote(&plain(value)?)),
        other => string(other)?.ok_or_else(|| {
            Failure::new(format!("no formatting function for {}", other.type_name()))
        })?,
    })
}
