//! ReplicaSets.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
