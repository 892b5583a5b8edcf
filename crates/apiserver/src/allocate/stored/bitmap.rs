//! The ports of a range that are taken, as a `RangeAllocation` has them.

use std::ops::RangeInclusive;

/// One bit for each port of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bitmap {
    ports: RangeInclusive<u16>,
    /// Eight ports each, lowest first.
    bytes: Vec<u8>,
}

/// Why a port cannot be taken. Displays as upstream words it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TakeError {
    #[error("provided port is already allocated")]
    Taken,
    #[error(
        "provided port is not in the valid range. The range of valid ports is {}-{}",
        .0.start(), .0.end()
    )]
    OutOfRange(RangeInclusive<u16>),
}

impl Bitmap {
    pub(super) fn new(ports: RangeInclusive<u16>) -> Self {
        let bytes = vec![0; ports.len().div_ceil(8)];
        Bitmap { ports, bytes }
    }

    /// The range as upstream writes it.
    pub(super) fn range(&self) -> String {
        format!("{}-{}", self.ports.start(), self.ports.end())
    }

    /// Reads the bits of a big-endian number without leading zeros, which is how Go prints one.
    pub(super) fn restore(&mut self, number: &[u8]) {
        self.bytes.fill(0);
        for (byte, stored) in self.bytes.iter_mut().zip(number.iter().rev()) {
            *byte = *stored;
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let significant = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.bytes[..significant].iter().rev().copied().collect()
    }

    pub(super) fn has(&self, port: i32) -> bool {
        self.offset(port).is_some_and(|offset| self.is_taken(offset))
    }

    pub(super) fn take(&mut self, port: i32) -> Result<(), TakeError> {
        match self.offset(port) {
            None => Err(TakeError::OutOfRange(self.ports.clone())),
            Some(offset) if self.is_taken(offset) => Err(TakeError::Taken),
            Some(offset) => {
                self.bytes[offset / 8] |= 1 << (offset % 8);
                Ok(())
            }
        }
    }

    /// Takes the next free port from a random one on: of the upper part before the lower, which
    /// people choose from.
    pub(super) fn take_any(&mut self, start: u64) -> Option<i32> {
        let size = self.ports.len();
        let lower = match size {
            ..=16 => 0,
            size => (size / 32).clamp(16, 128),
        };
        let rotated = |from: usize, size: usize| {
            let start = usize::try_from(start % size.max(1) as u64).expect("it is below a usize");
            (0..size).map(move |step| from + (start + step) % size)
        };
        let offset = rotated(lower, size - lower)
            .chain(rotated(0, lower))
            .find(|offset| !self.is_taken(*offset))?;
        let port = i32::from(*self.ports.start()) + i32::try_from(offset).ok()?;
        self.take(port).ok()?;
        Some(port)
    }

    pub(super) fn release(&mut self, port: i32) {
        if let Some(offset) = self.offset(port) {
            self.bytes[offset / 8] &= !(1 << (offset % 8));
        }
    }

    fn is_taken(&self, offset: usize) -> bool {
        self.bytes[offset / 8] & (1 << (offset % 8)) != 0
    }

    fn offset(&self, port: i32) -> Option<usize> {
        let port = u16::try_from(port).ok().filter(|port| self.ports.contains(port))?;
        Some(usize::from(port - self.ports.start()))
    }
}
