//! Writes through etcd: a transaction decides, the watch tells, and only what the image shows is
//! acknowledged.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::{CallError, Client};
use super::follow::rev;
use super::freshness::Freshness;
use super::lease::Leases;
use super::transaction::{Act, Outcome, outcome, request};
use crate::engine::Head;
use crate::image::Image;
use crate::write::{Action, Conflicts, Draft, Rejected, Writer, Written};
use crate::{Event, Expect, Key, Rev, Revision, Unavailable};

pub(super) struct EtcdWriter<I> {
    pub(super) client: Arc<Client>,
    pub(super) image: Arc<Image<I>>,
    pub(super) prefix: Bytes,
    pub(super) leases: Leases,
    pub(super) freshness: Freshness,
    /// Tells the follower which revision somebody waits for.
    pub(super) wanted: watch::Sender<Revision>,
    /// How long the image may take to show what etcd has done.
    pub(super) patience: Duration,
    /// The follower and the compaction, ended with the writer. None once closed.
    pub(super) tasks: Mutex<Option<JoinSet<()>>>,
}

/// etcd has done it, but did not tell us through the watch in time.
#[derive(Debug, thiserror::Error)]
#[error("see revision {0} in the watch on etcd")]
struct Unseen(Revision);

impl<I: Send + Sync + 'static> Writer<I> for EtcdWriter<I> {
    fn write(
        &self,
        draft: Draft<I>,
        conflicts: Conflicts,
    ) -> BoxFuture<'_, Result<Written<I>, Rejected<I>>> {
        self.carry_out(draft, conflicts).boxed()
    }

    fn latest(&self) -> BoxFuture<'_, Result<Revision, Unavailable>> {
        async {
            let known = self.freshness.revision(&self.client, &self.prefix).await;
            let revision = Revision::new(known.map_err(|error| Unavailable::Unreachable(error))?);
            self.want(revision);
            self.shown(revision).await?;
            Ok(revision)
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        async {
            if let Some(mut tasks) = tasks {
                tasks.shutdown().await;
            }
        }
        .boxed()
    }
}

impl<I: Send + Sync + 'static> EtcdWriter<I> {
    async fn carry_out(
        &self,
        draft: Draft<I>,
        conflicts: Conflicts,
    ) -> Result<Written<I>, Rejected<I>> {
        if self.is_closed() {
            return Err(Rejected::Unavailable(Unavailable::Closed));
        }
        let Draft { key, expect, action } = draft;
        match self.decide(&key, expect, &action).await.map_err(unavailable)? {
            Outcome::Written { revision, deleted } => {
                let revision = Revision::new(revision);
                self.shown(revision).await.map_err(Rejected::Unavailable)?;
                Ok(self.written(key, revision, action, deleted.and_then(|kv| self.rev(kv))))
            }
            Outcome::Conflict { found, revision } => {
                let found = found.and_then(|kv| self.rev(kv));
                let as_of = match &found {
                    Some(found) => found.revision,
                    // No event says that nothing is there; the watch must come as far as this.
                    None => self.want(Revision::new(revision)),
                };
                if conflicts == Conflicts::Visible {
                    self.shown(as_of).await.map_err(Rejected::Unavailable)?;
                }
                Err(Rejected::Conflict { found, as_of })
            }
        }
    }

    /// Has etcd decide. A lease may have ended since it was taken; then another one is.
    async fn decide(
        &self,
        key: &Key,
        expect: Expect,
        action: &Action<I>,
    ) -> Result<Outcome, CallError> {
        let name = Bytes::copy_from_slice(key.as_str().as_bytes());
        loop {
            let (act, lease) = match action {
                Action::Delete { .. } => (Act::Delete, None),
                Action::Put { value, ttl: None, .. } => {
                    (Act::Put { value: value.clone(), lease: 0 }, None)
                }
                Action::Put { value, ttl: Some(ttl), .. } => {
                    let lease = self.leases.lease(&self.client, *ttl).await?;
                    (Act::Put { value: value.clone(), lease }, Some(lease))
                }
            };
            match (self.client.txn(request(name.clone(), expect, act)).await, lease) {
                (Err(CallError::LeaseGone), Some(lease)) => self.leases.forget(lease),
                (answer, _) => return answer.map(outcome),
            }
        }
    }

    /// What readers see of the change at `revision`. If the image has already left it behind, it is
    /// put together from what we know.
    fn written(
        &self,
        key: Key,
        revision: Revision,
        action: Action<I>,
        deleted: Option<Arc<Rev<I>>>,
    ) -> Written<I> {
        if let Some(event) = self.event(&key, revision) {
            let (current, previous) = (event.current.clone(), event.previous.clone());
            return Written { revision, current, previous: previous.or(deleted) };
        }
        let Action::Put { value, extracted, .. } = action else {
            return Written { revision, current: None, previous: deleted };
        };
        let latest = self.image.get(key.as_str());
        if let Some(current) = latest.as_ref().filter(|latest| latest.revision == revision) {
            return Written { revision, current: Some(Arc::clone(current)), previous: None };
        }
        let created = latest.map_or(revision, |latest| latest.created.min(revision));
        let head = Head { revision, created, deadline: None };
        let current = Rev::new(key, head, value, extracted);
        Written { revision, current: Some(Arc::new(current)), previous: None }
    }

    fn event(&self, key: &Key, revision: Revision) -> Option<Arc<Event<I>>> {
        let resource = self.image.resource(key.as_str());
        let ring = resource.ring();
        let before = Revision::new(revision.get() - 1);
        ring.since(ring.cursor_after(before))?
            .take_while(|event| event.revision == revision)
            .find(|event| event.key == *key)
            .cloned()
    }

    /// Waits until readers see `revision`.
    async fn shown(&self, revision: Revision) -> Result<(), Unavailable> {
        match timeout(self.patience, self.image.wait_for(revision)).await {
            Ok(shown) => shown,
            Err(_) => Err(Unavailable::Unreachable(Arc::new(Unseen(revision)))),
        }
    }

    /// Has the follower ask for progress up to `revision`, since no event may come to tell of it.
    fn want(&self, revision: Revision) -> Revision {
        self.wanted.send_if_modified(|wanted| {
            let more = revision > *wanted && revision > self.image.revision();
            if more {
                *wanted = revision;
            }
            more
        });
        revision
    }

    fn rev(&self, kv: super::wire::KeyValue) -> Option<Arc<Rev<I>>> {
        rev(kv, self.image.config().extract)
    }

    fn is_closed(&self) -> bool {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

fn unavailable<I>(error: CallError) -> Rejected<I> {
    let error: Arc<dyn Error + Send + Sync> = Arc::new(error);
    Rejected::Unavailable(Unavailable::Unreachable(error))
}
