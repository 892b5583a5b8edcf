//! What calls may cost.

use super::size::{Size, scale};
use super::{Estimate, Estimator, Known, LIST_COST, PATTERN_FACTOR, STRING_FACTOR};
use crate::cel::types::Type;

/// A check of permissions: two of them fill the budget of an expression.
pub(super) const AUTHORIZATION_COST: u64 = 350_000;
/// What a named format is taken to match against.
const FORMAT_PATTERN_SIZE: f64 = 128.0;
/// The longest name of a format.
const FORMAT_SIZE: u64 = 64;

/// Whether two values are compared as far as the shorter goes.
pub(super) fn compares(overload: &str) -> bool {
    let of_texts = overload.strip_suffix("_string").or(overload.strip_suffix("_bytes"));
    matches!(overload, "equals" | "not_equals")
        || matches!(of_texts, Some("less" | "less_equals" | "greater" | "greater_equals"))
}

/// The cost of a call without its arguments and its target.
pub(super) fn estimate(
    estimator: &Estimator<'_>,
    function: &str,
    overload: &str,
    target: Option<&Known<'_>>,
    args: &[Known<'_>],
) -> Estimate {
    list(overload, target, args)
        .or_else(|| library(estimator, function, overload, target, args))
        .or_else(|| standard(overload, target, args))
        .unwrap_or(Estimate { cost: 1, size: None })
}

fn cost(cost: u64) -> Option<Estimate> {
    Some(Estimate { cost, size: None })
}

fn sized(cost: u64, size: Size) -> Option<Estimate> {
    Some(Estimate { cost, size: Some(size) })
}

/// Functions that make lists, and those that treat them as sets.
fn list(overload: &str, target: Option<&Known<'_>>, args: &[Known<'_>]) -> Option<Estimate> {
    let made =
        |factor: f64, size: Size| sized((size.cost(factor)).saturating_add(1 + LIST_COST), size);
    let literal = |arg: &Known<'_>, otherwise: u64| match arg.int() {
        Some(value) => u64::try_from(value).unwrap_or(0),
        None => otherwise,
    };
    match (overload, target, args) {
        ("list_slice", Some(target), [start, end]) => {
            let end = literal(end, target.size_or_unknown().max);
            made(1.0, Size::fixed(end.wrapping_sub(literal(start, 0))))
        }
        ("lists_range", None, [count]) => made(1.0, Size::fixed(literal(count, u64::MAX))),
        ("list_reverse", Some(target), []) => made(1.0, target.size_or_unknown()),
        ("list_flatten", Some(target), []) => made(1.0, target.size_or_unknown()),
        ("list_flatten_int", Some(target), [depth]) => {
            made(literal(depth, u64::MAX) as f64, target.size_or_unknown())
        }
        ("list_distinct", Some(target), []) => {
            let size = target.size_or_unknown();
            made(2.0, size.times(size))
        }
        (
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
            _,
            [a, b],
        ) => {
            let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
            let pairs = a.size_or_unknown().times(b.size_or_unknown());
            cost(pairs.cost(factor).saturating_add(1))
        }
        (sort, Some(target), args)
            if sort.ends_with("_sort") || sort.ends_with("_sortByAssociatedKeys") =>
        {
            let keys = args.first().unwrap_or(target);
            let is_text = sort.starts_with("list_string") || sort.starts_with("list_bytes");
            let size = keys.size_or_unknown();
            made(if is_text { 2.0 + STRING_FACTOR } else { 2.0 }, size.times(size))
        }
        _ => None,
    }
}

/// Kubernetes' libraries, by the names of their functions. Some of these names are also those of
/// functions elsewhere, which then cost the same.
fn library(
    estimator: &Estimator<'_>,
    function: &str,
    overload: &str,
    target: Option<&Known<'_>>,
    args: &[Known<'_>],
) -> Option<Estimate> {
    let first = args.first().map(Known::size_or_unknown);
    match function {
        "check" => cost(AUTHORIZATION_COST),
        "fieldSelector" | "labelSelector" => {
            let [selector] = args else { return None };
            let length = selector.size_or_unknown();
            let requirements = scale(scale(length.max, 0.5), 50.0);
            cost(LIST_COST.saturating_add(length.cost(STRING_FACTOR)).saturating_add(requirements))
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            let target = target?;
            let size = target.size_or_unknown();
            let Some(item) = item(estimator, target) else {
                return cost(size.cost(STRING_FACTOR));
            };
            let each = match item.type_ {
                Type::String | Type::Bytes => {
                    item.size_or_unknown().cost(STRING_FACTOR).saturating_add(1)
                }
                _ => 1,
            };
            cost(size.max.saturating_mul(each))
        }
        "url" | "jsonpatch.escapeKey" => sized(first?.cost(STRING_FACTOR), first?),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            let size = target?.size_or_unknown();
            sized(size.cost(STRING_FACTOR), size)
        }
        "replace" => {
            let ([from, to, ..], target) = (args, target?) else { return None };
            let size = target.size_or_unknown();
            let result = replaced(size, from.size_or_unknown(), to.size_or_unknown());
            sized(size.cost(2.0 * STRING_FACTOR), result)
        }
        "split" => {
            let size = target?.size_or_unknown();
            let limit = args.get(1).and_then(Known::int);
            let max = limit.map_or(size.max, |limit| limit as u64);
            sized(size.cost(2.0 * STRING_FACTOR), Size { min: 0, max })
        }
        "join" => {
            let target = target?;
            let count = target.size_or_unknown();
            let mut size = match item(estimator, target) {
                Some(item) => count.times(item.size_or_unknown()),
                None => Size::fixed(0),
            };
            if let Some(separator) = first {
                let gaps =
                    Size { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                size = size.plus(separator.times(gaps));
            }
            sized(size.cost(STRING_FACTOR), size)
        }
        "find" | "findAll" => {
            let size = target?.size_or_unknown();
            let cost = matching(size, first?);
            sized(cost, Size { min: 0, max: size.max })
        }
        "ip" if overload == "cidr_ip" => cost(1),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            cost(first?.cost(STRING_FACTOR))
        }
        "ip.isCanonical" => cost(first?.cost(2.0 * STRING_FACTOR)),
        "containsIP" | "containsCIDR" => {
            // Two addresses are compared byte by byte, of which there are at most 16.
            let mut sum = scale(32, STRING_FACTOR);
            if function == "containsCIDR" {
                sum += scale(16, STRING_FACTOR) + 1;
            }
            if overload.ends_with("_string") {
                sum = sum.saturating_add(first?.cost(STRING_FACTOR));
            }
            cost(sum)
        }
        "validate" => {
            let pattern = FORMAT_PATTERN_SIZE * PATTERN_FACTOR;
            cost(scale(first?.cost(STRING_FACTOR), pattern))
        }
        "_==_" => {
            let [a, b] = args else { return None };
            equality(a, b)
        }
        name if NOMINAL.contains(&name) => cost(1),
        _ => None,
    }
}

