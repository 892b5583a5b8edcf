//! What a container says last, as its status shows it. Pure.

#[cfg(test)]
mod tests;

/// As kubelet cuts off last words, and what it takes of a log in their stead.
const BYTES_MAX: usize = 4096;
const LOG_BYTES_MAX: usize = 2048;
const LOG_LINES_MAX: usize = 80;

/// The beginning of what a container left; none if it left nothing.
pub(super) fn beginning(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// The end of a log, without what CRI writes before each line; none if there is none.
pub(super) fn last_lines(log: &[u8]) -> Option<String> {
    let lines = log.split_inclusive(|byte| *byte == b'\n');
    let text: Vec<&[u8]> = lines.filter_map(written).collect();
    let kept = text[text.len().saturating_sub(LOG_LINES_MAX)..].concat();
    let kept = &kept[kept.len().saturating_sub(LOG_BYTES_MAX)..];
    (!kept.is_empty()).then(|| String::from_utf8_lossy(kept).into_owned())
}

/// What a container wrote of a line of its log. A part of a line ends where the next one begins, or
/// where the container ended: the end of the line is CRI's.
fn written(line: &[u8]) -> Option<&[u8]> {
    let mut parts = line.splitn(4, |byte| *byte == b' ').skip(2);
    let (tag, text) = (parts.next()?, parts.next()?);
    match tag.first() {
        Some(b'P') => Some(text.strip_suffix(b"\n").unwrap_or(text)),
        _ => Some(text),
    }
}
