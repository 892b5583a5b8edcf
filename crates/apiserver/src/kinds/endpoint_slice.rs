//! EndpointSlices: where a Service's traffic goes.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
