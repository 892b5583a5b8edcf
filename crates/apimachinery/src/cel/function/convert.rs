//! Conversions between types.

use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Timestamp, Val};
use crate::json;
use crate::time::GoDuration;

pub(super) fn declare(table: &mut Table) {
    use Body::{Any, Typed};
    table.global("type", "type", "A -> type(A)", Any(type_of));
    table.global("dyn", "to_dyn", "A -> dyn", Any(identity));
    let mut convert = |name: &'static str, from: &[&str], body: super::Function| {
        for source in from {
            let id = match (*source, name) {
                ("int", _) => format!("int64_to_{}", long(name)),
                ("uint", _) => format!("uint64_to_{}", long(name)),
                _ => format!("{source}_to_{}", long(name)),
            };
            table.global(name, id, &format!("{source} -> {name}"), Typed(body));
        }
    };
    convert("bool", &["bool", "string"], to_bool);
    convert("bytes", &["bytes", "string"], to_bytes);
    convert("double", &["double", "int", "string", "uint"], to_double);
    convert("duration", &["duration", "int", "string"], to_duration);
    convert("int", &["int", "double", "duration", "string", "timestamp", "uint"], to_int);
    convert(
        "string",
        &[
            "string",
            "bool",
            "bytes",
            "double",
            "duration",
            "int",
            "timestamp",
            "uint",
            "net.IP",
            "net.CIDR",
        ],
        to_string,
    );
    convert("timestamp", &["timestamp", "int", "string"], to_timestamp);
    convert("uint", &["uint", "double", "int", "string"], to_uint);
}

/// Overloads call the numbers by their widths.
fn long(name: &str) -> &str {
    match name {
        "int" => "int64",
        "uint" => "uint64",
        other => other,
    }
}

fn impossible(from: &Val<'_>, to: &str) -> Failure {
    Failure::new(format!("type conversion error from '{}' to '{to}'", from.type_name()))
}

fn type_of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match &args[0] {
        Val::Preserved(_) => Err(Failure::new(
            "type conversion to 'type' not supported for values preserved by \
             x-kubernetes-preserve-unknown-fields",
        )),
        other => Ok(Val::Type(other.type_name())),
    }
}

fn identity<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(args[0].clone())
}

fn to_bool<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match &args[0] {
        Val::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => Err(impossible(&args[0], "bool")),
        },
        other => Ok(other.clone()),
    }
}

fn to_bytes<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(match &args[0] {
        Val::String(text) => Val::Bytes(text.as_bytes().into()),
        other => other.clone(),
    })
}

fn to_double<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(match &args[0] {
        Val::Int(value) => Val::Double(*value as f64),
        Val::Uint(value) => Val::Double(*value as f64),
        Val::String(text) => {
            Val::Double(go_float(text).ok_or_else(|| impossible(&args[0], "double"))?)
        }
        other => other.clone(),
    })
}

/// What Go's `strconv.ParseFloat` takes, but for hexadecimal numbers.
fn go_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    // Underscores may stand between digits.
    let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let is_between = |at: usize| at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1));
    if !text.match_indices('_').all(|(at, _)| is_between(at)) {
        return None;
    }
    let value: f64 = text.replace('_', "").parse().ok().filter(|_| is_word || is_number)?;
    (is_word || value.is_finite()).then_some(value)
}

fn to_duration<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match &args[0] {
        Val::Int(_) => Err(impossible(&args[0], "google.protobuf.Duration")),
        Val::String(text) => match GoDuration::parse(text) {
            Ok(duration) => Ok(Val::Duration(duration.nanos)),
            Err(_) => Err(impossible(&args[0], "google.protobuf.Duration")),
        },
        other => Ok(other.clone()),
    }
}

fn to_int<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let overflow = || Failure::new("integer overflow");
    Ok(match &args[0] {
        Val::Uint(value) => Val::Int(i64::try_from(*value).map_err(|_| overflow())?),
        // The bounds themselves are out: beside them a float cannot tell its neighbours apart.
        Val::Double(value) if value.is_nan() || value.abs() >= 9_223_372_036_854_775_808.0 => {
            return Err(overflow());
        }
        Val::Double(value) => Val::Int(*value as i64),
        Val::String(text) => Val::Int(text.parse().map_err(|_| impossible(&args[0], "int"))?),
        Val::Duration(nanos) => Val::Int(*nanos),
        Val::Timestamp(at) => Val::Int(at.unix_seconds()),
        other => other.clone(),
    })
}

fn to_uint<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let overflow = || Failure::new("unsigned integer overflow");
    Ok(match &args[0] {
        Val::Int(value) => Val::Uint(u64::try_from(*value).map_err(|_| overflow())?),
        Val::Double(value)
            if value.is_nan() || *value < 0.0 || *value >= 18_446_744_073_709_551_616.0 =>
        {
            return Err(overflow());
        }
        Val::Double(value) => Val::Uint(*value as u64),
        Val::String(text) => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let value = text.parse().ok().filter(|_| digits);
            Val::Uint(value.ok_or_else(|| impossible(&args[0], "uint"))?)
        }
        other => other.clone(),
    })
}

fn to_timestamp<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(match &args[0] {
        Val::Int(seconds) => Val::Timestamp(Timestamp::from_unix(*seconds, 0)?),
        Val::String(text) => Val::Timestamp(
            Timestamp::parse(text)
                .map_err(|_| impossible(&args[0], "google.protobuf.Timestamp"))?,
        ),
        other => other.clone(),
    })
}

pub(in crate::cel) fn to_string<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(match &args[0] {
        Val::String(_) => args[0].clone(),
        Val::Bool(value) => Val::text(value.to_string()),
        Val::Int(value) => Val::text(value.to_string()),
        Val::Uint(value) => Val::text(value.to_string()),
        Val::Double(value) => Val::text(double_text(*value)),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Val::text(text),
            Err(_) => {
                return Err(Failure::new("invalid UTF-8 in bytes, cannot convert to string"));
            }
        },
        Val::Duration(nanos) => Val::text(duration_text(*nanos)),
        Val::Timestamp(at) => Val::text(at.to_string()),
        Val::Type(name) => Val::borrowed(name),
        Val::Ip(address) => Val::text(super::network::address_text(*address)),
        Val::Cidr(cidr) => Val::text(cidr.to_string()),
        other => return Err(impossible(other, "string")),
    })
}

/// Go's `%g`.
pub(in crate::cel) fn double_text(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => json::go_float(value),
    }
}

/// In seconds, with as many decimals as needed.
fn duration_text(nanos: i64) -> String {
    // Through a float, as upstream counts seconds.
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{}s", seconds as f64 + rest as f64 / 1e9)
}
