//! Schedules as CronJobs write them: the five fields of crontab, or a descriptor.
//!
//! The grammar is that of the parser upstream uses (robfig's), with its oddities: Sunday is 0 and
//! never 7, `?` is `*`, `N/step` goes on to the end of the range, and a field of nothing but commas
//! is accepted and never due. Nothing here reads a clock.

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::json::go_quote;
use crate::time::{GoDuration, ParseDurationError};

/// When something is due, again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    due: Due,
    /// The zone that the text itself names, before that of the caller.
    zone: Option<TimeZone>,
}

/// Why a text is no schedule. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("empty spec string")]
    Empty,
    /// A zone with no schedule after it makes upstream's parser panic, and this is what it says.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    OnlyZone,
    #[error("provided bad location {name}: {problem}")]
    Zone { name: String, problem: ZoneError },
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    #[error("failed to parse duration {descriptor}: {problem}")]
    Duration { descriptor: String, problem: ParseDurationError },
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    #[error("too many slashes: {0}")]
    Slashes(String),
    #[error("failed to parse int from {text}: strconv.Atoi: parsing {}: {problem}", go_quote(.text))]
    Number { text: String, problem: &'static str },
    #[error("negative number ({number}) not allowed: {text}")]
    Negative { number: i64, text: String },
    #[error("beginning of range ({start}) below minimum ({min}): {text}")]
    Below { start: u64, min: u64, text: String },
    #[error("end of range ({end}) above maximum ({max}): {text}")]
    Above { end: u64, max: u64, text: String },
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Reversed { start: u64, end: u64, text: String },
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
}

/// Why a text names no time zone. Displays as Go's `time.LoadLocation` words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    #[error("unknown time zone {0}")]
    Unknown(String),
    /// A name that would lead out of the folder that zones are in.
    #[error("time: invalid location name")]
    Name,
}

#[derive(Debug, Clone, PartialEq)]
enum Due {
    At(Fields),
    Every(SignedDuration),
}

/// The local times at which something is due, each at second zero.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    minute: Set,
    hour: Set,
    day_of_month: Set,
    month: Set,
    day_of_week: Set,
}

/// Numbers below 63.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// It was written as `*`: the other of the two fields for days alone counts.
    is_star: bool,
}

/// What numbers a field may have, and what they are called.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS_OF_MONTH: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAYS_OF_WEEK: Bounds =
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// How far ahead a schedule is searched for a time that is due.
const YEARS_MAX: i16 = 5;

impl Schedule {
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Empty);
        }
        let mut rest = text;
        let mut own_zone = None;
        if let Some(after) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
            let (name, after) = after.split_once(' ').ok_or(ParseError::OnlyZone)?;
            let found = zone(name)
                .map_err(|problem| ParseError::Zone { name: name.to_owned(), problem })?;
            // Go's local zone is the one of the time that it is asked about.
            own_zone = Some(found).filter(|_| name != "Local");
            rest = after.trim();
        }
        let due = match rest.starts_with('@') {
            true => parse_descriptor(rest)?,
            false => Due::At(Fields::parse(rest)?),
        };
        Ok(Schedule { due, zone: own_zone })
    }

    /// The first time after this one at which the schedule is due; `None` when that would be
    /// years ahead, or never.
    ///
    /// Local times that a change of clocks skips are not due; those that it repeats are due twice.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.due {
            Due::At(fields) => {
                let zone = self.zone.as_ref().unwrap_or(zone);
                fields.next(after.to_zoned(zone.clone()))
            }
            Due::Every(delay) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*delay).ok()
            }
        }
    }
}

/// The time zone of this name. An empty one is UTC.
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    // Not the machine's files: what is valid must not depend on where it is asked.
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    match name {
        "" | "UTC" | "Local" => Ok(TimeZone::UTC),
        _ if name.split('/').any(|part| part == "..") || name.starts_with(['/', '\\']) => {
            Err(ZoneError::Name)
        }
        _ => match ZONES.get(name) {
            // Names are files in Go, whose case counts.
            Ok(zone) if zone.iana_name() == Some(name) => Ok(zone),
            _ => Err(ZoneError::Unknown(name.to_owned())),
        },
    }
}

fn parse_descriptor(text: &str) -> Result<Due, ParseError> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let duration = text
                .strip_prefix("@every ")
                .ok_or_else(|| ParseError::Descriptor(text.to_owned()))?;
            let duration = GoDuration::parse(duration)
                .map_err(|problem| ParseError::Duration { descriptor: text.to_owned(), problem })?;
            let seconds = (duration.nanos / 1_000_000_000).max(1);
            return Ok(Due::Every(SignedDuration::from_secs(seconds)));
        }
    };
    Fields::parse(fields).map(Due::At)
}

