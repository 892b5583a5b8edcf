//! Regular expressions as Go understands them.
//!
//! A `pattern` in a schema, and `matches()` in an expression, is written in the syntax of
//! Go's `regexp` package (RE2). The engine below is the `regex` crate, which promises the same
//! linear time and the same leftmost-first matches, but its syntax differs in many small ways:
//! `\d` is Unicode there, `[a&&b]` is an intersection, `{foo}` is an error, `a**` is not. So a
//! pattern is first read by Go's rules, with Go's error texts, and written out again in a plain
//! subset that leaves the engine nothing to interpret.
//!
//! Differences that remain: Unicode tables are the engine's, one version ahead of Go's; a pattern
//! whose program would be very large is refused earlier than by Go.

mod class;
mod translate;

#[cfg(test)]
mod tests;

use std::fmt;

/// A compiled pattern. Cloning is cheap.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    program: ::regex::Regex,
}

/// Why a pattern is refused; prints as Go's `regexp.Compile` says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {}: `{fragment}`", reason.words())]
pub struct Error {
    pub reason: Reason,
    /// The part of the pattern that is wrong.
    pub fragment: String,
}

/// The kinds of mistakes Go tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    CharRange,
    Escape,
    NamedCapture,
    PerlOperator,
    RepeatOperator,
    RepeatSize,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Reason::CharRange => "invalid character class range",
            Reason::Escape => "invalid escape sequence",
            Reason::NamedCapture => "invalid named capture",
            Reason::PerlOperator => "invalid or unsupported Perl syntax",
            Reason::RepeatOperator => "invalid nested repetition operator",
            Reason::RepeatSize => "invalid repeat count",
            Reason::MissingBracket => "missing closing ]",
            Reason::MissingParen => "missing closing )",
            Reason::MissingRepeatArgument => "missing argument to repetition operator",
            Reason::TrailingBackslash => "trailing backslash at end of expression",
            Reason::UnexpectedParen => "unexpected )",
            Reason::NestingDepth => "expression nests too deeply",
            Reason::Large => "expression too large",
        }
    }
}

/// Patterns come from users. Each of these bounds what one of them can cost; ordinary patterns
/// stay below by orders of magnitude.
const PROGRAM_BYTES_MAX: usize = 32 << 20;
const LAZY_STATES_BYTES_MAX: usize = 2 << 20;
/// Above Go's own depth of 1000, which is checked with Go's message while translating.
const NESTING_MAX: u32 = 5000;

impl Regex {
    /// Compiles a pattern written in Go's syntax.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let translated = translate::translate(pattern)?;
        let program = ::regex::RegexBuilder::new(&translated)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(LAZY_STATES_BYTES_MAX)
            .nest_limit(NESTING_MAX)
            .build()
            .map_err(|_| Error { reason: Reason::Large, fragment: pattern.to_owned() })?;
        Ok(Regex { pattern: pattern.into(), program })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }

    /// The leftmost match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.program.find(text).map(|found| found.as_str())
    }

    /// All matches, from left to right, none overlapping.
    pub fn find_all<'r, 't>(
        &'r self,
        text: &'t str,
    ) -> impl Iterator<Item = &'t str> + use<'r, 't> {
        self.program.find_iter(text).map(|found| found.as_str())
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.pattern)
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}
