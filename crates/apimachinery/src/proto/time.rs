//! Times in messages are seconds and nanoseconds since 1970.
//!
//! Go's zero time, the first second of year 1, is an empty message and `null` in JSON.

use serde_json::Value;

use super::DecodeError;
use super::wire::{Reader, Writer};
use crate::time::{MicroTime, Time};

/// The seconds of the years that RFC 3339 can write: 0 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// Writes the message of a `metav1.Time`, `None` when the text is none.
pub(super) fn encode(writer: &mut Writer, text: &str) -> Option<()> {
    let time = Time::parse(text).ok()?;
    // Upstream sends no fractions that JSON could not tell.
    write(writer, time.unix_seconds(), 0);
    Some(())
}

/// Writes the message of a `metav1.MicroTime`, `None` when the text is none.
pub(super) fn encode_micro(writer: &mut Writer, text: &str) -> Option<()> {
    let time = MicroTime::parse(text).ok()?;
    write(writer, time.unix_seconds(), time.subsec_nanos() / 1000 * 1000);
    Some(())
}

fn write(writer: &mut Writer, seconds: i64, nanos: u32) {
    if (seconds, nanos) != (Time::ZERO.unix_seconds(), 0) {
        writer.varint(2, nanos.into());
        writer.varint(1, seconds as u64);
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match read(bytes)? {
        Some((seconds, _)) => Time::from_unix(seconds).to_value(),
        None => Value::Null,
    })
}

pub(super) fn decode_micro(bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match read(bytes)? {
        Some((seconds, nanos)) if (seconds, nanos) != (Time::ZERO.unix_seconds(), 0) => {
            MicroTime::from_unix(seconds, nanos).to_string().into()
        }
        _ => Value::Null,
    })
}

/// Seconds, and nanoseconds in whole microseconds; `None` for the zero time.
fn read(bytes: &[u8]) -> Result<Option<(i64, u32)>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        match number {
            1 => seconds = value.varint("seconds")? as i64,
            2 => nanos = value.varint("nanos")? as i32,
            _ => {}
        }
    }
    let nanos = i64::from(nanos / 1000 * 1000);
    // Nobody sends more than a second of nanoseconds, or less than none, but it has a meaning.
    let seconds = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
    if !SECONDS.contains(&seconds) {
        return Err(DecodeError::Time);
    }
    Ok(Some((seconds, nanos.rem_euclid(1_000_000_000) as u32)))
}