impl Fields {
    fn parse(text: &str) -> Result<Self, ParseError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = fields[..] else {
            return Err(ParseError::FieldCount(fields.into_iter().map(str::to_owned).collect()));
        };
        Ok(Fields {
            minute: Set::parse(minute, &MINUTES)?,
            hour: Set::parse(hour, &HOURS)?,
            day_of_month: Set::parse(day_of_month, &DAYS_OF_MONTH)?,
            month: Set::parse(month, &MONTHS)?,
            day_of_week: Set::parse(day_of_week, &DAYS_OF_WEEK)?,
        })
    }

    fn next(&self, after: Zoned) -> Option<Timestamp> {
        // Without this, nothing would be searched for minute by minute, for years.
        if [self.minute, self.hour, self.month].iter().any(|set| set.bits == 0) {
            return None;
        }
        let to_minute = 60 - i64::from(after.second());
        let since_second = SignedDuration::from_nanos(after.subsec_nanosecond().into());
        let mut time = later(&after, SignedDuration::from_secs(to_minute) - since_second)?;
        let year_max = time.year() + YEARS_MAX;
        while time.year() <= year_max {
            if !self.month.has(time.month()) {
                let month = time.date().first_of_month().checked_add(1.month()).ok()?;
                time = midnight(month, &time)?;
            } else if !self.has_day(time.date()) {
                time = midnight(time.date().tomorrow().ok()?, &time)?;
            } else if !self.hour.has(time.hour()) {
                time = later(&time, SignedDuration::from_mins(60 - i64::from(time.minute())))?;
            } else if !self.minute.has(time.minute()) {
                time = later(&time, SignedDuration::from_mins(1))?;
            } else {
                return Some(time.timestamp());
            }
        }
        None
    }

    /// When both fields for days say something, either will do.
    fn has_day(&self, date: Date) -> bool {
        let in_month = self.day_of_month.has(date.day());
        let in_week = self.day_of_week.has(date.weekday().to_sunday_zero_offset());
        match self.day_of_month.is_star || self.day_of_week.is_star {
            true => in_month && in_week,
            false => in_month || in_week,
        }
    }
}

fn later(time: &Zoned, by: SignedDuration) -> Option<Zoned> {
    time.checked_add(by).ok()
}

/// The first time of a day, which need not be midnight.
fn midnight(date: Date, like: &Zoned) -> Option<Zoned> {
    date.to_zoned(like.time_zone().clone()).ok()?.start_of_day().ok()
}

impl Set {
    fn has(self, number: i8) -> bool {
        self.bits >> number & 1 == 1
    }

    fn parse(field: &str, bounds: &Bounds) -> Result<Self, ParseError> {
        let mut set = Set::default();
        for range in field.split(',').filter(|range| !range.is_empty()) {
            let range = Set::parse_range(range, bounds)?;
            set.bits |= range.bits;
            set.is_star |= range.is_star;
        }
        Ok(set)
    }

    /// `N`, `N-M` or `*`, each perhaps with a step.
    fn parse_range(text: &str, bounds: &Bounds) -> Result<Self, ParseError> {
        let (range, steps) = split_all(text, '/');
        let (low, highs) = split_all(range, '-');
        let mut is_star = ["*", "?"].contains(&low);
        let (start, mut end) = match highs[..] {
            _ if is_star => (bounds.min, bounds.max),
            [] => {
                let number = bounds.number(low)?;
                (number, number)
            }
            [high] => (bounds.number(low)?, bounds.number(high)?),
            _ => {
                // The first number is looked at before the hyphens are counted.
                bounds.number(low)?;
                return Err(ParseError::Hyphens(text.to_owned()));
            }
        };
        let step = match steps[..] {
            [] => 1,
            [step] => {
                let step = number(step)?;
                if highs.is_empty() {
                    end = bounds.max;
                }
                is_star &= step <= 1;
                step
            }
            _ => return Err(ParseError::Slashes(text.to_owned())),
        };
        let text = || text.to_owned();
        if start < bounds.min {
            return Err(ParseError::Below { start, min: bounds.min, text: text() });
        }
        if end > bounds.max {
            return Err(ParseError::Above { end, max: bounds.max, text: text() });
        }
        if start > end {
            return Err(ParseError::Reversed { start, end, text: text() });
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        if step == 0 {
            return Err(ParseError::ZeroStep(text()));
        }
        let bits = (start..=end).step_by(step).fold(0, |bits, number| bits | 1 << number);
        Ok(Set { bits, is_star })
    }
}

impl Bounds {
    /// A number, or what it is called.
    fn number(&self, text: &str) -> Result<u64, ParseError> {
        let lower = text.to_lowercase();
        match self.names.iter().position(|name| *name == lower) {
            Some(position) => Ok(self.min + position as u64),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<u64, ParseError> {
    use std::num::IntErrorKind;
    let number: i64 =
        text.parse().map_err(|error: std::num::ParseIntError| ParseError::Number {
            text: text.to_owned(),
            problem: match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            },
        })?;
    u64::try_from(number).map_err(|_| ParseError::Negative { number, text: text.to_owned() })
}

/// What is before the first separator, and what is between and after the others.
fn split_all(text: &str, separator: char) -> (&str, Vec<&str>) {
    let mut parts = text.split(separator);
    (parts.next().unwrap_or_default(), parts.collect())
}

#[cfg(test)]
mod tests;
