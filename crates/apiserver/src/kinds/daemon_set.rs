//! DaemonSets: a pod on every node.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
