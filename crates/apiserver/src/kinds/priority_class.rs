//! PriorityClasses: which pods go first.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
