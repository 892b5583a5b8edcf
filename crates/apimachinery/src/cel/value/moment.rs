//! Points in time, and the lenient ways in which objects write times and durations.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

use super::Failure;
use crate::time::Time;

/// A point in time, with the offset it was written in.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset_seconds: i32,
}

/// The years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl Timestamp {
    pub(in crate::cel) fn from_unix(seconds: i64, nanos: u32) -> Result<Self, Failure> {
        match SECONDS.contains(&seconds) {
            true => Ok(Timestamp { seconds, nanos, offset_seconds: 0 }),
            false => Err(Failure::new("timestamp overflow")),
        }
    }

    /// RFC 3339, as Go reads it.
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, Failure> {
        let time = Time::parse(text).map_err(|error| Failure::new(error.to_string()))?;
        let at = Timestamp::from_unix(time.unix_seconds(), time.subsec_nanos())?;
        Ok(Timestamp { offset_seconds: written_offset(text), ..at })
    }

    /// A date-time as custom resources may write it.
    pub(super) fn parse_lenient(text: &str) -> Result<Self, Failure> {
        Timestamp::parse(&text.to_uppercase())
    }

    /// `2006-01-02`.
    pub(super) fn parse_date(text: &str) -> Result<Self, Failure> {
        Timestamp::parse(&format!("{text}T00:00:00Z"))
    }

    /// What makes two of them the same.
    pub(in crate::cel) fn instant(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    pub(in crate::cel) fn unix_seconds(self) -> i64 {
        self.seconds
    }

    pub(super) fn is_zero(self) -> bool {
        self.instant() == (*SECONDS.start(), 0)
    }

    /// Later by that many nanoseconds.
    pub(in crate::cel) fn plus(self, nanos: i64) -> Result<Self, Failure> {
        let total =
            i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos) + i128::from(nanos);
        let seconds = i64::try_from(total.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
        let nanos = total.rem_euclid(1_000_000_000) as u32;
        let at = Timestamp::from_unix(seconds, nanos)?;
        Ok(Timestamp { offset_seconds: self.offset_seconds, ..at })
    }

    /// The nanoseconds since another.
    pub(in crate::cel) fn since(self, other: Timestamp) -> Result<i64, Failure> {
        let difference = (i128::from(self.seconds) - i128::from(other.seconds)) * 1_000_000_000
            + (i128::from(self.nanos) - i128::from(other.nanos));
        i64::try_from(difference).map_err(|_| Failure::new("duration overflow"))
    }

    /// What the calendar and the clock of a zone show.
    pub(in crate::cel) fn civil(self, zone: &TimeZone) -> jiff::civil::DateTime {
        let at =
            jiff::Timestamp::new(self.seconds, self.nanos as i32).unwrap_or(jiff::Timestamp::MAX);
        zone.to_datetime(at)
    }
}

/// The zone of the text's end.
fn written_offset(text: &str) -> i32 {
    let Some(zone) = text.len().checked_sub(6).and_then(|at| text.get(at..)) else { return 0 };
    let number =
        |range: std::ops::Range<usize>| zone.get(range).and_then(|n| n.parse::<i32>().ok());
    let (Some(hours), Some(minutes)) = (number(1..3), number(4..6)) else { return 0 };
    match zone.as_bytes()[0] {
        b'+' => (hours * 60 + minutes) * 60,
        b'-' => -(hours * 60 + minutes) * 60,
        _ => 0,
    }
}

/// RFC 3339 with as many digits as the fraction has.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        let civil = self.civil(&TimeZone::fixed(zone));
        let date: Date = civil.date();
        write!(f, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())?;
        write!(f, "T{:02}:{:02}:{:02}", civil.hour(), civil.minute(), civil.second())?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        let minutes = self.offset_seconds / 60;
        match minutes {
            0 => f.write_str("Z"),
            _ => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let minutes = minutes.abs();
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}
