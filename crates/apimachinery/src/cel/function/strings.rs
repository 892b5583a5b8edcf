//! Strings. Positions count characters.

use super::{Body, Table, format};
use crate::cel::value::{Failure, Outcome, TEXT_BYTES_MAX, Text, Val};

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    table.member("contains", "contains_string", "string, string -> bool", Typed(contains));
    table.member("endsWith", "ends_with_string", "string, string -> bool", Typed(ends_with));
    table.member("startsWith", "starts_with_string", "string, string -> bool", Typed(starts_with));
    table.member("charAt", "string_char_at_int", "string, int -> string", Typed(char_at));
    let index = |table: &mut Table, name: &'static str, id: &str, body| {
        table.member(name, format!("string_{id}_of_string"), "string, string -> int", Typed(body));
        let id = format!("string_{id}_of_string_int");
        table.member(name, id, "string, string, int -> int", Typed(body));
    };
    index(table, "indexOf", "index", index_of);
    index(table, "lastIndexOf", "last_index", last_index_of);
    table.member("lowerAscii", "string_lower_ascii", "string -> string", Typed(lower_ascii));
    table.member("upperAscii", "string_upper_ascii", "string -> string", Typed(upper_ascii));
    table.member(
        "replace",
        "string_replace_string_string",
        "string, string, string -> string",
        Typed(replace),
    );
    table.member(
        "replace",
        "string_replace_string_string_int",
        "string, string, string, int -> string",
        Typed(replace),
    );
    table.member("split", "string_split_string", "string, string -> list(string)", Typed(split));
    table.member(
        "split",
        "string_split_string_int",
        "string, string, int -> list(string)",
        Typed(split),
    );
    table.member("substring", "string_substring_int", "string, int -> string", Typed(substring));
    table.member(
        "substring",
        "string_substring_int_int",
        "string, int, int -> string",
        Typed(substring),
    );
    table.member("trim", "string_trim", "string -> string", Typed(trim));
    table.member("format", "string_format", "string, list(dyn) -> string", Typed(format::format));
    table.global("strings.quote", "strings_quote", "string -> string", Typed(quote));
    table.member("join", "list_join", "list(string) -> string", Typed(join));
    table.member("join", "list_join_string", "list(string), string -> string", Typed(join));
}

/// The text at a position among the arguments, where the type says there is one.
pub(super) fn text<'a>(args: &'a [Val<'_>], at: usize) -> Result<&'a str, Failure> {
    match args.get(at) {
        Some(Val::String(text)) => Ok(text),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

pub(super) fn int(args: &[Val<'_>], at: usize) -> Result<i64, Failure> {
    match args.get(at) {
        Some(Val::Int(value)) => Ok(*value),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn out_of_range(index: i64) -> Failure {
    Failure::new(format!("index out of range: {index}"))
}

fn contains<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(text(args, 0)?.contains(text(args, 1)?)))
}

fn ends_with<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(text(args, 0)?.ends_with(text(args, 1)?)))
}

fn starts_with<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(text(args, 0)?.starts_with(text(args, 1)?)))
}

fn char_at<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, index) = (text(args, 0)?, int(args, 1)?);
    let at = usize::try_from(index).map_err(|_| out_of_range(index))?;
    match text.chars().nth(at) {
        Some(c) => Ok(Val::text(c.to_string())),
        None if at == text.chars().count() => Ok(Val::borrowed("")),
        None => Err(out_of_range(index)),
    }
}

fn index_of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, sought) = (text(args, 0)?, text(args, 1)?);
    let offset = if args.len() == 3 { int(args, 2)? } else { 0 };
    if sought.is_empty() {
        return Ok(Val::Int(offset));
    }
    let start = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let Some((bytes, _)) = text.char_indices().nth(start) else { return Ok(Val::Int(-1)) };
    let found = text[bytes..].find(sought);
    Ok(Val::Int(found.map_or(-1, |at| text[..bytes + at].chars().count() as i64)))
}

fn last_index_of<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, sought) = (text(args, 0)?, text(args, 1)?);
    let length = text.chars().count() as i64;
    let offset = if args.len() == 3 { int(args, 2)? } else { length - 1 };
    if sought.is_empty() {
        return Ok(Val::Int(if args.len() == 3 { offset } else { length }));
    }
    if args.len() == 2 && text.len() < sought.len() {
        return Ok(Val::Int(-1));
    }
    let last = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    if offset >= length {
        return Ok(Val::Int(-1));
    }
    // Whatever begins at the offset or before it.
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let found =
        (0..=last.min(starts.len() - 1)).rev().find(|at| text[starts[*at]..].starts_with(sought));
    Ok(Val::Int(found.map_or(-1, |at| at as i64)))
}

fn lower_ascii<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::text(text(args, 0)?.to_ascii_lowercase()))
}

fn upper_ascii<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::text(text(args, 0)?.to_ascii_uppercase()))
}

fn replace<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, from, to) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
    let count = if args.len() == 4 { int(args, 3)? } else { -1 };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let found = text.matches(from).take(count).count();
    if found.saturating_mul(to.len()) > TEXT_BYTES_MAX {
        return Err(Failure::CostLimit);
    }
    Ok(Val::text(text.replacen(from, to, count)))
}

fn split<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, separator) = (text(args, 0)?, text(args, 1)?);
    let limit = if args.len() == 3 { int(args, 2)? } else { -1 };
    let parts: Vec<&str> = match usize::try_from(limit) {
        Ok(0) => Vec::new(),
        limit if separator.is_empty() => characters(text, limit.ok()),
        Ok(limit) => text.splitn(limit, separator).collect(),
        Err(_) => text.split(separator).collect(),
    };
    Ok(Val::list(parts.into_iter().map(Val::text).collect()))
}

/// Character by character; the last part takes what is beyond the limit.
fn characters(text: &str, limit: Option<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if limit.is_some_and(|limit| parts.len() + 1 >= limit) {
            parts.push(rest);
            break;
        }
        let (part, after) = rest.split_at(c.len_utf8());
        parts.push(part);
        rest = after;
    }
    parts
}

fn substring<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let (text, start) = (text(args, 0)?, int(args, 1)?);
    let length = text.chars().count();
    let end = if args.len() == 3 { int(args, 2)? } else { length as i64 };
    if args.len() == 3 && start > end {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Failure::new(message));
    }
    let within = |index: i64| {
        usize::try_from(index).ok().filter(|at| *at <= length).ok_or_else(|| out_of_range(index))
    };
    let (start, end) = (within(start)?, within(end)?);
    Ok(Val::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

fn trim<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    // Go knows the same white space as Unicode's property.
    match &args[0] {
        Val::String(Text::Borrowed(text)) => Ok(Val::borrowed(text.trim())),
        _ => Ok(Val::text(text(args, 0)?.trim())),
    }
}

fn quote<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let mut quoted = String::from("\"");
    for c in text(args, 0)?.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(Val::text(quoted))
}

fn join<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let Val::List(list) = &args[0] else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let separator = if args.len() == 2 { text(args, 1)? } else { "" };
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        match item? {
            Val::String(item) => {
                if index > 0 {
                    joined.push_str(separator);
                }
                joined.push_str(&item);
                if joined.len() > TEXT_BYTES_MAX {
                    return Err(Failure::CostLimit);
                }
            }
            other => return Err(Failure::new(format!("join: invalid input: {other}"))),
        }
    }
    Ok(Val::text(joined))
}
