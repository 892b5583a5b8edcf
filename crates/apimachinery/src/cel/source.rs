//! The text of an expression: where things stand in it, and complaints that point at them.

use std::fmt;

/// Complaints beyond this number are only counted.
const ISSUES_MAX: usize = 100;

/// The text, and where its lines begin. Offsets count characters.
#[derive(Debug, Clone)]
pub(super) struct Source {
    lines: Vec<Box<str>>,
    starts: Vec<u32>,
}

/// A place in the text, for people: lines from one, columns from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    line: i64,
    column: i64,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let lines: Vec<Box<str>> = text.split('\n').map(Into::into).collect();
        let mut start = 0;
        let starts = lines
            .iter()
            .map(|line| {
                let this = start;
                start += line.chars().count() as u32 + 1;
                this
            })
            .collect();
        Source { lines, starts }
    }

    fn locate(&self, offset: u32) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset);
        let column = offset - self.starts[line - 1];
        Location { line: line as i64, column: i64::from(column) }
    }
}

/// Everything that is wrong with an expression, in the order of the text.
#[derive(Debug, Clone)]
pub struct Issues {
    source: Source,
    issues: Vec<(Location, String)>,
    count: usize,
}

impl Issues {
    pub(super) fn new(source: Source) -> Self {
        Issues { source, issues: Vec::new(), count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn report(&mut self, offset: u32, message: impl Into<String>) {
        self.push(self.source.locate(offset), message.into());
    }

    /// A complaint about the whole, which stands nowhere.
    pub(super) fn report_nowhere(&mut self, message: impl Into<String>) {
        self.push(Location { line: -1, column: -1 }, message.into());
    }

    fn push(&mut self, location: Location, message: String) {
        self.count += 1;
        if self.count <= ISSUES_MAX {
            self.issues.push((location, message));
        }
    }
}

/// Each complaint with its line and a caret below what it is about.
impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.issues.iter().collect();
        sorted.sort_by_key(|(location, _)| *location);
        for (index, (location, message)) in sorted.into_iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let Location { line, column } = *location;
            write!(f, "ERROR: <input>:{line}:{}: {message}", column + 1)?;
            let Some(text) = usize::try_from(line - 1).ok().and_then(|i| self.source.lines.get(i))
            else {
                continue;
            };
            let text = text.replace('\t', " ");
            write!(f, "\n | {text}\n | ")?;
            let mut characters = text.chars();
            for c in characters.by_ref().take(column.max(0) as usize) {
                f.write_str(if c.is_ascii() { "." } else { "\u{ff0e}" })?;
            }
            f.write_str(match characters.next() {
                Some(c) if !c.is_ascii() => "\u{ff3e}",
                _ => "^",
            })?;
        }
        match self.count.checked_sub(ISSUES_MAX) {
            Some(more @ 1..) => write!(f, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}
