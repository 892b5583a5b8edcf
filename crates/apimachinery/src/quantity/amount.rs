//! The number of a quantity: in 64 bits while they do, as a decimal of any size when not.
//!
//! Which of the two holds a number can be seen in what becomes of overflows, so the way from one
//! to the other is upstream's.

use super::decimal::Decimal;

#[derive(Debug, Clone)]
pub(super) enum Amount {
    /// `value` × 10^`exponent`.
    Int {
        value: i64,
        exponent: i64,
    },
    Decimal(Decimal),
}

impl Amount {
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Amount::Int { value, .. } => *value == 0,
            Amount::Decimal(number) => number.is_zero(),
        }
    }

    pub(super) fn is_negative(&self) -> bool {
        match self {
            Amount::Int { value, .. } => *value < 0,
            Amount::Decimal(number) => number.negative && !number.is_zero(),
        }
    }

    pub(super) fn to_decimal(&self) -> Decimal {
        match self {
            Amount::Int { value, exponent } => Decimal::from_i64(*value, *exponent),
            Amount::Decimal(number) => number.clone(),
        }
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        match self {
            Amount::Int { value, exponent: exponent @ 0.. } => shifted_left(*value, *exponent),
            _ => None,
        }
    }

    pub(super) fn to_f64(&self) -> f64 {
        let (base, exponent) = match self {
            Amount::Int { value, exponent } => (*value as f64, *exponent),
            Amount::Decimal(number) => (number.unscaled_to_f64(), number.exponent),
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }

    /// In units of 10^`exponent`, rounded up, or what upstream makes of more than 64 bits.
    pub(super) fn scaled(&self, exponent: i64) -> i64 {
        match self {
            Amount::Int { value, exponent: own } if *own < exponent => {
                shifted_right(*value, exponent - own).0
            }
            // Upstream multiplies by some powers at once and then finds the low bits of what does
            // not fit; it works up to the others step by step and gives up with zero.
            Amount::Int { value, exponent: own } => match own - exponent {
                places @ (1..=3 | 6 | 9) => value.wrapping_mul(10_i64.pow(places as u32)),
                places => shifted_left(*value, places).unwrap_or_default(),
            },
            Amount::Decimal(number) => number.scaled(exponent),
        }
    }

    /// Whether the magnitude is below this.
    pub(super) fn is_below(&self, bound: i64) -> bool {
        let mut magnitude = self.to_decimal();
        magnitude.negative = false;
        magnitude.compare(&Decimal::from_i64(bound, 0)).is_lt()
    }

    /// Whether it is held in 64 bits as a multiple of 10^`exponent`.
    pub(super) fn is_small_multiple(&self, exponent: i64) -> bool {
        matches!(self, Amount::Int { exponent: own, .. } if *own >= exponent)
    }

    /// Away from zero to a multiple of 10^`exponent`; whether nothing was lost.
    pub(super) fn rounded_up(&self, exponent: i64) -> (Self, bool) {
        match self {
            Amount::Int { exponent: own, .. } if *own >= exponent => (self.clone(), true),
            Amount::Int { value, exponent: own } => {
                let (value, exact) = shifted_right(*value, exponent - own);
                (Amount::Int { value, exponent }, exact)
            }
            Amount::Decimal(number) => {
                let rounded = number.rounded_up(exponent);
                let exact = rounded.compare(number).is_eq();
                (Amount::Decimal(rounded), exact)
            }
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let small = match (self, other) {
            (Amount::Int { value: a, exponent: x }, Amount::Int { value: b, exponent: y }) => {
                small_sum((*a, *x), (*b, *y))
            }
            _ => None,
        };
        match small {
            Some((value, exponent)) => Amount::Int { value, exponent },
            None => Amount::Decimal(self.to_decimal().plus(&other.to_decimal())),
        }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    pub(super) fn negated(&self) -> Self {
        match self {
            Amount::Int { value, exponent } => match value.checked_neg() {
                Some(value) => Amount::Int { value, exponent: *exponent },
                None => Amount::Decimal(self.to_decimal().negated()),
            },
            Amount::Decimal(number) => Amount::Decimal(number.negated()),
        }
    }

    /// The product, and whether it is within 64 bits before its power of ten.
    pub(super) fn times(&self, factor: i64) -> (Self, bool) {
        if let Amount::Int { value, exponent } = self
            && let Some(amount) = small_product(*value, *exponent, factor)
        {
            return (amount, true);
        }
        let mut product = self.to_decimal().times(factor.unsigned_abs());
        if factor < 0 {
            product = product.negated();
        }
        let fits = product.unscaled_fits_i64();
        (Amount::Decimal(product), fits)
    }

    /// Digits, and the power of a thousand that goes with them, as large as it can be.
    pub(super) fn in_thousands(&self) -> (String, i64) {
        let mut number = self.to_decimal();
        number.strip_zeros();
        let spare = number.exponent.rem_euclid(3);
        number.expand(number.exponent - spare);
        (number.unscaled_text(), number.exponent)
    }

    /// Digits of a whole number, and how often it was divided by 1024.
    pub(super) fn without_factors_of_1024(&self) -> (String, usize) {
        let mut number = self.to_decimal().rounded_up(0);
        number.expand(0);
        let mut times = 0;
        while let Some(quotient) = number.divided_by_1024() {
            number = quotient;
            times += 1;
        }
        (number.unscaled_text(), times)
    }
}

fn small_sum((a, x): (i64, i64), (b, y): (i64, i64)) -> Option<(i64, i64)> {
    if b == 0 {
        return Some((a, x));
    }
    if a == 0 {
        return Some((b, y));
    }
    let exponent = x.min(y);
    let sum = shifted_left(a, x - exponent)?.checked_add(shifted_left(b, y - exponent)?)?;
    Some((sum, exponent))
}

fn small_product(value: i64, exponent: i64, factor: i64) -> Option<Amount> {
    if value == 0 {
        return Some(Amount::Int { value, exponent });
    }
    if factor == 0 {
        return Some(Amount::Int { value: 0, exponent: 0 });
    }
    let product = value.checked_mul(factor)?;
    // Upstream leaves 64 bits as well when the product is no whole number.
    let stays = match exponent {
        0.. => shifted_left(product, exponent).is_some(),
        _ => shifted_right(product, -exponent).1,
    };
    stays.then_some(Amount::Int { value: product, exponent })
}

fn shifted_left(value: i64, places: i64) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    let factor = 10_i64.checked_pow(u32::try_from(places).ok()?)?;
    value.checked_mul(factor)
}

/// Divided by a power of ten, away from zero; whether nothing was lost.
fn shifted_right(value: i64, places: i64) -> (i64, bool) {
    let factor = u32::try_from(places).ok().and_then(|places| 10_i64.checked_pow(places));
    let (quotient, remainder) = match factor {
        Some(factor) => (value / factor, value % factor),
        None => (0, value),
    };
    match remainder {
        0 => (quotient, true),
        _ => (quotient + value.signum(), false),
    }
}

/// As `math.Pow10`: a product or a quotient of two powers that floats hold.
fn power_of_ten(exponent: i64) -> f64 {
    let exact =
        |exponent: i64| format!("1e{exponent}").parse::<f64>().expect("it is the text of a number");
    match exponent {
        0..=308 => exact(exponent / 32 * 32) * exact(exponent % 32),
        -323..0 => exact(exponent / 32 * 32) / exact(-exponent % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}
