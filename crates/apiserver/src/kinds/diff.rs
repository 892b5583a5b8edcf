//! What changed between two objects, for people: a unified diff of their pretty JSON, which
//! upstream puts into the refusal of a change it does not allow.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use serde_json::Value;

/// How many unchanged lines surround a change.
const CONTEXT: usize = 3;

/// The diff, each of its lines ended. Empty when there is none.
pub(super) fn unified(old: &Value, new: &Value) -> String {
    let (old, new) = (pretty(old), pretty(new));
    let old: Vec<&str> = old.split('\n').collect();
    let new: Vec<&str> = new.split('\n').collect();
    let mut text = String::new();
    for hunk in hunks(&steps(&old, &new)) {
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let (old_range, new_range) = (first.old.start..last.old.end, first.new.start..last.new.end);
        let _ = writeln!(text, "@@ -{} +{} @@", lines(&old_range), lines(&new_range));
        for step in &hunk {
            let mut write = |mark: char, lines: &[&str]| {
                for line in lines {
                    let _ = writeln!(text, "{mark}{line}");
                }
            };
            if step.equal {
                write(' ', &old[step.old.clone()]);
            } else {
                write('-', &old[step.old.clone()]);
                write('+', &new[step.new.clone()]);
            }
        }
    }
    text
}

/// As Go indents by one blank.
fn pretty(value: &Value) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("a tree can be written");
    String::from_utf8(text).expect("JSON is text")
}

/// Lines of both sides that are the same, or stand in one another's place.
#[derive(Debug, Clone)]
struct Step {
    equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let mut blocks = Vec::new();
    match_blocks(old, new, 0..old.len(), 0..new.len(), &mut blocks);
    blocks.push((old.len(), new.len(), 0));
    let mut steps: Vec<Step> = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    for (old_start, new_start, len) in blocks {
        if at_old < old_start || at_new < new_start {
            steps.push(Step { equal: false, old: at_old..old_start, new: at_new..new_start });
        }
        (at_old, at_new) = (old_start + len, new_start + len);
        if len > 0 {
            steps.push(Step { equal: true, old: old_start..at_old, new: new_start..at_new });
        }
    }
    steps
}

/// The longest run of equal lines, and then the same to both sides of it, in order.
fn match_blocks(
    old: &[&str],
    new: &[&str],
    old_range: Range<usize>,
    new_range: Range<usize>,
    blocks: &mut Vec<(usize, usize, usize)>,
) {
    let (old_start, new_start, len) = longest(old, new, old_range.clone(), new_range.clone());
    if len == 0 {
        return;
    }
    match_blocks(old, new, old_range.start..old_start, new_range.start..new_start, blocks);
    match blocks.last_mut() {
        // Neighbours are one block.
        Some((old_at, new_at, so_far))
            if *old_at + *so_far == old_start && *new_at + *so_far == new_start =>
        {
            *so_far += len;
        }
        _ => blocks.push((old_start, new_start, len)),
    }
    let (old_end, new_end) = (old_start + len, new_start + len);
    match_blocks(old, new, old_end..old_range.end, new_end..new_range.end, blocks);
}

/// Of equally long runs the first one, in the old lines and then in the new.
fn longest(
    old: &[&str],
    new: &[&str],
    old_range: Range<usize>,
    new_range: Range<usize>,
) -> (usize, usize, usize) {
    let mut best = (old_range.start, new_range.start, 0);
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for i in old_range {
        let mut longer = HashMap::new();
        for j in new_range.clone().filter(|j| new[*j] == old[i]) {
            let before = j.checked_sub(1).and_then(|j| lengths.get(&j)).copied().unwrap_or(0);
            let len = before + 1;
            longer.insert(j, len);
            if len > best.2 {
                best = (i + 1 - len, j + 1 - len, len);
            }
        }
        lengths = longer;
    }
    best
}

/// Changes that are near to each other, with some lines around.
fn hunks(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut hunks = Vec::new();
    let mut hunk: Vec<Step> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let mut step = step.clone();
        if step.equal {
            let len = step.old.len();
            if index == 0 {
                let skipped = len.saturating_sub(CONTEXT);
                step.old.start += skipped;
                step.new.start += skipped;
            }
            if index == steps.len() - 1 {
                let skipped = step.old.len().saturating_sub(CONTEXT);
                step.old.end -= skipped;
                step.new.end -= skipped;
            } else if index > 0 && len > 2 * CONTEXT {
                let tail = step.old.len() - CONTEXT;
                let before = Step {
                    equal: true,
                    old: step.old.start..step.old.end - tail,
                    new: step.new.start..step.new.end - tail,
                };
                hunk.push(before);
                hunks.push(std::mem::take(&mut hunk));
                step.old.start += tail;
                step.new.start += tail;
            }
        }
        hunk.push(step);
    }
    if hunk.iter().any(|step| !step.equal) {
        hunks.push(hunk);
    }
    hunks
}

/// A range of lines as unified diffs write it: from one, and without a length of one.
fn lines(range: &Range<usize>) -> String {
    match range.len() {
        1 => format!("{}", range.start + 1),
        0 => format!("{},0", range.start),
        len => format!("{},{len}", range.start + 1),
    }
}
