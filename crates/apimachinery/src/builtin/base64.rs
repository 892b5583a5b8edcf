//! Base64 as Go reads it: line breaks are skipped, and a fault is told by where it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The bytes, or the position that Go reports.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut symbols = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    loop {
        let mut group = [0; 4];
        let mut count = 0;
        while count < 4 {
            match symbols.next() {
                None if count == 0 => return Ok(bytes),
                None => return Err(text.len() - count),
                Some((at, b'=')) => {
                    check_padding(&mut symbols, at, count, text.len())?;
                    push(&mut bytes, group, count);
                    return Ok(bytes);
                }
                Some((at, symbol)) => {
                    group[count] = value(symbol).ok_or(at)?;
                    count += 1;
                }
            }
        }
        push(&mut bytes, group, count);
    }
}

/// The text of bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// What follows the first `=`, at `at`, after `count` symbols of a group.
fn check_padding(
    symbols: &mut impl Iterator<Item = (usize, u8)>,
    at: usize,
    count: usize,
    length: usize,
) -> Result<(), usize> {
    match count {
        0 | 1 => return Err(at),
        2 => match symbols.next() {
            Some((_, b'=')) => {}
            Some((at, _)) => return Err(at),
            None => return Err(length),
        },
        _ => {}
    }
    symbols.next().map_or(Ok(()), |(at, _)| Err(at))
}

fn push(bytes: &mut Vec<u8>, group: [u8; 4], count: usize) {
    let bits = group.iter().fold(0_u32, |bits, six| bits << 6 | u32::from(*six));
    // Bits left over in the last symbol are ignored.
    bytes.extend(&bits.to_be_bytes()[1..count]);
}

fn value(symbol: u8) -> Option<u8> {
    Some(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
