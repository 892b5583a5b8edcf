//! Decimal numbers of any size, as digits.
//!
//! Only what quantities need, and all of it in time linear in the digits: quantities come from
//! anyone, and may have a million digits or an exponent in the billions. Numbers are never lined
//! up by writing out more than [`ZEROS_MAX`] zeros.

use std::cmp::Ordering;

/// How many zeros are written out to bring two numbers to one exponent. The largest number that
/// means anything has 19 digits and the smallest step is 10⁻⁹.
const ZEROS_MAX: i64 = 4096;

/// `digits` × 10^`exponent`.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    /// The most significant first and not zero; empty for zero.
    digits: Vec<u8>,
    pub(super) exponent: i64,
}

impl Decimal {
    pub(super) fn new(negative: bool, mut digits: Vec<u8>, exponent: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        Decimal { negative, digits, exponent }
    }

    pub(super) fn from_i64(value: i64, exponent: i64) -> Self {
        let digits = value.unsigned_abs().to_string().bytes().map(|c| c - b'0').collect();
        Decimal::new(value < 0, digits, exponent)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) fn negated(&self) -> Self {
        Decimal { negative: !self.negative, ..self.clone() }
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let order = sign(self).cmp(&sign(other));
        if order.is_ne() || self.is_zero() {
            return order;
        }
        let magnitude = self.top().cmp(&other.top()).then_with(|| self.compare_digits(other));
        if self.negative { magnitude.reverse() } else { magnitude }
    }

    /// The power of ten above the first digit.
    fn top(&self) -> i64 {
        self.exponent + self.length()
    }

    fn length(&self) -> i64 {
        i64::try_from(self.digits.len()).expect("a vector is shorter than 2⁶³")
    }

