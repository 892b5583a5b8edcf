//! Writing JSON byte for byte as Go's `encoding/json` does.

use serde_json::{Number, Value};

/// The value as Go's `encoding/json` writes it, keys in the order they stand in the tree.
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), indent: None };
    writer.value(value, 0);
    writer.out
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

/// The shortest text that reads back as the same number, as `%v` prints it: with an exponent of
/// at least two digits for numbers that are very large or small.
pub fn go_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e21).contains(&magnitude) {
        return format!("{value}");
    }
    let (digits, sign, exponent) = scientific(value);
    format!("{digits}e{sign}{exponent:02}")
}

/// The same in JSON, where small numbers are spelled out a little longer and the exponent is not
/// padded.
fn json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return format!("{value}");
    }
    let (digits, sign, exponent) = scientific(value);
    // Go takes the padding back only from negative exponents; positive ones have two digits.
    format!("{digits}e{sign}{exponent}")
}

fn scientific(value: f64) -> (String, char, u32) {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the format has a number there");
    (digits.to_owned(), if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
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
        let mut written = 0;
        for (at, character) in text.char_indices() {
            let escape = match character {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\u{8}' => "\\b",
                '\u{c}' => "\\f",
                '\n' => "\\n",
                '\r' => "\\r",
                '\t' => "\\t",
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => "",
                _ => continue,
            };
            self.out.push_str(&text[written..at]);
            match escape {
                "" => self.out.push_str(&format!("\\u{:04x}", u32::from(character))),
                short => self.out.push_str(short),
            }
            written = at + character.len_utf8();
        }
        self.out.push_str(&text[written..]);
        self.out.push('"');
    }
}
