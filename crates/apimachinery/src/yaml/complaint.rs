//! What is wrong with a text, in the words of upstream's library, which are libyaml's.
//!
//! The parser that we use finds the same mistakes and has more to say about some of them. Clients
//! compare what they are told, so it is said as they know it, and where libyaml would see it.

/// Who of libyaml's parts notices: each counts lines in its own way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Reader,
    Scanner,
    Parser,
}

/// A mistake as our parser tells it.
pub(super) struct Mistake<'a> {
    pub(super) info: &'a str,
    /// Where it was noticed, from one.
    pub(super) line: usize,
    /// How many bytes come before it.
    pub(super) offset: usize,
    /// Where the collection begins in which it was noticed, if there is one, from one.
    pub(super) within: Option<usize>,
    pub(super) text: &'a str,
}

impl Mistake<'_> {
    /// The line that upstream would name, 0 if it would name none, and its words.
    pub(super) fn told(&self) -> (usize, String) {
        let (part, line, problem) = self.recognized();
        // Lines are counted from zero there, and the first is not worth a mention. What a parser
        // expected is told of where its collection begins, if that is not the first line either.
        let named = match part {
            Part::Reader => 0,
            Part::Scanner if line == 1 => 0,
            Part::Scanner => line,
            Part::Parser => match self.within {
                Some(within) if within > 1 => within - 1,
                _ => line - 1,
            },
        };
        (named, problem)
    }

    fn recognized(&self) -> (Part, usize, String) {
        let info = self.info;
        // After the last line, however it ends.
        let end = self.text.lines().count() + 1;
        let missing = |bracket: &str| match bracket {
            "'['" => "did not find expected ',' or ']'",
            _ => "did not find expected ',' or '}'",
        };
        if let Some(bracket) = info.strip_prefix("unclosed bracket ") {
            let is_waiting = self.text.trim_end().ends_with(['[', '{', ',', ':']);
            let problem = if is_waiting { NODE } else { missing(bracket) };
            return (Part::Parser, end, problem.to_owned());
        }
        if let Some(brackets) = info.strip_prefix("mismatched bracket ") {
            let opened = brackets.split(' ').next().unwrap_or_default();
            return (Part::Parser, self.line, missing(opened).to_owned());
        }
        if let Some(character) = info.strip_prefix("unexpected character: ") {
            return match character.contains("\\u{") {
                true => (Part::Reader, self.line, "control characters are not allowed".to_owned()),
                false => (Part::Scanner, self.line, TOKEN.to_owned()),
            };
        }
        let (part, line, problem) = match info {
            "unclosed quote" => (Part::Scanner, self.line, "found unexpected end of stream"),
            "misplaced bracket" => {
                let before = self.text.get(..self.offset).unwrap_or_default().trim_end();
                let is_waiting = before.is_empty() || before.ends_with([':', '-']);
                (Part::Parser, self.line, if is_waiting { NODE } else { KEY })
            }
            "unsupported YAML major version" => {
                (Part::Parser, self.line, "found incompatible YAML document")
            }
            "simple key expected ':'" => {
                (Part::Scanner, self.line + 1, "could not find expected ':'")
            }
            "comment intercepting the multiline text" => (Part::Parser, self.line + 1, KEY),
            info if info.starts_with("tabs disallowed") => (Part::Scanner, self.line, TOKEN),
            info if info.starts_with("invalid trailing content") => (Part::Parser, self.line, KEY),
            info => {
                // Of two parts the first says what was being read.
                let problem = match info.split_once(", ") {
                    Some((context, problem)) if context.starts_with("while ") => problem,
                    _ => info,
                };
                let part = match problem.starts_with("did not find expected ")
                    && !problem.ends_with("character")
                    && !problem.ends_with("number")
                {
                    true => Part::Parser,
                    false => Part::Scanner,
                };
                (part, self.line, problem)
            }
        };
        (part, line, problem.replace("hexadecimal", "hexdecimal"))
    }
}

const KEY: &str = "did not find expected key";
const NODE: &str = "did not find expected node content";
const TOKEN: &str = "found character that cannot start any token";
