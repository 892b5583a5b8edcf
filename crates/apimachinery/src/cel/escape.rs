//! Names of properties as expressions write them.
//!
//! A property called `x-y` is `x__dash__y`, one called `namespace` is `__namespace__`: names must
//! be identifiers and none of the language's own words.

use std::borrow::Cow;

/// Words that no property can be called by directly.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const REPLACED: &[(&str, &str)] =
    &[("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// Whether it is one of the language's own words.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether an expression may call something so.
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(text)
}

/// The name in an expression; `None` when there is no way to write it.
pub(crate) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.bytes().all(is_plain) && !name.contains("__") {
        return Some(name.into());
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        match REPLACED.iter().find(|(found, _)| rest.starts_with(found)) {
            Some((found, word)) => {
                escaped.push_str("__");
                escaped.push_str(word);
                escaped.push_str("__");
                rest = &rest[found.len()..];
            }
            None if c.is_ascii_alphanumeric() || c == '_' => {
                escaped.push(c);
                rest = &rest[1..];
            }
            None => return None,
        }
    }
    Some(escaped.into())
}

/// The property that a name in an expression means; `None` when it means none.
pub(super) fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(name.into());
    }
    let mut property = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        property.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let length = after.find('_').unwrap_or(after.len());
        if length == 0 || !after[length..].starts_with("__") {
            // No escape begins here.
            property.push('_');
            rest = &rest[start + 1..];
            continue;
        }
        let word = &after[..length];
        match REPLACED.iter().find(|(_, known)| *known == word) {
            Some((meant, _)) => property.push_str(meant),
            None if is_reserved(word) && name.len() == length + 4 => property.push_str(word),
            None => return None,
        }
        rest = &after[length + 2..];
    }
    property.push_str(rest);
    Some(property.into())
}
