//! LimitRanges: what a pod may ask for.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
