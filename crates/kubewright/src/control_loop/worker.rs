//! One reconcile after the other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, error, info_span, warn};

use super::recent::Recent;
use super::writes::Writes;
use crate::informer::{Informer, NotReady, Object};
use crate::key::ObjectKey;
use crate::metrics::{Meter, Result as Metered};
use crate::panics;
use crate::queue::{Outcome, Queue};
use crate::reconcile::{Action, Error, Request};
use crate::shard::{Ring, Seized};

pub(super) struct Worker<K, F> {
    pub(super) name: Arc<str>,
    pub(super) primary: Informer<K>,
    pub(super) queue: Arc<Queue<ObjectKey>>,
    pub(super) deadline: Option<Duration>,
    pub(super) writes: Arc<Writes>,
    pub(super) recent: Arc<Recent>,
    pub(super) ring: Option<Ring>,
    /// When no key is this replica's any more.
    pub(super) revoked: CancellationToken,
    pub(super) meter: Option<Meter>,
    pub(super) reconcile: F,
}

/// How a reconcile ended.
struct Ended {
    outcome: Outcome,
    result: Metered,
    /// What went wrong, for people.
    why: Option<String>,
}

impl Ended {
    fn new(outcome: Outcome, result: Metered, why: Option<String>) -> Self {
        Ended { outcome, result, why }
    }
}

impl<K, F, R> Worker<K, F>
where
    K: Object,
    F: Fn(Request<K>) -> R,
    R: Future<Output = Result<Action, Error>>,
{
    /// Works until the queue is closed.
    pub(super) async fn run(self: Arc<Self>) {
        let source = self.primary.source();
        while let Some(work) = self.queue.take().await {
            if self.revoked.is_cancelled() {
                return;
            }
            let key = work.key();
            let share = match self.ring.as_ref().map(|ring| ring.seize(key)) {
                None => None,
                Some(Seized::Work(share)) => Some(Arc::new(share)),
                Some(Seized::Uncertain) => {
                    work.finish(Outcome::Again);
                    continue;
                }
                // It is looked at again when it becomes ours.
                Some(Seized::Elsewhere) => {
                    self.recent.forget(key);
                    work.finish(Outcome::Done);
                    continue;
                }
            };
            let (name, causes) = (&*self.name, work.causes());
            let span =
                info_span!(parent: work.event(), "reconcile", controller = name, %key, %causes);
            // What a reconcile wrote is what the next one finds.
            self.primary.fresh_of(key).await;
            // Once ready, always readable, unless the kind itself went away.
            let object = match self.primary.get(key) {
                Ok(object) => object,
                // Somebody mapped to what is none of ours.
                Err(NotReady::Unwatched { .. }) => {
                    self.recent.forget(key);
                    work.finish(Outcome::Done);
                    continue;
                }
                Err(error) => {
                    span.in_scope(|| warn!(%error, "nothing to read"));
                    work.finish(Outcome::Failed);
                    continue;
                }
            };
            let request = Request {
                key: key.clone(),
                object,
                failures: work.failures(),
                causes: work.causes().clone(),
                writes: Arc::clone(&self.writes),
                work: share.clone(),
            };
            let begun = Instant::now();
            let active = self.meter.as_ref().map(|meter| meter.begin(work.waited(), causes));
            let attempt = self.attempt(request).instrument(span);
            // The key may be another's then: what was not done yet is not ours to do.
            let lost = share.as_ref().map_or_else(|| self.revoked.clone(), |share| share.lost());
            let ended = lost.run_until_cancelled(attempt).await;
            let Ended { outcome, result, why } = ended.unwrap_or_else(|| {
                let why = Some("its key may be another's".to_owned());
                Ended::new(Outcome::Failed, Metered::Error, why)
            });
            drop(share);
            drop(active);
            let took = begun.elapsed();
            if let Some(meter) = &self.meter {
                meter.end(result, took);
            }
            self.recent.add(key, work.causes(), result, why, took);
            work.disregard(|causes| self.writes.explain(key, &source, causes));
            work.finish(outcome);
        }
    }

    async fn attempt(&self, request: Request<K>) -> Ended {
        // Making the future may panic as well as running it. What it leaves half-done is in the
        // cluster, where the next attempt finds it.
        let attempt = AssertUnwindSafe(async { (self.reconcile)(request).await }).catch_unwind();
        let ended = match self.deadline {
            Some(deadline) => match tokio::time::timeout(deadline, attempt).await {
                Ok(ended) => ended,
                Err(_) => {
                    warn!(?deadline, "a reconcile took too long");
                    return Ended::new(Outcome::Failed, Metered::TimedOut, None);
                }
            },
            None => attempt.await,
        };
        match ended {
            Ok(Ok(action)) => {
                debug!(?action, "reconciled");
                let (outcome, result) = match action {
                    Action::Done => (Outcome::Done, Metered::Success),
                    Action::Requeue => (Outcome::Again, Metered::Requeue),
                    Action::RequeueAfter(after) => (Outcome::After(after), Metered::RequeueAfter),
                };
                Ended::new(outcome, result, None)
            }
            Ok(Err(error)) if error.is_terminal() => {
                error!(%error, "a reconcile failed for good");
                Ended::new(Outcome::Done, Metered::Terminal, Some(error.to_string()))
            }
            Ok(Err(error)) => {
                warn!(%error, "a reconcile failed");
                let outcome = error.not_before().map_or(Outcome::Failed, Outcome::Refused);
                Ended::new(outcome, Metered::Error, Some(error.to_string()))
            }
            Err(panic) => {
                let text = panics::text(&*panic);
                error!(panic = text, "a reconcile panicked");
                Ended::new(Outcome::Failed, Metered::Panicked, Some(text.to_owned()))
            }
        }
    }
}
