//! Sets of indexes as a job's status writes them: `1,3-5,7`.

use kubewright_apimachinery::json::go_quote;

/// How many indexes there are, or why the text is no set of those below `completions`.
pub(super) fn count(indexes: &str, completions: i32) -> Result<i32, String> {
    let mut total = 0;
    let mut last = None;
    for interval in intervals(indexes) {
        let (start, end) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= start) {
            return Err(format!("non-increasing order, previous: {last}, current: {start}"));
        }
        total += end - start + 1;
        last = Some(end);
    }
    Ok(total)
}

/// An index that is in both sets. Intervals that make no sense are passed over.
pub(super) fn overlap(completed: &str, failed: &str, completions: i32) -> Option<i32> {
    let parse = |indexes| intervals(indexes).filter_map(|text| parse(text, completions).ok());
    let (mut completed, mut failed) = (parse(completed).peekable(), parse(failed).peekable());
    while let (Some(one), Some(other)) = (completed.peek(), failed.peek()) {
        if one.0 <= other.1 && other.0 <= one.1 {
            return Some(one.0.max(other.0));
        }
        if one.0 <= other.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

fn intervals(indexes: &str) -> impl Iterator<Item = &str> {
    indexes.split(',').filter(|_| !indexes.is_empty())
}

/// The first and the last index of an interval.
fn parse(interval: &str, completions: i32) -> Result<(i32, i32), String> {
    let index = |text: &str| {
        let index: i64 = text.parse().map_err(|_| {
            format!("cannot convert string to integer for index: {}", go_quote(text))
        })?;
        match i32::try_from(index) {
            Ok(index) if index < completions => Ok(index),
            // Upstream lets no larger one pass, and reads no smaller one: `-` is between indexes.
            _ => Err(format!("too large index: {}", go_quote(text))),
        }
    };
    match interval.split('-').collect::<Vec<_>>()[..] {
        [only] => index(only).map(|index| (index, index)),
        [start, end] => {
            let (start, end) = (index(start)?, index(end)?);
            match start < end {
                true => Ok((start, end)),
                false => Err(format!("non-increasing order, previous: {start}, current: {end}")),
            }
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two \
             parts separated by '-'",
            go_quote(interval)
        )),
    }
}
