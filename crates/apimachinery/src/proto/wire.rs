//! Varints, tags and lengths: the grammar below messages.

use super::DecodeError;

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Writes from the last byte to the first, so that a length is known when it is due.
#[derive(Debug, Default)]
pub(super) struct Writer {
    reversed: Vec<u8>,
}

impl Writer {
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    pub(super) fn varint(&mut self, number: u32, value: u64) {
        self.raw_varint(value);
        self.tag(number, VARINT);
    }

    pub(super) fn fixed64(&mut self, number: u32, value: u64) {
        self.reversed.extend(value.to_be_bytes());
        self.tag(number, FIXED64);
    }

    pub(super) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.reversed.extend(value.iter().rev());
        self.raw_varint(value.len() as u64);
        self.tag(number, BYTES);
    }

    /// A message whose fields `write` writes, the last one first.
    pub(super) fn message<E>(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.reversed.len();
        write(self)?;
        self.raw_varint((self.reversed.len() - start) as u64);
        self.tag(number, BYTES);
        Ok(())
    }

    fn tag(&mut self, number: u32, wire: u8) {
        self.raw_varint(u64::from(number) << 3 | u64::from(wire));
    }

    fn raw_varint(&mut self, mut value: u64) {
        let start = self.reversed.len();
        while value >= 0x80 {
            self.reversed.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.reversed.push(value as u8);
        self.reversed[start..].reverse();
    }
}

/// Reads fields off the front of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// What stands under a tag.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Forms that no field has: skipped.
    Other(u8),
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The next field's number and value; `None` at the end.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = (tag & 7) as u8;
        // Upstream keeps the lower 32 bits, and takes none that are negative.
        let number = (tag >> 3) as u32;
        if wire == END_GROUP {
            return Err(DecodeError::EndGroup);
        }
        if number == 0 || number > i32::MAX as u32 {
            return Err(DecodeError::IllegalTag);
        }
        Ok(Some((number, self.value(wire)?)))
    }

    fn value(&mut self, wire: u8) -> Result<Wire<'a>, DecodeError> {
        match wire {
            VARINT => self.varint().map(Wire::Varint),
            FIXED64 => {
                let bytes = self.take(8)?.try_into().expect("eight were taken");
                Ok(Wire::Fixed64(u64::from_le_bytes(bytes)))
            }
            BYTES => {
                let length = self.length()?;
                self.take(length).map(Wire::Bytes)
            }
            START_GROUP => {
                self.skip_group()?;
                Ok(Wire::Other(START_GROUP))
            }
            FIXED32 => {
                self.take(4)?;
                Ok(Wire::Other(FIXED32))
            }
            other => Err(DecodeError::IllegalWireType(other)),
        }
    }

    /// Groups are long gone from protobuf, but may be skipped; they nest without recursion here.
    fn skip_group(&mut self) -> Result<(), DecodeError> {
        let mut depth = 1_usize;
        while depth > 0 {
            match (self.varint()? & 7) as u8 {
                START_GROUP => depth += 1,
                END_GROUP => depth -= 1,
                wire => {
                    self.value(wire)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            if shift >= 64 {
                return Err(DecodeError::Overflow);
            }
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = i64::try_from(self.varint()?).map_err(|_| DecodeError::NegativeLength)?;
        // Longer than memory is longer than the input.
        usize::try_from(length).map_err(|_| DecodeError::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    pub(super) fn varint(self, field: &'static str) -> Result<u64, DecodeError> {
        match self {
            Wire::Varint(value) => Ok(value),
            other => Err(other.wrong(field)),
        }
    }

    pub(super) fn wrong(self, field: &'static str) -> DecodeError {
        let wire = match self {
            Wire::Varint(_) => VARINT,
            Wire::Fixed64(_) => FIXED64,
            Wire::Bytes(_) => BYTES,
            Wire::Other(wire) => wire,
        };
        DecodeError::WrongWireType { field, wire }
    }
}
