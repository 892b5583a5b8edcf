//! CronJobs: Jobs by the clock.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
