//! Operators, and the functions that every value of a kind has.

use std::cmp::Ordering;

use super::{Body, Table};
use crate::cel::ast::operator;
use crate::cel::value::{Failure, Outcome, Val};

pub(super) fn declare(table: &mut Table) {
    use Body::{Any, BuiltIn};
    table.global(operator::CONDITIONAL, "conditional", "bool, A, A -> A", BuiltIn);
    table.global(operator::AND, "logical_and", "bool, bool -> bool", BuiltIn);
    table.global(operator::OR, "logical_or", "bool, bool -> bool", BuiltIn);
    table.global(operator::NOT, "logical_not", "bool -> bool", Any(not));
    table.global(operator::NOT_STRICTLY_FALSE, "not_strictly_false", "bool -> bool", BuiltIn);
    table.global(operator::EQUALS, "equals", "A, A -> bool", Any(equals));
    table.global(operator::NOT_EQUALS, "not_equals", "A, A -> bool", Any(not_equals));

    for (id, signature) in [
        ("add_bytes", "bytes, bytes -> bytes"),
        ("add_double", "double, double -> double"),
        ("add_duration_duration", "duration, duration -> duration"),
        ("add_duration_timestamp", "duration, timestamp -> timestamp"),
        ("add_timestamp_duration", "timestamp, duration -> timestamp"),
        ("add_int64", "int, int -> int"),
        ("add_list", "list(A), list(A) -> list(A)"),
        ("add_string", "string, string -> string"),
        ("add_uint64", "uint, uint -> uint"),
    ] {
        table.global(operator::ADD, id, signature, Any(add));
    }
    for (id, signature) in [
        ("subtract_double", "double, double -> double"),
        ("subtract_duration_duration", "duration, duration -> duration"),
        ("subtract_int64", "int, int -> int"),
        ("subtract_timestamp_duration", "timestamp, duration -> timestamp"),
        ("subtract_timestamp_timestamp", "timestamp, timestamp -> duration"),
        ("subtract_uint64", "uint, uint -> uint"),
    ] {
        table.global("_-_", id, signature, Any(subtract));
    }
    for (name, word, body) in [
        ("_/_", "divide", Any(divide)),
        ("_*_", "multiply", Any(multiply)),
        ("_%_", "modulo", Any(modulo)),
    ] {
        if name != "_%_" {
            table.global(name, format!("{word}_double"), "double, double -> double", body);
        }
        table.global(name, format!("{word}_int64"), "int, int -> int", body);
        table.global(name, format!("{word}_uint64"), "uint, uint -> uint", body);
    }
    table.global(operator::NEGATE, "negate_double", "double -> double", Any(negate));
    table.global(operator::NEGATE, "negate_int64", "int -> int", Any(negate));

    for (name, word, body) in [
        ("_<_", "less", Any(less)),
        ("_<=_", "less_equals", Any(less_equals)),
        ("_>_", "greater", Any(greater)),
        ("_>=_", "greater_equals", Any(greater_equals)),
    ] {
        let numbers = [("int64", "int"), ("uint64", "uint"), ("double", "double")];
        table.global(name, format!("{word}_bool"), "bool, bool -> bool", body);
        for (a, a_type) in numbers {
            for (b, b_type) in numbers {
                let id = if a == b { format!("{word}_{a}") } else { format!("{word}_{a}_{b}") };
                table.global(name, id, &format!("{a_type}, {b_type} -> bool"), body);
            }
        }
        for type_ in ["string", "bytes", "timestamp", "duration"] {
            let signature = format!("{type_}, {type_} -> bool");
            table.global(name, format!("{word}_{type_}"), &signature, body);
        }
    }

    table.global(operator::INDEX, "index_list", "list(A), int -> A", BuiltIn);
    table.global(operator::INDEX, "index_map", "map(A, B), A -> B", BuiltIn);
    table.global(operator::IN, "in_list", "A, list(A) -> bool", Any(contained));
    table.global(operator::IN, "in_map", "A, map(A, B) -> bool", Any(contained));
    for (type_, signature) in [
        ("bytes", "bytes -> int"),
        ("list", "list(A) -> int"),
        ("map", "map(A, B) -> int"),
        ("string", "string -> int"),
    ] {
        table.global("size", format!("size_{type_}"), signature, Any(size));
        table.member("size", format!("{type_}_size"), signature, Any(size));
    }
    table.global(
        "cel.@mapInsert",
        "@mapInsert_map_key_value",
        "map(K, V), K, V -> map(K, V)",
        BuiltIn,
    );
    table.global(
        "cel.@mapInsert",
        "@mapInsert_map_map",
        "map(K, V), map(K, V) -> map(K, V)",
        BuiltIn,
    );
}

fn not<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match args {
        [Val::Bool(value)] => Ok(Val::Bool(!value)),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn equals<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    args[0].equals(&args[1]).map(Val::Bool).ok_or(Failure::NO_SUCH_OVERLOAD)
}

fn not_equals<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(args[0].equals(&args[1]) != Some(true)))
}

