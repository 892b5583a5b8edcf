//! StorageClasses and VolumeAttributesClasses: how volumes are made.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
pub(super) const ATTRIBUTES: Rules = Rules::PLAIN;
