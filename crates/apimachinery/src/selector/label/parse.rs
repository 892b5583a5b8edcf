//! Reading the text of a label selector.
//!
//! ```text
//! selector    = "" | requirement { "," requirement }
//! requirement = [ "!" ] KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ]
//!             | KEY ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"
//! ```

use std::collections::BTreeSet;

use super::{Operator, Requirement, key_error};
use crate::field::Path;
use crate::status::aggregate;

/// Why a text is no selector. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Between requirements there is something else.
    #[error("{0}")]
    Between(String),
    /// One of the requirements makes no sense.
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
}

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser { lexer: Lexer { rest: text }, next: Token::End };
    parser.next = parser.lexer.token();
    let mut requirements = Vec::new();
    loop {
        match parser.next {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Symbol("!") => {}
            other => {
                let found = other.text();
                return Err(ParseError::Between(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                )));
            }
        }
        requirements.push(parser.requirement().map_err(ParseError::Requirement)?);
        match parser.take() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {
                if !matches!(parser.next, Token::Word(_) | Token::Symbol("!")) {
                    let found = parser.next.text();
                    return Err(ParseError::Between(format!(
                        "found '{found}', expected: identifier after ','"
                    )));
                }
            }
            other => {
                let found = other.text();
                return Err(ParseError::Between(format!(
                    "found '{found}', expected: ',' or 'end of string'"
                )));
            }
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Token<'a> {
        std::mem::replace(&mut self.next, self.lexer.token())
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut first = self.take();
        let negated = first == Token::Symbol("!");
        if negated {
            first = self.take();
        }
        let Token::Word(key) = first else {
            return Err(format!("found '{}', expected: identifier", first.text()));
        };
        if let Some(error) = key_error(key, &Path::ROOT) {
            return Err(error.to_string());
        }
        // A key after "!" may be followed by nothing but the next requirement, which the caller
        // sees to.
        let ends_here = matches!(self.next, Token::End | Token::Symbol(","));
        let (operator, values) = match (negated, ends_here) {
            (true, _) => (Operator::DoesNotExist, BTreeSet::new()),
            (false, true) => (Operator::Exists, BTreeSet::new()),
            (false, false) => {
                let operator = self.operator()?;
                let values = match operator {
                    Operator::In | Operator::NotIn => self.value_set()?,
                    _ => self.exact_value()?,
                };
                (operator, values)
            }
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement::new(key, operator, values).map_err(|errors| aggregate(&errors))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.take().text() {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            "=" => Operator::Equals,
            "==" => Operator::DoubleEquals,
            "!=" => Operator::NotEquals,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            found => {
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        })
    }

    fn exact_value(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if matches!(self.next, Token::End | Token::Symbol(",")) {
            return Ok(BTreeSet::from([""]));
        }
        match self.take() {
            Token::Word(value) => Ok(BTreeSet::from([value])),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn value_set(&mut self) -> Result<BTreeSet<&'a str>, String> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = BTreeSet::new();
        match self.next {
            Token::Word(_) | Token::Symbol(",") => {}
            Token::Symbol(")") => {
                self.take();
                return Ok(BTreeSet::from([""]));
            }
            other => {
                let found = other.text();
                return Err(format!("found '{found}', expected: ',', ')' or identifier"));
            }
        }
        // An empty value stands where a comma has no word on one of its sides.
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.next {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => {
                            let found = other.text();
                            return Err(format!("found '{found}', expected: ',' or ')'"));
                        }
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert("");
                    }
                    match self.next {
                        Token::Symbol(")") => {
                            values.insert("");
                            break;
                        }
                        Token::Symbol(",") => {
                            values.insert("");
                        }
                        _ => {}
                    }
                }
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', or identifier"));
                }
            }
        }
        self.take();
        Ok(values)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A key, a value, or one of the operators that are words; the parser knows which it wants.
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(text) => text,
            Token::Symbol(text) => text,
            Token::End => "",
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Token<'a> {
        const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol)) {
            self.rest = &self.rest[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let is_end = |c: char| " \t\r\n=!(),><".contains(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "" => Token::End,
            word => Token::Word(word),
        }
    }
}
