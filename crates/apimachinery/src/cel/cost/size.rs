//! How large something can be. Arithmetic stops at the largest number.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Size = Size { min: 0, max: u64::MAX };
    /// Unites with anything to give just that.
    pub(super) const NOTHING_YET: Size = Size { min: u64::MAX, max: 0 };

    pub(super) fn fixed(size: u64) -> Self {
        Size { min: size, max: size }
    }

    pub(super) fn plus(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The most that looking through all of it costs.
    pub(super) fn cost(self, factor: f64) -> u64 {
        scale(self.max, factor)
    }
}

/// Rounded up.
pub(super) fn scale(size: u64, factor: f64) -> u64 {
    let scaled = (size as f64 * factor).ceil();
    // The conversion stops at the largest number by itself.
    if scaled >= 18_446_744_073_709_551_616.0 { u64::MAX } else { scaled as u64 }
}
