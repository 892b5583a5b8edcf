//! Storage drivers: what they can, where they run, what room they have.

use super::Rules;

pub(super) const DRIVER: Rules = Rules::PLAIN;
pub(super) const NODE: Rules = Rules::PLAIN;
pub(super) const CAPACITY: Rules = Rules::PLAIN;
