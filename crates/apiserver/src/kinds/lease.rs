//! Leases: who holds something, and until when.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
