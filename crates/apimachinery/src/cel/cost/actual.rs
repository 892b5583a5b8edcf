//! What calls do cost, when they run.

use super::call::{AUTHORIZATION_COST, NOMINAL, compares};
use super::size::scale;
use super::{LIST_COST, PATTERN_FACTOR, STRING_FACTOR};
use crate::cel::value::Val;

/// The cost of a call; `overload` is empty when it was found only now.
pub(in crate::cel) fn call(
    function: &str,
    overload: &str,
    args: &[Val<'_>],
    result: Option<&Val<'_>>,
) -> u64 {
    list(overload, args, result)
        .or_else(|| library(function, overload, args, result))
        .unwrap_or_else(|| standard(overload, args))
}

fn size(value: &Val<'_>) -> u64 {
    match value {
        Val::Optional(Some(inner)) => size(inner),
        other => other.size().unwrap_or(1),
    }
}

fn list(overload: &str, args: &[Val<'_>], result: Option<&Val<'_>>) -> Option<u64> {
    let made = |count: u64, factor: f64| (count as f64 * factor) as u64 + 1 + LIST_COST;
    let compared = |list: &Val<'_>| {
        let count = size(list);
        let is_text = match list {
            Val::List(items) if count > 0 => {
                matches!(items.at(0), Ok(Val::String(_) | Val::Bytes(_)))
            }
            _ => false,
        };
        made(count.saturating_mul(count), if is_text { 2.0 + STRING_FACTOR } else { 2.0 })
    };
    Some(match (overload, args) {
        ("list_slice" | "lists_range" | "list_reverse", _) => made(result.map_or(1, size), 1.0),
        ("list_flatten", [list]) => made(size(list), 1.0),
        ("list_flatten_int", [list, Val::Int(depth)]) => made(size(list), *depth as f64),
        ("list_distinct", [list]) => compared(list),
        ("list_sets_contains_list" | "list_sets_intersects_list", [a, b]) => {
            1 + size(a).saturating_mul(size(b))
        }
        ("list_sets_equivalent_list", [a, b]) => {
            1 + size(a).saturating_mul(size(b)).saturating_mul(2)
        }
        (sort, [list]) if sort.ends_with("_sort") => compared(list),
        (sort, [_, keys]) if sort.ends_with("_sortByAssociatedKeys") => compared(keys),
        _ => return None,
    })
}

fn library(
    function: &str,
    overload: &str,
    args: &[Val<'_>],
    result: Option<&Val<'_>>,
) -> Option<u64> {
    let length = |at: usize| args.get(at).map(|arg| arg.size().unwrap_or(1));
    let traversed = |at: usize| length(at).map(|length| scale(length, STRING_FACTOR));
    Some(match function {
        "check" => AUTHORIZATION_COST,
        "fieldSelector" | "labelSelector" => {
            let selector = length(1)?;
            LIST_COST + scale(selector, STRING_FACTOR) + scale(scale(selector, 0.5), 50.0)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => traversal(args.first()?),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => {
            traversed(0)?
        }
        "replace" | "split" => scale(length(0)?, 2.0 * STRING_FACTOR),
        "join" => scale(result.and_then(Val::size).unwrap_or(1), 2.0 * STRING_FACTOR),
        "find" | "findAll" => matching(length(0)?, length(1)?),
        "ip" if overload == "cidr_ip" => 1,
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            traversed(0)?
        }
        "ip.isCanonical" => scale(length(0)?, 2.0 * STRING_FACTOR),
        "containsIP" | "containsCIDR" => {
            let (network, other) = (length(0)?, length(1)?);
            let mut cost = scale(network + network, STRING_FACTOR);
            if function == "containsCIDR" {
                cost += scale(network, STRING_FACTOR) + 1;
            }
            if overload.ends_with("_string") {
                cost += scale(other, STRING_FACTOR);
            }
            cost
        }
        "validate" => match args.first()? {
            Val::Format(format) => matching(length(1)?, format.pattern_size),
            _ => return None,
        },
        "_==_" => match args.first()? {
            Val::Quantity { .. }
            | Val::Ip(_)
            | Val::Cidr(_)
            | Val::Format(_)
            | Val::Url(_)
            | Val::Semver(_)
            | Val::Foreign(_) => 1,
            _ => return None,
        },
        name if NOMINAL.contains(&name) => 1,
        _ => return None,
    })
}

fn standard(overload: &str, args: &[Val<'_>]) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, size);
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => scale(size(0), STRING_FACTOR),
        "in_list" => size(1),
        overload if compares(overload) => scale(size(0).min(size(1)), STRING_FACTOR),
        "add_string" | "add_bytes" => scale(size(0) + size(1), STRING_FACTOR),
        "matches_string" => matching(size(0), size(1)),
        "contains_string" => scale(size(0), STRING_FACTOR) * scale(size(1), STRING_FACTOR),
        _ => 1,
    }
}

fn matching(text: u64, pattern: u64) -> u64 {
    scale(text + 1, STRING_FACTOR).saturating_mul(scale(pattern, PATTERN_FACTOR))
}

/// Looking at everything within a value.
fn traversal(value: &Val<'_>) -> u64 {
    match value {
        Val::String(text) => (text.len() as f64 * STRING_FACTOR) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * STRING_FACTOR) as u64,
        Val::List(list) => list.iter().map(|item| item.map_or(1, |item| traversal(&item))).sum(),
        Val::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            entries.iter().map(|(key, value)| traversal(key) + traversal(value)).sum()
        }
        _ => 1,
    }
}
