//! ControllerRevisions: what a controller's object once was.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
