//! Reads a pattern by Go's grammar and writes it in the engine's.
//!
//! The translation is one pass that appends to one string. What a repetition applies to, and what
//! Go's limits on depth, repetition and size need, is kept in a few numbers per open group; there
//! is no tree.

use super::class::{self, Class};
use super::{Error, Reason};

/// Longer patterns are refused. Go would take them up to the size of a request; no pattern that
/// means anything comes near.
const PATTERN_BYTES_MAX: usize = 256 << 10;
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Go's limits.
const HEIGHT_MAX: usize = 1000;
const REPEAT_MAX: u32 = 1000;
const SIZE_MAX: u64 = (128 << 20) / 40;

pub(super) fn translate(pattern: &str) -> Result<String, Error> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(error(Reason::Large, pattern));
    }
    let mut translator = Translator {
        pattern,
        rest: pattern,
        flags: Flags::default(),
        out: String::with_capacity(pattern.len() + 16),
        groups: vec![Group::new(Flags::default(), false, 0)],
    };
    translator.run()?;
    Ok(translator.out)
}

fn error(reason: Reason, fragment: &str) -> Error {
    Error { reason, fragment: fragment.to_owned() }
}

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    fold_case: bool,
    /// `^` and `$` match at every line.
    multi_line: bool,
    dot_matches_newline: bool,
    /// Repetitions prefer fewer, and `?` makes them prefer more.
    swap_greed: bool,
}

/// An expression that is complete: where it starts in the output, and its measures.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    /// Depth of nesting.
    height: usize,
    /// The product of counted repetitions around its most repeated part.
    repeats: u32,
    /// Instructions of Go's program for it.
    size: u64,
    is_repetition: bool,
}

/// Measures of a sequence or of alternatives while they grow.
#[derive(Debug, Clone, Copy, Default)]
struct Many {
    count: usize,
    height: usize,
    repeats: u32,
    size: u64,
}

impl Many {
    fn add(&mut self, height: usize, repeats: u32, size: u64) {
        self.count += 1;
        self.height = self.height.max(height);
        self.repeats = self.repeats.max(repeats);
        self.size = self.size.saturating_add(size);
    }

    /// One alone is itself; more are held by a node of their own.
    fn outer_height(&self) -> usize {
        match self.count {
            0 => 1,
            1 => self.height,
            _ => self.height + 1,
        }
    }
}

/// An open group, or the whole pattern.
struct Group {
    flags_outside: Flags,
    captures: bool,
    start: usize,
    alternatives: Many,
    sequence: Many,
    /// The last piece of the sequence, not yet counted in it: a repetition may still follow.
    last: Option<Piece>,
}

impl Group {
    fn new(flags_outside: Flags, captures: bool, start: usize) -> Self {
        let (alternatives, sequence) = (Many::default(), Many::default());
        Group { flags_outside, captures, start, alternatives, sequence, last: None }
    }

    fn push(&mut self, piece: Piece) {
        self.settle();
        self.last = Some(piece);
    }

    fn settle(&mut self) {
        if let Some(piece) = self.last.take() {
            self.sequence.add(piece.height, piece.repeats, piece.size);
        }
    }

