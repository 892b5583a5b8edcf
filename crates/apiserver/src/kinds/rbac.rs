//! Roles and what binds them.

use super::Rules;

pub(super) const CLUSTER_ROLE: Rules = Rules::PLAIN;
pub(super) const CLUSTER_ROLE_BINDING: Rules = Rules::PLAIN;
pub(super) const ROLE: Rules = Rules::PLAIN;
pub(super) const ROLE_BINDING: Rules = Rules::PLAIN;
