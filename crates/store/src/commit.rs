//! The committer: decides the order of writes, one batch at a time.

mod group;
mod transaction;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::{Batch, Engine, Head, Record};
use crate::image::{Changed, Image, Snapshot};
use crate::sorted::Position;
use crate::write::{Action, Conflicts, Draft, Rejected, Written};
use crate::{Durability, Key, Rev, Revision, Unavailable};

pub(crate) use group::GroupWriter;
pub(crate) use transaction::{Job, Reply, Transaction};

/// How many numbers one write of the ceiling allows.
const CEILING_STEP: i64 = 1 << 16;

pub(crate) struct Committer<I, E> {
    image: Arc<Image<I>>,
    engine: E,
    last: Revision,
    ceiling: Revision,
    failed: Option<Unavailable>,
}

/// What a committer is asked for.
pub(crate) enum Order<I> {
    /// One key, at a revision of its own.
    Write(Request<I>),
    /// Any number of keys, at one revision.
    Transaction(Job<I>),
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
    /// Likewise, those of transactions, with the revision that they tell.
    replies: Vec<(Reply, Revision)>,
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

    /// Decides, writes, publishes and answers `orders`, in their order.
    pub(crate) fn commit(&mut self, orders: impl IntoIterator<Item = Order<I>>) {
        if let Some(why) = &self.failed {
            for order in orders {
                order.refuse(why);
            }
            return;
        }
        let pending = self.decide(orders);
        if pending.changes.is_empty() {
            for (reply, revision) in pending.replies {
                reply(Ok(revision));
            }
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
                for (reply, revision) in pending.replies {
                    reply(Ok(revision));
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
                for (reply, _) in pending.replies {
                    reply(Err(why.clone()));
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

    fn decide(&mut self, orders: impl IntoIterator<Item = Order<I>>) -> Pending<I> {
        let visible = self.image.snapshot();
        let now = self.image.config().clock.now();
        let orders = orders.into_iter();
        let mut pending = Pending::with_capacity(orders.size_hint().0);
        for order in orders {
            match order {
                Order::Write(request) => self.write(request, &visible, now, &mut pending),
                Order::Transaction(job) => self.transact(job, &visible, &mut pending),
            }
        }
        pending
    }

    fn write(
        &mut self,
        request: Request<I>,
        visible: &Snapshot<I>,
        now: Duration,
        pending: &mut Pending<I>,
    ) {
        let Request { draft: Draft { key, expect, action }, conflicts, answer } = request;
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
            return;
        }
        self.last = self.last.next();
        let revision = self.last;
        let (current, durability) = match action {
            Action::Put { value, extracted, ttl, durability } => {
                let created = found.as_ref().map_or(revision, |found| found.created);
                let deadline = ttl.map(|ttl| now.saturating_add(ttl));
                let head = Head { revision, created, deadline };
                let rev = Rev::new(key.clone(), head, value, extracted);
                (Some(Arc::new(rev)), durability)
            }
            Action::Delete { durability } => (None, durability),
        };
        pending.sync |= durability == Durability::Synced;
        pending.change(key, revision, current.clone(), near);
        pending.answers.push((answer, Ok(Written { revision, current, previous: found })));
    }

    fn transact(&mut self, job: Job<I>, visible: &Snapshot<I>, pending: &mut Pending<I>) {
        let revision = self.last.next();
        let mut transaction = Transaction::new(visible, &pending.by_key, revision);
        let reply = job(&mut transaction);
        let (changes, sync) = transaction.into_changes();
        if !changes.is_empty() {
            self.last = revision;
        }
        for (key, rev) in changes {
            pending.change(key, revision, rev, None);
        }
        pending.sync |= sync;
        pending.replies.push((reply, self.last));
    }

    fn batch<'a>(&mut self, pending: &'a Pending<I>) -> Batch<'a> {
        let mut sync = pending.sync;
        if self.last > self.ceiling {
            self.ceiling = Revision::new(self.last.get() + CEILING_STEP);
            // Nobody may see a number above the ceiling on disk, or a crash could repeat it.
            sync = true;
        }
        let records = pending
            .by_key
            .iter()
            .map(|(key, held)| Record { key, held: held.rev.as_ref().map(|rev| rev.stored()) })
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
            replies: Vec::new(),
            sync: false,
        }
    }

    fn change(
        &mut self,
        key: Key,
        revision: Revision,
        current: Option<Arc<Rev<I>>>,
        near: Option<Position>,
    ) {
        let held = Held { rev: current.clone(), as_of: revision };
        self.by_key.insert(key.clone(), held);
        self.changes.push(Changed { key, revision, current, near });
    }
}

impl<I> Order<I> {
    fn refuse(self, why: &Unavailable) {
        match self {
            Order::Write(request) => {
                let _ = request.answer.send(Err(Rejected::Unavailable(why.clone())));
            }
            // Whoever waits for it learns by its end that it will not happen.
            Order::Transaction(job) => drop(job),
        }
    }
}

impl<I> From<Request<I>> for Order<I> {
    fn from(request: Request<I>) -> Self {
        Order::Write(request)
    }
}

#[cfg(test)]
mod tests;