    fn end_alternative(&mut self) {
        self.settle();
        let sequence = std::mem::take(&mut self.sequence);
        let size = sequence.size.max(1) + u64::from(self.alternatives.count > 0);
        self.alternatives.add(sequence.outer_height(), sequence.repeats.max(1), size);
    }
}

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    flags: Flags,
    out: String,
    groups: Vec<Group>,
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), Error> {
        // Where the repetition just read begins; `None` after anything else.
        let mut previous_repetition: Option<&'p str> = None;
        while let Some(next) = self.rest.chars().next() {
            let here = self.rest;
            let mut repetition = None;
            match next {
                '(' if here.starts_with("(?") => self.perl_group()?,
                '(' => self.open_group(true, self.flags, 1),
                ')' => self.close_group()?,
                '|' => {
                    self.group().end_alternative();
                    self.out.push('|');
                    self.advance(1);
                }
                '^' => self.assertion(if self.flags.multi_line { "(?m:^)" } else { "\\A" }, 1)?,
                '$' => self.assertion(if self.flags.multi_line { "(?m:$)" } else { "\\z" }, 1)?,
                '.' => {
                    self.atom(if self.flags.dot_matches_newline { "(?s:.)" } else { "[^\\n]" })?;
                    self.advance(1);
                }
                '[' => self.bracket()?,
                '*' | '+' | '?' => {
                    let (min, max) = match next {
                        '*' => (0, None),
                        '+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    let bounds = Bounds { min, max, counted: false };
                    self.repeat(bounds, here, &here[1..], previous_repetition)?;
                    repetition = Some(here);
                }
                '{' => match counted(here) {
                    None => {
                        self.literal(u32::from('{'))?;
                        self.advance(1);
                    }
                    Some((bounds, after)) => {
                        let Some(bounds) = bounds else {
                            return Err(error(Reason::RepeatSize, before(here, after)));
                        };
                        self.repeat(bounds, here, after, previous_repetition)?;
                        repetition = Some(here);
                    }
                },
                '\\' => self.backslash()?,
                c => {
                    self.literal(u32::from(c))?;
                    self.advance(c.len_utf8());
                }
            }
            previous_repetition = repetition;
        }
        if self.groups.len() > 1 {
            return Err(error(Reason::MissingParen, self.pattern));
        }
        Ok(())
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the outermost group is never closed")
    }

    fn push(&mut self, piece: Piece) -> Result<(), Error> {
        if piece.height > HEIGHT_MAX {
            return Err(error(Reason::NestingDepth, self.pattern));
        }
        if piece.size > SIZE_MAX || self.out.len() > OUTPUT_BYTES_MAX {
            return Err(error(Reason::Large, self.pattern));
        }
        self.group().push(piece);
        Ok(())
    }

    /// Appends something that a following repetition repeats as a whole.
    fn atom(&mut self, text: &str) -> Result<(), Error> {
        let start = self.out.len();
        self.out.push_str(text);
        self.push(Piece { start, height: 1, repeats: 1, size: 1, is_repetition: false })
    }

    fn assertion(&mut self, text: &str, bytes: usize) -> Result<(), Error> {
        self.advance(bytes);
        // In a group, so that a repetition after it is not read as part of it.
        self.atom(&format!("(?:{text})"))
    }

    fn class(&mut self, class: &Class) -> Result<(), Error> {
        let start = self.out.len();
        class.write(&mut self.out);
        self.push(Piece { start, height: 1, repeats: 1, size: 1, is_repetition: false })
    }

    fn literal(&mut self, code: u32) -> Result<(), Error> {
        let Some(c) = char::from_u32(code) else {
            return self.class(&Class::empty());
        };
        let mut text = String::with_capacity(8);
        if regex_syntax::is_meta_character(c) {
            text.push('\\');
        }
        text.push(c);
        match self.flags.fold_case {
            true => self.atom(&format!("(?i:{text})")),
            false => self.atom(&text),
        }
    }

    fn open_group(&mut self, captures: bool, flags_outside: Flags, bytes: usize) {
        let start = self.out.len();
        self.out.push_str("(?:");
        self.groups.push(Group::new(flags_outside, captures, start));
        self.advance(bytes);
    }

    fn close_group(&mut self) -> Result<(), Error> {
        if self.groups.len() == 1 {
            return Err(error(Reason::UnexpectedParen, self.pattern));
        }
        let mut group = self.groups.pop().expect("more than one group is open");
        group.end_alternative();
        self.out.push(')');
        self.flags = group.flags_outside;
        let inside = group.alternatives;
        let captures = usize::from(group.captures);
        self.push(Piece {
            start: group.start,
            height: inside.outer_height() + captures,
            repeats: inside.repeats,
            size: inside.size + 2 * captures as u64,
            is_repetition: false,
        })?;
        self.advance(1);
        Ok(())
    }

    /// `(?:…`, `(?i)`, `(?i-s:…`, `(?P<name>…`, `(?<name>…`.
    fn perl_group(&mut self) -> Result<(), Error> {
        let here = self.rest;
        let name_start = match here {
            _ if here.starts_with("(?P<") && here.len() > 4 => Some(4),
            _ if here.starts_with("(?<") && here.len() > 3 => Some(3),
            _ => None,
        };
        if let Some(name_start) = name_start {
            let Some(end) = here.find('>') else {
                return Err(error(Reason::NamedCapture, here));
            };
            let name = &here[name_start..end];
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(error(Reason::NamedCapture, &here[..=end]));
            }
            // Two groups may share a name in Go; nobody here asks for groups, so names are dropped.
            self.open_group(true, self.flags, end + 1);
            return Ok(());
        }

        let mut flags = self.flags;
        let mut turn_on = true;
        let mut saw_flag = false;
        let mut read = 2;
        for c in here[2..].chars() {
            read += c.len_utf8();
            match c {
                'i' => flags.fold_case = turn_on,
                'm' => flags.multi_line = turn_on,
                's' => flags.dot_matches_newline = turn_on,
                'U' => flags.swap_greed = turn_on,
                '-' if turn_on => {
                    turn_on = false;
                    saw_flag = false;
                    continue;
                }
                ':' | ')' if turn_on || saw_flag => {
                    match c {
                        ':' => self.open_group(false, self.flags, read),
                        _ => self.advance(read),
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(error(Reason::PerlOperator, &here[..read]))
    }

    fn repeat(
        &mut self,
        bounds: Bounds,
        here: &'p str,
        after: &'p str,
        previous_repetition: Option<&'p str>,
    ) -> Result<(), Error> {
        let (lazy, after) = match after.strip_prefix('?') {
            Some(after) => (true, after),
            None => (false, after),
        };
        if let Some(previous) = previous_repetition {
            return Err(error(Reason::RepeatOperator, before(previous, after)));
        }
        let Some(piece) = self.group().last.take() else {
            return Err(error(Reason::MissingRepeatArgument, before(here, after)));
        };
        if piece.is_repetition {
            self.out.insert_str(piece.start, "(?:");
            self.out.push(')');
        }
        bounds.write(&mut self.out);
        if lazy != self.flags.swap_greed {
            self.out.push('?');
        }
        let repeats = match bounds {
            Bounds { counted: false, .. } => piece.repeats,
            Bounds { max: Some(0), .. } => 1,
            Bounds { min, max, .. } => max.unwrap_or(min).max(1).saturating_mul(piece.repeats),
        };
        let counts = bounds.min >= 2 || bounds.max.is_some_and(|max| max >= 2);
        if bounds.counted && counts && repeats > REPEAT_MAX {
            return Err(error(Reason::RepeatSize, before(here, after)));
        }
        self.push(Piece {
            start: piece.start,
            height: piece.height + 1,
            repeats,
            size: bounds.size(piece.size),
            is_repetition: true,
        })?;
        self.rest = after;
        Ok(())
    }

    fn backslash(&mut self) -> Result<(), Error> {
        let here = self.rest;
        match here.as_bytes().get(1) {
            Some(b'A') => return self.assertion("\\A", 2),
            Some(b'z') => return self.assertion("\\z", 2),
            Some(b'b') => return self.assertion("(?-u:\\b)", 2),
            Some(b'B') => return self.assertion("(?-u:\\B)", 2),
            Some(b'C') => return Err(error(Reason::Escape, &here[..2])),
            Some(b'Q') => {
                let (literal, rest) = here[2..].split_once("\\E").unwrap_or((&here[2..], ""));
                for c in literal.chars() {
                    self.literal(u32::from(c))?;
                }
                self.rest = rest;
                return Ok(());
            }
            _ => {}
        }
        if let Some((class, rest)) = named_class(here, self.flags)? {
            self.class(&class)?;
            self.rest = rest;
            return Ok(());
        }
        let (code, rest) = escape(here)?;
        self.literal(code)?;
        self.rest = rest;
        Ok(())
    }

    /// `[…]`.
    fn bracket(&mut self) -> Result<(), Error> {
        let here = self.rest;
        let mut rest = &here[1..];
        let negated = rest.starts_with('^');
        if negated {
            rest = &rest[1..];
        }
        let mut class = Class::empty();
        let mut first = true;
        // A `]` that comes first is an ordinary character.
        while first || !rest.starts_with(']') {
            first = false;
            if let Some((named, after)) = posix_class(rest, self.flags)? {
                class.union(&named);
                rest = after;
                continue;
            }
            if let Some((named, after)) = named_class(rest, self.flags)? {
                class.union(&named);
                rest = after;
                continue;
            }
            let range = rest;
            let (low, after) = class_character(rest, here)?;
            rest = after;
            let mut high = low;
            if rest.starts_with('-') && rest.len() >= 2 && !rest.starts_with("-]") {
                (high, rest) = class_character(&rest[1..], here)?;
                if high < low {
                    return Err(error(Reason::CharRange, before(range, rest)));
                }
            }
            match self.flags.fold_case {
                true => class.union(&Class::range(low, high).folded()),
                false => class.insert(low, high),
            }
        }
        self.class(&if negated { class.negated() } else { class })?;
        self.rest = &rest[1..];
        Ok(())
    }
}

/// How often: `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    min: u32,
    max: Option<u32>,
    /// Written in braces; only those count against the limit on repetition.
    counted: bool,
}

impl Bounds {
    fn write(self, out: &mut String) {
        match (self.min, self.max) {
            (0, None) => out.push('*'),
            (1, None) => out.push('+'),
            (0, Some(1)) => out.push('?'),
            (min, None) => out.push_str(&format!("{{{min},}}")),
            (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
        }
    }

    fn size(self, repeated: u64) -> u64 {
        match (u64::from(self.min), self.max.map(u64::from)) {
            (0, None) => repeated.saturating_add(2),
            (min, None) => repeated.saturating_mul(min).saturating_add(1),
            (min, Some(max)) => repeated.saturating_mul(max).saturating_add(max - min).max(1),
        }
    }
}

/// The part of `text` before its suffix `rest`.
fn before<'p>(text: &'p str, rest: &str) -> &'p str {
    &text[..text.len() - rest.len()]
}

/// A repetition in braces and what follows it. `None` when the braces are ordinary characters;
/// the bounds are `None` when they are impossible.
fn counted(text: &str) -> Option<(Option<Bounds>, &str)> {
    let (min, rest) = number(&text[1..])?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => number(rest).map(|(max, rest)| (Some(max), rest))?,
    };
    let rest = rest.strip_prefix('}')?;
    let possible = min <= REPEAT_MAX && max.is_none_or(|max| min <= max && max <= REPEAT_MAX);
    Some((possible.then_some(Bounds { min, max, counted: true }), rest))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || (digits > 1 && text.starts_with('0')) {
        return None;
    }
    Some((text[..digits].parse().unwrap_or(u32::MAX), &text[digits..]))
}

