//! PodDisruptionBudgets: how many may be missing.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
