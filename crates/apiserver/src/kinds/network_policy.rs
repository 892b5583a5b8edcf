//! NetworkPolicies: who may talk to whom.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
