//! One server behind this one: whether it is there, and what it tells.

use std::sync::Arc;
use std::time::Duration;

use kubewright_store::{Start, WatchError};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::availability;
use super::inquiry::Inquiry;
use crate::index::Index;
use crate::server::Inner;

/// How soon a server that did not answer is asked again: at first, and when it keeps quiet.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often a server that answers is asked whether it is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How often it is asked what it serves.
const TELL_INTERVAL: Duration = Duration::from_secs(60);

/// Looks after the server of an APIService for as long as it has one. `changed` tells that the
/// APIService was written.
pub(super) async fn attend(server: Arc<Inner>, name: String, changed: Arc<Notify>) {
    let mut inquiry = Inquiry::default();
    let mut pause = PAUSE_MIN;
    let mut open_api_due = Instant::now();
    let mut resources_due = Instant::now();
    loop {
        let catalog = server.shelf.catalog();
        let Some((registration, line)) = catalog.roster.remote(&name) else { return };
        let Some(remote) = &registration.remote else { return };
        let mut watches = Watches::new(&server, &remote.namespace, &remote.service);

        let finding = availability::check(&server, registration, line).await;
        let now = Instant::now();
        if resources_due <= now {
            inquiry.resources(registration, line).await;
            server.shelf.learn(&name, inquiry.lesson());
            resources_due = now + TELL_INTERVAL;
        }
        // Whoever hears of it finds what the server serves.
        match availability::tell(&server, &name, &finding).await {
            Ok(true) => {
                tracing::info!(name, ?finding, "availability of a server has changed");
                server.shelf.refresh();
            }
            Ok(false) => {}
            Err(refusal) => tracing::warn!(name, error = refusal.message, "not told"),
        }
        if finding.is_available() && open_api_due <= now {
            match inquiry.open_api(registration, line).await {
                Ok(()) => server.shelf.learn(&name, inquiry.lesson()),
                Err(error) => tracing::debug!(name, error, "a server does not tell its OpenAPI"),
            }
            open_api_due = now + TELL_INTERVAL;
        }

        let again = match finding.is_worth_asking_again() {
            true => pause,
            false => CHECK_INTERVAL,
        };
        tokio::select! {
            () = changed.notified() => resources_due = Instant::now(),
            () = watches.changed() => resources_due = Instant::now(),
            () = tokio::time::sleep(again) => {}
        }
        pause = match finding.is_worth_asking_again() {
            true => {
                resources_due = Instant::now();
                (pause * 2).min(PAUSE_MAX)
            }
            false => PAUSE_MIN,
        };
    }
}

/// Where a Service leads.
struct Watches {
    watches: Option<[kubewright_store::Watch<Index>; 2]>,
}

impl Watches {
    fn new(server: &Inner, namespace: &str, service: &str) -> Self {
        let watch = |prefix: String| server.store.watch(&prefix, Start::Now).ok();
        let service = watch(format!("/registry/services/specs/{namespace}/{service}"));
        let slices = watch(format!("/registry/endpointslices/{namespace}/"));
        Watches { watches: service.zip(slices).map(|(service, slices)| [service, slices]) }
    }

    /// Returns when something has changed.
    async fn changed(&mut self) {
        let Some([service, slices]) = &mut self.watches else {
            return std::future::pending().await;
        };
        let event = tokio::select! {
            event = service.next() => event.map(drop),
            event = slices.next() => event.map(drop),
        };
        if let Err(WatchError::Closed) = event {
            std::future::pending::<()>().await;
        }
    }
}