/// Functions that only look something up.
pub(super) const NOMINAL: &[&str] = &[
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

fn equality(a: &Known<'_>, b: &Known<'_>) -> Option<Estimate> {
    if a.type_ != b.type_ {
        return None;
    }
    match a.type_.name() {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => cost(1),
        "kubernetes.NamedFormat" => cost(scale(FORMAT_SIZE, STRING_FACTOR)),
        "kubernetes.URL" => cost(scale(b.size.map_or(1, |size| size.max), STRING_FACTOR)),
        name if name.starts_with("kubernetes.authorization.") => cost(1),
        _ => None,
    }
}

/// What is known about the items of a list.
fn item<'e>(estimator: &Estimator<'_>, list: &Known<'_>) -> Option<Known<'e>> {
    let type_ = match &list.type_ {
        Type::List(item) => (**item).clone(),
        Type::Map(key, _) => (**key).clone(),
        Type::Opaque(_, params) => params.first()?.clone(),
        _ => return None,
    };
    let mut path = list.path.clone();
    let size = match path.is_empty() {
        true => None,
        false => {
            path.push("@items".into());
            estimator.declared_size(&path)
        }
    };
    Some(Known { expr: None, type_, path, size })
}

/// The size of a text after replacements.
fn replaced(size: Size, from: Size, to: Size) -> Size {
    let ceiling = |a: u64, b: u64| (a as f64 / b as f64).ceil() as u64;
    // How many are replaced, and how much stays.
    let bound = |size: u64, from: u64, all_stays: bool| match () {
        // What is empty is found around every character.
        () if from == 0 => (size.saturating_add(1), size),
        () if all_stays => (0, size),
        () => (ceiling(size, from), 0),
    };
    let most = bound(size.max, from.min, to.max <= from.min);
    let least = bound(size.min, from.max, from.max <= to.min);
    let (mut count, mut kept) = (Size::fixed(0), Size::fixed(0));
    ((count.min, kept.min), (count.max, kept.max)) = (least, most);
    count.times(to).plus(kept)
}

fn matching(text: Size, pattern: Size) -> u64 {
    // Even against nothing, a pattern is run.
    let text = text.plus(Size::fixed(1)).cost(STRING_FACTOR);
    text.saturating_mul(pattern.cost(PATTERN_FACTOR))
}

/// The language's own functions, by their overloads.
fn standard(overload: &str, target: Option<&Known<'_>>, args: &[Known<'_>]) -> Option<Estimate> {
    let size = |at: usize| args.get(at).map(Known::size_or_unknown);
    match overload {
        "string_format" => cost(target?.size_or_unknown().cost(STRING_FACTOR)),
        "string_to_bytes" => {
            let size = size(0)?;
            let result = Size { min: size.min, max: size.max.wrapping_mul(4) };
            sized(size.cost(STRING_FACTOR), result)
        }
        "bytes_to_string" => {
            let size = size(0)?;
            sized(size.cost(STRING_FACTOR), Size { min: size.min / 4, max: size.max })
        }
        "strings_quote" => {
            let size = size(0)?;
            let max = size.max.wrapping_mul(2).wrapping_add(2);
            sized(size.cost(STRING_FACTOR), Size { min: size.min + 2, max })
        }
        "starts_with_string" | "ends_with_string" => cost(size(0)?.cost(STRING_FACTOR)),
        "in_list" => cost(size(1)?.max),
        "matches_string" => cost(matching(target?.size_or_unknown(), size(0)?)),
        "contains_string" => {
            let text = target?.size_or_unknown().cost(STRING_FACTOR);
            cost(text.saturating_mul(size(0)?.cost(STRING_FACTOR)))
        }
        "add_list" => sized(1, size(0)?.plus(size(1)?)),
        "add_string" | "add_bytes" => {
            let sum = size(0)?.plus(size(1)?);
            sized(sum.cost(STRING_FACTOR), sum)
        }
        overload if compares(overload) => {
            cost(scale(size(0)?.max.min(size(1)?.max), STRING_FACTOR))
        }
        _ => None,
    }
}
