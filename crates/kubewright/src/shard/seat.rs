//! The lease of a member, and a look at those of all.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use tokio::time::{Instant, timeout};

use super::assignment::Members;
use super::view::Found;
use crate::Clock;
use crate::election::{Record, Renewal, Terms};

/// Marks the leases of a ring.
pub(super) const RING: &str = "kubewright.dev/ring";
/// By which members the holder of a lease shares out the keys, separated by commas.
const CLAIM: &str = "kubewright.dev/ring-members";

pub(super) struct Seat {
    leases: Api<Lease>,
    ring: String,
    /// Of the lease, which is also the member's.
    name: String,
    identity: String,
    terms: Terms,
    clock: Clock,
    /// The lease as it was last read or written.
    known: Option<Lease>,
    /// Whether it was written, so that it must be there.
    taken: bool,
}

/// Why a lease could not be read or written. All is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum SeatError {
    #[error("get an answer about a lease in time")]
    Late,
    /// Somebody deleted it. The next try makes it anew.
    #[error("find the lease that was written")]
    Gone,
    /// It is a leaf: its text has its sources.
    #[error("{0}")]
    Api(kube::Error),
}

impl Seat {
    pub(super) fn new(
        leases: Api<Lease>,
        ring: &str,
        name: &str,
        identity: &str,
        terms: Terms,
        clock: Clock,
    ) -> Self {
        let [ring, name, identity] = [ring, name, identity].map(str::to_owned);
        Seat { leases, ring, name, identity, terms, clock, known: None, taken: false }
    }

    /// Renews the lease, and has it say `claim`.
    pub(super) async fn write(&mut self, claim: &Members) -> Result<Renewal, SeatError> {
        if self.known.is_none() {
            // What became of the last try is unknown.
            self.known = self.within(self.leases.get_opt(&self.name)).await?;
        }
        if self.known.is_none() && std::mem::take(&mut self.taken) {
            return Err(SeatError::Gone);
        }
        let found = self.known.take();
        let renewal = Renewal { sent: Instant::now(), wall: self.clock.now() };
        let lease = self.lease(found.as_ref(), claim, renewal);
        let params = PostParams::default();
        let written = match found {
            Some(_) => self.within(self.leases.replace(&self.name, &params, &lease)).await,
            None => self.within(self.leases.create(&params, &lease)).await,
        };
        match written {
            Ok(written) => {
                self.known = Some(written);
                self.taken = true;
                Ok(renewal)
            }
            Err(SeatError::Api(kube::Error::Api(status))) if status.code == 404 && self.taken => {
                self.taken = false;
                Err(SeatError::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at the leases of all members but this one; also tells when it began to.
    pub(super) async fn look(&self) -> Result<(Vec<Found>, Instant), SeatError> {
        let asked = Instant::now();
        // Of no particular version, so that everything is there that was written before.
        let params = ListParams::default().labels(&format!("{RING}={}", self.ring));
        let list = self.within(self.leases.list(&params)).await?;
        let found = list.items.into_iter().filter_map(|lease| {
            let name = lease.metadata.name.clone().filter(|name| *name != self.name)?;
            let record = lease.spec.as_ref().map(Record::of).unwrap_or_default();
            Some(Found { name, record, claim: claim(&lease.metadata) })
        });
        Ok((found.collect(), asked))
    }

    /// Takes the own lease away.
    pub(super) async fn leave(&self) -> Result<(), SeatError> {
        self.within(self.leases.delete(&self.name, &DeleteParams::default())).await.map(drop)
    }

    /// Takes away the lease of another member, unless it is written meanwhile.
    pub(super) async fn clear(&self, name: &str) -> Result<(), SeatError> {
        let lease = self.within(self.leases.get(name)).await?;
        let ObjectMeta { uid, resource_version, .. } = lease.metadata;
        let preconditions = Some(Preconditions { uid, resource_version });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        self.within(self.leases.delete(name, &params)).await.map(drop)
    }

    fn lease(&self, found: Option<&Lease>, claim: &Members, renewal: Renewal) -> Lease {
        let mut lease = found.cloned().unwrap_or_default();
        let acquired = lease.spec.as_ref().map(Record::of).and_then(|record| record.acquired);
        let record = Record {
            holder: self.identity.clone(),
            duration: self.terms.lease(),
            acquired: acquired.or(Some(renewal.wall)),
            renewed: Some(renewal.wall),
            transitions: 0,
        };
        record.write(lease.spec.get_or_insert_default());
        lease.metadata.name = Some(self.name.clone());
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(RING.to_owned(), self.ring.clone());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        let members: Vec<_> = claim.iter().map(String::as_str).collect();
        annotations.insert(CLAIM.to_owned(), members.join(","));
        lease
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, SeatError> {
        let answer = timeout(self.terms.request_max(), request).await;
        answer.map_err(|_| SeatError::Late)?.map_err(SeatError::Api)
    }
}

/// What a lease says that its holder claims.
pub(super) fn claim(metadata: &ObjectMeta) -> Members {
    let annotations = metadata.annotations.as_ref();
    let said = annotations.and_then(|said| said.get(CLAIM)).map_or("", String::as_str);
    said.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
