//! From text to steps.

use serde_json::{Number, Value};

use super::{Filter, Part, Slice, Step, Template};
use crate::json::go_quote;

/// Why a template is refused, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("unclosed action")]
    UnclosedAction,
    #[error("unrecognized character in action: {}", unicode(*.0))]
    UnexpectedCharacter(char),
    #[error("invalid multiple recursive descent")]
    RecursiveTwice,
    #[error("cannot parse number {0}")]
    Number(String),
    #[error("unterminated array")]
    UnterminatedArray,
    #[error("invalid array index {0}")]
    Index(String),
    #[error("array index {0} is not a number")]
    IndexRange(String),
    #[error("unterminated filter")]
    UnterminatedFilter,
    #[error("unclosed array expect ]")]
    UnclosedFilter,
    #[error("unterminated quoted string")]
    UnterminatedString,
    #[error("unquote string {0} error invalid syntax")]
    Quoted(String),
    #[error("expressions are nested too deeply")]
    TooDeep,
}

/// Filters and unions contain expressions of their own; no sensible path has many levels.
const DEPTH_MAX: usize = 32;

pub(super) fn template(text: &str) -> Result<Template, ParseError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            parts.push(Part::Text(rest[..open].to_owned()));
        }
        let mut parser = Parser { text: &rest[open + 1..], at: 0, depth: 0 };
        parts.push(Part::Expression(parser.expression()?));
        rest = &parser.text[parser.at..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(Template { parts })
}

