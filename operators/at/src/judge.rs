//! Which `At`s are taken.

use kubewright::webhook::{Cause, Change, Denied, Review, Warnings};

use crate::kind::{At, AtSpec};
use crate::plan::due;

/// Refuses a time that is none. One that is there already does not keep anybody from changing the
/// rest.
pub(crate) fn judge(change: Change<'_, At>, _: &Review) -> Result<Warnings, Denied> {
    let at = match change {
        Change::Create(at) => at,
        Change::Update { old, new } if old.spec.schedule != new.spec.schedule => new,
        Change::Update { .. } | Change::Delete(_) => return Ok(Warnings::new()),
    };
    let AtSpec { schedule: Some(schedule), .. } = &at.spec else { return Ok(Warnings::new()) };
    match due(at) {
        Ok(_) => Ok(Warnings::new()),
        Err(_) => {
            let detail = "must be a time in UTC, as 2019-07-03T02:00:00Z";
            Err(Denied::invalid([Cause::invalid("spec.schedule", schedule.as_str(), detail)]))
        }
    }
}
