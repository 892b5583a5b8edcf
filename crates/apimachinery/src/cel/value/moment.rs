//! Points in time, and the lenient ways in which objects write times and durations.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::Failure;
use crate::json;
use crate::time::Time;

/// A point in time, with the offset it was written in.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset_seconds: i32,
}

/// Where a clock hangs.
pub(in crate::cel) enum Zone {
    Place(TimeZone),
    /// So many seconds east of Greenwich, however many that are.
    East(i64),
}

/// In seconds.
const DAY: i64 = 86_400;

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

    /// A date-time of a custom resource. Some that its format takes cannot be read; the complaint
    /// is about the last form that upstream tries, which has no zone.
    pub(super) fn parse_date_time(text: &str) -> Result<Self, Failure> {
        Timestamp::parse(text).map_err(|_| {
            let quoted = json::go_quote(text);
            let rest = text.get(10..).unwrap_or_default();
            if !rest.starts_with('T') {
                let rest = json::go_quote(rest);
                return Failure::new(format!(
                    "parsing time {quoted} as \"2006-01-02T15:04:05\": cannot parse {rest} as \"T\""
                ));
            }
            let zone = rest.get(9..).unwrap_or_default();
            let is_fraction = zone.starts_with(['.', ',']);
            let zone = zone.trim_start_matches(|c: char| {
                is_fraction && (c.is_ascii_digit() || c == '.' || c == ',')
            });
            let zone = json::go_quote(zone);
            Failure::new(format!("parsing time {quoted}: extra text: {zone}"))
        })
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
        i64::try_from(difference).map_err(|_| Failure::new("integer overflow"))
    }

    /// What the calendar and the clock of a zone show, and how many years are to be added: the
    /// library's calendar ends with the year 9999, the last hours of which are later elsewhere.
    pub(in crate::cel) fn civil(self, zone: &Zone) -> (DateTime, i64) {
        let (seconds, zone) = match zone {
            Zone::Place(zone) => (self.seconds, zone),
            Zone::East(east) => (self.seconds + east, &TimeZone::UTC),
        };
        // After 400 years the calendar repeats itself.
        let years = if seconds > SECONDS.end() - DAY { 400 } else { 0 };
        let seconds = seconds - years / 400 * 146_097 * DAY;
        let at = jiff::Timestamp::new(seconds, self.nanos as i32);
        (zone.to_datetime(at.unwrap_or(jiff::Timestamp::MAX)), years)
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
        let (civil, years) = self.civil(&Zone::East(i64::from(self.offset_seconds)));
        let year = i64::from(civil.year()) + years;
        write!(f, "{year:04}-{:02}-{:02}", civil.month(), civil.day())?;
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
