//! Times in messages are seconds and nanoseconds since 1970.
//!
//! Go's zero time, the first second of year 1, is an empty message and `null` in JSON.

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde_json::Value;

use super::DecodeError;
use super::wire::{Reader, Writer};

const ZERO_SECONDS: i64 = -62_135_596_800;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Micros,
}

/// Writes the message of a time in RFC 3339, `None` when it is not one.
pub(super) fn encode(writer: &mut Writer, text: &str, precision: Precision) -> Option<()> {
    let time: Timestamp = text.parse().ok()?;
    // Rounded towards the past, so that a fraction counts forward in time.
    let seconds = time.as_nanosecond().div_euclid(1_000_000_000) as i64;
    let nanos = time.as_nanosecond().rem_euclid(1_000_000_000) as u64;
    if (seconds, nanos) == (ZERO_SECONDS, 0) {
        return Some(());
    }
    writer.varint(2, if precision == Precision::Micros { nanos / 1000 * 1000 } else { 0 });
    writer.varint(1, seconds as u64);
    Some(())
}

pub(super) fn decode(bytes: &[u8], precision: Precision) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        match number {
            1 => seconds = value.varint("seconds")? as i64,
            2 => nanos = value.varint("nanos")? as i32,
            _ => {}
        }
    }
    let micros = match precision {
        Precision::Seconds => 0,
        Precision::Micros => nanos / 1000,
    };
    if (seconds, micros) == (ZERO_SECONDS, 0) {
        return Ok(Value::Null);
    }
    let time = Timestamp::from_second(seconds)
        .and_then(|time| time.checked_add(jiff::SignedDuration::from_micros(micros.into())))
        .map_err(|_| DecodeError::Time)?;
    let format = match precision {
        Precision::Seconds => "%Y-%m-%dT%H:%M:%SZ",
        Precision::Micros => "%Y-%m-%dT%H:%M:%S.%6fZ",
    };
    let text = strtime::format(format, time).map_err(|_| DecodeError::Time)?;
    // Years before 0 have no RFC 3339 form.
    if text.starts_with('-') { Err(DecodeError::Time) } else { Ok(Value::String(text)) }
}
