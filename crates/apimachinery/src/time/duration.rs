//! Durations in Go's notation: `1h30m0s`, `1.5h`, `-250ms`.

use std::fmt;

use super::parse::quote;

/// A length of time in nanoseconds, as `metav1.Duration` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    pub nanos: i64,
}

/// Why a text is no duration. Displays as Go's `time.ParseDuration` words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    #[error("time: invalid duration {}", quote(.0))]
    Invalid(String),
    #[error("time: missing unit in duration {}", quote(.0))]
    MissingUnit(String),
    #[error("time: unknown unit {} in duration {}", quote(unit), quote(text))]
    UnknownUnit { text: String, unit: String },
}

const SECOND: u64 = 1_000_000_000;

impl GoDuration {
    /// Reads numbers with units, largest unit first or not.
    pub fn parse(text: &str) -> Result<Self, ParseDurationError> {
        let invalid = || ParseDurationError::Invalid(text.to_owned());
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(GoDuration::default());
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (whole, after) = split_digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => split_digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            let unit_nanos = match unit {
                // What has no digits fit for a number is wrong before its unit is looked at.
                _ if whole_number(whole).is_none() => return Err(invalid()),
                "" => return Err(ParseDurationError::MissingUnit(text.to_owned())),
                "ns" => 1,
                "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => SECOND,
                "m" => 60 * SECOND,
                "h" => 3600 * SECOND,
                unknown => {
                    return Err(ParseDurationError::UnknownUnit {
                        text: text.to_owned(),
                        unit: unknown.to_owned(),
                    });
                }
            };
            let part = whole_number(whole)
                .and_then(|whole| whole.checked_mul(unit_nanos))
                .and_then(|nanos| nanos.checked_add(fraction_nanos(fraction, unit_nanos)));
            total = part
                .and_then(|part| total.checked_add(part))
                .filter(|total| *total <= 1 << 63)
                .ok_or_else(invalid)?;
            rest = after;
        }
        // The least number has no positive counterpart.
        let nanos = match negative {
            true => 0_i64.checked_sub_unsigned(total),
            false => i64::try_from(total).ok(),
        };
        nanos.map(|nanos| GoDuration { nanos }).ok_or_else(invalid)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Up to 2⁶³; no digits are zero.
fn whole_number(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0_u64, |number, digit| {
        let number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        (number <= 1 << 63).then_some(number)
    })
}

/// In floats, as Go computes it; digits beyond what 63 bits hold are passed over.
fn fraction_nanos(digits: &str, unit_nanos: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        let Some(next) = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit - b'0')))
            .filter(|number| *number <= 1 << 63)
        else {
            break;
        };
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (unit_nanos as f64 / scale)) as u64
}

/// Canonical: hours, minutes and seconds from a second on, else the one unit that fits.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_decimal(f, nanos, 1_000, "µs"),
            1_000_000..SECOND => write_decimal(f, nanos, 1_000_000, "ms"),
            _ => {
                let (hours, minutes) = (nanos / SECOND / 3600, nanos / SECOND / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write_decimal(f, nanos % (60 * SECOND), SECOND, "s")
            }
        }
    }
}

fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let places = unit.ilog10() as usize;
    let fraction = format!("{:0places$}", nanos % unit);
    match fraction.trim_end_matches('0') {
        "" => {}
        digits => write!(f, ".{digits}")?,
    }
    f.write_str(name)
}
