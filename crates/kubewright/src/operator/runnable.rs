//! What an operator runs besides its controllers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::report::untroubled;
use crate::backoff::Backoff;
use crate::controller::Surroundings;
use crate::panics;
use crate::reconcile::Error;
use crate::serve::Check;

/// Whoever ran for so long has not failed since it was started.
const STEADY: Duration = Duration::from_secs(60);

/// In which replicas something runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Everywhere,
    /// Where controllers do.
    Leading,
}

/// Something of the author's own. One that fails or panics is started again, later each time.
pub(super) struct Runnable {
    pub(super) name: String,
    place: Where,
    start: Box<Start>,
    /// Why it does not run, if it should.
    trouble: watch::Sender<Option<String>>,
}

type Start =
    dyn Fn(Surroundings, CancellationToken) -> BoxFuture<'static, Result<(), Error>> + Send + Sync;

impl Runnable {
    pub(super) fn new<F, R>(name: &str, place: Where, run: F) -> Arc<Self>
    where
        F: Fn(Surroundings, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let start = Box::new(move |around, stop| run(around, stop).boxed());
        Arc::new(Runnable {
            name: name.to_owned(),
            place,
            start,
            trouble: watch::Sender::default(),
        })
    }

    /// Whether it runs, or has ended by itself.
    pub(super) fn check(&self) -> Check {
        untroubled(self.trouble.subscribe(), Option::as_ref)
    }

    /// Runs until `stop`, or until it is done.
    async fn run(&self, around: Surroundings, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let begun = Instant::now();
            self.trouble.send_replace(None);
            // Making the future may panic as well as running it.
            let run = async { (self.start)(around.clone(), stop.clone()).await };
            let why = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("it panicked: {}", panics::text(&*panic)),
            };
            error!(name = self.name, error = why, "what an operator runs has failed");
            if begun.elapsed() > STEADY {
                backoff.reset();
            }
            self.trouble.send_replace(Some(why));
            if stop.run_until_cancelled(backoff.wait()).await.is_none() {
                return;
            }
        }
    }
}

/// Starts all that run in such a place. They run until `stop`, and have ended when all tasks have.
pub(super) fn start(
    runnables: &[Arc<Runnable>],
    place: Where,
    around: &Surroundings,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for runnable in runnables.iter().filter(|runnable| runnable.place == place) {
        let (runnable, around, stop) = (Arc::clone(runnable), around.clone(), stop.clone());
        tasks.spawn(async move { runnable.run(around, stop).await });
    }
    tasks
}
