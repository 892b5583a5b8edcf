//! Services: one address for many pods.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
