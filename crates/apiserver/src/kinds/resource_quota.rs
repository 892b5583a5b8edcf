//! ResourceQuotas: how much a namespace may hold.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
