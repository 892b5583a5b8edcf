//! Leases: keys that go when nobody has asked for them to stay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

use super::keys::Meta;
use super::{Member, refusal};
use crate::Key;
use crate::commit::Transaction;
use crate::etcd::wire::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus,
    LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server::Lease as LeaseApi,
};
use crate::image::Snapshot;

/// All leases, and the keys that hang on them.
#[derive(Default)]
pub(super) struct Leases {
    by_id: Mutex<BTreeMap<i64, Lease>>,
    /// Rings when a lease may end sooner than the one that was waited for.
    changed: Notify,
}

struct Lease {
    seconds: i64,
    ends: Instant,
    keys: BTreeSet<Key>,
}

/// What etcd takes at most, some three hundred years.
const SECONDS_MAX: i64 = 9_000_000_000;
/// What etcd grants at least: one and a half elections, in whole seconds.
const SECONDS_MIN: i64 = 2;

impl Leases {
    /// Those that keys hang on, each for its whole time from now, as after an election.
    pub(super) fn of(snapshot: &Snapshot<Meta>) -> Self {
        let leases = Self::default();
        let mut by_id = leases.lock();
        for rev in snapshot.range("", None, None).iter() {
            let Meta { lease, lease_seconds, .. } = rev.extracted;
            if lease != 0 {
                let lease = by_id.entry(lease).or_insert_with(|| Lease::new(lease_seconds));
                lease.keys.insert(rev.key.clone());
            }
        }
        drop(by_id);
        leases
    }

    /// How long a lease is granted for, if there is one.
    pub(super) fn seconds(&self, id: i64) -> Option<i64> {
        self.lock().get(&id).map(|lease| lease.seconds)
    }

    /// Hangs keys on the leases that a transaction gives them.
    pub(super) fn follow(&self, transaction: &Transaction<'_, Meta>) {
        let mut by_id = self.lock();
        for (key, now) in transaction.changes() {
            let before = transaction.before(key.as_str()).map_or(0, |rev| rev.extracted.lease);
            let after = now.map_or(0, |rev| rev.extracted.lease);
            if before != after
                && let Some(lease) = by_id.get_mut(&before)
            {
                lease.keys.remove(key);
            }
            if let Some(lease) = by_id.get_mut(&after) {
                lease.keys.insert(key.clone());
            }
        }
    }

    pub(super) fn grant(&self, id: i64, seconds: i64) -> Result<i64, Status> {
        if seconds > SECONDS_MAX {
            return Err(refusal::lease_too_long());
        }
        let mut by_id = self.lock();
        let id = match id {
            0 => loop {
                let id = random();
                if !by_id.contains_key(&id) {
                    break id;
                }
            },
            id if by_id.contains_key(&id) => return Err(refusal::lease_exists()),
            id => id,
        };
        by_id.insert(id, Lease::new(seconds.max(SECONDS_MIN)));
        drop(by_id);
        self.changed.notify_one();
        Ok(id)
    }

    /// Begins the time of a lease anew; 0 if there is none.
    fn keep_alive(&self, id: i64) -> i64 {
        self.lock().get_mut(&id).map_or(0, |lease| {
            lease.ends = Lease::new(lease.seconds).ends;
            lease.seconds
        })
    }

    fn remove(&self, id: i64) -> Option<BTreeSet<Key>> {
        self.lock().remove(&id).map(|lease| lease.keys)
    }

