//! What a member knows of the others, and which keys it may work on. Decides only: times are
//! arguments.
//!
//! Each member's lease says by which set of members it shares out the keys: its *claim*. A key is
//! claimed by a member if it is that member's by its own claim. Three rules keep two members from
//! working on one key:
//!
//! 1. A member works on a key only while it claims it, and, since it does, has looked at all leases
//!    and seen no other that claims it and lives.
//! 2. It ends its work on a key before it gives up the claim.
//! 3. One that could not renew its lease in time has no claim until it has written it anew.
//!
//! Of two members that claim one key, one wrote its claim later, and saw the other's when it looked:
//! it waits. As all learn of each other their claims become the same, and then every key is claimed
//! once. A member lives for the length of its lease from when it was last seen to change, but only
//! a look can show that it did not: so what counts is the moment a look was *begun*, not the
//! present. A look that is late, or does not come back, makes nobody dead.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::assignment::{Members, owner};
use crate::election::{Observed, Record};

/// For how many lengths of its lease the lease of a dead member is left for people to see.
const REMEMBERED: u32 = 40;

/// The lease of a member, as a look found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) record: Record,
    pub(super) claim: Members,
}

/// What one member knows of the others.
#[derive(Debug, Default)]
pub(super) struct View {
    others: BTreeMap<String, Other>,
    /// When the last look was begun.
    as_of: Option<Instant>,
}

#[derive(Debug)]
struct Other {
    claim: Members,
    observed: Observed,
    /// Its lease was deleted. Unless it had given up its claim, it may not have heard of it yet.
    deleted: bool,
}

/// What a member works by.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// What its lease says, and has said since before it last looked; none if it has not looked.
    pub(super) settled: Option<Members>,
    /// What its lease is to say next. Work that would be against it is to end first.
    pub(super) next: Option<Members>,
}

/// Whether `me` may begin to work on a key.
pub(super) fn may_work(me: &str, claim: &Claim, view: &View, key: &str) -> bool {
    let Some(settled) = &claim.settled else { return false };
    let mine = |members: &Members| owner(members, key) == Some(me);
    mine(settled) && claim.next.as_ref().is_none_or(mine) && view.is_free(settled, key)
}

impl View {
    /// Takes note of all leases of the ring but our own, as a look that was begun at `asked` found
    /// them `now`.
    pub(super) fn look(&mut self, found: Vec<Found>, asked: Instant, now: Instant) {
        self.as_of = Some(asked);
        for other in self.others.values_mut() {
            other.deleted = true;
        }
        for Found { name, record, claim } in found {
            let mut observed = match self.others.remove(&name) {
                Some(known) => known.observed,
                None => Observed::new(record.clone(), now),
            };
            observed.see(record, now);
            self.others.insert(name, Other { claim, observed, deleted: false });
        }
        self.others
            .retain(|_, other| !other.deleted || (other.lives(asked) && !other.claim.is_empty()));
    }

    /// The members among which keys are to be shared: `me`, and all that live and mean to stay.
    pub(super) fn members(&self, me: &str) -> Members {
        let others = self
            .others
            .iter()
            .filter(|(_, other)| self.lives(other) && !other.deleted && !other.claim.is_empty());
        others.map(|(name, _)| name.clone()).chain([me.to_owned()]).collect()
    }

    /// The claims of others that count.
    pub(super) fn claims(&self) -> BTreeMap<String, Members> {
        let others = self.others.iter().filter(|(_, other)| self.lives(other));
        others.map(|(name, other)| (name.clone(), other.claim.clone())).collect()
    }

    /// The members that have been dead for long, and whose leases are still there.
    pub(super) fn forgotten(&self) -> Vec<String> {
        let Some(as_of) = self.as_of else { return Vec::new() };
        let is_old = |other: &Other| {
            let kept = other.observed.record().duration * REMEMBERED;
            !other.deleted && other.observed.since() + kept <= as_of
        };
        let forgotten = self.others.iter().filter(|(_, other)| is_old(other));
        forgotten.map(|(name, _)| name.clone()).collect()
    }

    /// Whether no other member claims a key that is ours by `ours`.
    fn is_free(&self, ours: &Members, key: &str) -> bool {
        let claims = |(name, other): (&String, &Other)| {
            // By the same claim, what is ours is not theirs.
            other.claim != *ours && owner(&other.claim, key) == Some(name)
        };
        !self.others.iter().filter(|(_, other)| self.lives(other)).any(claims)
    }

    fn lives(&self, other: &Other) -> bool {
        self.as_of.is_none_or(|as_of| other.lives(as_of))
    }
}

impl Other {
    fn lives(&self, as_of: Instant) -> bool {
        self.observed.held_until().is_some_and(|until| as_of < until)
    }
}
