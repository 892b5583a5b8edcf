//! StatefulSets: pods with a name and a disk of their own.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
