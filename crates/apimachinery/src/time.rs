//! Moments and lengths of time as they travel: RFC 3339 to the second or to the microsecond, and
//! Go's durations.
//!
//! There is no clock here. A moment is a number that somebody read from one.

mod duration;
mod parse;

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde_json::Value;

pub use duration::{GoDuration, ParseDurationError};
pub use parse::ParseError;

/// A moment, as `metav1.Time` has it: written in UTC to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Moment);

/// A moment, as `metav1.MicroTime` has it: written in UTC to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(Moment);

/// Seconds since 1970 and nanoseconds of the second.
///
/// Not a timestamp of a library, because those end before `9999-12-31T23:59:59Z`, which people
/// write for "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Moment {
    seconds: i64,
    nanos: u32,
}

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

impl Time {
    /// The first second of the year 1: what Go calls zero, and writes as `null`.
    pub const ZERO: Time = Time(Moment { seconds: -62_135_596_800, nanos: 0 });

    pub fn from_unix(seconds: i64) -> Self {
        Time(Moment { seconds, nanos: 0 })
    }

    /// Fractions of a second are read, and gone when it is written.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::rfc3339(text).map(Time)
    }

    /// Reads a field of a tree; `None` for null.
    pub fn from_value(value: &Value) -> Result<Option<Self>, ParseError> {
        parse::optional(value)?.map(Time::parse).transpose()
    }

    /// What stands in a tree: a string, or null for [`Time::ZERO`].
    pub fn to_value(self) -> Value {
        if self == Time::ZERO { Value::Null } else { self.to_string().into() }
    }

    pub fn unix_seconds(self) -> i64 {
        self.0.seconds
    }

    /// Nanoseconds of the second.
    pub fn subsec_nanos(self) -> u32 {
        self.0.nanos
    }
}

impl MicroTime {
    pub fn from_unix(seconds: i64, nanos: u32) -> Self {
        MicroTime(Moment { seconds, nanos })
    }

    /// Exactly six digits must follow the seconds.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::rfc3339_micro(text).map(MicroTime)
    }

    /// Reads a field of a tree; `None` for null.
    pub fn from_value(value: &Value) -> Result<Option<Self>, ParseError> {
        parse::optional(value)?.map(MicroTime::parse).transpose()
    }

    pub fn unix_seconds(self) -> i64 {
        self.0.seconds
    }

    /// Nanoseconds of the second.
    pub fn subsec_nanos(self) -> u32 {
        self.0.nanos
    }
}

impl Moment {
    fn civil(self) -> DateTime {
        let nanos = i32::try_from(self.nanos).expect("there are fewer than 2³¹ in a second");
        EPOCH.saturating_add(SignedDuration::new(self.seconds, nanos))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.0.civil().strftime("%Y-%m-%dT%H:%M:%S"))
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.nanos / 1000;
        write!(f, "{}.{micros:06}Z", self.0.civil().strftime("%Y-%m-%dT%H:%M:%S"))
    }
}

#[cfg(test)]
mod tests;
