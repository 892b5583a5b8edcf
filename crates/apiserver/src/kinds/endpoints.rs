//! Endpoints: where a Service's traffic goes, in one piece.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
