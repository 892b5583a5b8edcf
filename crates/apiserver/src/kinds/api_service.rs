//! APIServices: which server answers for a version of a group.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
