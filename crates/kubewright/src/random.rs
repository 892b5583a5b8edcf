//! Numbers that need be different, not secret.

use std::hash::{BuildHasher as _, RandomState};

/// A number below `bound`, or zero.
pub(crate) fn below(bound: u64) -> u64 {
    // Every state is keyed anew.
    RandomState::new().hash_one(bound) % bound.max(1)
}
