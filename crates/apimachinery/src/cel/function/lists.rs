//! Lists and sets.

use std::cmp::Ordering;

use super::strings::int;
use super::{Body, COMPARABLE, Table, operators};
use crate::cel::value::{Failure, List, Outcome, Val};

pub(super) fn declare(table: &mut Table) {
    use Body::{Any, Typed};
    for type_ in COMPARABLE {
        let list = format!("list({type_})");
        let to = |result: &str| format!("{list} -> {result}");
        table.member(
            "isSorted",
            format!("list_{type_}_is_sorted_bool"),
            &to("bool"),
            Typed(is_sorted),
        );
        table.member("max", format!("list_{type_}_max_{type_}"), &to(type_), Typed(max));
        table.member("min", format!("list_{type_}_min_{type_}"), &to(type_), Typed(min));
        let name = match type_ {
            "duration" => "google.protobuf.Duration",
            "timestamp" => "google.protobuf.Timestamp",
            other => other,
        };
        table.member("sort", format!("list_{name}_sort"), &to(&list), Any(sort));
        table.member(
            "@sortByAssociatedKeys",
            format!("list_{name}_sortByAssociatedKeys"),
            &format!("list(T), {list} -> list(T)"),
            Any(sort_by_keys),
        );
    }
    for (type_, body) in [
        ("int", Typed(|args| sum(args, Val::Int(0)))),
        ("uint", Typed(|args| sum(args, Val::Uint(0)))),
        ("double", Typed(|args| sum(args, Val::Double(0.0)))),
        ("duration", Typed(|args| sum(args, Val::Duration(0)))),
    ] {
        let signature = format!("list({type_}) -> {type_}");
        table.member("sum", format!("list_{type_}_sum_{type_}"), &signature, body);
    }
    table.member("indexOf", "list_a_index_of_int", "list(A), A -> int", Typed(index_of));
    table.member(
        "lastIndexOf",
        "list_a_last_index_of_int",
        "list(A), A -> int",
        Typed(last_index_of),
    );
    table.member("slice", "list_slice", "list(T), int, int -> list(T)", Typed(slice));
    table.member("flatten", "list_flatten", "list(list(T)) -> list(T)", Typed(flatten));
    table.member("flatten", "list_flatten_int", "list(dyn), int -> list(dyn)", Typed(flatten));
    table.global("lists.range", "lists_range", "int -> list(int)", Typed(range));
    table.member("reverse", "list_reverse", "list(T) -> list(T)", Typed(reverse));
    table.member("distinct", "list_distinct", "list(T) -> list(T)", Typed(distinct));

    let sets = "list(T), list(T) -> bool";
    table.global("sets.contains", "list_sets_contains_list", sets, Typed(set_contains));
    table.global("sets.equivalent", "list_sets_equivalent_list", sets, Typed(set_equivalent));
    table.global("sets.intersects", "list_sets_intersects_list", sets, Typed(set_intersects));
}

fn list<'a, 'v>(args: &'a [Val<'v>], at: usize) -> Result<&'a List<'v>, Failure> {
    match args.get(at) {
        Some(Val::List(list)) => Ok(list),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn is_sorted<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut previous: Option<Val<'_>> = None;
    for item in list(args, 0)?.iter() {
        let item = item?;
        // What cannot be compared is as good as sorted.
        if previous.is_some_and(|previous| previous.compare(&item) == Ok(Ordering::Greater)) {
            return Ok(Val::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Val::Bool(true))
}

fn max<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    extreme(list(args, 0)?, Ordering::Less, "max")
}

fn min<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    extreme(list(args, 0)?, Ordering::Greater, "min")
}

/// The first item that no other one displaces.
fn extreme<'v>(list: &List<'v>, displaced_when: Ordering, name: &str) -> Outcome<'v> {
    let mut found: Option<Val<'v>> = None;
    for item in list.iter() {
        let item = item?;
        if found.as_ref().is_none_or(|found| found.compare(&item) == Ok(displaced_when)) {
            found = Some(item);
        }
    }
    found.ok_or_else(|| Failure::new(format!("{name} called on empty list")))
}

fn sum<'v>(args: &[Val<'v>], zero: Val<'v>) -> Outcome<'v> {
    list(args, 0)?.iter().try_fold(zero, |sum, item| operators::add(&[sum, item?]))
}

