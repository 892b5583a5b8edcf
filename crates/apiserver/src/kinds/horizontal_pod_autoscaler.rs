//! HorizontalPodAutoscalers: replicas by measurement.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
