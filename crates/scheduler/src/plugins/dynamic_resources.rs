//! Claims of devices. They are not allocated here: no pod is refused for want of one, and what is
//! said of a pod that fits nowhere is what upstream says of one that claims nothing.

use crate::cycle::Attempt;
use crate::plugin::{Plugin, Point, Remedy};

const NO_CLAIMS: &str = "no new claims to deallocate";

#[derive(Debug, Clone)]
pub(crate) struct DynamicResources;

impl DynamicResources {
    pub(crate) const NAME: &str = "DynamicResources";
}

impl Plugin for DynamicResources {
    fn name(&self) -> &str {
        DynamicResources::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PostFilter]
    }

    fn post_filter(&self, _attempt: &Attempt<'_>) -> Option<Remedy> {
        Some(Remedy::Nothing(NO_CLAIMS.to_owned()))
    }
}
