//! One of several replicas leads.
//!
//! Replicas agree by a Lease of `coordination.k8s.io/v1`, as those written with client-go do: both
//! may stand for the same one. Whether a holder still lives is judged by how long ago its lease
//! was seen to change, by our own clock; the clocks of other machines are never asked.
//!
//! Losing the lease ends what the leader does, and nothing else: its tasks are cancelled and
//! awaited, and the replica stands again. What a leader writes goes through a client of its
//! [`Leadership`], which sends nothing when the lease may be another's ([`Terms`] has the times), so
//! that a leader that was cut off does no harm, even before it notices.
//!
//! ```no_run
//! use kubewright::Clock;
//! use kubewright::election::{self, Election};
//! # async fn controllers(client: kube::Client, stop: tokio_util::sync::CancellationToken) -> Result<(), kube::Error> { Ok(()) }
//! # async fn example(client: kube::Client, shutdown: tokio_util::sync::CancellationToken) -> Result<(), kube::Error> {
//! let identity = election::identity();
//! Election::new(client, "shop", "greeter", &identity, Clock::system())
//!     .run(shutdown, |leadership| controllers(leadership.client().clone(), leadership.lost()))
//!     .await
//! # }
//! ```

mod ballot;
mod guard;
mod identity;
mod metrics;
mod record;
mod terms;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::ballot::{Attempt, Ballot};
use crate::Clock;
use crate::event::{Event, Recorder};
use crate::informer::{Change, Informer, Scope, Source, Subscription};

pub(crate) use self::guard::{Hold, Renewal};
pub use self::guard::{Refused, refusal};
pub use self::identity::identity;
pub use self::metrics::Metrics;
pub(crate) use self::record::{Observed, Record};
pub use self::terms::{BadTerms, Terms};

/// How long the tasks of a leader that lost its lease may take to end before they are dropped. They
/// can write nothing any more, so it is only for their own good.
const DRAIN_MAX: Duration = Duration::from_secs(30);

/// A replica that stands for election.
pub struct Election {
    client: Client,
    namespace: String,
    name: String,
    identity: String,
    clock: Clock,
    terms: Terms,
    metrics: Option<Arc<Metrics>>,
    recorder: Option<Recorder>,
    status: watch::Sender<Status>,
}

/// How an election stands, as one replica sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Whether this replica leads.
    pub leading: bool,
    /// Who holds the lease.
    pub leader: Option<String>,
    /// Why the lease could not be read or written, the last time it was tried.
    pub trouble: Option<String>,
}

/// What a leader has for as long as it leads.
#[derive(Clone)]
pub struct Leadership {
    client: Client,
    hold: Hold,
    stop: CancellationToken,
    revoked: CancellationToken,
}

/// How leading ended.
enum Ended<T> {
    /// The leader's tasks ended, by themselves or because they were to.
    Done(T),
    Lost,
}

