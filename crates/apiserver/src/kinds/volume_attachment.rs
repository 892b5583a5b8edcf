//! VolumeAttachments: which volume is to be on which node.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
