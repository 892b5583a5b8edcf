//! Admission policies and what binds them: rules given as expressions.

use super::Rules;

pub(super) const VALIDATING: Rules = Rules::PLAIN;
pub(super) const VALIDATING_BINDING: Rules = Rules::PLAIN;
pub(super) const MUTATING: Rules = Rules::PLAIN;
pub(super) const MUTATING_BINDING: Rules = Rules::PLAIN;
