//! Quantities of resources: `100m`, `1.5Gi`, `12e6`.
//!
//! The number is exact at any size. What can be seen of upstream's implementation is kept: a
//! number is held in 64 bits while that is possible and as an arbitrary decimal when not, the
//! text it was read from is kept when it is nearly canonical (`1.100`, `+5`), and what leaves 64
//! bits in [`Quantity::value`] does so as upstream's does.

mod amount;
mod decimal;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::field::{Error, Path};
use crate::json;

use amount::Amount;
use decimal::Decimal;

/// An amount of something. Two are equal when their numbers are, however they are written.
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text it was read from, when that is what it prints as.
    text: Option<String>,
}

/// How a quantity is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, which is 12 × 2²⁰.
    BinarySi,
    /// `12M`, which is 12 × 10⁶.
    #[default]
    DecimalSi,
}

/// Why a text is no quantity. Displays as upstream answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// There are no digits before a suffix that needs them.
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// Powers of ten that have a suffix.
const DECIMAL_SUFFIXES: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Suffixes of powers of 1024, from the first on.
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Nothing is kept of a quantity below a billionth.
const NANO: i64 = -9;

impl Quantity {
    /// `value` × 10^`exponent`.
    pub fn new(value: i64, exponent: i32, format: Format) -> Self {
        Quantity { amount: Amount::Int { value, exponent: exponent.into() }, format, text: None }
    }

    /// Reads a quantity. What is below a billionth is rounded up, away from zero.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Format);
        }
        if text == "0" {
            return Ok(Quantity {
                text: Some(text.to_owned()),
                ..Quantity::new(0, 0, Format::DecimalSi)
            });
        }
        let parts = Parts::split(text)?;
        let suffix = Suffix::parse(parts.suffix)?;
        match parts.small(suffix) {
            Some((value, exponent)) => {
                let keeps_text = parts.is_nearly_canonical(suffix, exponent);
                let amount = Amount::Int { value, exponent };
                let text = keeps_text.then(|| text.to_owned());
                Ok(Quantity { amount, format: suffix.format(), text })
            }
            None if parts.has_digits => Ok(parts.large(suffix)),
            None => Err(ParseError::Number),
        }
    }

    /// Reads a quantity from a field of a tree: a string, or a bare number.
    pub fn from_value(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Null => Ok(Quantity::default()),
            Value::String(text) => Quantity::parse(text.trim()),
            other => Quantity::parse(&json::to_string(other)),
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    pub fn is_negative(&self) -> bool {
        self.amount.is_negative()
    }

    /// The whole number at or above this one. Past 64 bits it is upstream's: zero, or what the
    /// low bits say.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// [`value`](Self::value) in thousandths.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// [`value`](Self::value) in units of 10^`exponent`.
    pub fn scaled_value(&self, exponent: i32) -> i64 {
        self.amount.scaled(exponent.into())
    }

    /// The whole number that this is, if it is one that 64 bits hold without further ado.
    pub fn as_i64(&self) -> Option<i64> {
        self.amount.as_i64()
    }

    /// A float near it.
    pub fn as_approximate_float(&self) -> f64 {
        self.amount.to_f64()
    }

    /// Rounds up, away from zero, to a multiple of 10^`exponent`; whether nothing was lost.
    pub fn round_up(&mut self, exponent: i32) -> bool {
        let exponent = exponent.into();
        if self.amount.is_small_multiple(exponent) {
            return true;
        }
        self.text = None;
        let (rounded, exact) = self.amount.rounded_up(exponent);
        self.amount = rounded;
        exact
    }

    /// Takes the format of `other` when this is zero.
    pub fn add(&mut self, other: &Quantity) {
        self.text = None;
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount = self.amount.plus(&other.amount);
    }

    /// Takes the format of `other` when this is zero.
    pub fn sub(&mut self, other: &Quantity) {
        self.text = None;
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount = self.amount.minus(&other.amount);
    }

    /// Whether the result, without its power of ten, is still within 64 bits.
    pub fn mul(&mut self, factor: i64) -> bool {
        self.text = None;
        let (product, fits) = self.amount.times(factor);
        self.amount = product;
        fits
    }

    pub fn neg(&mut self) {
        self.text = None;
        self.amount = self.amount.negated();
    }

    /// A quantity that may not be negative.
    pub fn validate_non_negative(&self, path: &Path<'_>) -> Option<Error> {
        self.is_negative()
            .then(|| Error::invalid(path, self.to_string(), "must be greater than or equal to 0"))
    }

    /// A quantity of things that cannot be divided.
    pub fn validate_integer(&self, path: &Path<'_>) -> Option<Error> {
        (self.milli_value() % 1000 != 0)
            .then(|| Error::invalid(path, self.to_string(), "must be an integer"))
    }

    /// Digits and suffix: no fraction, the largest suffix that leaves none.
    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let is_binary = self.format == Format::BinarySi
            && !self.amount.is_below(1024)
            && self.amount.rounded_up(0).1;
        if is_binary {
            let (digits, times) = self.amount.without_factors_of_1024();
            // Sums can leave the range of suffixes. Upstream then prints none.
            let suffix = times.checked_sub(1).and_then(|index| BINARY_SUFFIXES.get(index));
            return format!("{digits}{}", suffix.unwrap_or(&""));
        }
        let (digits, exponent) = self.amount.in_thousands();
        match self.format {
            Format::DecimalExponent if exponent == 0 => digits,
            Format::DecimalExponent => format!("{digits}e{exponent}"),
            Format::BinarySi | Format::DecimalSi => {
                let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent);
                // The same, for numbers from 10²¹ on.
                format!("{digits}{}", suffix.map_or("", |(suffix, _)| suffix))
            }
        }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        // Upstream's zero value has no format, which prints as any zero does.
        Quantity::new(0, 0, Format::DecimalSi)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl std::str::FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Quantity::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.to_decimal().compare(&other.amount.to_decimal())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Quantity::from_value(&value).map_err(de::Error::custom)
    }
}

