//! Deployments: ReplicaSets that follow one another.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
