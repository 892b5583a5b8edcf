//! One e-mail address as RFC 5322 writes it, with or without a name: `Bob <bob@example.com>`.

use std::net::IpAddr;

pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser(text);
    parser.address(true) == Some(1) && parser.skip_comments() && parser.0.is_empty()
}

/// What is left to read. A method that returns false or `None` has found no address.
struct Parser<'t>(&'t str);

impl<'t> Parser<'t> {
    /// Reads an address, or a group of them; returns how many.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        if self.address_spec() {
            self.skip_space();
            return (!self.consume('(') || self.comment()).then_some(1);
        }
        if !self.0.starts_with('<') {
            self.phrase().then_some(())?;
        }
        self.skip_space();
        if groups && self.consume(':') {
            return self.group();
        }
        (self.consume('<') && self.address_spec() && self.consume('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.consume(';') {
            return self.skip_comments().then_some(0);
        }
        let mut members = 0;
        loop {
            members += self.address(false)?;
            self.skip_comments().then_some(())?;
            if self.consume(';') {
                return self.skip_comments().then_some(members);
            }
            self.consume(',').then_some(())?;
        }
    }

    /// `local@domain`; reads nothing when it is not there.
    fn address_spec(&mut self) -> bool {
        let start = self.0;
        self.skip_space();
        let local = match self.0.starts_with('"') {
            true => self.quoted().is_some_and(|content| content),
            false => self.atom(false),
        };
        let found = local && self.consume('@') && {
            self.skip_space();
            match self.0.starts_with('[') {
                true => self.domain_literal(),
                false => self.atom(false),
            }
        };
        if !found {
            self.0 = start;
        }
        found
    }

    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }
            self.skip_space();
            if self.0.is_empty() {
                return true;
            }
            let word = match self.0.starts_with('"') {
                true => self.quoted().is_some(),
                false => self.atom(true),
            };
            if !word {
                return words > 0;
            }
            words += 1;
        }
    }

    /// A quoted string, and whether there is anything in it.
    fn quoted(&mut self) -> Option<bool> {
        let mut escaped = false;
        let mut content = false;
        for (index, c) in self.0.char_indices().skip(1) {
            match c {
                c if escaped => {
                    (is_visible(c) || is_space(c)).then_some(())?;
                    escaped = false;
                    content = true;
                }
                '"' => {
                    self.0 = &self.0[index + 1..];
                    return Some(content);
                }
                '\\' => escaped = true,
                c if is_visible(c) || is_space(c) => content = true,
                _ => return None,
            }
        }
        None
    }

    /// A word with dots; where `permissive`, the dots may stand anywhere.
    fn atom(&mut self, permissive: bool) -> bool {
        let is_atom = |c: char| is_visible(c) && !"(),:;<>@[]\\\"".contains(c);
        let end = self.0.find(|c| !is_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        !atom.is_empty()
            && (permissive
                || !(atom.starts_with('.') || atom.ends_with('.') || atom.contains("..")))
    }

    fn domain_literal(&mut self) -> bool {
        let Some((address, rest)) = self.0[1..].split_once(']') else { return false };
        self.0 = rest;
        address.parse::<IpAddr>().is_ok()
    }

    fn consume(&mut self, c: char) -> bool {
        self.0.strip_prefix(c).map(|rest| self.0 = rest).is_some()
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(is_space);
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.consume('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The rest of a comment whose parenthesis is open.
    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut characters = self.0.char_indices();
        while let Some((index, c)) = characters.next() {
            match c {
                '\\' => {
                    characters.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.0 = &self.0[index + 1..];
                return true;
            }
        }
        false
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_space(c: char) -> bool {
    c == ' ' || c == '\t'
}