/// `\d`, `\W`, `\pL`, `\P{Greek}` at the start of `text`, and what follows.
fn named_class(text: &str, flags: Flags) -> Result<Option<(Class, &str)>, Error> {
    let Some(letter) = text.strip_prefix('\\').and_then(|text| text.chars().next()) else {
        return Ok(None);
    };
    let (class, negated, rest) = match letter {
        'p' | 'P' => {
            let (name, rest) = match text[2..].chars().next() {
                None => return Err(error(Reason::CharRange, text)),
                Some('{') => match text.find('}') {
                    None => return Err(error(Reason::CharRange, text)),
                    Some(end) => (&text[3..end], &text[end + 1..]),
                },
                Some(c) => text[2..].split_at(c.len_utf8()),
            };
            let (inverted, name) = match name.strip_prefix('^') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let Some(class) = class::unicode(name) else {
                return Err(error(Reason::CharRange, before(text, rest)));
            };
            (class, inverted != (letter == 'P'), rest)
        }
        letter => match class::perl(letter.to_ascii_lowercase()) {
            None => return Ok(None),
            Some(class) => (class, letter.is_ascii_uppercase(), &text[2..]),
        },
    };
    Ok(Some((signed(class, negated, flags), rest)))
}

/// `[:alpha:]` or `[:^alpha:]` at the start of `text`, and what follows.
fn posix_class(text: &str, flags: Flags) -> Result<Option<(Class, &str)>, Error> {
    let Some(end) = text.strip_prefix("[:").and_then(|text| text.find(":]")) else {
        return Ok(None);
    };
    let (whole, rest) = text.split_at(end + 4);
    let name = &whole[2..end + 2];
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    match class::posix(name) {
        None => Err(error(Reason::CharRange, whole)),
        Some(class) => Ok(Some((signed(class, negated, flags), rest))),
    }
}

