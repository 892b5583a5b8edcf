//! Flow control: which requests wait for which.

use super::Rules;

pub(super) const SCHEMA: Rules = Rules::PLAIN;
pub(super) const LEVEL: Rules = Rules::PLAIN;
