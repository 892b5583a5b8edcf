//! IPAddresses and ServiceCIDRs: which cluster addresses there are, and whose they are.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
pub(super) const CIDR: Rules = Rules::PLAIN;
