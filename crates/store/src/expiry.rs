//! Keys that the store removes by itself: Kubernetes Events, after an hour.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Notify;

use crate::write::{Action, Conflicts, Draft, Rejected};
use crate::{Durability, Expect, Key, Rev, Revision, Store, Unavailable};

/// Removing keys in bunches keeps a thousand Events of one second from being a thousand wake-ups.
const PAUSE: Duration = Duration::from_secs(1);

impl<I: Send + Sync + 'static> Store<I> {
    /// Removes every key whose time has come and history that is too old; returns the number of
    /// keys removed.
    pub async fn expire(&self) -> Result<usize, Unavailable> {
        let image = self.image();
        image.trim();
        let due = image.deadlines().due(image.config().clock.now());
        let removals = due.into_iter().map(|(key, revision)| {
            let action = Action::Delete { durability: Durability::Written };
            let draft = Draft { key, expect: Expect::At(revision), action };
            self.writer().write(draft, Conflicts::Pending)
        });
        let mut removed = 0;
        for removal in join_all(removals).await {
            match removal {
                Ok(_) => removed += 1,
                // Somebody was faster, or wrote the key anew.
                Err(Rejected::Conflict { .. }) => {}
                Err(Rejected::Unavailable(why)) => return Err(why),
            }
        }
        Ok(removed)
    }

    /// Keeps expiring; returns only when the store takes no more writes. The owner of the store
    /// runs this, once.
    pub async fn run_expiry(&self) -> Unavailable {
        let deadlines = self.image().deadlines();
        loop {
            let sooner = deadlines.sooner.notified();
            match deadlines.next() {
                None => sooner.await,
                Some(deadline) => {
                    let left = deadline.saturating_sub(self.image().config().clock.now());
                    tokio::select! {
                        // Both arms only wait; nothing is lost when one of them is dropped.
                        () = tokio::time::sleep(left.max(PAUSE)) => {}
                        () = sooner => continue,
                    }
                }
            }
            if let Err(why) = self.expire().await {
                return why;
            }
        }
    }
}

/// The deadlines of the keys that have one.
pub(crate) struct Deadlines {
    by_time: Mutex<BTreeSet<(Duration, Key, Revision)>>,
    /// Told when the next deadline is sooner than it was.
    sooner: Notify,
}

impl Deadlines {
    pub(crate) fn new<'a, I: 'a>(revs: impl Iterator<Item = &'a Rev<I>>) -> Self {
        Self { by_time: Mutex::new(revs.filter_map(entry).collect()), sooner: Notify::new() }
    }

    pub(crate) fn reset<'a, I: 'a>(&self, revs: impl Iterator<Item = &'a Rev<I>>) {
        *self.lock() = revs.filter_map(entry).collect();
        self.sooner.notify_one();
    }

    pub(crate) fn replace<I>(&self, previous: Option<&Rev<I>>, current: Option<&Rev<I>>) {
        let previous = previous.and_then(entry);
        let current = current.and_then(entry);
        if previous.is_none() && current.is_none() {
            return;
        }
        let mut by_time = self.lock();
        if let Some(previous) = previous {
            by_time.remove(&previous);
        }
        if let Some(current) = current {
            let sooner = by_time.first().is_none_or(|first| current < *first);
            by_time.insert(current);
            drop(by_time);
            if sooner {
                self.sooner.notify_one();
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.lock().first().map(|(deadline, _, _)| *deadline)
    }

    pub(crate) fn due(&self, now: Duration) -> Vec<(Key, Revision)> {
        self.lock()
            .iter()
            .take_while(|(deadline, _, _)| *deadline <= now)
            .map(|(_, key, revision)| (key.clone(), *revision))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Duration, Key, Revision)>> {
        self.by_time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<I>(rev: &Rev<I>) -> Option<(Duration, Key, Revision)> {
    rev.deadline.map(|deadline| (deadline, rev.key.clone(), rev.revision))
}

#[cfg(test)]
mod tests;
