//! Numbers, strings and the words for constants.

use std::sync::Arc;

use crate::cel::ast::Literal;
use crate::cel::lex::{Token, TokenKind};

pub(super) fn read(token: &Token, negative: bool) -> Result<Literal, &'static str> {
    let text = &*token.text;
    match token.kind {
        TokenKind::Symbol("true") => Ok(Literal::Bool(true)),
        TokenKind::Symbol("false") => Ok(Literal::Bool(false)),
        TokenKind::Symbol(_) => Ok(Literal::Null),
        TokenKind::Int => {
            let magnitude = integer(text).map(i128::from).ok_or("invalid int literal")?;
            let value = if negative { -magnitude } else { magnitude };
            i64::try_from(value).map(Literal::Int).map_err(|_| "invalid int literal")
        }
        TokenKind::Uint => {
            integer(&text[..text.len() - 1]).map(Literal::Uint).ok_or("invalid uint literal")
        }
        TokenKind::Float => {
            let value: f64 = text.parse().map_err(|_| "invalid double literal")?;
            // What is too large to write is no number.
            match value.is_finite() {
                true => Ok(Literal::Double(if negative { -value } else { value })),
                false => Err("invalid double literal"),
            }
        }
        TokenKind::Bytes => {
            let text = text.trim_start_matches(['b', 'B']);
            unescape(text, true).map(|bytes| Literal::Bytes(bytes.into()))
        }
        _ => {
            let bytes = unescape(text, false)?;
            let text = String::from_utf8(bytes).expect("only code points were put in");
            Ok(Literal::String(Arc::from(text)))
        }
    }
}

fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a quoted literal stands for. In bytes, `\x` and octal escapes are bytes, not code points.
fn unescape(quoted: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    const WRONG: &str = "unable to unescape string";
    let normalized = quoted.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match normalized.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, &*normalized),
    };
    let quote = if quoted.len() >= 6 && is_triple(quoted) { 3 } else { 1 };
    let text = &quoted[quote..quoted.len() - quote];
    if raw || !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(escape) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..escape]);
        let code = rest.as_bytes().get(escape + 1).copied().ok_or(WRONG)?;
        rest = &rest[escape + 2..];
        let (digits, radix) = match code {
            b'a' => (Err(7), 0),
            b'b' => (Err(8), 0),
            b'f' => (Err(12), 0),
            b'n' => (Err(10), 0),
            b'r' => (Err(13), 0),
            b't' => (Err(9), 0),
            b'v' => (Err(11), 0),
            b'x' | b'X' => (Ok(2), 16),
            b'u' | b'U' if is_bytes => return Err(WRONG),
            b'u' => (Ok(4), 16),
            b'U' => (Ok(8), 16),
            b'0'..=b'3' => {
                rest = &text[text.len() - rest.len() - 1..];
                (Ok(3), 8)
            }
            other => (Err(other), 0),
        };
        let count: usize = match digits {
            Err(byte) => {
                out.push(byte);
                continue;
            }
            Ok(count) => count,
        };
        let digits = rest.get(..count).ok_or(WRONG)?;
        let value = u32::from_str_radix(digits, radix).map_err(|_| WRONG)?;
        rest = &rest[count..];
        match is_bytes {
            true => out.push(value as u8),
            false => {
                let c = char::from_u32(value).ok_or("invalid unicode code point")?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

fn is_triple(quoted: &str) -> bool {
    ["'''", "\"\"\""].iter().any(|quote| quoted.starts_with(quote) && quoted.ends_with(quote))
}
