//! What a member does: renews its lease, looks at the others', and hands keys over.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::assignment::Members;
use super::seat::{RING, Seat, SeatError, claim};
use super::view::Claim;
use super::{Ring, Term};
use crate::Clock;
use crate::election::{self, Hold, Renewal, Terms};
use crate::informer::{Change, Informer, Scope, Source, Subscription};

/// How long others may take to say what one thing made them say.
const GATHER: Duration = Duration::from_millis(50);

/// What must run for a replica to be a member of a ring.
pub struct Member {
    ring: Ring,
    client: Client,
    place: Place,
    seat: Seat,
    terms: Terms,
    clock: Clock,
    metrics: Option<Arc<election::Metrics>>,
}

/// Where the leases of a ring are.
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) ring: String,
}

/// How a membership ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// As it was to.
    Left,
    /// The lease could not be renewed in time, or was taken away.
    Lapsed,
}

impl Member {
    pub(super) fn new(
        ring: Ring,
        client: Client,
        place: Place,
        seat: Seat,
        terms: Terms,
        clock: Clock,
    ) -> Self {
        Member { ring, client, place, seat, terms, clock, metrics: None }
    }

    /// Counts how often leases could not be read or written.
    pub fn metrics(self, metrics: Arc<election::Metrics>) -> Self {
        Member { metrics: Some(metrics), ..self }
    }

