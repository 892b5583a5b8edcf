//! Claims of devices. They are not allocated here: a pod that has some waits, and is told why; what
//! is said of another that fits nowhere is what upstream says of one that claims nothing.

use crate::cycle::Attempt;
use crate::plugin::{Plugin, Point, Prepared, Rejection, Remedy};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const NOT_ALLOCATED: &str = "this scheduler does not allocate resource claims";
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
        &[Point::PreFilter, Point::Filter, Point::PostFilter]
    }

    fn filter<'a>(&'a self, pod: &'a Pod, _: &'a Snapshot) -> Result<Prepared<'a>, Rejection> {
        let claims = pod.spec().and_then(|spec| spec.resource_claims.as_ref());
        match claims.is_some_and(|claims| !claims.is_empty()) {
            true => Err(Rejection::unresolvable(NOT_ALLOCATED)),
            false => Ok(Prepared::Anywhere),
        }
    }

    fn post_filter(&self, _attempt: &Attempt<'_>) -> Option<Remedy> {
        Some(Remedy::Nothing(NO_CLAIMS.to_owned()))
    }
}
