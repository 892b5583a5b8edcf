//! Webhook configurations: who is asked before a write.

use super::Rules;

pub(super) const MUTATING: Rules = Rules::PLAIN;
pub(super) const VALIDATING: Rules = Rules::PLAIN;
