//! Ingresses and their classes: HTTP from outside.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
pub(super) const CLASS: Rules = Rules::PLAIN;