fn index_of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut items = list(args, 0)?.iter();
    let found = items.position(|item| item.is_ok_and(|item| item.equals(&args[1]) == Some(true)));
    Ok(Val::Int(found.map_or(-1, |at| at as i64)))
}

fn last_index_of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let list = list(args, 0)?;
    let is_equal = |at: &usize| list.at(*at).is_ok_and(|item| item.equals(&args[1]) == Some(true));
    let found = (0..list.len()).rev().find(is_equal);
    Ok(Val::Int(found.map_or(-1, |at| at as i64)))
}

fn slice<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (list, start, end) = (list(args, 0)?, int(args, 1)?, int(args, 2)?);
    let length = list.len();
    let wrong = |why: String| Failure::new(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(wrong("negative indexes not supported".to_owned()));
    };
    if from > to {
        return Err(wrong("start index must be less than or equal to end index".to_owned()));
    }
    if to > length {
        return Err(wrong(format!("list is length {length}")));
    }
    let items: Result<_, _> = (from..to).map(|at| list.at(at)).collect();
    Ok(Val::list(items?))
}

fn flatten<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let depth = if args.len() == 2 { int(args, 1)? } else { 1 };
    if depth < 0 {
        return Err(Failure::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list(args, 0)?, depth, &mut flat)?;
    Ok(Val::list(flat))
}

fn flatten_into<'v>(list: &List<'v>, depth: i64, flat: &mut Vec<Val<'v>>) -> Result<(), Failure> {
    for item in list.iter() {
        match item? {
            Val::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat)?,
            item => flat.push(item),
        }
    }
    Ok(())
}

/// A number costs one, and a rule may cost a million.
const RANGE_MAX: i64 = 1_000_000;

fn range<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let end = int(args, 0)?;
    // More than anybody may pay for, before it is made.
    if end > RANGE_MAX {
        return Err(Failure::CostLimit);
    }
    Ok(Val::list((0..end).map(Val::Int).collect()))
}

fn reverse<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut items = list(args, 0)?.to_vec()?;
    items.reverse();
    Ok(Val::list(items))
}

fn distinct<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut unique: Vec<Val<'v>> = Vec::new();
    for item in list(args, 0)?.iter() {
        let item = item?;
        if !unique.iter().any(|known| item.equals(known) == Some(true)) {
            unique.push(item);
        }
    }
    Ok(Val::list(unique))
}

fn sort<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    sorted(list(args, 0).map_err(|_| Failure::no_function("sort"))?, &args[0])
}

fn sort_by_keys<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let name = "@sortByAssociatedKeys";
    sorted(list(args, 0).map_err(|_| Failure::no_function(name))?, &args[1])
}

fn sorted<'v>(list: &List<'v>, keys: &Val<'v>) -> Outcome<'v> {
    let Val::List(keys) = keys else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let (items, keys) = (list.to_vec()?, keys.to_vec()?);
    if items.len() != keys.len() {
        let (items, keys) = (items.len(), keys.len());
        return Err(Failure::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {items} and {keys} elements respectively"
        )));
    }
    let Some(first) = keys.first() else { return Ok(Val::List(list.clone())) };
    if !first.is_comparable() {
        return Err(Failure::new("list elements must be comparable"));
    }
    if keys.len() > 1 && keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Failure::new("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| keys[*a].compare(&keys[*b]).unwrap_or(Ordering::Equal));
    Ok(Val::list(order.into_iter().map(|at| items[at].clone()).collect()))
}

fn set_contains<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    all_in(list(args, 1)?, list(args, 0)?)
}

fn set_equivalent<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match all_in(list(args, 1)?, list(args, 0)?)? {
        Val::Bool(true) => all_in(list(args, 0)?, list(args, 1)?),
        no => Ok(no),
    }
}

fn all_in<'v>(some: &List<'v>, list: &List<'v>) -> Outcome<'v> {
    for item in some.iter() {
        if !list.contains(&item?)? {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn set_intersects<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (a, b) = (list(args, 0)?, list(args, 1)?);
    for item in a.iter() {
        if b.contains(&item?) == Ok(true) {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}
