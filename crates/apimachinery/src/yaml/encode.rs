//! Writing a tree as `kubectl get -o yaml` prints it.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::scalar::Scalar;
use crate::json;

/// The tree as YAML: keys sorted, lists not indented, long lines left long.
///
/// Keys sort as people sort, `a2` before `a10`. What would read back as something else is quoted.
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer { out: String::new() };
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.mapping(fields, 0, false),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0, false),
        scalar => {
            writer.scalar(scalar, 0);
            writer.end_line();
        }
    }
    writer.out
}

/// Levels are steps of two spaces.
const INDENT: &str = "  ";

struct Writer {
    out: String,
}

impl Writer {
    /// `inline` when the first key goes on the line that is there already.
    fn mapping(&mut self, fields: &Map<String, Value>, level: usize, mut inline: bool) {
        for (key, value) in sorted(fields) {
            self.indent(level, &mut inline);
            // Upstream gives a long key a line of its own.
            let is_simple = key.len() <= 128 && !key.contains('\n');
            if is_simple {
                self.out.push_str(&text(key, Place::Key));
                self.out.push(':');
            } else {
                self.out.push_str("? ");
                self.text(key, level + 1);
                self.end_line();
                self.indent(level, &mut false);
                self.out.push(':');
            }
            match value {
                Value::Object(fields) if !fields.is_empty() && is_simple => {
                    self.end_line();
                    self.mapping(fields, level + 1, false);
                }
                Value::Array(items) if !items.is_empty() && is_simple => {
                    self.end_line();
                    self.sequence(items, level, false);
                }
                value => {
                    self.out.push(' ');
                    self.inline(value, level + 1);
                }
            }
        }
    }

    fn sequence(&mut self, items: &[Value], level: usize, mut inline: bool) {
        for item in items {
            self.indent(level, &mut inline);
            self.out.push_str("- ");
            self.inline(item, level + 1);
        }
    }

    /// A value that begins on the line that is there already.
    fn inline(&mut self, value: &Value, level: usize) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.mapping(fields, level, true),
            Value::Array(items) if !items.is_empty() => self.sequence(items, level, true),
            scalar => {
                self.scalar(scalar, level);
                self.end_line();
            }
        }
    }

    fn scalar(&mut self, value: &Value, level: usize) {
        match value {
            Value::String(string) => self.text(string, level),
            Value::Number(number) if number.is_f64() => {
                // Upstream reads the number as JSON has it, and prints what it reads.
                let json = json::to_string(value);
                match Scalar::of_plain(&json) {
                    Scalar::Float(float) => self.out.push_str(&json::go_float(float)),
                    _ => self.out.push_str(&json),
                }
            }
            other => self.out.push_str(&json::to_string(other)),
        }
    }

    /// A text as a value: over lines of its own when it has several.
    fn text(&mut self, string: &str, level: usize) {
        if !string.contains('\n') || !Analysis::of(string).block_allowed {
            self.out.push_str(&text(string, Place::Value));
            return;
        }
        self.out.push('|');
        if string.starts_with([' ', '\n']) {
            self.out.push('2');
        }
        if !string.ends_with('\n') {
            self.out.push('-');
        } else if string.ends_with("\n\n") || string == "\n" {
            self.out.push('+');
        }
        self.out.push('\n');
        // At the top there is no level to be under, but the lines must still be indented.
        for line in string.split_inclusive('\n') {
            if line != "\n" {
                self.indent(level.max(1), &mut false);
            }
            self.out.push_str(line);
        }
    }

    fn indent(&mut self, level: usize, inline: &mut bool) {
        if !std::mem::take(inline) {
            self.out.extend(std::iter::repeat_n(INDENT, level));
        }
    }

    fn end_line(&mut self) {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Value,
}

/// A text on one line: as it is, or between the lightest quotes that will do.
fn text(string: &str, place: Place) -> String {
    let analysis = Analysis::of(string);
    let means_text = Scalar::of_plain(string) == Scalar::Text && !is_base_60(string);
    if !means_text || string.contains('\n') {
        return double_quoted(string);
    }
    // Upstream writes such a key bare, and reads it back as a merge.
    let would_merge = place == Place::Key && string == "<<";
    if analysis.plain_allowed && !would_merge {
        return string.to_owned();
    }
    match analysis.single_quotes_allowed {
        true => format!("'{}'", string.replace('\'', "''")),
        false => double_quoted(string),
    }
}

