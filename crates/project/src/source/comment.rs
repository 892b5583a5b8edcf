//! Comments, which the syntax tree does not have.

/// Where the comments end that follow a place on its line; the place itself if none do.
pub(super) fn end_of_those_after(text: &str, place: usize) -> usize {
    let mut end = place;
    loop {
        let next = end + blank(&text[end..], |c| c == ' ' || c == '\t');
        match length(&text[next..]) {
            Some(length) => end = next + length,
            None => return end,
        }
    }
}

/// The last comment in a text that has nothing else but white space: where it ends, and whether it
/// takes the rest of its line.
pub(super) fn last(text: &str) -> Option<(usize, bool)> {
    let mut last = None;
    let mut at = 0;
    loop {
        at += blank(&text[at..], char::is_whitespace);
        let Some(length) = length(&text[at..]) else { return last };
        let is_line = text[at..].starts_with("//");
        at += length;
        last = Some((at, is_line));
    }
}

fn blank(text: &str, is_blank: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_blank(c)).unwrap_or(text.len())
}

/// How long the comment is that a text begins with, without the end of its line.
fn length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        let line = text.find('\n').unwrap_or(text.len());
        return Some(text[..line].trim_end_matches('\r').len());
    }
    if !text.starts_with("/*") {
        return None;
    }
    // They may be in each other.
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['/', '*']).map(|found| at + found) {
        match text.get(found..found + 2) {
            Some("/*") => depth += 1,
            Some("*/") => depth -= 1,
            _ => {
                at = found + 1;
                continue;
            }
        }
        at = found + 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
