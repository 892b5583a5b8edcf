//! Regular expressions. Patterns that are constants are compiled before; see [`with_pattern`].

use super::strings::{int, text};
use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};
use crate::regex::Regex;

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    table.global("matches", "matches", "string, string -> bool", Typed(compile));
    table.member("matches", "matches_string", "string, string -> bool", Typed(compile));
    table.member("find", "string_find_string", "string, string -> string", Typed(compile_find));
    table.member(
        "findAll",
        "string_find_all_string",
        "string, string -> list(string)",
        Typed(compile_find_all),
    );
    table.member(
        "findAll",
        "string_find_all_string_int",
        "string, string, int -> list(string)",
        Typed(compile_find_all),
    );
}

/// The functions whose second argument is a pattern.
pub(in crate::cel) fn takes_pattern(function: &str) -> bool {
    matches!(function, "matches" | "find" | "findAll")
}

/// Calls one of the functions with its pattern compiled.
pub(in crate::cel) fn with_pattern<'v>(
    function: &str,
    pattern: &Regex,
    args: &[Val<'v>],
) -> Outcome<'v> {
    let text = text(args, 0)?;
    Ok(match function {
        "matches" => Val::Bool(pattern.is_match(text)),
        "find" => Val::text(pattern.find(text).unwrap_or_default()),
        _ => {
            let limit = if args.len() == 3 { int(args, 2)? } else { -1 };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Val::list(pattern.find_all(text).take(limit).map(Val::text).collect())
        }
    })
}

fn compile<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let pattern = Regex::new(text(args, 1)?).map_err(|error| Failure::new(error.to_string()))?;
    with_pattern("matches", &pattern, args)
}

fn compile_find<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    with_pattern("find", &illegal_or(text(args, 1)?)?, args)
}

fn compile_find_all<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    with_pattern("findAll", &illegal_or(text(args, 1)?)?, args)
}

fn illegal_or(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| Failure::new(format!("Illegal regex: {error}")))
}