/// What the characters of a text allow.
struct Analysis {
    plain_allowed: bool,
    single_quotes_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    fn of(string: &str) -> Self {
        let has_special = !string.chars().all(is_printable);
        let space_before_break = string.contains(" \n");
        let space_after_break = string.contains("\n ");
        let has_other_break = string.contains(['\u{2028}', '\u{2029}']);
        let at_edge =
            |string: &str| string.starts_with([' ', '\n']) || string.ends_with([' ', '\n']);
        let quotable = !has_special && !space_before_break && !has_other_break;
        Analysis {
            plain_allowed: quotable && !at_edge(string) && !has_indicator(string),
            single_quotes_allowed: quotable && !space_after_break,
            block_allowed: quotable && !string.ends_with(' '),
        }
    }
}

/// Whether a part of the text would mean something outside quotes.
fn has_indicator(string: &str) -> bool {
    let bytes = string.as_bytes();
    let blank = |at: usize| bytes.get(at).is_none_or(|c| b" \t".contains(c));
    match bytes {
        [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..] => return true,
        [first, ..] if b"#,[]{}&*!|>'\"%@`".contains(first) => return true,
        [b'?' | b':' | b'-', ..] if blank(1) => return true,
        _ => {}
    }
    (1..bytes.len()).any(|at| match bytes[at] {
        b':' => blank(at + 1),
        b'#' => b" \t\n".contains(&bytes[at - 1]),
        _ => false,
    })
}

fn is_printable(character: char) -> bool {
    matches!(
        character,
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}

fn double_quoted(string: &str) -> String {
    // Upstream's test for a mark of byte order looks at the start of the text each time.
    let has_mark = string.starts_with('\u{feff}');
    let mut quoted = String::from("\"");
    for character in string.chars() {
        let is_plain = is_printable(character) && !has_mark;
        match character {
            '\0' => quoted.push_str("\\0"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\u{1b}' => quoted.push_str("\\e"),
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            c if is_plain => quoted.push(c),
            '\u{a0}' => quoted.push_str("\\_"),
            c @ '\0'..='\u{ff}' => quoted.push_str(&format!("\\x{:02X}", u32::from(c))),
            c @ '\0'..='\u{ffff}' => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// `190:20:30`, which YAML 1.1 reads as a number of seconds.
fn is_base_60(string: &str) -> bool {
    let unsigned = string.strip_prefix(['-', '+']).unwrap_or(string);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let Some((first, rest)) = whole.split_once(':') else { return false };
    let is_digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    let is_sixtieth =
        |text: &str| matches!(text.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    first.starts_with(|c: char| c.is_ascii_digit())
        && is_digits(first)
        && rest.split(':').all(is_sixtieth)
        && is_digits(fraction)
}

/// Fields in the order of [`compare_keys`].
///
/// A merge sort of our own: upstream's order is made for people and nothing says that it is one
/// in every case, and `sort_by` may panic when it is not.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut runs: Vec<Vec<(&String, &Value)>> = fields.iter().map(|field| vec![field]).collect();
    while runs.len() > 1 {
        runs = runs
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => merge(left, right),
                _ => pair.concat(),
            })
            .collect();
    }
    runs.pop().unwrap_or_default()
}

fn merge<'a>(
    mut left: &[(&'a String, &'a Value)],
    mut right: &[(&'a String, &'a Value)],
) -> Vec<(&'a String, &'a Value)> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        if compare_keys(second.0, first.0).is_lt() {
            merged.push(*second);
            right = right_rest;
        } else {
            merged.push(*first);
            left = left_rest;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    merged
}

/// Letters after all else, runs of digits by their number.
fn compare_keys(a: &str, b: &str) -> Ordering {
    let shared = a.chars().zip(b.chars()).take_while(|(x, y)| x == y);
    let common: usize = shared.map(|(x, _)| x.len_utf8()).sum();
    let (Some(x), Some(y)) = (a[common..].chars().next(), b[common..].chars().next()) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero that follows other digits of a number is one of its digits, not a leading one.
    let before = a[..common].trim_end_matches(|c: char| c.is_ascii_digit());
    let continues = (x == '0' || y == '0') && a[before.len()..common].contains(|c| c != '0');
    let (an, a_count) = digits_at(&a[common..], continues);
    let (bn, b_count) = digits_at(&b[common..], continues);
    an.cmp(&bn).then(a_count.cmp(&b_count)).then(x.cmp(&y))
}

/// The number that a text begins with, and how many digits that is.
fn digits_at(text: &str, continues: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((i64::from(continues), 0), |(number, count), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), count + 1)
    })
}
