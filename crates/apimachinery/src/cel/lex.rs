//! From text to tokens.
//!
//! What is no token is reported and passed over, as the generated lexer of the reference
//! implementation does, so that one stray character does not hide the next mistake.

use super::source::Issues;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) text: Box<str>,
    /// In characters.
    pub(super) offset: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An operator, a bracket, or one of the words `in`, `true`, `false` and `null`.
    Symbol(&'static str),
    Int,
    Uint,
    Float,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
    End,
}

/// Longer ones first.
const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%",
];

pub(super) fn tokens(text: &str, issues: &mut Issues) -> Vec<Token> {
    let mut lexer = Lexer { rest: text, offset: 0 };
    let mut tokens = Vec::new();
    while let Some(c) = lexer.skip_space() {
        match lexer.token(c) {
            Ok((kind, bytes)) => {
                let (text, offset) = (&lexer.rest[..bytes], lexer.offset);
                tokens.push(Token { kind, text: text.into(), offset });
                lexer.advance(bytes);
            }
            Err(bytes) => {
                let bad = lexer.rest[..bytes].to_owned();
                let message =
                    format!("Syntax error: token recognition error at: '{}'", shown(&bad));
                issues.report(lexer.offset, message);
                lexer.advance(bytes);
            }
        }
    }
    let end = Token { kind: TokenKind::End, text: "<EOF>".into(), offset: lexer.offset };
    tokens.push(end);
    tokens
}

fn shown(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

struct Lexer<'t> {
    rest: &'t str,
    offset: u32,
}

impl Lexer<'_> {
    fn advance(&mut self, bytes: usize) {
        self.offset += self.rest[..bytes].chars().count() as u32;
        self.rest = &self.rest[bytes..];
    }

    /// The first character of the next token.
    fn skip_space(&mut self) -> Option<char> {
        loop {
            let c = self.rest.chars().next()?;
            match c {
                '\t' | ' ' | '\r' | '\n' | '\u{c}' => self.advance(1),
                '/' if self.rest.starts_with("//") => {
                    self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                _ => return Some(c),
            }
        }
    }

    /// The kind of the token and its length, or the length of what is none.
    fn token(&self, first: char) -> Result<(TokenKind, usize), usize> {
        let rest = self.rest;
        if let Some((kind, quote)) = literal_prefix(rest) {
            match text_literal(&rest[quote..], rest[..quote].contains(['r', 'R'])) {
                Ok(length) => return Ok((kind, quote + length)),
                Err(length) if quote == 0 => return Err(length),
                // Without its quotes the prefix is an identifier.
                Err(_) => {}
            }
        }
        match first {
            '0'..='9' => return Ok(number(rest)),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => return Ok(number(rest)),
            'a'..='z' | 'A'..='Z' | '_' => return Ok(word(rest)),
            '`' => {
                let inner = rest[1..].bytes().take_while(|b| is_escaped_ident(*b)).count();
                return match rest[1 + inner..].chars().next() {
                    Some('`') if inner > 0 => Ok((TokenKind::EscapedIdentifier, inner + 2)),
                    next => Err(1 + inner + next.map_or(0, char::len_utf8)),
                };
            }
            _ => {}
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            return Ok((TokenKind::Symbol(symbol), symbol.len()));
        }
        // These begin an operator, and take what should have been its second half with them.
        let length = match first {
            '=' | '&' | '|' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            other => other.len_utf8(),
        };
        Err(length)
    }
}

fn is_escaped_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-/ ".contains(&byte)
}

fn word(text: &str) -> (TokenKind, usize) {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let kind = match &text[..length] {
        "in" => TokenKind::Symbol("in"),
        "true" => TokenKind::Symbol("true"),
        "false" => TokenKind::Symbol("false"),
        "null" => TokenKind::Symbol("null"),
        _ => TokenKind::Identifier,
    };
    (kind, length)
}

fn number(text: &str) -> (TokenKind, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(hex) = text.strip_prefix("0x") {
        let count = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count > 0 {
            return with_unsigned(text, 2 + count);
        }
    }
    let whole = digits(text);
    let mut end = whole;
    let fraction = text[end..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        end += 1 + fraction;
    }
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let count = digits(&exponent[sign..]);
        if count > 0 {
            return (TokenKind::Float, end + 1 + sign + count);
        }
    }
    match fraction {
        0 => with_unsigned(text, whole),
        _ => (TokenKind::Float, end),
    }
}

fn with_unsigned(text: &str, length: usize) -> (TokenKind, usize) {
    match text[length..].starts_with(['u', 'U']) {
        true => (TokenKind::Uint, length + 1),
        false => (TokenKind::Int, length),
    }
}

/// What kind of literal begins here, and how many letters stand before its quote.
fn literal_prefix(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    let is_quote = |index: usize| matches!(bytes.get(index), Some(b'"' | b'\''));
    let is = |index: usize, letters: &[u8]| bytes.get(index).is_some_and(|b| letters.contains(b));
    match () {
        () if is_quote(0) => Some((TokenKind::String, 0)),
        () if is(0, b"rR") && is_quote(1) => Some((TokenKind::String, 1)),
        () if is(0, b"bB") && is_quote(1) => Some((TokenKind::Bytes, 1)),
        () if is(0, b"bB") && is(1, b"rR") && is_quote(2) => Some((TokenKind::Bytes, 2)),
        () => None,
    }
}

/// The length of the literal from its opening to its closing quote, or of what breaks off, with
/// the character that breaks it.
fn text_literal(text: &str, raw: bool) -> Result<usize, usize> {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    if text.starts_with(&triple)
        && let Ok(length) = closed(text, &triple, raw, true)
    {
        return Ok(length);
    }
    closed(text, quote, raw, false)
}

fn closed(text: &str, quote: &str, raw: bool, many_lines: bool) -> Result<usize, usize> {
    let mut at = quote.len();
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(quote) {
            return Ok(at + quote.len());
        }
        let c = rest.chars().next().expect("it is not empty");
        at += match c {
            '\\' if !raw => escape(rest).map_err(|bad| text.ceil_char_boundary(at + bad))?,
            '\n' | '\r' if !many_lines => return Err(at + 1),
            _ => c.len_utf8(),
        };
    }
    Err(text.len())
}

/// The length of an escape, or of what breaks off with the character that breaks it.
fn escape(text: &str) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let digits = |start: usize, end: usize, is_digit: fn(&u8) -> bool| {
        let good = bytes[start..].iter().take(end - start).take_while(|b| is_digit(b)).count();
        if start + good == end { Ok(end) } else { Err(start + good + 1) }
    };
    match bytes.get(1) {
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`',
        ) => Ok(2),
        Some(b'x' | b'X') => digits(2, 4, u8::is_ascii_hexdigit),
        Some(b'u') => digits(2, 6, u8::is_ascii_hexdigit),
        Some(b'U') => digits(2, 10, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => digits(2, 4, |digit| (b'0'..=b'7').contains(digit)),
        _ => Err(2),
    }
}
