//! Pages behind a proxy: their links lead where the client finds what they mean.
//!
//! Only the values of attributes that are links change; every other byte stays as it came.

/// Which attributes of which elements are links.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements whose content is text up to their end, whatever it looks like.
const TEXTS: [&str; 8] =
    ["iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"];

/// A page with other links.
pub(super) fn rewrite(page: &[u8], link: impl Fn(&str) -> String) -> Vec<u8> {
    let mut rewriter = Rewriter { page, at: 0, copied: 0, out: Vec::with_capacity(page.len()) };
    rewriter.run(link);
    rewriter.out
}

struct Rewriter<'a> {
    page: &'a [u8],
    at: usize,
    /// So much of the page is in `out`.
    copied: usize,
    out: Vec<u8>,
}

impl Rewriter<'_> {
    fn run(&mut self, link: impl Fn(&str) -> String) {
        loop {
            self.skip_to(|byte| byte == b'<');
            if self.peek().is_none() {
                return self.copy_to(self.page.len());
            }
            self.at += 1;
            if self.page[self.at..].starts_with(b"!--") {
                self.skip_past(b"-->");
            } else if self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
                let element = self.name();
                self.attributes(&element, &link);
                if TEXTS.contains(&element.as_str()) {
                    self.skip_text(&element);
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.page.get(self.at).copied()
    }

    /// Moves on to the first byte that is one of these, or to the end.
    fn skip_to(&mut self, is_end: impl Fn(u8) -> bool) {
        let rest = &self.page[self.at..];
        self.at += rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
    }

    fn skip_past(&mut self, text: &[u8]) {
        let rest = &self.page[self.at..];
        let found = rest.windows(text.len()).position(|window| window == text);
        self.at += found.map_or(rest.len(), |found| found + text.len());
    }

    /// Moves on to where an element ends that has only text.
    fn skip_text(&mut self, element: &str) {
        let rest = &self.page[self.at..];
        let end = format!("</{element}");
        let mut windows = rest.windows(end.len());
        let found = windows.position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
        self.at += found.unwrap_or(rest.len());
    }

    /// The name of an element or an attribute, in small letters.
    fn name(&mut self) -> String {
        let begin = self.at;
        self.skip_to(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'='));
        String::from_utf8_lossy(&self.page[begin..self.at]).to_ascii_lowercase()
    }

    /// Reads up to the end of a tag.
    fn attributes(&mut self, element: &str, link: &impl Fn(&str) -> String) {
        let links = LINKS.iter().find(|(name, _)| *name == element).map_or(&[][..], |(_, l)| *l);
        loop {
            self.skip_to(|byte| !byte.is_ascii_whitespace() && byte != b'/');
            match self.peek() {
                None => return,
                Some(b'>') => {
                    self.at += 1;
                    return;
                }
                // A stray one; names do not begin with it.
                Some(b'=') => self.at += 1,
                Some(_) => {}
            }
            let name = self.name();
            self.skip_to(|byte| !byte.is_ascii_whitespace());
            if self.peek() != Some(b'=') {
                continue;
            }
            self.at += 1;
            self.skip_to(|byte| !byte.is_ascii_whitespace());
            let (begin, end) = self.value();
            if links.contains(&name.as_str())
                && let Ok(value) = std::str::from_utf8(&self.page[begin..end])
            {
                let other = link(value);
                if other != value {
                    self.copy_to(begin);
                    self.out.extend_from_slice(other.as_bytes());
                    self.copied = end;
                }
            }
        }
    }

    /// Where the value of an attribute begins and ends.
    fn value(&mut self) -> (usize, usize) {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let begin = self.at;
                self.skip_to(|byte| byte == quote);
                let end = self.at;
                self.at = (end + 1).min(self.page.len());
                (begin, end)
            }
            _ => {
                let begin = self.at;
                self.skip_to(|byte| byte.is_ascii_whitespace() || byte == b'>');
                (begin, self.at)
            }
        }
    }

    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(&self.page[self.copied..end]);
        self.copied = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &str) {
        let link = |link: &str| match link.starts_with('/') {
            true => format!("/p{link}"),
            false => link.to_owned(),
        };
        let found = rewrite(page.as_bytes(), link);
        assert_eq!(String::from_utf8(found).expect("text"), expected);
    }

    #[test]
    fn links_are_rewritten_however_they_are_quoted() {
        check("<a href=\"/x?a=1&amp;b\">x</a>", "<a href=\"/p/x?a=1&amp;b\">x</a>");
        check("<A class=k HREF='/x' >", "<A class=k HREF='/p/x' >");
        check("<img src=/x/y.png/>", "<img src=/p/x/y.png/>");
        check("<form action = \"/x\"/>", "<form action = \"/p/x\"/>");
    }

    #[test]
    fn what_is_no_link_stays() {
        for page in [
            "<a href=\"x\">/x</a>",
            "<p href=\"/x\">",
            "<a title=\"/x\" hrefs='/x' data-href=/x>",
            "<!-- <a href=\"/x\"> -->",
            "<script>let a = '<a href=\"/x\">';</script>",
            "1 < 2 <a href",
            "</a href=\"/x\">",
        ] {
            check(page, page);
        }
    }

    #[test]
    fn after_a_script_there_are_links_again() {
        check(
            "<script src=\"/s.js\">'</'</SCRIPT><a href=/x>",
            "<script src=\"/p/s.js\">'</'</SCRIPT><a href=/p/x>",
        );
    }
}
