//! Numbers with a check digit.

/// Ten digits of which the last may be `X`; spaces and dashes anywhere.
pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let Some((last, first)) = digits.split_last().filter(|_| digits.len() == 10) else {
        return false;
    };
    if !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let weighted: u32 = (1..).zip(first).map(|(weight, &digit)| weight * value(digit)).sum();
    let last = if *last == b'X' { 10 } else { value(*last) };
    (weighted + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    digits.len() == 13 && digits.iter().all(u8::is_ascii_digit) && {
        let weights = [1, 3].into_iter().cycle();
        let sum: u32 = weights.zip(&digits[..12]).map(|(weight, &d)| weight * value(d)).sum();
        value(digits[12]) == (10 - sum % 10) % 10
    }
}

/// The digits are those of a card that exists and pass Luhn's check; anything may stand between.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let prefix = |length: usize| -> u32 {
        digits.iter().take(length).fold(0, |number, &digit| number * 10 + value(digit))
    };
    let is_issued = match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(3), 300..=305) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => prefix(1) == 4 || matches!(prefix(2), 51..=55 | 65 | 35) || prefix(4) == 6011,
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, &digit)| match index % 2 {
            0 => value(digit),
            _ => value(digit) * 2 - if value(digit) > 4 { 9 } else { 0 },
        })
        .sum();
    is_issued && sum.is_multiple_of(10)
}

/// `123-45-6789`, or with spaces; exactly eleven characters.
pub(super) fn is_social_security(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(index, byte)| match index {
            3 | 6 => byte == b'-' || byte == b' ',
            _ => byte.is_ascii_digit(),
        })
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | 0x0C | b'\r' | b' ' | b'-'))
        .collect()
}

fn value(digit: u8) -> u32 {
    u32::from(digit - b'0')
}
