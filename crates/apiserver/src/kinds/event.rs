//! Events: what happened to whom, in the two groups that serve them.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
