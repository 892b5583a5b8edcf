//! The lease of an election, as a candidate reads and writes it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, timeout};

use super::Terms;
use super::guard::Renewal;
use super::record::{Candidate, Observed, Record, Step, decide};
use crate::Clock;

pub(super) struct Ballot {
    pub(super) leases: Api<Lease>,
    pub(super) name: String,
    pub(super) candidate: Candidate,
    pub(super) terms: Terms,
    pub(super) clock: Clock,
    /// The lease as it was last read or written.
    known: Option<Lease>,
    /// Of the lease as it was last seen.
    uid: Option<String>,
    observed: Option<Observed>,
}

/// What came of a try.
pub(super) enum Attempt {
    Held(Renewal),
    /// Another one holds the lease.
    Lost,
}

/// Why a try came to nothing. All are tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error("get an answer about the lease within {0:?}")]
    Late(Duration),
    /// It is a leaf: its text has its sources.
    #[error("{0}")]
    Api(kube::Error),
}

impl Ballot {
    pub(super) fn new(
        leases: Api<Lease>,
        name: &str,
        identity: String,
        terms: Terms,
        clock: Clock,
    ) -> Self {
        let candidate = Candidate { identity, lease: terms.lease() };
        let name = name.to_owned();
        Ballot { leases, name, candidate, terms, clock, known: None, uid: None, observed: None }
    }

    /// The lease, as events refer to it.
    pub(super) fn lease(&self, namespace: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some(Lease::api_version(&()).into_owned()),
            kind: Some(Lease::kind(&()).into_owned()),
            name: Some(self.name.clone()),
            namespace: Some(namespace.to_owned()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }

    /// Who holds the lease, as far as is known.
    pub(super) fn holder(&self) -> Option<&str> {
        let holder = self.observed.as_ref().map(|observed| observed.record().holder.as_str());
        holder.filter(|holder| !holder.is_empty())
    }

    /// Until when another one holds the lease for all that is known.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.observed.as_ref().and_then(Observed::held_until)
    }

    /// Takes note of the lease as somebody else read it. Old news does no harm: it can only make
    /// the wait longer.
    pub(super) fn see(&mut self, lease: &Lease) {
        self.uid.clone_from(&lease.metadata.uid);
        let record = record(lease);
        let now = Instant::now();
        match &mut self.observed {
            Some(observed) => observed.see(record, now),
            None => self.observed = Some(Observed::new(record, now)),
        }
    }

    /// Takes or renews the lease, if it is to be had.
    pub(super) async fn attempt(&mut self) -> Result<Attempt, AttemptError> {
        // A holder need not read what it wrote.
        if let Some(known) = self.known.clone()
            && record(&known).holder == self.candidate.identity
            && let Step::Write(record) = self.decide(Some(&known))
        {
            match self.write(Some(known), &record).await {
                Err(AttemptError::Api(kube::Error::Api(status)))
                    if matches!(status.code, 404 | 409) => {}
                written => return written.map(Attempt::Held),
            }
        }
        let found = self.read().await?;
        match self.decide(found.as_ref()) {
            Step::Write(record) => self.write(found, &record).await.map(Attempt::Held),
            Step::Wait(_) => Ok(Attempt::Lost),
        }
    }

    /// Gives the lease away, if it is still ours.
    pub(super) async fn release(&mut self) -> Result<(), AttemptError> {
        let Some(found) = self.read().await? else { return Ok(()) };
        let held = record(&found);
        if held.holder == self.candidate.identity {
            self.write(Some(found), &held.released(self.clock.now())).await?;
        }
        Ok(())
    }

    fn decide(&self, found: Option<&Lease>) -> Step {
        let found = found.map(record);
        let (now, wall) = (Instant::now(), self.clock.now());
        decide(&self.candidate, found.as_ref(), self.observed.as_ref(), now, wall)
    }

    async fn read(&mut self) -> Result<Option<Lease>, AttemptError> {
        self.known = None;
        let found = self.within(self.leases.get_opt(&self.name)).await?;
        if let Some(found) = &found {
            self.see(found);
        }
        Ok(found)
    }

    /// Has the lease say `record`, if nobody has written it since it was read.
    async fn write(
        &mut self,
        found: Option<Lease>,
        record: &Record,
    ) -> Result<Renewal, AttemptError> {
        let create = found.is_none();
        let mut lease = found.unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: None,
        });
        record.write(lease.spec.get_or_insert_default());
        // It is unknown until the answer is there.
        self.known = None;
        let renewal = Renewal { sent: Instant::now(), wall: self.clock.now() };
        let params = PostParams::default();
        let written = match create {
            true => self.within(self.leases.create(&params, &lease)).await?,
            false => self.within(self.leases.replace(&self.name, &params, &lease)).await?,
        };
        self.see(&written);
        self.known = Some(written);
        Ok(renewal)
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, AttemptError> {
        let most = self.terms.request_max();
        let answer = timeout(most, request).await.map_err(|_| AttemptError::Late(most))?;
        answer.map_err(AttemptError::Api)
    }
}

fn record(lease: &Lease) -> Record {
    lease.spec.as_ref().map(Record::of).unwrap_or_default()
}
