//! Secrets: bytes by key, of a type that says which keys must be there.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
