//! Writing JSON byte for byte as Go's `encoding/json` does.

use serde_json::{Number, Value};

use super::run;

/// The value as Go's `encoding/json` writes it, keys in the order they stand in the tree.
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), indent: None };
    writer.value(value, 0);
    writer.out
}

/// Writes [`to_string`] of a value behind what `out` holds.
pub fn append(out: &mut String, value: &Value) {
    let mut writer = Writer { out: std::mem::take(out), indent: None };
    writer.value(value, 0);
    *out = writer.out;
}

/// Writes a text as JSON behind what `out` holds.
pub fn append_text(out: &mut String, text: &str) {
    let mut writer = Writer { out: std::mem::take(out), indent: None };
    writer.string(text);
    *out = writer.out;
}

/// [`to_string`] as bytes.
pub fn to_vec(value: &Value) -> Vec<u8> {
    to_string(value).into_bytes()
}

/// [`to_string`] over lines, two spaces a level, as the API server answers `?pretty=true`.
pub fn to_string_pretty(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), indent: Some("  ") };
    writer.value(value, 0);
    writer.out
}

/// The shortest text that reads back as the same number, as `%v` prints it: with an exponent, of
/// at least two digits, from a million on and below a ten-thousandth.
pub fn go_float(value: f64) -> String {
    let number = Shortest::of(value);
    match number.exponent() {
        -4..=5 => number.plain(),
        exponent => number.scientific(&format!("{exponent:+03}")),
    }
}

/// The same in JSON, where more is spelled out and the exponent is not padded.
fn json_float(value: f64) -> String {
    let number = Shortest::of(value);
    match number.exponent() {
        -6..=20 => number.plain(),
        exponent => number.scientific(&format!("{exponent:+}")),
    }
}

/// The fewest digits that tell a float from its neighbours.
struct Shortest {
    negative: bool,
    /// No zeros on either side, except for zero itself.
    digits: String,
    /// Where the point is, counted from before the first digit.
    point: i32,
}

impl Shortest {
    fn of(value: f64) -> Self {
        // Of two shortest texts that are equally near, `std` takes the greater and Go the even
        // one, as `serde_json` does; so the digits come from there.
        let text = Number::from_f64(value).map_or_else(|| "0".to_owned(), |n| n.to_string());
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text.as_str()),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().expect("an exponent is a small number");
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let point = (whole.len() + digits.len()) as i32 - all.len() as i32 + exponent;
        match digits.trim_end_matches('0') {
            "" => Shortest { negative, digits: "0".to_owned(), point: 1 },
            digits => Shortest { negative, digits: digits.to_owned(), point },
        }
    }

    fn exponent(&self) -> i32 {
        self.point - 1
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    fn plain(&self) -> String {
        let (sign, digits, length) = (self.sign(), &self.digits, self.digits.len() as i32);
        if self.point <= 0 {
            return format!("{sign}0.{}{digits}", "0".repeat(self.point.unsigned_abs() as usize));
        }
        if self.point >= length {
            return format!("{sign}{digits}{}", "0".repeat((self.point - length) as usize));
        }
        let (whole, fraction) = digits.split_at(self.point as usize);
        format!("{sign}{whole}.{fraction}")
    }

    fn scientific(&self, exponent: &str) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{}{first}{point}{rest}e{exponent}", self.sign())
    }
}

struct Writer {
    out: String,
    indent: Option<&'static str>,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.enclosed(('[', ']'), items.iter(), depth, |writer, item| {
                    writer.value(item, depth + 1);
                });
            }
            Value::Object(fields) => {
                self.enclosed(('{', '}'), fields.iter(), depth, |writer, (key, value)| {
                    writer.string(key);
                    writer.out.push_str(if writer.indent.is_some() { ": " } else { ":" });
                    writer.value(value, depth + 1);
                });
            }
        }
    }

    fn enclosed<T>(
        &mut self,
        (open, close): (char, char),
        entries: impl ExactSizeIterator<Item = T>,
        depth: usize,
        write: impl Fn(&mut Self, T),
    ) {
        let is_empty = entries.len() == 0;
        self.out.push(open);
        for (n, entry) in entries.enumerate() {
            if n > 0 {
                self.out.push(',');
            }
            self.new_line(depth + 1);
            write(self, entry);
        }
        if !is_empty {
            self.new_line(depth);
        }
        self.out.push(close);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(indent, depth));
        }
    }

    fn number(&mut self, number: &Number) {
        match number.as_f64() {
            Some(value) if number.is_f64() => self.out.push_str(&json_float(value)),
            _ => self.out.push_str(&number.to_string()),
        }
    }

    /// HTML's special characters are escaped too: Go's encoder does so unless told otherwise,
    /// and the API server does not tell it.
    fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut rest = text;
        loop {
            // What is special is ASCII or the beginning of a character.
            let (plain, special) = rest.split_at(run::length(rest.as_bytes(), may_be_escaped));
            self.out.push_str(plain);
            let Some(character) = special.chars().next() else { break };
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                // The last two end lines in JavaScript.
                ..'\u{20}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    self.out.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
                plain => self.out.push(plain),
            }
            rest = &special[character.len_utf8()..];
        }
        self.out.push('"');
    }
}

/// Whether something begins with a byte that is not written as it is; of characters beyond ASCII
/// only some that begin so.
fn may_be_escaped(byte: u8) -> bool {
    let is_named =
        (byte == b'"') | (byte == b'\\') | (byte == b'<') | (byte == b'>') | (byte == b'&');
    (byte < 0x20) | is_named | (byte == 0xe2)
}
