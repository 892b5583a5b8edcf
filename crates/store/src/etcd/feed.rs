//! What the watch stream says, told as steps of an image: pure, so that fragments, duplicates and
//! cancellations are tested by value. Opening streams and applying steps is the follower's work.

use super::wire::{Event, WatchResponse};

#[cfg(test)]
mod tests;

/// Turns the answers of one watch stream, from its first, into steps.
#[derive(Debug)]
pub(super) struct Feed {
    /// Everything up to here has been handed out.
    applied: i64,
    /// Events of an answer whose last fragment has not come yet.
    fragments: Vec<Event>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing to do yet.
    Wait,
    /// The next events, of whole revisions in rising order.
    Events(Vec<Event>),
    /// No event at or below this revision is still to come.
    Progress(i64),
}

/// Why a stream is of no more use. Every event handed out before stays good.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Ended {
    /// Events were lost for good: load everything again.
    #[error("follow etcd from a revision compacted at {compacted}")]
    Compacted { compacted: i64 },
    /// Open another stream from the last revision.
    #[error("keep a watch that etcd canceled: {reason}")]
    Canceled { reason: String },
    /// Open another stream; this one contradicts itself.
    #[error("follow events that go back from revision {applied} to {revision}")]
    OutOfOrder { applied: i64, revision: i64 },
}

impl Feed {
    /// For a stream asked to start right after `applied`.
    pub(super) fn after(applied: i64) -> Self {
        Self { applied, fragments: Vec::new() }
    }

    pub(super) fn accept(&mut self, answer: WatchResponse) -> Result<Step, Ended> {
        // etcd sets both; the revision is what matters, whatever the reason's words are.
        if answer.compact_revision != 0 {
            return Err(Ended::Compacted { compacted: answer.compact_revision });
        }
        if answer.canceled {
            return Err(Ended::Canceled { reason: answer.cancel_reason });
        }
        if answer.created {
            return Ok(Step::Wait);
        }
        if answer.fragment || !self.fragments.is_empty() {
            self.fragments.extend(answer.events);
            if answer.fragment {
                return Ok(Step::Wait);
            }
            let events = std::mem::take(&mut self.fragments);
            return self.events(events);
        }
        if answer.events.is_empty() {
            // Only an answer without events vouches for its header: with events, the header is the
            // revision of the whole cluster, which a watch that is catching up has not seen yet.
            let revision = answer.header.map_or(0, |header| header.revision);
            if revision <= self.applied {
                return Ok(Step::Wait);
            }
            self.applied = revision;
            return Ok(Step::Progress(revision));
        }
        self.events(answer.events)
    }

    fn events(&mut self, events: Vec<Event>) -> Result<Step, Ended> {
        let start = self.applied;
        let mut fresh = Vec::with_capacity(events.len());
        for event in events {
            let revision = event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
            if revision <= start {
                continue;
            }
            // One revision may hold several events: an expired lease takes all its keys at once.
            if revision < self.applied {
                return Err(Ended::OutOfOrder { applied: self.applied, revision });
            }
            self.applied = revision;
            fresh.push(event);
        }
        Ok(if fresh.is_empty() { Step::Wait } else { Step::Events(fresh) })
    }
}
