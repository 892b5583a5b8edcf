//! Durations as Go reads and writes them: `1h30m0s`, `1.5s`, `250µs`.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign, and the Greek letter that looks like it.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds, as the Go type holds them.
///
/// # Errors
/// In the words of Go's `time.ParseDuration`.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let quoted = crate::json::go_quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(invalid)?;
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {quoted}"));
        }
        let nanos = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos);
        let nanos = nanos.ok_or_else(|| {
            format!("time: unknown unit {} in duration {quoted}", crate::json::go_quote(unit))
        })?;
        total = scale(number, nanos)
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= 1 << 63)
            .ok_or_else(invalid)?;
        rest = after;
    }
    match i64::try_from(total) {
        Ok(total) if negative => Ok(-total),
        Ok(total) => Ok(total),
        // Only the least of all has no positive counterpart.
        Err(_) if negative => Ok(i64::MIN),
        Err(_) => Err(invalid()),
    }
}

/// Takes `12.5` off the front, as the digits before and after the point.
fn split_number(text: &str) -> Option<((&str, &str), &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    (!whole.is_empty() || !fraction.is_empty()).then_some(((whole, fraction), rest))
}

fn scale((whole, fraction): (&str, &str), nanos: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let whole = whole.checked_mul(nanos).filter(|total| *total <= 1 << 63)?;
    // Digits past what 63 bits hold are below a nanosecond for every unit.
    let mut numerator: u64 = 0;
    let mut denominator: f64 = 1.0;
    for digit in fraction.bytes() {
        let next = numerator.checked_mul(10).and_then(|n| n.checked_add((digit - b'0').into()));
        let Some(next) = next.filter(|next| *next <= 1 << 63) else {
            break;
        };
        numerator = next;
        denominator *= 10.0;
    }
    // In floating point and cut off, because Go does so.
    let part = (numerator as f64 * (nanos as f64 / denominator)) as u64;
    whole.checked_add(part)
}

/// The duration as Go prints it.
pub fn format_duration(nanos: i64) -> String {
    let magnitude = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => format!("{sign}{}\u{b5}s", decimal(magnitude, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(magnitude, 1_000_000)),
        _ => {
            let minutes = magnitude / 60_000_000_000;
            let seconds = decimal(magnitude % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// A quotient by a power of ten, without zeros at the end.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, part) = (value / unit, value % unit);
    if part == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let part = format!("{part:0width$}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}
