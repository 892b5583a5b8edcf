//! The committer: decides the order of writes, one batch at a time.

mod group;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::{Batch, Engine, Record};
use crate::image::{Changed, Image};
use crate::write::{Action, Conflicts, Draft, Rejected, Written};
use crate::{Durability, Key, Rev, Revision, Unavailable};

pub(crate) use group::GroupWriter;

/// How many numbers one write of the ceiling allows.
const CEILING_STEP: i64 = 1 << 16;

pub(crate) struct Committer<I, E> {
    image: Arc<Image<I>>,
    engine: E,
    last: Revision,
    ceiling: Revision,
    failed: Option<Unavailable>,
}

pub(crate) struct Request<I> {
    pub(crate) draft: Draft<I>,
    pub(crate) conflicts: Conflicts,
    pub(crate) answer: oneshot::Sender<Answer<I>>,
}

pub(crate) type Answer<I> = Result<Written<I>, Rejected<I>>;

/// A batch in the making: what readers will see once it is durable.
struct Pending<I> {
    by_key: HashMap<Key, Held<I>>,
    changes: Vec<Changed<I>>,
    /// Answers that must wait until the batch is visible.
    answers: Vec<(oneshot::Sender<Answer<I>>, Answer<I>)>,
    sync: bool,
}

/// What a key holds after the change `as_of`.
struct Held<I> {
    rev: Option<Arc<Rev<I>>>,
    as_of: Revision,
}

impl<I: Send + Sync + 'static, E: Engine> Committer<I, E> {
    /// Numbers continue above what `image` shows; `ceiling` is what the engine has on record.
    pub(crate) fn new(image: Arc<Image<I>>, engine: E, ceiling: Revision) -> Self {
        let last = image.revision();
        Self { image, engine, last, ceiling, failed: None }
    }

    /// Decides, writes, publishes and answers `requests`, in their order.
    pub(crate) fn commit(&mut self, requests: impl IntoIterator<Item = Request<I>>) {
        if let Some(why) = &self.failed {
            for request in requests {
                let _ = request.answer.send(Err(Rejected::Unavailable(why.clone())));
            }
            return;
        }
        let pending = self.decide(requests);
        if pending.changes.is_empty() {
            return;
        }
        let batch = self.batch(&pending);
        match self.engine.commit(batch) {
            Ok(()) => {
                self.image.publish(pending.changes, self.last);
                for (sender, answer) in pending.answers {
                    // A caller that went away does not undo its write.
                    let _ = sender.send(answer);
                }
            }
            Err(error) => {
                tracing::error!(%error, "storage failed; no more writes are taken");
                let why = Unavailable::Failed(error);
                self.failed = Some(why.clone());
                self.image.halt(why.clone());
                for (sender, _) in pending.answers {
                    let _ = sender.send(Err(Rejected::Unavailable(why.clone())));
                }
            }
        }
    }

    /// Leaves the engine in a state from which numbering continues without a gap.
    pub(crate) fn close(mut self) {
        if self.failed.is_none()
            && let Err(error) = self.engine.close(self.last)
        {
            tracing::error!(%error, "storage failed while closing");
        }
    }

    fn decide(&mut self, requests: impl IntoIterator<Item = Request<I>>) -> Pending<I> {
        let visible = self.image.snapshot();
        let now = self.image.config().clock.now();
        let requests = requests.into_iter();
        let mut pending = Pending::with_capacity(requests.size_hint().0);
        for Request { draft: Draft { key, expect, action }, conflicts, answer } in requests {
            let (found, as_of, near) = match pending.by_key.get(&key) {
                Some(held) => (held.rev.clone(), held.as_of, None),
                None => {
                    let (position, found) = visible.find(key.as_str());
                    (found.cloned(), visible.revision(), Some(position))
                }
            };
            let nothing_to_delete = matches!(action, Action::Delete { .. }) && found.is_none();
            if nothing_to_delete || !expect.holds(found.as_ref().map(|rev| rev.revision)) {
                let conflict = Err(Rejected::Conflict { found, as_of });
                if as_of <= visible.revision() || conflicts == Conflicts::Pending {
                    let _ = answer.send(conflict);
                } else {
                    pending.answers.push((answer, conflict));
                }
                continue;
            }
            self.last = self.last.next();
            let revision = self.last;
            let (current, durability) = match action {
                Action::Put { value, extracted, ttl, durability } => {
                    let created = found.as_ref().map_or(revision, |found| found.created);
                    let deadline = ttl.map(|ttl| now.saturating_add(ttl));
                    let rev = Rev::new(key.clone(), revision, created, value, deadline, extracted);
                    (Some(Arc::new(rev)), durability)
                }
                Action::Delete { durability } => (None, durability),
            };
            pending.sync |= durability == Durability::Synced;
            let held = Held { rev: current.clone(), as_of: revision };
            pending.by_key.insert(key.clone(), held);
            pending.changes.push(Changed { key, revision, current: current.clone(), near });
            pending.answers.push((answer, Ok(Written { revision, current, previous: found })));
        }
        pending
    }

    fn batch(&mut self, pending: &Pending<I>) -> Batch {
        let mut sync = pending.sync;
        if self.last > self.ceiling {
            self.ceiling = Revision::new(self.last.get() + CEILING_STEP);
            // Nobody may see a number above the ceiling on disk, or a crash could repeat it.
            sync = true;
        }
        let records = pending
            .by_key
            .iter()
            .map(|(key, held)| match &held.rev {
                Some(rev) => Record::Put {
                    key: key.clone(),
                    revision: rev.revision,
                    created: rev.created,
                    deadline: rev.deadline,
                    value: rev.value.clone(),
                },
                None => Record::Delete { key: key.clone() },
            })
            .collect();
        Batch { records, revision: self.last, ceiling: self.ceiling, sync }
    }
}

impl<I> Pending<I> {
    fn with_capacity(requests: usize) -> Self {
        Self {
            by_key: HashMap::with_capacity(requests),
            changes: Vec::with_capacity(requests),
            answers: Vec::with_capacity(requests),
            sync: false,
        }
    }
}

#[cfg(test)]
mod tests;
