//! A client whose writes are sent only while a lease is held for certain.
//!
//! A write that was sent in time may still be on its way when the lease passes to another holder.
//! So nobody waits for an answer longer than [`Terms`] allow, and a write whose caller is gone is
//! waited for all the same: a lease is given away only when all that was sent is answered. What
//! nothing on this side can take back is a request that the network itself keeps for longer than
//! that, and delivers then.

use std::error::Error as StdError;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt as _, ready};
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;
use tracing::Instrument as _;

use super::Terms;
use crate::Clock;

/// Why a guarded client did not write. It comes as [`kube::Error::Service`]; [`refusal`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It was not sent.
    #[error("write without the lease: it is not held for certain")]
    NotHeld,
    /// It was sent, and may have been done. The lease may soon be another's.
    #[error("get an answer before the lease may be another's")]
    Unanswered,
}

/// Why a guarded client did not write, if that is what an error says.
pub fn refusal(error: &kube::Error) -> Option<Refused> {
    match error {
        kube::Error::Service(cause) => cause.downcast_ref().copied(),
        _ => None,
    }
}

/// A lease that is held, until it is not: then it is over for good, and a new one begins.
#[derive(Clone)]
pub(crate) struct Hold(Arc<Inner>);

/// Ends a hold when it is dropped, also for writes under way.
pub(crate) struct End(Hold);

struct Inner {
    terms: Terms,
    clock: Clock,
    state: Mutex<State>,
    dropped: CancellationToken,
}

struct State {
    renewed: Renewal,
    shut: bool,
    /// Writes under way, and those that wait for them to end.
    writes: TaskTracker,
    /// Whether a write was given up, so that nobody knows what became of it.
    unanswered: bool,
}

/// When the last renewal that succeeded was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewal {
    pub(crate) sent: Instant,
    /// The same by the wall clock. A machine that sleeps may stop the other one.
    pub(crate) wall: Timestamp,
}

impl Hold {
    pub(crate) fn new(terms: Terms, clock: Clock, renewed: Renewal) -> (Self, End) {
        let state = State { renewed, shut: false, writes: TaskTracker::new(), unanswered: false };
        let hold = Hold(Arc::new(Inner {
            terms,
            clock,
            state: Mutex::new(state),
            dropped: CancellationToken::new(),
        }));
        (hold.clone(), End(hold))
    }

    /// A client that reads as `client` does, and writes only for as long as this holds.
    pub(crate) fn guard(&self, client: &Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(Guarded { client: client.clone(), hold: self.clone() }, namespace)
    }

    pub(crate) fn extend(&self, renewed: Renewal) {
        self.state().renewed = renewed;
    }

    /// When writes begin to be refused, unless it is renewed before.
    pub(crate) fn writes_until(&self) -> Instant {
        self.0.terms.writes_until(self.state().renewed.sent)
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.certain(&self.state())
    }

    /// Sends no more writes.
    pub(crate) fn shut(&self) {
        self.state().shut = true;
    }

    /// Waits for the writes that are under way by now; tells whether all there ever were have been
    /// answered.
    pub(crate) async fn settle(&self) -> bool {
        let writes = std::mem::take(&mut self.state().writes);
        writes.close();
        writes.wait().await;
        !self.state().unanswered
    }

    fn certain(&self, state: &State) -> bool {
        let Inner { terms, clock, .. } = &*self.0;
        let Renewal { sent, wall } = state.renewed;
        let passed = clock.now().duration_since(wall);
        !state.shut
            && Instant::now() < terms.writes_until(sent)
            && SignedDuration::try_from(terms.renew_deadline()).is_ok_and(|most| passed < most)
    }

    /// Has a write done beside its caller, which may give up.
    fn carry(
        &self,
        write: impl Future<Output = Result<Response<Body>, kube::Error>> + Send + 'static,
    ) -> BoxFuture<'static, Result<Response<Body>, BoxError>> {
        // Under one lock: whoever shuts it and then waits does not miss a write.
        let state = self.state();
        if !self.certain(&state) {
            return ready(Err(Refused::NotHeld.into())).boxed();
        }
        let hold = self.clone();
        let carrying = async move {
            let mut write = pin!(write);
            while !hold.is_over() {
                tokio::select! {
                    answer = &mut write => return answer.map_err(BoxError::from),
                    () = hold.0.dropped.cancelled() => {}
                    () = tokio::time::sleep_until(hold.answers_until()) => {}
                }
            }
            hold.state().unanswered = true;
            Err(Refused::Unanswered.into())
        };
        // It is part of what its caller does.
        let carried = state.writes.spawn(carrying.in_current_span());
        async move { carried.await? }.boxed()
    }

    fn is_over(&self) -> bool {
        self.0.dropped.is_cancelled() || self.answers_until() <= Instant::now()
    }

    fn answers_until(&self) -> Instant {
        self.0.terms.answers_until(self.state().renewed.sent)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it panics half-way.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.shut();
        self.0.0.dropped.cancel();
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// A client as a service that refuses writes.
struct Guarded {
    client: Client,
    hold: Hold,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The client waits for its own service when it sends.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        let reads = request.method().is_safe();
        let send = async move { client.send(request).await };
        match reads {
            true => send.map(|answer| answer.map_err(BoxError::from)).boxed(),
            false => self.hold.carry(send),
        }
    }
}