    /// Of two with the same top.
    fn compare_digits(&self, other: &Self) -> Ordering {
        let length = self.digits.len().max(other.digits.len());
        let digit = |number: &Self, n: usize| number.digits.get(n).copied().unwrap_or(0);
        (0..length)
            .map(|n| digit(self, n).cmp(&digit(other, n)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The sum. When one is so much larger that writing out both would take more than
    /// [`ZEROS_MAX`] zeros, it is the larger alone.
    pub(super) fn plus(&self, other: &Self) -> Self {
        // Zero has an exponent too, but no size.
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() || self.top() - other.top() > ZEROS_MAX {
            return self.clone();
        }
        if other.top() - self.top() > ZEROS_MAX {
            return other.clone();
        }
        let exponent = self.exponent.min(other.exponent);
        let (mut a, mut b) = (self.clone(), other.clone());
        a.write_out(exponent);
        b.write_out(exponent);
        if a.negative == b.negative {
            return Decimal::new(a.negative, add(&a.digits, &b.digits), exponent);
        }
        match a.compare_magnitude(&b) {
            Ordering::Less => Decimal::new(b.negative, subtract(&b.digits, &a.digits), exponent),
            _ => Decimal::new(a.negative, subtract(&a.digits, &b.digits), exponent),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.top().cmp(&other.top()).then_with(|| self.compare_digits(other))
    }

    pub(super) fn times(&self, factor: u64) -> Self {
        let mut digits = Vec::with_capacity(self.digits.len() + 20);
        let mut carry = 0_u128;
        for digit in self.digits.iter().rev() {
            carry += u128::from(*digit) * u128::from(factor);
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        Decimal::new(self.negative, digits, self.exponent)
    }

    /// Away from zero to a multiple of 10^`exponent`, and written with that exponent unless that
    /// would take too many zeros.
    pub(super) fn rounded_up(&self, exponent: i64) -> Self {
        let mut rounded = self.clone();
        if self.exponent >= exponent {
            rounded.expand(exponent);
            return rounded;
        }
        let (kept, dropped) = self.split(exponent - self.exponent);
        let digits = match dropped.iter().all(|digit| *digit == 0) {
            true => kept.to_vec(),
            false => add(kept, &[1]),
        };
        Decimal::new(self.negative, digits, exponent)
    }

    /// The digits before and from the last `places`.
    fn split(&self, places: i64) -> (&[u8], &[u8]) {
        let kept = usize::try_from(self.length() - places).unwrap_or(0);
        self.digits.split_at(kept)
    }

    /// Writes out zeros down to `exponent`, unless they are too many.
    pub(super) fn expand(&mut self, exponent: i64) {
        if (0..=ZEROS_MAX).contains(&(self.exponent - exponent)) {
            self.write_out(exponent);
        }
    }

    fn write_out(&mut self, exponent: i64) {
        if !self.is_zero() {
            let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
            self.digits.resize(self.digits.len() + zeros, 0);
        }
        self.exponent = exponent;
    }

    /// Puts zeros at the end into the exponent.
    pub(super) fn strip_zeros(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent += 1;
        }
    }

    /// The quotient, if it is whole and this is not zero. The exponent must be zero.
    pub(super) fn divided_by_1024(&self) -> Option<Self> {
        if self.is_zero() || self.exponent != 0 {
            return None;
        }
        let mut remainder = 0_u32;
        let mut digits = Vec::with_capacity(self.digits.len());
        for digit in &self.digits {
            remainder = remainder * 10 + u32::from(*digit);
            digits.push((remainder / 1024) as u8);
            remainder %= 1024;
        }
        (remainder == 0).then(|| Decimal::new(self.negative, digits, 0))
    }

    /// In units of 10^`exponent`, rounded up, or what upstream makes of more than 64 bits.
    pub(super) fn scaled(&self, exponent: i64) -> i64 {
        let places = exponent - self.exponent;
        if places <= 0 {
            // Ten to the 64th and above have no low bits.
            let factor = 10_i64.wrapping_pow(u32::try_from(-places).unwrap_or(64).min(64));
            return self.low_bits(&self.digits).wrapping_mul(factor);
        }
        // What is negative counts upstream as small enough to divide in 64 bits, however large;
        // and what is cut off counts as one more, even below zero.
        if places < 19
            && (self.negative || self.compare(&Decimal::from_i64(i64::MAX, self.exponent)).is_lt())
        {
            let unscaled = self.low_bits(&self.digits);
            let divisor = 10_i64.pow(places as u32);
            return unscaled / divisor + i64::from(unscaled % divisor != 0);
        }
        let (kept, dropped) = self.split(places);
        let is_exact = dropped.iter().all(|digit| *digit == 0);
        self.low_bits(kept).wrapping_add(i64::from(!is_exact && !self.negative))
    }

    fn low_bits(&self, digits: &[u8]) -> i64 {
        let magnitude = digits
            .iter()
            .fold(0_i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(*digit)));
        if self.negative { magnitude.wrapping_neg() } else { magnitude }
    }

    pub(super) fn unscaled_fits_i64(&self) -> bool {
        self.digits.len() <= 19 && self.unscaled_text().parse::<i64>().is_ok()
    }

    pub(super) fn unscaled_to_f64(&self) -> f64 {
        self.unscaled_text().parse().expect("digits are a number")
    }

    pub(super) fn unscaled_text(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let sign = self.negative.then_some('-');
        sign.into_iter().chain(self.digits.iter().map(|digit| char::from(b'0' + digit))).collect()
    }
}

fn add(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    let (mut a, mut b) = (a.iter().rev(), b.iter().rev());
    let mut carry = 0;
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() {
            break;
        }
        let digit = x.unwrap_or(&0) + y.unwrap_or(&0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    if carry > 0 {
        sum.push(carry);
    }
    sum.reverse();
    sum
}

/// `a` must not be less than `b`.
fn subtract(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = Vec::with_capacity(a.len());
    let mut b = b.iter().rev();
    let mut borrow = 0;
    for x in a.iter().rev() {
        let y = b.next().unwrap_or(&0) + borrow;
        borrow = u8::from(*x < y);
        difference.push(x + 10 * borrow - y);
    }
    difference.reverse();
    difference
}