/// Reads the inside of braces, up to and with the closing one.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn expression(&mut self) -> Result<Vec<Step>, ParseError> {
        let mut steps = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with('}') {
                self.at += 1;
                return Ok(steps);
            } else if rest.starts_with("[?(") {
                steps.push(self.filter()?);
            } else if rest.starts_with("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return Err(ParseError::RecursiveTwice);
                }
                self.at += 2;
                steps.push(Step::Recursive);
                if self.peek().is_some_and(is_word) {
                    steps.push(self.field());
                }
            } else {
                self.step(&mut steps)?;
            }
        }
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseError> {
        let start = self.at;
        match self.next() {
            None | Some('\r' | '\n') => Err(ParseError::UnclosedAction),
            // The current object is where every expression starts.
            Some(' ' | '@' | '$') => Ok(()),
            Some('[') => self.subscript(start, steps),
            Some(quote @ ('"' | '\'')) => {
                steps.push(self.quoted(start, quote)?);
                Ok(())
            }
            Some('.') => {
                steps.push(self.field());
                Ok(())
            }
            Some(c) if c == '+' || c == '-' || c.is_numeric() => {
                while self.peek().is_some_and(|c| c == '.' || c.is_numeric()) {
                    self.next();
                }
                steps.push(Step::Literal(number(&self.text[start..self.at])?));
                Ok(())
            }
            Some(c) if is_word(c) => {
                while self.peek().is_some_and(|c| !is_terminator(c)) {
                    self.next();
                }
                steps.push(match &self.text[start..self.at] {
                    "true" => Step::Literal(Value::Bool(true)),
                    "false" => Step::Literal(Value::Bool(false)),
                    name => Step::Identifier(name.to_owned()),
                });
                Ok(())
            }
            Some(other) => Err(ParseError::UnexpectedCharacter(other)),
        }
    }

    /// A field up to the next terminator; a backslash takes the next character as it is.
    fn field(&mut self) -> Step {
        let start = self.at;
        while let Some(c) = self.peek().filter(|c| !is_terminator(*c)) {
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        match &self.text[start..self.at] {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        }
    }

    /// An index, slice, union or quoted key.
    fn subscript(&mut self, start: usize, steps: &mut Vec<Step>) -> Result<(), ParseError> {
        loop {
            match self.next() {
                None | Some('\n') => return Err(ParseError::UnterminatedArray),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text = match &self.text[start + 1..self.at - 1] {
            "*" => ":",
            text => text,
        };
        if text.contains(',') {
            let alternatives = text
                .split(',')
                .map(|text| self.nested(&format!("[{}]", text.trim_matches(' '))))
                .collect::<Result<_, _>>()?;
            steps.push(Step::Union(alternatives));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        match key.filter(|key| !key.contains('\'')) {
            // Dots in the key are dots of a path, as upstream has it, unless escaped.
            Some(key) => steps.extend(self.nested(&format!(".{key}"))?),
            None => steps.push(Step::Slice(slice(text)?)),
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<Step, ParseError> {
        self.at += "[?(".len();
        let start = self.at;
        let mut quote = None;
        let mut closed = false;
        loop {
            match self.next() {
                None | Some('\n') => return Err(ParseError::UnterminatedFilter),
                Some(c @ ('"' | '\'')) => match quote {
                    None => quote = Some(c),
                    Some(open) if open == c && !self.was_escaped() => closed = true,
                    Some(_) => {}
                },
                Some(')') if quote.is_some() == closed => break,
                Some(_) => {}
            }
        }
        let text = &self.text[start..self.at - 1];
        if self.next() != Some(']') {
            return Err(ParseError::UnclosedFilter);
        }
        let filter = match split_comparison(text) {
            None => Filter { left: self.nested(text)?, comparison: None },
            Some((left, operator, right)) => Filter {
                left: self.nested(left)?,
                comparison: Some((operator.to_owned(), self.nested(right)?)),
            },
        };
        Ok(Step::Filter(Box::new(filter)))
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<Step, ParseError> {
        loop {
            match self.next() {
                None | Some('\n') => return Err(ParseError::UnterminatedString),
                Some(c) if c == quote && !self.was_escaped() => break,
                Some(_) => {}
            }
        }
        let text = &self.text[start..self.at];
        match unquote(&self.text[start + 1..self.at - 1], quote) {
            Some(value) => Ok(Step::Literal(Value::String(value))),
            None => Err(ParseError::Quoted(text.to_owned())),
        }
    }

    /// The steps of an expression inside this one.
    fn nested(&self, text: &str) -> Result<Vec<Step>, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(ParseError::TooDeep);
        }
        // What follows a brace inside the text is another part, which upstream drops.
        let text = format!("{text}}}");
        Parser { text: &text, at: 0, depth: self.depth + 1 }.expression()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Whether a backslash stands before the ASCII character just read.
    fn was_escaped(&self) -> bool {
        self.text[..self.at - 1].ends_with('\\')
    }
}

/// Parts `left operator right` at the first run of operator characters; both sides must be there.
fn split_comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let after = &text[start..];
    let mut end = after.find(|c| !is_operator(c)).unwrap_or(after.len());
    if end == after.len() {
        // An operator takes all it can get but leaves one character for the right side.
        end -= 1;
    }
    let right = &after[end..];
    (end > 0 && !right.contains('\n')).then_some((&text[..start], &after[..end], right))
}

/// `-1`, `1:2`, `::2` and the like.
fn slice(text: &str) -> Result<Slice, ParseError> {
    let bad = || ParseError::Index(text.to_owned());
    let mut bounds = text.split(':').map(|bound| {
        let digits = bound.strip_prefix('-').unwrap_or(bound);
        match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            false => Err(bad()),
            true if bound.is_empty() => Ok(None),
            true => bound.parse().map(Some).map_err(|_| ParseError::IndexRange(bound.to_owned())),
        }
    });
    let start: Option<i64> = bounds.next().transpose()?.flatten();
    let (end, end_is_derived) = match bounds.next().transpose()? {
        Some(end) => (end, false),
        None => (Some(start.unwrap_or(0).saturating_add(1)), true),
    };
    let step = bounds.next().transpose()?.flatten();
    match bounds.next() {
        None => Ok(Slice { start, end, step, end_is_derived }),
        Some(_) => Err(bad()),
    }
}

fn number(text: &str) -> Result<Value, ParseError> {
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(integer.into());
    }
    let float = text.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| ParseError::Number(text.to_owned()))
}

/// Resolves Go's escapes; a quote of the other kind may not be escaped.
fn unquote(text: &str, quote: char) -> Option<String> {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        value.push(match chars.next()? {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\\' => '\\',
            c if c == quote => c,
            'x' => code_point(chars.by_ref().take(2).collect(), 2, 16)?,
            'u' => code_point(chars.by_ref().take(4).collect(), 4, 16)?,
            'U' => code_point(chars.by_ref().take(8).collect(), 8, 16)?,
            first @ '0'..='7' => {
                let rest = chars.by_ref().take(2);
                code_point(std::iter::once(first).chain(rest).collect(), 3, 8)?
            }
            _ => return None,
        });
    }
    Some(value)
}

fn code_point(digits: String, count: usize, radix: u32) -> Option<char> {
    let code = u32::from_str_radix(&digits, radix).ok().filter(|_| digits.len() == count)?;
    char::from_u32(code)
}

/// The character's code, and itself if it can be seen.
fn unicode(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    match c == '\\' || c == '"' || go_quote(&c.to_string()) == format!("\"{c}\"") {
        true => format!("{code} '{c}'"),
        false => code,
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_numeric()
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