    /// The leases that have ended, or else when the next one will.
    pub(super) fn ended(&self, now: Instant) -> Result<Vec<i64>, Option<Instant>> {
        let by_id = self.lock();
        let ended = by_id.iter().filter(|(_, lease)| lease.ends <= now).map(|(id, _)| *id);
        let ended = Vec::from_iter(ended);
        match ended.is_empty() {
            true => Err(by_id.values().map(|lease| lease.ends).min()),
            false => Ok(ended),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Lease>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn new(seconds: i64) -> Self {
        let lasts = Duration::from_secs(seconds.max(1).cast_unsigned());
        Self { seconds, ends: Instant::now() + lasts, keys: BTreeSet::new() }
    }

    /// Whole seconds, as etcd counts them.
    fn remaining(&self) -> i64 {
        let left = self.ends.saturating_duration_since(Instant::now());
        i64::try_from(left.as_secs()).unwrap_or(i64::MAX)
    }
}

/// Positive, as etcd's are. Nothing depends on nobody guessing it.
fn random() -> i64 {
    use std::hash::{BuildHasher as _, RandomState};
    (RandomState::new().hash_one(0) >> 1).cast_signed().max(1)
}

impl Member {
    /// Takes away what hangs on leases that end, until dropped.
    pub(super) async fn expire(&self) {
        let leases = &self.0.leases;
        loop {
            match leases.ended(Instant::now()) {
                Ok(ended) => {
                    for id in ended {
                        if let Err(error) = self.revoke(id).await {
                            tracing::warn!(%error, id, "a lease that ended is not revoked");
                            return;
                        }
                    }
                }
                Err(Some(next)) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(next) => {}
                        () = leases.changed.notified() => {}
                    }
                }
                Err(None) => leases.changed.notified().await,
            }
        }
    }

    async fn revoke(&self, id: i64) -> Result<LeaseRevokeResponse, Status> {
        let work = move |transaction: &mut Transaction<'_, Meta>, leases: &Leases| {
            // The lease goes with its keys, so that nobody hangs another one on it meanwhile.
            let keys = leases.remove(id).ok_or_else(refusal::lease_not_found)?;
            for key in keys
                .iter()
                .filter(|key| transaction.get(key.as_str()).is_some())
                .cloned()
                .collect::<Vec<_>>()
            {
                transaction.delete(&key);
            }
            Ok(())
        };
        let ((), revision) = self.transact(work).await?;
        Ok(LeaseRevokeResponse { header: self.header(revision) })
    }
}

#[tonic::async_trait]
impl LeaseApi for Member {
    type LeaseKeepAliveStream = BoxStream<'static, Result<LeaseKeepAliveResponse, Status>>;

    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        let LeaseGrantRequest { ttl, id } = request.into_inner();
        let id = self.0.leases.grant(id, ttl)?;
        let ttl = self.0.leases.seconds(id).unwrap_or(ttl);
        let header = self.header(self.0.image.revision());
        Ok(Response::new(LeaseGrantResponse { header, id, ttl, error: String::new() }))
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        self.revoke(request.into_inner().id).await.map(Response::new)
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let (member, mut closing) = (self.clone(), self.0.closing.subscribe());
        let answers = request.into_inner().map(move |request| {
            let id = request?.id;
            let header = member.header(member.0.image.revision());
            Ok(LeaseKeepAliveResponse { header, id, ttl: member.0.leases.keep_alive(id) })
        });
        let closed = async move {
            let _ = closing.wait_for(|closing| *closing).await;
        };
        let answers = stream::StreamExt::take_until(answers, closed);
        Ok(Response::new(answers.boxed()))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let LeaseTimeToLiveRequest { id, keys } = request.into_inner();
        let mut answer = LeaseTimeToLiveResponse {
            header: self.header(self.0.image.revision()),
            id,
            ttl: -1,
            ..LeaseTimeToLiveResponse::default()
        };
        if let Some(lease) = self.0.leases.lock().get(&id) {
            answer.ttl = lease.remaining();
            answer.granted_ttl = lease.seconds;
            if keys {
                let keys = lease.keys.iter();
                answer.keys = keys.map(|key| key.as_str().as_bytes().to_vec()).collect();
            }
        }
        Ok(Response::new(answer))
    }

    async fn lease_leases(
        &self,
        _request: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        let leases = self.0.leases.lock().keys().map(|id| LeaseStatus { id: *id }).collect();
        let header = self.header(self.0.image.revision());
        Ok(Response::new(LeaseLeasesResponse { header, leases }))
    }
}
