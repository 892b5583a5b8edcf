//! Spans of time in a few characters, as `3d4h`.

use jiff::SignedDuration;

use crate::time::{MicroTime, Time};

/// How long ago a moment was; `<unknown>` when there is none.
pub fn since(moment: Option<MicroTime>, now: MicroTime) -> String {
    match moment.filter(|moment| moment.unix_seconds() != Time::ZERO.unix_seconds()) {
        None => "<unknown>".to_owned(),
        Some(moment) => human(between(moment, now)),
    }
}

/// A span with two or three significant figures. Spans to the future are invalid, but for those
/// that clocks may disagree about.
pub fn human(span: SignedDuration) -> String {
    // Go's durations end at 292 years.
    let seconds = span.as_secs().clamp(-SECONDS_MAX, SECONDS_MAX);
    let minutes = seconds / 60;
    let hours = minutes / 60;
    let days = hours / 24;
    match () {
        _ if seconds < -1 => "<invalid>".to_owned(),
        _ if seconds < 0 => "0s".to_owned(),
        _ if seconds < 2 * 60 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

pub(super) fn between(earlier: MicroTime, later: MicroTime) -> SignedDuration {
    let nanos = |moment: MicroTime| i64::from(moment.subsec_nanos());
    SignedDuration::from_secs(later.unix_seconds() - earlier.unix_seconds())
        + SignedDuration::from_nanos(nanos(later) - nanos(earlier))
}

/// Reads a timestamp, whether it has microseconds or not.
pub(super) fn parse(text: &str) -> Option<MicroTime> {
    let whole = || Time::parse(text).map(|time| MicroTime::from_unix(time.unix_seconds(), 0));
    MicroTime::parse(text).or_else(|_| whole()).ok()
}

const SECONDS_MAX: i64 = i64::MAX / 1_000_000_000;

/// A count of large units, and of small ones if there are any.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}
