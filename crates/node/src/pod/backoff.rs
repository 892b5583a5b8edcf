//! How long a container that ended waits to be started again.
//!
//! It is started at once after its first end, then waits ten seconds, and twice as long each time,
//! up to five minutes. One that ran for ten minutes is taken for healthy.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
/// After so long without a failure it begins anew.
const FORGOTTEN: SignedDuration = SignedDuration::from_secs(600);

/// The failures in a row of one container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backoff(Option<Step>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    pause: Duration,
    since: Timestamp,
}

impl Backoff {
    /// How long something that failed at this time must wait, and until when; none if it need not.
    pub(crate) fn hold(&self, failed: Timestamp, now: Timestamp) -> Option<(Duration, Timestamp)> {
        let step = self.0.filter(|step| failed.duration_since(step.since) <= FORGOTTEN)?;
        let until = later(failed, step.pause);
        (now < until).then_some((step.pause, until))
    }

    /// Something that failed at this time is tried again now.
    pub(crate) fn tried(&mut self, failed: Timestamp, now: Timestamp) {
        let pause = match self.0 {
            Some(step) if failed.duration_since(step.since) <= FORGOTTEN => {
                (step.pause * 2).min(LONGEST)
            }
            _ => FIRST,
        };
        self.0 = Some(Step { pause, since: now });
    }
}

/// A time some while after another.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}
