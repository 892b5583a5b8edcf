//! When a CronJob is due, and which starts it has missed.

#[cfg(test)]
mod tests;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::CronJob;
use kubewright_apimachinery::cron::Schedule;

/// It is looked at a little later than it is due, so that it is due by then.
const DELAY: SignedDuration = SignedDuration::from_millis(100);
/// So many missed starts are worth a word.
const MANY: i64 = 100;

/// The last start that is due, and whether very many were missed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) are_many_missed: bool,
}

/// A schedule by which nothing is ever due, or more often than there are seconds.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct TooDense;

/// A schedule in its zone.
#[derive(Debug)]
pub(super) struct Starts {
    pub(super) schedule: Schedule,
    pub(super) zone: TimeZone,
}

impl Starts {
    /// The last start that is due now and not longer ago than it may be late.
    pub(super) fn due(&self, cron_job: &CronJob, now: Timestamp) -> Result<Option<Due>, TooDense> {
        let late = cron_job.spec.starting_deadline_seconds;
        let deadline = late.and_then(|it| now.checked_sub(SignedDuration::from_secs(it)).ok());
        let earliest = deadline.map_or(since(cron_job), |it| it.max(since(cron_job)));
        Ok(self.missed(earliest, now)?.last)
    }

    /// How long it is until the next start.
    pub(super) fn wait(&self, cron_job: &CronJob, now: Timestamp) -> Option<SignedDuration> {
        let earliest = since(cron_job);
        let from = match self.missed(earliest, now) {
            Ok(Missed { last: Some(due), .. }) => due.at,
            Ok(Missed { last: None, is_any: false }) => earliest,
            Ok(Missed { last: None, is_any: true }) | Err(TooDense) => now,
        };
        Some(self.next(from)?.duration_since(now) + DELAY)
    }

    fn missed(&self, earliest: Timestamp, now: Timestamp) -> Result<Missed, TooDense> {
        let first = self.next(earliest).ok_or(TooDense)?;
        if now < first {
            return Ok(Missed { last: None, is_any: false });
        }
        let second = self.next(first).ok_or(TooDense)?;
        if now < second {
            let due = Due { at: first, are_many_missed: false };
            return Ok(Missed { last: Some(due), is_any: false });
        }
        // Years may have passed: what is between the first start and the last is not gone through
        // but reckoned, as if all were as far apart as the first two.
        let apart = second.duration_since(first).as_secs();
        if apart < 1 {
            return Err(TooDense);
        }
        let count = now.duration_since(first).as_secs() / apart + 1;
        let from = first.saturating_add(SignedDuration::from_secs((count - 2) * apart));
        let mut last = None;
        let mut from = from.unwrap_or(first);
        while let Some(next) = self.next(from).filter(|next| *next <= now) {
            last = Some(Due { at: next, are_many_missed: count > MANY });
            from = next;
        }
        Ok(Missed { last, is_any: true })
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(after, &self.zone)
    }
}

struct Missed {
    last: Option<Due>,
    /// Whether there was another one before the last.
    is_any: bool,
}

/// From when on starts count: the last one, or when it was made.
fn since(cron_job: &CronJob) -> Timestamp {
    let last = cron_job.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let made = cron_job.metadata.creation_timestamp.as_ref();
    last.or(made).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}