/// The parts of a text.
struct Parts<'a> {
    negative: bool,
    has_digits: bool,
    /// Without leading zeros; may be empty.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Any part may be missing, even all of them: upstream reads a lone sign and most lone
    /// suffixes as zero.
    fn split(text: &'a str) -> Result<Self, ParseError> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_while(unsigned, |c| c.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_while(rest, |c| c.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, rest) = split_while(suffix, |c| b"eEinumkKMGTP".contains(&c));
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let (_, rest) = split_while(rest, |c| c.is_ascii_digit());
        if !rest.is_empty() {
            return Err(ParseError::Format);
        }
        let negative = text.starts_with('-');
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        Ok(Parts { negative, has_digits, whole: whole.trim_start_matches('0'), fraction, suffix })
    }

    /// How many digits upstream counts: it sees a zero before a bare fraction.
    fn whole_length(&self) -> i64 {
        length(self.whole).max(1)
    }

    /// The number in 64 bits, if upstream would hold it there.
    fn small(&self, suffix: Suffix) -> Option<(i64, i64)> {
        let (spare, factor, exponent) = match suffix {
            Suffix::Decimal { exponent, .. } => {
                let spare = 18 - self.whole_length() - length(self.fraction);
                (spare, 1, exponent - length(self.fraction))
            }
            Suffix::Binary { power } if self.fraction.is_empty() => {
                let spare = 15 - self.whole_length() - i64::from(power) * 3 / 10 - 1;
                (spare, 1_i64 << power, 0)
            }
            Suffix::Binary { .. } => return None,
        };
        if spare < 0 || exponent < NANO {
            return None;
        }
        let magnitude = self.unscaled().checked_mul(factor)?;
        Some((if self.negative { -magnitude } else { magnitude }, exponent))
    }

    /// All digits as one number. Only asked for when they are at most 18.
    fn unscaled(&self) -> i64 {
        let digits = self.whole.bytes().chain(self.fraction.bytes());
        digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
    }

    /// Whether upstream keeps the text: a cheap look says that it would print the same. The look
    /// does not see signs, leading zeros, or zeros at the end of a fraction.
    fn is_nearly_canonical(&self, suffix: Suffix, exponent: i64) -> bool {
        match suffix {
            Suffix::Binary { power } => power % 10 == 0 && self.unscaled() & 7 != 0,
            Suffix::Decimal { .. } => {
                let digits = format!("{}{}", self.whole, self.fraction);
                exponent % 3 == 0 && !digits.ends_with("000") && !self.whole.is_empty()
            }
        }
    }

    /// The number as a decimal of any size.
    fn large(&self, suffix: Suffix) -> Quantity {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).map(|c| c - b'0').collect();
        let mut number = Decimal::new(false, digits, -length(self.fraction));
        match suffix {
            Suffix::Decimal { exponent, .. } => number.exponent += exponent,
            Suffix::Binary { power } => number = number.times(1 << power),
        }
        if !number.is_zero() {
            number = number.rounded_up(NANO);
        }
        let mut format = suffix.format();
        if format == Format::BinarySi {
            let largest = Decimal::from_i64(i64::MAX, 0);
            if number.compare(&largest) == Ordering::Greater {
                number = largest;
            }
            if !number.is_zero() && number.compare(&Decimal::from_i64(1, 0)) == Ordering::Less {
                format = Format::DecimalSi;
            }
        }
        if self.negative {
            number = number.negated();
        }
        Quantity { amount: Amount::Decimal(number), format, text: None }
    }
}

/// What a suffix stands for.
#[derive(Clone, Copy)]
enum Suffix {
    Decimal { exponent: i64, format: Format },
    Binary { power: u8 },
}

impl Suffix {
    fn parse(text: &str) -> Result<Self, ParseError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
            return Ok(Suffix::Decimal { exponent: *exponent, format: Format::DecimalSi });
        }
        if let Some(index) = BINARY_SUFFIXES.iter().position(|suffix| *suffix == text) {
            return Ok(Suffix::Binary { power: 10 * (index as u8 + 1) });
        }
        let digits = text.strip_prefix(['e', 'E']).ok_or(ParseError::Suffix)?;
        let exponent: i64 = digits.parse().map_err(|_| ParseError::Suffix)?;
        // Upstream takes the low 32 bits.
        let exponent = i64::from(exponent as i32);
        Ok(Suffix::Decimal { exponent, format: Format::DecimalExponent })
    }

    fn format(self) -> Format {
        match self {
            Suffix::Decimal { format, .. } => format,
            Suffix::Binary { .. } => Format::BinarySi,
        }
    }
}

fn split_while(text: &str, holds: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|c| !holds(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).expect("a text is shorter than 2⁶³ bytes")
}

#[cfg(test)]
mod tests;