fn signed(class: Class, negated: bool, flags: Flags) -> Class {
    let class = if flags.fold_case { class.folded() } else { class };
    if negated { class.negated() } else { class }
}

fn class_character<'p>(text: &'p str, bracket: &str) -> Result<(u32, &'p str), Error> {
    match text.chars().next() {
        None => Err(error(Reason::MissingBracket, bracket)),
        Some('\\') => escape(text),
        Some(c) => Ok((u32::from(c), &text[c.len_utf8()..])),
    }
}

/// The code point of an escape at the start of `text`, possibly a surrogate, and what follows.
fn escape(text: &str) -> Result<(u32, &str), Error> {
    let mut rest = text[1..].chars();
    let Some(c) = rest.next() else {
        return Err(error(Reason::TrailingBackslash, ""));
    };
    let octal = |c: Option<char>| c.and_then(|c| c.to_digit(8));
    let code = match c {
        '0'..='7' if c == '0' || octal(rest.clone().next()).is_some() => {
            let mut code = u32::from(c) - u32::from('0');
            for _ in 0..2 {
                let Some(digit) = octal(rest.clone().next()) else { break };
                code = code * 8 + digit;
                rest.next();
            }
            Some(code)
        }
        'x' => hexadecimal(&mut rest),
        'a' => Some(0x07),
        'f' => Some(0x0C),
        'n' => Some(0x0A),
        'r' => Some(0x0D),
        't' => Some(0x09),
        'v' => Some(0x0B),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, rest.as_str())),
        None => Err(error(Reason::Escape, before(text, rest.as_str()))),
    }
}

/// What follows `\x`: two digits, or any number of them in braces.
fn hexadecimal(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = rest.next()?;
    if first != '{' {
        let second = rest.next();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut code = 0;
    let mut digits = 0;
    loop {
        match rest.next()? {
            '}' => break,
            c => code = code * 16 + c.to_digit(16)?,
        }
        if code > u32::from(char::MAX) {
            return None;
        }
        digits += 1;
    }
    (digits > 0).then_some(code)
}