pub(super) fn add<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let [a, b] = args else { return Err(Failure::NO_SUCH_OVERLOAD) };
    Ok(match (a, b) {
        (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_add(*b).ok_or_else(int_overflow)?),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(a.checked_add(*b).ok_or_else(uint_overflow)?),
        (Val::Double(a), Val::Double(b)) => Val::Double(a + b),
        (Val::String(a), Val::String(b)) => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Val::text(text)
        }
        (Val::Bytes(a), Val::Bytes(b)) => Val::Bytes([&**a, &**b].concat().into()),
        (Val::List(a), Val::List(b)) => Val::List(a.joined(b)?),
        (Val::Duration(a), Val::Duration(b)) => {
            Val::Duration(a.checked_add(*b).ok_or_else(duration_overflow)?)
        }
        (Val::Timestamp(at), Val::Duration(nanos)) | (Val::Duration(nanos), Val::Timestamp(at)) => {
            Val::Timestamp(at.plus(*nanos)?)
        }
        (
            Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::String(_)
            | Val::Bytes(_)
            | Val::List(_)
            | Val::Duration(_)
            | Val::Timestamp(_),
            _,
        ) => return Err(Failure::NO_SUCH_OVERLOAD),
        _ => return Err(Failure::no_function(operator::ADD)),
    })
}

fn subtract<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let [a, b] = args else { return Err(Failure::NO_SUCH_OVERLOAD) };
    Ok(match (a, b) {
        (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_sub(*b).ok_or_else(int_overflow)?),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(a.checked_sub(*b).ok_or_else(uint_overflow)?),
        (Val::Double(a), Val::Double(b)) => Val::Double(a - b),
        (Val::Duration(a), Val::Duration(b)) => {
            Val::Duration(a.checked_sub(*b).ok_or_else(duration_overflow)?)
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => Val::Duration(a.since(*b)?),
        (Val::Timestamp(at), Val::Duration(nanos)) => {
            Val::Timestamp(at.plus(nanos.checked_neg().ok_or_else(duration_overflow)?)?)
        }
        (Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_) | Val::Timestamp(_), _) => {
            return Err(Failure::NO_SUCH_OVERLOAD);
        }
        _ => return Err(Failure::no_function("_-_")),
    })
}

fn multiply<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let [a, b] = args else { return Err(Failure::NO_SUCH_OVERLOAD) };
    Ok(match (a, b) {
        (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_mul(*b).ok_or_else(int_overflow)?),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(a.checked_mul(*b).ok_or_else(uint_overflow)?),
        (Val::Double(a), Val::Double(b)) => Val::Double(a * b),
        (a, _) => return Err(not_a_number(a, "_*_")),
    })
}

fn divide<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let [a, b] = args else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let by_zero = || Failure::new("division by zero");
    Ok(match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => return Err(by_zero()),
        (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_div(*b).ok_or_else(int_overflow)?),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(a / b),
        (Val::Double(a), Val::Double(b)) => Val::Double(a / b),
        (a, _) => return Err(not_a_number(a, "_/_")),
    })
}

fn modulo<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let [a, b] = args else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let by_zero = || Failure::new("modulus by zero");
    Ok(match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => return Err(by_zero()),
        (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_rem(*b).ok_or_else(int_overflow)?),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(a % b),
        (Val::Int(_) | Val::Uint(_), _) => return Err(Failure::NO_SUCH_OVERLOAD),
        _ => return Err(Failure::no_function("_%_")),
    })
}

fn negate<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(match &args[0] {
        Val::Int(value) => Val::Int(value.checked_neg().ok_or_else(int_overflow)?),
        Val::Double(value) => Val::Double(-value),
        Val::Duration(nanos) => Val::Duration(nanos.checked_neg().ok_or_else(duration_overflow)?),
        Val::Bool(_) => return Err(Failure::NO_SUCH_OVERLOAD),
        _ => return Err(Failure::no_function(operator::NEGATE)),
    })
}

fn not_a_number(left: &Val<'_>, function: &str) -> Failure {
    match left {
        Val::Int(_) | Val::Uint(_) | Val::Double(_) => Failure::NO_SUCH_OVERLOAD,
        _ => Failure::no_function(function),
    }
}

fn int_overflow() -> Failure {
    Failure::new("integer overflow")
}

fn uint_overflow() -> Failure {
    Failure::new("unsigned integer overflow")
}

fn duration_overflow() -> Failure {
    Failure::new("duration overflow")
}

fn less<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    ordered(args, "_<_", Ordering::is_lt)
}

fn less_equals<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    ordered(args, "_<=_", Ordering::is_le)
}

fn greater<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    ordered(args, "_>_", Ordering::is_gt)
}

fn greater_equals<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    ordered(args, "_>=_", Ordering::is_ge)
}

fn ordered<'v>(args: &[Val<'v>], function: &str, holds: fn(Ordering) -> bool) -> Outcome<'v> {
    if !args[0].is_comparable() {
        return Err(Failure::no_function(function));
    }
    args[0].compare(&args[1]).map(|order| Val::Bool(holds(order)))
}

fn contained<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match &args[1] {
        Val::List(list) => list.contains(&args[0]).map(Val::Bool),
        Val::Map(map) => map.find(&args[0]).map(|found| Val::Bool(found.is_some())),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn size<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let size = args[0].size().ok_or_else(|| Failure::no_function("size"))?;
    Ok(Val::Int(size as i64))
}
