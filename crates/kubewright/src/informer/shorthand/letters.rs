//! Bytes, written with few bits where they are frequent.
//!
//! What is new in a text is seldom any byte: most of it are digits, and letters of names. Codes are
//! Huffman's, in their canonical order.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No byte takes more bits: all beginnings of so many are in a table.
const BITS_MAX: u32 = 12;

/// How often each byte was seen.
pub(super) type Counts = [u32; 256];

pub(super) struct Letters {
    codes: [Code; 256],
    /// For each beginning, the byte that it stands for, and how many of the bits it takes.
    bytes: Box<[(u8, u8)]>,
}

/// The bits of a byte.
#[derive(Clone, Copy, Default)]
struct Code {
    bits: u16,
    length: u8,
}

impl Letters {
    /// Suits bytes that are as frequent as these; others can be written too.
    pub(super) fn new(counts: &Counts) -> Self {
        let mut counts = counts.map(|count| u64::from(count) + 1);
        let mut lengths = lengths(&counts);
        while lengths.iter().any(|length| u32::from(*length) > BITS_MAX) {
            // The more alike they are, the more alike are the lengths.
            counts = counts.map(|count| count / 2 + 1);
            lengths = self::lengths(&counts);
        }
        let mut order: Vec<u8> = (0..=u8::MAX).collect();
        order.sort_by_key(|byte| lengths[usize::from(*byte)]);
        let (mut codes, mut bytes) = ([Code::default(); 256], Vec::with_capacity(1 << BITS_MAX));
        for byte in order {
            let length = lengths[usize::from(byte)];
            let rest = BITS_MAX - u32::from(length);
            let code = Code { bits: (bytes.len() >> rest) as u16, length };
            codes[usize::from(byte)] = code;
            bytes.extend(std::iter::repeat_n((byte, length), 1 << rest));
        }
        Letters { codes, bytes: bytes.into() }
    }

    /// Writes bytes at the end of `short`. How many they are must be known to whoever reads them.
    pub(super) fn write(&self, bytes: &[u8], short: &mut Vec<u8>) {
        let (mut bits, mut length) = (0_u64, 0);
        for byte in bytes {
            let code = self.codes[usize::from(*byte)];
            bits = (bits << code.length) | u64::from(code.bits);
            length += u32::from(code.length);
            while length >= 8 {
                length -= 8;
                short.push((bits >> length) as u8);
            }
        }
        if length > 0 {
            short.push((bits << (8 - length)) as u8);
        }
    }

    /// So many bytes.
    pub(super) fn read(&self, short: &[u8], count: usize) -> Vec<u8> {
        // After the end there is nothing that counts.
        let mut rest = short.iter().copied();
        // The next bits are the highest.
        let (mut bits, mut length) = (0_u64, 0);
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            while length + 8 <= u64::BITS {
                bits |= u64::from(rest.next().unwrap_or_default()) << (u64::BITS - 8 - length);
                length += 8;
            }
            for _ in 0..(length / BITS_MAX).min((count - bytes.len()) as u32) {
                let (byte, taken) = self.bytes[(bits >> (u64::BITS - BITS_MAX)) as usize];
                bytes.push(byte);
                bits <<= taken;
                length -= u32::from(taken);
            }
        }
        bytes
    }
}

/// How many bits each byte takes, so that all together take the fewest.
fn lengths(counts: &[u64; 256]) -> [u8; 256] {
    // A tree of the two rarest, ever again. Of each node is known which one is above it.
    let mut above = vec![0_usize; 511];
    let leaves = counts.iter().enumerate().map(|(node, count)| Reverse((*count, node)));
    let mut rarest: BinaryHeap<_> = leaves.collect();
    for node in 256..above.len() {
        let mut count = 0;
        for _ in 0..2 {
            let Some(Reverse((part, below))) = rarest.pop() else { break };
            above[below] = node;
            count += part;
        }
        rarest.push(Reverse((count, node)));
    }
    let mut depths = vec![0_u8; 511];
    for node in (0..510).rev() {
        depths[node] = depths[above[node]].saturating_add(1);
    }
    std::array::from_fn(|node| depths[node])
}
