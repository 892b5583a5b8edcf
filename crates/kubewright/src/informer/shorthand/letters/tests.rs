use super::*;
use crate::random;

#[track_caller]
fn check(letters: &Letters, bytes: &[u8]) -> usize {
    let mut short = Vec::new();
    letters.write(bytes, &mut short);
    assert_eq!(letters.read(&short, bytes.len()), bytes);
    short.len()
}

fn counts(of: &[u8]) -> Counts {
    let mut counts = [0; 256];
    of.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    counts
}

#[test]
fn what_is_frequent_takes_few_bits() {
    let digits: Vec<u8> = b"0123456789abcdef".repeat(1_000);
    let letters = Letters::new(&counts(&digits));
    // Four bits and a little, since anything else must have a place too.
    assert!(check(&letters, &digits) < digits.len() * 9 / 16);
}

#[test]
fn any_bytes_come_back_whatever_was_expected() {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    // As uneven as can be: each twice as frequent as the last.
    let uneven = std::array::from_fn(|byte| 1_u32.checked_shl(byte as u32).unwrap_or(u32::MAX));
    for counts in [[0; 256], counts(b"aaaaaaaab"), counts(&all), uneven] {
        let letters = Letters::new(&counts);
        check(&letters, b"");
        check(&letters, b"a");
        check(&letters, &all);
        for _ in 0..100 {
            let count = random::below(200);
            let bytes: Vec<u8> = (0..count).map(|_| random::below(256) as u8).collect();
            check(&letters, &bytes);
        }
    }
}
