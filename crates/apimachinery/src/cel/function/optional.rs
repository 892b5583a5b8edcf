//! Values that may be missing.

use super::{Body, Table};
use crate::cel::ast::operator;
use crate::cel::value::{Failure, List, Outcome, Val};

pub(super) fn declare(table: &mut Table) {
    use Body::{BuiltIn, Typed};
    table.global("optional.of", "optional_of", "V -> optional(V)", Typed(of));
    table.global(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        "V -> optional(V)",
        Typed(of_non_zero),
    );
    table.global("optional.none", "optional_none", "-> optional(V)", Typed(|_| Ok(Val::NONE)));
    table.member("value", "optional_value", "optional(V) -> V", Typed(value));
    table.member("hasValue", "optional_hasValue", "optional(V) -> bool", Typed(has_value));
    table.member("or", "optional_or_optional", "optional(V), optional(V) -> optional(V)", BuiltIn);
    table.member("orValue", "optional_orValue_value", "optional(V), V -> V", BuiltIn);
    table.global(
        operator::OPTIONAL_SELECT,
        "select_optional_field",
        "dyn, string -> optional(V)",
        BuiltIn,
    );
    for (function, id, signature) in [
        (operator::OPTIONAL_INDEX, "list_optindex_optional_int", "list(V), int -> optional(V)"),
        (
            operator::OPTIONAL_INDEX,
            "optional_list_optindex_optional_int",
            "optional(list(V)), int -> optional(V)",
        ),
        (operator::OPTIONAL_INDEX, "map_optindex_optional_value", "map(K, V), K -> optional(V)"),
        (
            operator::OPTIONAL_INDEX,
            "optional_map_optindex_optional_value",
            "optional(map(K, V)), K -> optional(V)",
        ),
        (operator::INDEX, "optional_list_index_int", "optional(list(V)), int -> optional(V)"),
        (operator::INDEX, "optional_map_index_value", "optional(map(K, V)), K -> optional(V)"),
    ] {
        table.global(function, id, signature, BuiltIn);
    }
    table.member("first", "list_first", "list(V) -> optional(V)", Typed(first));
    table.member("last", "list_last", "list(V) -> optional(V)", Typed(last));
    table.global(
        "optional.unwrap",
        "optional_unwrap",
        "list(optional(V)) -> list(V)",
        Typed(unwrap),
    );
    table.member("unwrapOpt", "optional_unwrapOpt", "list(optional(V)) -> list(V)", Typed(unwrap));
}

fn of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::some(args[0].clone()))
}

fn of_non_zero<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(if args[0].is_zero() { Val::NONE } else { Val::some(args[0].clone()) })
}

fn value<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match &args[0] {
        Val::Optional(Some(value)) => Ok((**value).clone()),
        _ => Err(Failure::new("optional.none() dereference")),
    }
}

fn has_value<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(matches!(&args[0], Val::Optional(Some(_)))))
}

fn list<'a, 'v>(args: &'a [Val<'v>]) -> Result<&'a List<'v>, Failure> {
    match &args[0] {
        Val::List(list) => Ok(list),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn first<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let list = list(args)?;
    Ok(if list.len() == 0 { Val::NONE } else { Val::some(list.at(0)?) })
}

fn last<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let list = list(args)?;
    Ok(if list.len() == 0 { Val::NONE } else { Val::some(list.at(list.len() - 1)?) })
}

fn unwrap<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut present = Vec::new();
    for item in list(args)?.iter() {
        match item? {
            Val::Optional(Some(value)) => present.push((*value).clone()),
            Val::Optional(None) => {}
            other => return Err(Failure::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Val::list(present))
}
