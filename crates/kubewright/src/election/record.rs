//! What a lease says, and what follows from it. Decides only: times are arguments.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// What a lease says about who holds it.
///
/// Its times are of the holder's clock. They are written for people and compared for equality
/// only: how far a clock of another machine is off, nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Record {
    /// Empty if nobody does.
    pub(crate) holder: String,
    pub(crate) duration: Duration,
    pub(crate) acquired: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) transitions: i32,
}

/// What a lease said when it was last looked at, and since when it has, by our own clock.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    record: Record,
    since: Instant,
}

/// Who wants a lease.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) identity: String,
    pub(crate) lease: Duration,
}

/// What a candidate does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// It holds the lease, or nobody does: it has the lease say this.
    Write(Record),
    /// Another one holds it, until then at least.
    Wait(Instant),
}

/// What to do about a lease as it was just read, none if there is none; `observed` has seen it.
pub(crate) fn decide(
    me: &Candidate,
    found: Option<&Record>,
    observed: Option<&Observed>,
    now: Instant,
    wall: Timestamp,
) -> Step {
    let fresh = Record {
        holder: me.identity.clone(),
        duration: me.lease,
        acquired: Some(wall),
        renewed: Some(wall),
        transitions: 0,
    };
    if let Some(found) = found
        && found.holder == me.identity
    {
        return Step::Write(Record {
            acquired: found.acquired,
            transitions: found.transitions,
            ..fresh
        });
    }
    // A lease that was deleted is held until it would have ended: its holder has not heard of it.
    let others = observed.filter(|observed| observed.record.holder != me.identity);
    if let Some(until) = others.and_then(Observed::held_until)
        && now < until
    {
        return Step::Wait(until);
    }
    match found {
        Some(found) => {
            Step::Write(Record { transitions: found.transitions.saturating_add(1), ..fresh })
        }
        None => Step::Write(fresh),
    }
}

impl Record {
    pub(crate) fn of(spec: &LeaseSpec) -> Self {
        let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or_default());
        Record {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration: Duration::from_secs(seconds.unwrap_or_default()),
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Nobody's any more: what a holder leaves behind, in client-go's form.
    pub(crate) fn released(&self, wall: Timestamp) -> Self {
        Record {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: self.transitions,
        }
    }

    /// Has a lease say this, and leaves alone what it says besides.
    pub(crate) fn write(&self, spec: &mut LeaseSpec) {
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = i32::try_from(self.duration.as_secs()).ok();
        spec.acquire_time = self.acquired.map(MicroTime);
        spec.renew_time = self.renewed.map(MicroTime);
        spec.lease_transitions = Some(self.transitions);
    }
}

impl Observed {
    pub(crate) fn new(record: Record, now: Instant) -> Self {
        Observed { record, since: now }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// When it was first seen to say so.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Takes note of what a lease says now. Only a change shows that its holder lives.
    pub(crate) fn see(&mut self, record: Record, now: Instant) {
        if self.record != record {
            *self = Observed::new(record, now);
        }
    }

    /// Until when the holder may act; none if nobody holds the lease.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        (!self.record.holder.is_empty()).then(|| self.since + self.record.duration)
    }
}
