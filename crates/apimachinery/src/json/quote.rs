//! Text between quotes as Go's `%q` prints it.

use super::printable::is_printable;

/// The string between double quotes, as `strconv.Quote` and `%q` print it.
///
/// What Go's Unicode tables call printable stands as it is; all else is escaped.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        push_escaped(&mut quoted, character, '"');
    }
    quoted.push('"');
    quoted
}

/// A byte between single quotes, as Go's JSON decoder names the one it did not expect.
///
/// A byte outside ASCII is named as if it were the Latin-1 character of that number.
pub fn go_quote_byte(byte: u8) -> String {
    let mut quoted = String::from("'");
    push_escaped(&mut quoted, char::from(byte), '\'');
    quoted.push('\'');
    quoted
}

fn push_escaped(out: &mut String, character: char, quote: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        c if c == quote => out.extend(['\\', c]),
        c if is_printable(c) => out.push(c),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c @ ('\0'..=' ' | '\u{7f}') => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c @ '\u{80}'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
    }
}
