//! Which containers run, asked of the runtime once a second for all who wait, as kubelet does: not
//! all runtimes tell of ends by themselves.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tracing::debug;

use super::api::{Api, ContainerState, ListContainersRequest};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Sightings {
    last: Mutex<Option<Sighting>>,
    /// Something has most likely just ended.
    hurry: Notify,
}

#[derive(Debug)]
struct Sighting {
    at: Instant,
    running: HashSet<String>,
}

impl Sightings {
    /// Waits until it may be worth to look at a container: it does not run, or much may have changed.
    /// Says whether it runs.
    pub(super) async fn is_running(&self, api: &Api, id: &str) -> bool {
        for _ in 0..10 {
            let known = self.last.lock().await.as_ref().map(|last| last.at);
            tokio::select! {
                () = tokio::time::sleep_until(known.map_or(Instant::now(), |at| at + EVERY)) => {}
                () = self.hurry.notified() => {}
            }
            let mut last = self.last.lock().await;
            // Another one may have asked while this one waited.
            if last.as_ref().map(|last| last.at) == known {
                self.look(api, &mut last).await;
            }
            if last.as_ref().is_some_and(|last| !last.running.contains(id)) {
                return false;
            }
        }
        true
    }

    async fn look(&self, api: &Api, last: &mut Option<Sighting>) {
        let at = Instant::now();
        match api.runtime.clone().list_containers(ListContainersRequest::default()).await {
            Ok(found) => {
                let found = found.into_inner().containers.into_iter();
                let running = found.filter(|it| it.state() == ContainerState::ContainerRunning);
                *last = Some(Sighting { at, running: running.map(|it| it.id).collect() });
            }
            Err(status) => {
                debug!(why = status.message(), "containers are not seen");
                // What ran before is believed to run.
                if let Some(last) = last {
                    last.at = at;
                }
                tokio::time::sleep(EVERY).await;
            }
        }
    }

    pub(super) fn hurry(&self) {
        self.hurry.notify_waiters();
    }
}
