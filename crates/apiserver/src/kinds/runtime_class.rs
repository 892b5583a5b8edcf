//! RuntimeClasses: what runs a pod's containers.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
