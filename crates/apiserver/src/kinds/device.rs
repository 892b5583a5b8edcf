//! Dynamic resource allocation: devices, classes of them, and claims to them.

use super::Rules;

pub(super) const CLASS: Rules = Rules::PLAIN;
pub(super) const CLAIM: Rules = Rules::PLAIN;
pub(super) const CLAIM_TEMPLATE: Rules = Rules::PLAIN;
pub(super) const SLICE: Rules = Rules::PLAIN;