    /// Is a member until `shutdown`, then lets all work end and leaves. One that could not renew its
    /// lease becomes a member again when it can.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let hints = Hints::follow(&self.client, &self.place);
        while let Some((first, claimed)) = self.enter(&shutdown).await {
            let (hold, _end) = Hold::new(self.terms, self.clock.clone(), first);
            let client = hold.guard(&self.client);
            let term = Term { hold, client, lost: CancellationToken::new() };
            self.ring.update(|state| {
                state.term = Some(term.clone());
                state.claim = Claim { settled: None, next: Some(claimed.clone()) };
            });
            info!(member = self.ring.name(), "is a member");
            let ended = self.stay(&term.hold, claimed, &hints, &shutdown).await;
            info!(member = self.ring.name(), ?ended, "is no member any more");
            self.ring.update(|state| {
                state.term = None;
                state.claim = Claim::default();
            });
            term.hold.shut();
            term.lost.cancel();
            // What still runs ends before this is a member again, lest its keys be another's then.
            self.ring.idle(&Members::new()).await;
            term.hold.settle().await;
            if ended == Ended::Left {
                return;
            }
        }
    }

    /// Takes a seat, when that is possible; tells by which members. None at the end.
    async fn enter(&mut self, shutdown: &CancellationToken) -> Option<(Renewal, Members)> {
        loop {
            if shutdown.is_cancelled() {
                return None;
            }
            // Never given up half-way: nobody would know whether the seat was taken.
            let entered = self.try_enter().await;
            self.note(entered.as_ref().err());
            match entered {
                Ok(entered) => return Some(entered),
                Err(_) => shutdown.run_until_cancelled(sleep(self.terms.pause())).await?,
            }
        }
    }

    async fn try_enter(&mut self) -> Result<(Renewal, Members), SeatError> {
        self.look().await?;
        let members = self.ring.state().view.members(self.ring.name());
        let renewal = self.seat.write(&members).await?;
        Ok((renewal, members))
    }

    /// Keeps the seat, which says `written`, for as long as it can.
    async fn stay(
        &mut self,
        hold: &Hold,
        mut written: Members,
        hints: &Hints,
        shutdown: &CancellationToken,
    ) -> Ended {
        let mut renew = Instant::now() + self.terms.retry();
        // Waits for the work that is against the next claim.
        let mut draining = JoinSet::new();
        loop {
            let deadline = hold.writes_until();
            match timeout_at(deadline, self.look()).await {
                Ok(Ok(())) => self.ring.update(|state| {
                    state.claim.settled = Some(written.clone());
                    state.claim.next.take_if(|next| *next == written);
                }),
                Ok(Err(error)) => self.note(Some(&error)),
                Err(_) => return Ended::Lapsed,
            }
            if written.is_empty() && self.ring.state().claim.settled.is_some() {
                self.leave().await;
                return Ended::Left;
            }
            if let Some(next) = self.plan(&written, shutdown) {
                let (ring, hold) = (self.ring.clone(), hold.clone());
                draining.spawn(async move {
                    ring.idle(&next).await;
                    hold.settle().await;
                });
            }

            let stop = OptionFuture::from((!written.is_empty()).then(|| shutdown.cancelled()));
            tokio::select! {
                // Its claim can be written at once.
                Some(_) = draining.join_next() => {}
                () = hints.next() => continue,
                Some(()) = stop, if self.ring.state().claim.next.is_none() => continue,
                () = sleep_until(renew.min(deadline)) => {}
            }
            if Instant::now() >= deadline {
                return Ended::Lapsed;
            }
            let next = self.ring.state().claim.next.clone();
            let say = next.filter(|_| draining.is_empty()).unwrap_or_else(|| written.clone());
            renew = Instant::now() + self.terms.retry();
            match timeout_at(deadline, self.seat.write(&say)).await {
                Ok(Ok(renewal)) => {
                    hold.extend(renewal);
                    written = say;
                    self.note(None);
                }
                Ok(Err(error)) => {
                    self.note(Some(&error));
                    if matches!(error, SeatError::Gone) {
                        return Ended::Lapsed;
                    }
                }
                Err(_) => return Ended::Lapsed,
            }
        }
    }

    /// What to claim next, if that is something else and nothing is being changed already.
    fn plan(&self, written: &Members, shutdown: &CancellationToken) -> Option<Members> {
        self.ring.update(|state| {
            let next = match shutdown.is_cancelled() {
                true => Members::new(),
                false => state.view.members(self.ring.name()),
            };
            if state.claim.next.is_some() || state.claim.settled.is_none() || next == *written {
                return None;
            }
            debug!(member = self.ring.name(), members = next.len(), "hands keys over");
            state.claim.next = Some(next.clone());
            Some(next)
        })
    }

    async fn look(&mut self) -> Result<(), SeatError> {
        let (found, asked) = self.seat.look().await?;
        let forgotten = self.ring.update(|state| {
            state.view.look(found, asked, Instant::now());
            state.view.forgotten()
        });
        for name in forgotten {
            // Others may do so at the same time; one of them will succeed.
            if let Err(error) = self.seat.clear(&name).await {
                debug!(name, %error, "cannot clear the lease of a dead member");
            }
        }
        Ok(())
    }

    async fn leave(&self) {
        if let Err(error) = self.seat.leave().await {
            debug!(member = self.ring.name(), %error, "cannot delete the lease: it is left to end");
        }
    }

    /// Takes note of what went wrong.
    fn note(&self, error: Option<&SeatError>) {
        let trouble = error.map(ToString::to_string);
        if let (Some(metrics), Some(_)) = (&self.metrics, error) {
            metrics.failed(&self.place.ring);
        }
        self.ring.0.share.send_if_modified(|share| {
            let is_new = share.trouble != trouble;
            if is_new && let Some(trouble) = &trouble {
                warn!(member = self.ring.name(), trouble, "cannot be a member");
            }
            share.trouble = trouble;
            is_new
        });
    }
}

/// Tells when a member comes, goes, or claims something else, so that nobody waits for it longer than
/// need be. Nothing depends on it.
struct Hints {
    changed: Arc<Notify>,
    _subscription: Subscription,
    _tasks: JoinSet<()>,
}

impl Hints {
    fn follow(client: &Client, place: &Place) -> Self {
        let labels = Some(format!("{RING}={}", place.ring));
        let scope = Scope { labels, ..Scope::within([&place.namespace]) };
        let (informer, run) = Informer::new(Source::new(client.clone(), (), scope));
        let changed = Arc::new(Notify::new());
        let tell = Arc::clone(&changed);
        let subscription = informer.subscribe(move |change: &Change<Lease>| {
            // Renewals come all the time, and say nothing new.
            let is_renewal = match change {
                Change::Applied { object, old: Some(old), .. } => {
                    claim(&object.metadata) == claim(&old.metadata)
                }
                _ => false,
            };
            if !is_renewal {
                tell.notify_one();
            }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run);
        Hints { changed, _subscription: subscription, _tasks: tasks }
    }

    async fn next(&self) {
        self.changed.notified().await;
        // What comes together is looked at together.
        sleep(GATHER).await;
    }
}
