//! Reading JSON: one pass, bounded depth, Go's words for what is wrong.
//!
//! This is a parser of our own because three things clients can see are decided inside one: the
//! text of a syntax error, what becomes of duplicate keys, and what becomes of text that is not
//! Unicode (Go puts U+FFFD in its place and goes on).

use std::fmt::Write;

use serde_json::{Map, Number, Value};

use super::quote::go_quote_byte;
use super::run;
use super::strict::{AnyShape, Shape, Violation, Violations};

/// How deep arrays and objects may nest.
///
/// Upstream stops at 10,000. Every walker over a tree here is recursive, so the bound is what
/// keeps them off the end of a 2 MiB stack; the deepest real objects, definitions of custom
/// resources that embed a pod template, nest about 60 levels.
pub const DEPTH_MAX: usize = 128;

/// A document, and what a strict reader would have refused in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// In the order of the document.
    pub violations: Vec<Violation>,
}

/// Why a document is not read. Displays as Go's decoder words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{message}")]
    Syntax { message: String, offset: usize },
    /// Well-formed, but more than a 64-bit float holds.
    #[error("json: cannot unmarshal number {literal} into Go value of type float64")]
    NumberOutOfRange { literal: String },
}

/// Reads one document of any shape. Of keys given twice the last wins, and each is reported.
///
/// Takes time linear in the input, however it is made.
pub fn decode(input: &[u8]) -> Result<Decoded, DecodeError> {
    decode_shaped(input, AnyShape)
}

/// Reads one document of a known shape, so that unknown fields are reported among the duplicate
/// ones in the order of the document, as upstream reports them for its own types.
///
/// Unknown fields stay in the tree; nothing inside them is reported.
pub fn decode_shaped<S: Shape>(input: &[u8], shape: S) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder {
        input,
        at: 0,
        depth: 0,
        path: String::new(),
        violations: Violations::default(),
        out_of_range: None,
    };
    decoder.skip_space();
    let value = decoder.value(Some(shape))?;
    decoder.skip_space();
    if decoder.at < input.len() {
        return Err(decoder.unexpected("after top-level value"));
    }
    // Go looks at the grammar of the whole document before it converts a single number.
    match decoder.out_of_range {
        Some(literal) => Err(DecodeError::NumberOutOfRange { literal }),
        None => Ok(Decoded { value, violations: decoder.violations.into_vec() }),
    }
}

struct Decoder<'a> {
    input: &'a [u8],
    at: usize,
    depth: usize,
    /// Where we are, as violations print it; grown and cut back, never rebuilt.
    path: String,
    violations: Violations,
    out_of_range: Option<String>,
}

impl Decoder<'_> {
    /// `shape` is absent inside values that upstream skips: nothing is reported there.
    fn value<S: Shape>(&mut self, shape: Option<S>) -> Result<Value, DecodeError> {
        match self.peek() {
            Some(b'{') => self.nested(|decoder| decoder.object(shape)),
            Some(b'[') => self.nested(|decoder| decoder.array(shape)),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, DecodeError>,
    ) -> Result<Value, DecodeError> {
        if self.depth == DEPTH_MAX {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object<S: Shape>(&mut self, shape: Option<S>) -> Result<Value, DecodeError> {
        let mut object = Map::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(object));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.skip_space();

            let base = self.path.len();
            let field = self.enter_field(&object, &key, shape);
            let value = self.value(field)?;
            self.path.truncate(base);
            object.insert(key, value);

            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(object));
            }
            if !self.take(b',') {
                return Err(self.unexpected("after object key:value pair"));
            }
            self.skip_space();
        }
    }

    /// Steps the path into a field, reports what is wrong with its name, and gives its shape.
    fn enter_field<S: Shape>(
        &mut self,
        object: &Map<String, Value>,
        key: &str,
        shape: Option<S>,
    ) -> Option<S> {
        let shape = shape.filter(|shape| !shape.is_opaque())?;
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        let field = shape.field(key);
        match field {
            None => self.violations.add(&self.path, Violation::UnknownField),
            Some(_) if object.contains_key(key) => {
                self.violations.add(&self.path, Violation::DuplicateField);
            }
            Some(_) => {}
        }
        field
    }

    fn array<S: Shape>(&mut self, shape: Option<S>) -> Result<Value, DecodeError> {
        let item_shape = shape.filter(|shape| !shape.is_opaque()).map(Shape::item);
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let base = self.path.len();
            if item_shape.is_some() {
                write!(self.path, "[{}]", items.len()).expect("a string takes all text");
            }
            items.push(self.value(item_shape)?);
            self.path.truncate(base);

            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("after array element"));
            }
            self.skip_space();
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, DecodeError> {
        for expected in word.bytes() {
            if !self.take(expected) {
                let expected = char::from(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, DecodeError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') && !self.take_digits() {
            return Err(self.unexpected("in numeric literal"));
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            if !self.take_digits() {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            whole = false;
            if !self.take(b'+') {
                self.take(b'-');
            }
            if !self.take_digits() {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
        }
        let literal = str::from_utf8(&self.input[start..self.at]).expect("digits are ASCII");
        if whole && let Ok(integer) = literal.parse::<i64>() {
            return Ok(Value::Number(integer.into()));
        }
        let float = literal.parse::<f64>().expect("the grammar of JSON numbers is Rust's too");
        match Number::from_f64(float) {
            Some(number) => Ok(Value::Number(number)),
            None => {
                self.out_of_range.get_or_insert_with(|| literal.to_owned());
                Ok(Value::Null)
            }
        }
    }

    fn string(&mut self) -> Result<String, DecodeError> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let rest = &self.input[self.at..];
            let run = run::length(rest, |c| (c < 0x20) | (c == b'"') | (c == b'\\'));
            text.extend_from_slice(&rest[..run]);
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    // Only bytes that came as they are can be bad; escapes are decoded to UTF-8.
                    return Ok(String::from_utf8(text)
                        .unwrap_or_else(|error| replace_invalid(error.as_bytes())));
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, DecodeError> {
        let character = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    /// The rest of `\uXXXX`. Half of a surrogate pair without the other becomes U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, DecodeError> {
        let unit = self.hex4()?;
        if let Some(character) = char::from_u32(unit.into()) {
            return Ok(character);
        }
        if self.input[self.at..].starts_with(b"\\u") {
            let second = self.at;
            self.at += 2;
            let low = self.hex4()?;
            if let Some(Ok(character)) = char::decode_utf16([unit, low]).next() {
                return Ok(character);
            }
            // Not a pair: what followed stands for itself.
            self.at = second;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u16, DecodeError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|c| char::from(c).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take_digits(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at > start
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// What is here cannot be here, for the reason in `context`.
    fn unexpected(&self, context: &str) -> DecodeError {
        let message = match self.peek() {
            Some(byte) => format!("invalid character {} {context}", go_quote_byte(byte)),
            None => "unexpected end of JSON input".to_owned(),
        };
        DecodeError::Syntax { message, offset: self.at }
    }
}

/// The text, where each byte that is not part of a character becomes U+FFFD.
///
/// One per byte, as Go does; `String::from_utf8_lossy` writes one for a whole broken sequence.
pub(crate) fn replace_invalid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
