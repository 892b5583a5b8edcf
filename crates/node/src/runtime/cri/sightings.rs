//! Which containers run and which sandboxes are ready, asked of the runtime once a second for all who
//! wait, as kubelet does: not all runtimes tell of ends by themselves.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tracing::debug;

use super::api::{
    Api, ContainerState, ListContainersRequest, ListPodSandboxRequest, PodSandboxState,
};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Sightings {
    last: Mutex<Option<Sighting>>,
    /// How often something has most likely just ended. A count, so that nobody misses what comes
    /// while they do not wait.
    hurries: watch::Sender<u64>,
}

#[derive(Debug)]
struct Sighting {
    moment: Moment,
    running: HashSet<String>,
    ready: HashSet<String>,
}

/// When it was looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    at: Instant,
    /// So often something had ended before that.
    hurries: u64,
}

impl Sightings {
    /// Waits until it may be worth to look at a container: it does not run, or much may have changed.
    /// Says whether it runs.
    pub(super) async fn is_running(&self, api: &Api, id: &str) -> bool {
        self.is_still(api, |last| last.running.contains(id)).await
    }

    /// The same for a sandbox: whether it is ready.
    pub(super) async fn is_ready(&self, api: &Api, id: &str) -> bool {
        self.is_still(api, |last| last.ready.contains(id)).await
    }

    async fn is_still(&self, api: &Api, is: impl Fn(&Sighting) -> bool) -> bool {
        for _ in 0..10 {
            let known = self.last.lock().await.as_ref().map(|last| last.moment);
            if let Some(known) = known {
                self.until_worth_it(known).await;
            }
            let mut last = self.last.lock().await;
            // Another one may have asked while this one waited.
            if last.as_ref().map(|last| last.moment) == known {
                self.look(api, &mut last).await;
            }
            if last.as_ref().is_some_and(|last| !is(last)) {
                return false;
            }
        }
        true
    }

    /// Waits until what was seen is old, or something has most likely ended since.
    async fn until_worth_it(&self, seen: Moment) {
        let mut hurries = self.hurries.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until(seen.at + EVERY) => {}
            // It does not fail: we have the other end.
            _ = hurries.wait_for(|hurries| *hurries > seen.hurries) => {}
        }
    }

    async fn look(&self, api: &Api, last: &mut Option<Sighting>) {
        // What ends while the runtime answers may not be in its answer.
        let moment = Moment { at: Instant::now(), hurries: *self.hurries.borrow() };
        let (mut runtime, mut other) = (api.runtime.clone(), api.runtime.clone());
        let found = tokio::try_join!(
            runtime.list_containers(ListContainersRequest::default()),
            other.list_pod_sandbox(ListPodSandboxRequest::default()),
        );
        match found {
            Ok((containers, sandboxes)) => {
                let found = containers.into_inner().containers.into_iter();
                let running = found.filter(|it| it.state() == ContainerState::ContainerRunning);
                let running = running.map(|it| it.id).collect();
                let found = sandboxes.into_inner().items.into_iter();
                let ready = found.filter(|it| it.state() == PodSandboxState::SandboxReady);
                let ready = ready.map(|it| it.id).collect();
                *last = Some(Sighting { moment, running, ready });
            }
            Err(status) => {
                debug!(why = status.message(), "containers are not seen");
                // What ran before is believed to run.
                if let Some(last) = last {
                    last.moment = moment;
                }
                tokio::time::sleep(EVERY).await;
            }
        }
    }

    pub(super) fn hurry(&self) {
        self.hurries.send_modify(|hurries| *hurries += 1);
    }
}
