//! Reading RFC 3339 as Go's `time.Parse` does: a little more leniently than the standard, and
//! with its own way of saying what is wrong.

use jiff::civil::DateTime;
use serde_json::Value;

use super::{EPOCH, Moment};
use crate::json::go;

/// Why a text is no time. Displays as Go's `time.Parse` words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error(
        "parsing time {} as {}: cannot parse {} as {}",
        quote(text),
        quote(layout),
        quote(rest),
        quote(element)
    )]
    Mismatch { text: String, layout: &'static str, rest: String, element: &'static str },
    #[error("parsing time {}: {part} out of range", quote(text))]
    OutOfRange { text: String, part: &'static str },
    #[error("parsing time {}: extra text: {}", quote(text), quote(extra))]
    Extra { text: String, extra: String },
    /// Not even a text.
    #[error("json: cannot unmarshal {0} into Go value of type string")]
    NotAString(&'static str),
}

pub(super) fn rfc3339(text: &str) -> Result<Moment, ParseError> {
    Reader { text, rest: text, layout: "2006-01-02T15:04:05Z07:00" }.moment(false)
}

pub(super) fn rfc3339_micro(text: &str) -> Result<Moment, ParseError> {
    Reader { text, rest: text, layout: "2006-01-02T15:04:05.000000Z07:00" }.moment(true)
}

/// The text in a field of a tree; `None` for null.
pub(super) fn optional(value: &Value) -> Result<Option<&str>, ParseError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(ParseError::NotAString(go::word(other))),
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> Reader<'a> {
    fn moment(mut self, micro: bool) -> Result<Moment, ParseError> {
        let year = self.digits(4, "2006")?;
        self.literal("-")?;
        let month = self.digits(2, "01")?;
        self.check((1..=12).contains(&month), "month")?;
        self.literal("-")?;
        let day = self.digits(2, "02")?;
        self.literal("T")?;
        let hour = self.hour()?;
        self.check(hour < 24, "hour")?;
        self.literal(":")?;
        let minute = self.digits(2, "04")?;
        self.check(minute < 60, "minute")?;
        self.literal(":")?;
        let second = self.digits(2, "05")?;
        self.check(second < 60, "second")?;
        let nanos = if micro { self.micros()? } else { self.fraction() };
        let offset_seconds = self.offset()?;
        if !self.rest.is_empty() {
            let (text, extra) = (self.text.to_owned(), self.rest.to_owned());
            return Err(ParseError::Extra { text, extra });
        }

        // All parts are below 10,000, and only the day can still be wrong.
        let [year, month, day, hour, minute, second] =
            [year, month, day, hour, minute, second].map(|part| part as i16);
        let [month, day, hour, minute, second] =
            [month, day, hour, minute, second].map(|part| part as i8);
        let civil = DateTime::new(year, month, day, hour, minute, second, 0)
            .map_err(|_| self.out_of_range("day"))?;
        let seconds = civil.duration_since(EPOCH).as_secs() - offset_seconds;
        // An offset can carry the last day of the year 9999 into one that has five digits.
        self.check((-62_167_219_200..253_402_300_800).contains(&seconds), "year")?;
        Ok(Moment { seconds, nanos })
    }

    fn literal(&mut self, element: &'static str) -> Result<(), ParseError> {
        self.rest = self.rest.strip_prefix(element).ok_or_else(|| self.mismatch(element))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<u32, ParseError> {
        let digits = self.rest.get(..count).filter(|text| is_digits(text));
        let digits = digits.ok_or_else(|| self.mismatch(element))?;
        self.rest = &self.rest[count..];
        Ok(number(digits))
    }

    /// One digit or two.
    fn hour(&mut self) -> Result<u32, ParseError> {
        let count = self.rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        self.digits(count.max(1), "15")
    }

    /// Digits after a point or a comma, if there are any. What is below a nanosecond is cut off.
    fn fraction(&mut self) -> u32 {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        let (digits, rest) = rest.split_at(count);
        self.rest = rest;
        number(&format!("{digits:0<9}")[..9])
    }

    fn micros(&mut self) -> Result<u32, ParseError> {
        let element = ".000000";
        let digits = self.rest.strip_prefix(['.', ',']).and_then(|rest| rest.get(..6));
        let digits = digits.filter(|digits| is_digits(digits));
        let digits = digits.ok_or_else(|| self.mismatch(element))?;
        self.rest = &self.rest[7..];
        Ok(number(digits) * 1000)
    }

    /// `Z`, or hours and minutes, in seconds to the east.
    fn offset(&mut self) -> Result<i64, ParseError> {
        let element = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let mismatch = self.mismatch(element);
        let whole = self.rest.get(..6).filter(|text| text.as_bytes()[3] == b':');
        let whole = whole.filter(|text| text.is_ascii()).ok_or_else(|| mismatch.clone())?;
        let (hours, minutes) = (&whole[1..3], &whole[4..]);
        if !is_digits(hours) || !is_digits(minutes) {
            return Err(mismatch);
        }
        let (hours, minutes) = (number(hours), number(minutes));
        let sign = match whole.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(mismatch),
        };
        // The bounds are Go's: some people do write 24 hours or 60 minutes.
        self.check(minutes <= 60, "time zone offset minute")?;
        self.check(hours <= 24, "time zone offset hour")?;
        self.rest = &self.rest[6..];
        Ok(sign * i64::from((hours * 60 + minutes) * 60))
    }

    fn check(&self, holds: bool, part: &'static str) -> Result<(), ParseError> {
        if holds { Ok(()) } else { Err(self.out_of_range(part)) }
    }

    fn out_of_range(&self, part: &'static str) -> ParseError {
        ParseError::OutOfRange { text: self.text.to_owned(), part }
    }

    fn mismatch(&self, element: &'static str) -> ParseError {
        ParseError::Mismatch {
            text: self.text.to_owned(),
            layout: self.layout,
            rest: self.rest.to_owned(),
            element,
        }
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit())
}

/// Of at most nine digits.
fn number(digits: &str) -> u32 {
    digits.bytes().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// As the `time` package quotes: all that is not printable ASCII goes byte by byte.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..0x80 => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}
