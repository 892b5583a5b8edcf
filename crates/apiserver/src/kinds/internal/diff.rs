//! The difference between two texts, line by line, as the library that upstream uses tells it.
//!
//! That library follows Python's `difflib`: the longest run of common lines is found first, then
//! those on either side of it. In long texts, lines that are everywhere do not begin a run.

use std::collections::HashMap;
use std::ops::Range;

/// How many common lines are shown around each difference.
const CONTEXT: usize = 3;
/// From so many lines on, a line is too common if more than one in a hundred is like it.
const LONG_LINES_MIN: usize = 200;

/// Hunks without the names of files before them.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    let mut write = |mark: char, lines: &[&str]| {
        for line in lines {
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
    };
    for hunk in hunks(&old, &new) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old_range = range(first.old.start..last.old.end);
        let new_range = range(first.new.start..last.new.end);
        write('@', &[&format!("@ -{old_range} +{new_range} @@")]);
        for change in &hunk {
            if change.is_equal {
                write(' ', &old[change.old.clone()]);
            } else {
                write('-', &old[change.old.clone()]);
                write('+', &new[change.new.clone()]);
            }
        }
    }
    text
}

/// Lines that became others, or stayed.
#[derive(Debug, Clone)]
struct Change {
    is_equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// Lines are counted from one; an empty range is told by the line before it.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

fn hunks(old: &[&str], new: &[&str]) -> Vec<Vec<Change>> {
    let mut changes = changes(old, new);
    if let Some(first) = changes.first_mut().filter(|change| change.is_equal) {
        first.old.start = first.old.start.max(first.old.end.saturating_sub(CONTEXT));
        first.new.start = first.new.start.max(first.new.end.saturating_sub(CONTEXT));
    }
    if let Some(last) = changes.last_mut().filter(|change| change.is_equal) {
        last.old.end = last.old.end.min(last.old.start + CONTEXT);
        last.new.end = last.new.end.min(last.new.start + CONTEXT);
    }
    let mut hunks = Vec::new();
    let mut hunk = Vec::new();
    for mut change in changes {
        if change.is_equal && change.old.len() > 2 * CONTEXT {
            let mut head = change.clone();
            head.old.end = head.old.start + CONTEXT;
            head.new.end = head.new.start + CONTEXT;
            hunk.push(head);
            hunks.push(std::mem::take(&mut hunk));
            change.old.start = change.old.end - CONTEXT;
            change.new.start = change.new.end - CONTEXT;
        }
        hunk.push(change);
    }
    if hunk.iter().any(|change| !change.is_equal) {
        hunks.push(hunk);
    }
    hunks
}

fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for Match { old: old_match, new: new_match, length } in matches(old, new) {
        if old_at < old_match || new_at < new_match {
            let (old, new) = (old_at..old_match, new_at..new_match);
            changes.push(Change { is_equal: false, old, new });
        }
        (old_at, new_at) = (old_match + length, new_match + length);
        if length > 0 {
            let (old, new) = (old_match..old_at, new_match..new_at);
            changes.push(Change { is_equal: true, old, new });
        }
    }
    changes
}

#[derive(Debug, Clone, Copy)]
struct Match {
    old: usize,
    new: usize,
    length: usize,
}

/// Runs of common lines in order, and an empty one at the end.
fn matches(old: &[&str], new: &[&str]) -> Vec<Match> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if new.len() >= LONG_LINES_MIN {
        places.retain(|_, indexes| indexes.len() <= new.len() / 100 + 1);
    }
    let mut found = Vec::new();
    let mut todo = vec![(0..old.len(), 0..new.len())];
    while let Some((old_range, new_range)) = todo.pop() {
        let best = longest(old, new, &places, &old_range, &new_range);
        if best.length == 0 {
            continue;
        }
        found.push(best);
        let (old_end, new_end) = (best.old + best.length, best.new + best.length);
        for (old, new) in [
            (old_range.start..best.old, new_range.start..best.new),
            (old_end..old_range.end, new_end..new_range.end),
        ] {
            if !old.is_empty() && !new.is_empty() {
                todo.push((old, new));
            }
        }
    }
    found.sort_by_key(|found| found.old);
    let mut joined: Vec<Match> = Vec::new();
    for next in found {
        match joined.last_mut() {
            Some(last)
                if last.old + last.length == next.old && last.new + last.length == next.new =>
            {
                last.length += next.length;
            }
            _ => joined.push(next),
        }
    }
    joined.push(Match { old: old.len(), new: new.len(), length: 0 });
    joined
}

/// The longest run within these lines, the first one of several.
fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    old_range: &Range<usize>,
    new_range: &Range<usize>,
) -> Match {
    let mut best = Match { old: old_range.start, new: new_range.start, length: 0 };
    // By line of the new text, how long the run is that ends there.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for old_index in old_range.clone() {
        let mut next = HashMap::new();
        let indexes = places.get(old[old_index]).into_iter().flatten().copied();
        for new_index in indexes.filter(|index| new_range.contains(index)) {
            let before = new_index.checked_sub(1).and_then(|index| lengths.get(&index));
            let length = before.copied().unwrap_or_default() + 1;
            next.insert(new_index, length);
            if length > best.length {
                best = Match { old: old_index + 1 - length, new: new_index + 1 - length, length };
            }
        }
        lengths = next;
    }
    // Lines that are too common to begin a run may well be part of one.
    while best.old > old_range.start
        && best.new > new_range.start
        && old[best.old - 1] == new[best.new - 1]
    {
        best = Match { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
    }
    while best.old + best.length < old_range.end
        && best.new + best.length < new_range.end
        && old[best.old + best.length] == new[best.new + best.length]
    {
        best.length += 1;
    }
    best
}
