//! Dates, times and durations.

use std::sync::LazyLock;

use super::pattern;
use crate::regex::Regex;
use crate::time::GoDuration;

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_shaped {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date, `T`, and a time with its zone. The zone's own numbers are not looked at.
pub(super) fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
    });
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && TIME.is_match(time)
        && &time[..2] <= "23"
        && &time[3..5] <= "59"
        && &time[6..8] <= "59"
}

/// A duration of Go's, or a number and a unit somewhere in the text: `1h30m`, `3 weeks`.
pub(super) fn is_duration(text: &str) -> bool {
    duration_nanos(text).is_some()
}

/// How long such a duration is.
pub(crate) fn duration_nanos(text: &str) -> Option<i64> {
    GoDuration::parse(text).map(|duration| duration.nanos).ok().or_else(|| spoken_nanos(text))
}

fn spoken_nanos(text: &str) -> Option<i64> {
    const SECOND: i64 = 1_000_000_000;
    /// The last word of each unit may be continued: `second`, `seconds`.
    const UNITS: &[(&[&str], i64)] = &[
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3_600 * SECOND),
        (&["d", "day"], 24 * 3_600 * SECOND),
        (&["w", "wk", "week"], 7 * 24 * 3_600 * SECOND),
    ];
    static PART: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)\s*([A-Za-zµ]+)"));
    let mut total = None;
    for part in PART.find_all(text) {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let factor: i64 = part[..digits].parse().ok()?;
        let unit = part[digits..].trim().to_lowercase();
        for (names, nanos) in UNITS {
            let is_meant = names.contains(&unit.as_str())
                || names.last().is_some_and(|last| unit.starts_with(last));
            if is_meant {
                // Too long a time wraps around, as it does upstream.
                let part = factor.wrapping_mul(*nanos);
                total = Some(total.unwrap_or(0_i64).wrapping_add(part));
            }
        }
    }
    total
}