impl Election {
    /// A replica that stands for the lease `name` in `namespace` as `identity`, which no other
    /// replica may share; [`identity`] makes one.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, clock: Clock) -> Self {
        Election {
            client,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            clock,
            terms: Terms::default(),
            metrics: None,
            recorder: None,
            status: watch::Sender::default(),
        }
    }

    /// Other times than Kubernetes' own.
    pub fn terms(self, terms: Terms) -> Self {
        Election { terms, ..self }
    }

    /// Says in metrics whether this replica leads.
    pub fn metrics(self, metrics: Arc<Metrics>) -> Self {
        metrics.leads(&self.name, false);
        Election { metrics: Some(metrics), ..self }
    }

    /// Tells of it by events about the lease, as client-go does.
    pub fn events(self, recorder: Recorder) -> Self {
        Election { recorder: Some(recorder), ..self }
    }

    /// How the election stands, now and whenever that changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Stands for election until `shutdown`, and has `lead` run whenever this replica leads.
    ///
    /// What `lead` runs must end when the leadership is lost. When it ends by itself, this ends too.
    /// At the end the lease is given away, after all that was written is answered, so that another
    /// replica can lead at once.
    ///
    /// # Errors
    /// What `lead` failed with, if it was not for a lost lease.
    ///
    /// # Panics
    /// If `lead` does.
    pub async fn run<F, R, E>(self, shutdown: CancellationToken, mut lead: F) -> Result<(), E>
    where
        F: FnMut(Leadership) -> R,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let mut news = News::follow(&self.client, &self.namespace, &self.name);
        let mut ballot = self.ballot();
        while let Some(first) = self.acquire(&mut ballot, &mut news, &shutdown).await {
            let (hold, _end) = Hold::new(self.terms, self.clock.clone(), first);
            let leadership = Leadership {
                client: hold.guard(&self.client),
                hold: hold.clone(),
                // A leader that is to end keeps its lease until it has.
                stop: shutdown.child_token(),
                revoked: CancellationToken::new(),
            };
            let (stop, revoked) = (leadership.stop.clone(), leadership.revoked.clone());
            let mut tasks = JoinSet::new();
            tasks.spawn(lead(leadership));
            self.leads(&ballot, true);

            let ended = tokio::select! {
                ended = tasks.join_next() => Ended::Done(ended.map(value)),
                () = self.keep(&mut ballot, &hold) => Ended::Lost,
            };
            hold.shut();
            self.leads(&ballot, false);
            match ended {
                Ended::Done(result) => {
                    self.release(&mut ballot, &hold).await;
                    return result.unwrap_or(Ok(()));
                }
                Ended::Lost => {
                    // In this order: what is under way is not to be taken for what may end in peace.
                    revoked.cancel();
                    stop.cancel();
                    let result = drain(tasks).await;
                    hold.settle().await;
                    match result {
                        Some(result) if shutdown.is_cancelled() => return result,
                        Some(Err(error)) => {
                            warn!(%error, "what led failed when the lease was lost")
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn ballot(&self) -> Ballot {
        let leases = Api::namespaced(self.client.clone(), &self.namespace);
        let (terms, clock) = (self.terms, self.clock.clone());
        Ballot::new(leases, &self.name, self.identity.clone(), terms, clock)
    }

    /// Tries to get the lease until it is held. None at the end.
    async fn acquire(
        &self,
        ballot: &mut Ballot,
        news: &mut News,
        shutdown: &CancellationToken,
    ) -> Option<Renewal> {
        loop {
            if shutdown.is_cancelled() {
                return None;
            }
            // Never given up half-way: nobody would know whether the lease was taken.
            let attempt = ballot.attempt().await;
            self.note(ballot, attempt.as_ref().err());
            if let Ok(Attempt::Held(renewal)) = attempt {
                return Some(renewal);
            }
            shutdown.run_until_cancelled(self.wait(ballot, news)).await?;
        }
    }

    /// Waits until it is worth while to try again.
    async fn wait(&self, ballot: &mut Ballot, news: &mut News) {
        let look = Instant::now() + self.terms.pause();
        loop {
            // A moment that has passed was of no use.
            let ends = ballot.held_until().filter(|ends| *ends > Instant::now());
            let wake = ends.map_or(look, |ends| ends.min(look));
            let Ok(lease) = timeout_at(wake, news.next()).await else { return };
            ballot.see(&lease);
            self.note(ballot, None);
            if ballot.holder().is_none() {
                return;
            }
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, ballot: &mut Ballot, hold: &Hold) {
        let mut next = Instant::now() + self.terms.retry();
        loop {
            let deadline = hold.writes_until();
            sleep_until(next.min(deadline)).await;
            if Instant::now() >= deadline {
                return warn!(name = self.name, "the lease could not be renewed in time");
            }
            let attempt = timeout_at(deadline, ballot.attempt()).await;
            next = Instant::now() + self.terms.retry();
            match attempt {
                Ok(Ok(Attempt::Held(renewal))) => {
                    hold.extend(renewal);
                    next = renewal.sent + self.terms.retry();
                    self.note(ballot, None);
                }
                Ok(Ok(Attempt::Lost)) => return self.note(ballot, None),
                Ok(Err(error)) => self.note(ballot, Some(&error)),
                // It is over, which the next round tells.
                Err(_) => {}
            }
        }
    }

    /// Gives the lease away, unless a write is still on its way: then it has to end by itself.
    async fn release(&self, ballot: &mut Ballot, hold: &Hold) {
        if !hold.settle().await {
            return warn!(name = self.name, "a write was not answered: the lease is left to end");
        }
        // A renewal that was under way may come in between, once.
        for _ in 0..2 {
            match timeout(self.terms.request_max(), ballot.release()).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => debug!(name = self.name, %error, "cannot release the lease"),
                Err(_) => return,
            }
        }
    }

    fn leads(&self, ballot: &Ballot, leads: bool) {
        let told = match leads {
            true => {
                info!(name = self.name, identity = self.identity, "leads");
                "became leader"
            }
            false => {
                info!(name = self.name, identity = self.identity, "leads no more");
                "stopped leading"
            }
        };
        if let Some(recorder) = &self.recorder {
            let note = format!("{} {told}", self.identity);
            let event = Event::normal("LeaderElection", note).action("LeaderElection");
            recorder.record(&ballot.lease(&self.namespace), event);
        }
        if let Some(metrics) = &self.metrics {
            metrics.leads(&self.name, leads);
        }
        self.status.send_modify(|status| status.leading = leads);
    }

    /// Takes note of who leads, and of what went wrong.
    fn note(&self, ballot: &Ballot, error: Option<&ballot::AttemptError>) {
        let leader = ballot.holder().map(str::to_owned);
        let trouble = error.map(ToString::to_string);
        if let (Some(metrics), Some(_)) = (&self.metrics, error) {
            metrics.failed(&self.name);
        }
        self.status.send_if_modified(|status| {
            let (new_leader, new_trouble) = (status.leader != leader, status.trouble != trouble);
            if new_leader && let Some(leader) = &leader {
                info!(name = self.name, leader, "the lease is held");
            }
            if new_trouble && let Some(trouble) = &trouble {
                warn!(name = self.name, trouble, "cannot stand for election");
            }
            status.leader = leader;
            status.trouble = trouble;
            new_leader || new_trouble
        });
    }
}

impl Leadership {
    /// A client that writes only for as long as this replica leads for certain. A write that it
    /// refuses, or whose answer comes too late, fails with a [`Refused`].
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether this replica leads for certain. For what is done without the client, outside the
    /// cluster; it may be over a moment later.
    pub fn is_certain(&self) -> bool {
        self.hold.is_certain()
    }

    /// Cancelled when the leadership is lost or to end.
    pub fn lost(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Cancelled when the leadership is lost, and not when it is to end: another may soon lead, so
    /// what is under way is given up and not brought to its end.
    pub fn revoked(&self) -> CancellationToken {
        self.revoked.clone()
    }
}

/// Watches the lease, so that a candidate hears of a change at once. Nothing depends on it: one that
/// may not watch, or hears late, looks now and then.
struct News {
    latest: watch::Receiver<Option<Arc<Lease>>>,
    _subscription: Subscription,
    _tasks: JoinSet<()>,
}

impl News {
    fn follow(client: &Client, namespace: &str, name: &str) -> Self {
        let fields = Some(format!("metadata.name={name}"));
        let scope = Scope { fields, ..Scope::within([namespace]) };
        let (informer, run) = Informer::new(Source::new(client.clone(), (), scope));
        let (tell, latest) = watch::channel(None);
        let subscription = informer.subscribe(move |change: &Change<Lease>| {
            // One that is deleted is looked for when it would have ended.
            if let Change::Applied { object, .. } = change {
                tell.send_replace(Some(Arc::clone(object)));
            }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run);
        News { latest, _subscription: subscription, _tasks: tasks }
    }

    /// The lease when it has changed; what changed in between is left out.
    async fn next(&mut self) -> Arc<Lease> {
        // Whoever tells is there for as long as the subscription is.
        let _ = self.latest.changed().await;
        let latest = self.latest.borrow_and_update().clone();
        match latest {
            Some(lease) => lease,
            None => pending().await,
        }
    }
}

/// Lets the tasks of a leader end, as they were told to.
async fn drain<T: 'static>(mut tasks: JoinSet<T>) -> Option<T> {
    match timeout(DRAIN_MAX, tasks.join_next()).await {
        Ok(ended) => ended.map(value),
        Err(_) => {
            warn!(after = ?DRAIN_MAX, "what led did not end when the lease was lost: it is dropped");
            tasks.shutdown().await;
            None
        }
    }
}

/// What a task came to. One that panicked panics here.
fn value<T>(ended: Result<T, JoinError>) -> T {
    match ended {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
