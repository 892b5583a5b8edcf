//! Several replicas share the keys of a controller.
//!
//! Each replica that joins a [`Ring`] has a Lease of its own, and sees those of the others. Every
//! key belongs to one of the members that live, and only few keys move when one comes or goes. A key
//! that moves is handed over: the new owner begins to work on it when the old one has ended its work
//! and said so in its lease, or is dead by its lease. So no key is ever worked on by two, whatever
//! becomes of replicas and connections; `shard/view.rs` has the rules, and why they hold.
//!
//! ```no_run
//! use kubewright::shard::Ring;
//! use kubewright::{Clock, ObjectKey, election};
//! # async fn reconcile(client: &kube::Client, key: &ObjectKey) {}
//! # async fn example(client: kube::Client, key: ObjectKey, shutdown: tokio_util::sync::CancellationToken) {
//! let identity = election::identity();
//! let (ring, member) = Ring::join(client, "shop", "greeter", &identity, Clock::system());
//! let mut tasks = tokio::task::JoinSet::new();
//! tasks.spawn(member.run(shutdown));
//! // A key that is not ours is another's to work on; when the share changes, all are looked at again.
//! if let Some(work) = ring.work(&key) {
//!     reconcile(work.client(), &key).await;
//! }
//! # }
//! ```

mod assignment;
mod member;
mod seat;
#[cfg(test)]
mod tests;
mod view;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::{Api, Client};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::assignment::{Members, owner};
use self::seat::Seat;
use self::view::{Claim, View, may_work};
use crate::election::{Hold, Terms};
use crate::{Clock, ObjectKey};

pub use self::member::Member;

/// A ring as one of its members sees it. A clone is another handle on the same membership.
#[derive(Clone)]
pub struct Ring(Arc<Shared>);

/// How the keys are shared, as one member sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Share {
    /// Among whom; empty while this replica is no member.
    pub members: Vec<String>,
    /// How often anything has changed that decides which keys are this member's.
    pub changes: u64,
    /// Why the leases could not be read or written, the last time it was tried.
    pub trouble: Option<String>,
}

/// Work on a key that is this member's, for as long as this is there. A key that is to move does so
/// when it is dropped.
#[must_use = "the key may be another's as soon as this is dropped"]
pub struct Work {
    ring: Ring,
    key: ObjectKey,
    term: Term,
}

/// What becomes of a key that somebody wants to work on.
pub(crate) enum Seized {
    Work(Work),
    /// It is this member's, but whether it still is will show.
    Uncertain,
    /// It is another's, or nobody's yet. When that changes, so does the share.
    Elsewhere,
}

struct Shared {
    /// The member's.
    name: String,
    state: Mutex<State>,
    /// Some work has ended.
    idle: Notify,
    share: watch::Sender<Share>,
}

#[derive(Default)]
struct State {
    claim: Claim,
    view: View,
    /// None while this replica is no member.
    term: Option<Term>,
    /// Keys that are worked on, and how often at once.
    busy: HashMap<ObjectKey, usize>,
}

/// From when a replica becomes a member until it is none.
#[derive(Clone)]
struct Term {
    hold: Hold,
    client: Client,
    lost: CancellationToken,
}

impl Ring {
    /// Has a replica join the ring `name`, which has its leases in `namespace`. It is a member while
    /// [`Member::run`] runs. The name is also the value of a label.
    pub fn join(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        clock: Clock,
    ) -> (Ring, Member) {
        Ring::join_with(client, namespace, name, identity, clock, Terms::default())
    }

    /// Joins with other times than those of Kubernetes' own leases. All members may have their own.
    pub fn join_with(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        clock: Clock,
        terms: Terms,
    ) -> (Ring, Member) {
        let member_name = format!("{name}-{}", Uuid::new_v4());
        let ring = Ring(Arc::new(Shared {
            name: member_name.clone(),
            state: Mutex::default(),
            idle: Notify::new(),
            share: watch::Sender::default(),
        }));
        let leases = Api::namespaced(client.clone(), namespace);
        let seat = Seat::new(leases, name, &member_name, identity, terms, clock.clone());
        let place = member::Place { namespace: namespace.to_owned(), ring: name.to_owned() };
        let member = Member::new(ring.clone(), client, place, seat, terms, clock);
        (ring, member)
    }

    /// What this member is called, which is also the name of its lease.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether a key is this member's to work on, now.
    pub fn owns(&self, key: &ObjectKey) -> bool {
        self.term_for(&self.state(), key).is_some_and(|term| term.hold.is_certain())
    }

    /// Whether a key is this member's by what the leases say, the last time it looked.
    pub(crate) fn claims(&self, key: &ObjectKey) -> bool {
        self.term_for(&self.state(), key).is_some()
    }

    /// Begins to work on a key, if it is this member's.
    pub fn work(&self, key: &ObjectKey) -> Option<Work> {
        match self.seize(key) {
            Seized::Work(work) => Some(work),
            Seized::Uncertain | Seized::Elsewhere => None,
        }
    }

    pub(crate) fn seize(&self, key: &ObjectKey) -> Seized {
        let mut state = self.state();
        let Some(term) = self.term_for(&state, key).cloned() else { return Seized::Elsewhere };
        if !term.hold.is_certain() {
            return Seized::Uncertain;
        }
        *state.busy.entry(key.clone()).or_default() += 1;
        drop(state);
        Seized::Work(Work { ring: self.clone(), key: key.clone(), term })
    }

    /// How the keys are shared, now and whenever that changes. Whoever passed over a key that was
    /// not this member's looks at all of them again when it does.
    pub fn share(&self) -> watch::Receiver<Share> {
        self.0.share.subscribe()
    }

    fn term_for<'a>(&self, state: &'a State, key: &ObjectKey) -> Option<&'a Term> {
        let term = state.term.as_ref()?;
        may_work(&self.0.name, &state.claim, &state.view, key.as_str()).then_some(term)
    }

    /// Changes what decides which keys are ours, and tells if it is different now.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let basis =
            |state: &State| (state.claim.clone(), state.view.claims(), state.term.is_some());
        let before = basis(&state);
        let value = change(&mut state);
        let after = basis(&state);
        if before != after {
            let members = after.0.settled.into_iter().flatten().collect();
            self.0.share.send_modify(|share| {
                share.members = members;
                share.changes += 1;
            });
        }
        value
    }

    /// Waits until all work has ended, but that on keys which are ours among `members`.
    async fn idle(&self, members: &Members) {
        loop {
            let ended = self.0.idle.notified();
            let is_ours =
                |key: &ObjectKey| owner(members, key.as_str()) == Some(self.0.name.as_str());
            if self.state().busy.keys().all(is_ours) {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it panics half-way.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// A client that writes only for as long as the key is this member's for certain. A write that
    /// it refuses, or whose answer comes too late, fails with a [`Refused`](crate::election::Refused).
    pub fn client(&self) -> &Client {
        &self.term.client
    }

    /// Cancelled when the key may be another's although this work has not ended: the lease could not
    /// be renewed.
    pub fn lost(&self) -> CancellationToken {
        self.term.lost.clone()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = self.ring.state();
        if let Some(count) = state.busy.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.busy.remove(&self.key);
            }
        }
        drop(state);
        self.ring.0.idle.notify_waiters();
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Work").field(&self.key).finish()
    }
}
