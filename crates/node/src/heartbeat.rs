//! Keeps a node in the API: registers it, and says again and again that it is alive.
//!
//! The lease is renewed every ten seconds, which is cheap; the status, which is large, every five
//! minutes, though nothing has changed, and whenever the API shows something else: others may have
//! taken the node for dead while it was silent.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright::event::Recorder;
use kubewright::informer::Informer;
use kubewright::{Clock, Event, ObjectKey};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::node::{Findings, LEASES, Profile};
use crate::runtime::{Runtime, Unwell};

const RENEW_EVERY: Duration = Duration::from_secs(10);
const REPORT_EVERY: Duration = Duration::from_secs(5 * 60);
/// How long a runtime may take to say how it is, and which images it has.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long a runtime that does not answer is believed to be about to.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(7);

pub(crate) struct Heartbeat {
    pub(crate) client: Client,
    pub(crate) profile: Arc<Profile>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    /// Knows whether containers can be run, and which images there are.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The node as the API shows it, among others.
    pub(crate) shown: Informer<Node>,
}

impl Heartbeat {
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.beat()).await;
    }

    async fn beat(&self) {
        let uid = self.register().await;
        let mut reported = Instant::now();
        let mut heard = Instant::now();
        let mut was_ready = true;
        let mut ticks = tokio::time::interval(RENEW_EVERY);
        // After a pause one renewal is as good as many.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.renew(uid.as_ref()).await {
                warn!(node = self.profile.name, %error, "a lease is not renewed");
                continue;
            }
            // Whoever does not answer must not keep the node from being heard of.
            let (health, images) = futures::future::join(
                timeout(ANSWER_MAX, self.runtime.health()),
                timeout(ANSWER_MAX, self.runtime.images()),
            )
            .await;
            let health = health.unwrap_or(Err(Unwell::Silent));
            let images = images.unwrap_or_default();
            if health != Err(Unwell::Silent) {
                heard = Instant::now();
            }
            let found = Findings { images, trouble: trouble(&health, heard.elapsed()) };
            if was_ready != found.trouble.is_none() {
                was_ready = found.trouble.is_none();
                self.tell_ready(was_ready);
            }
            if self.is_altered(&found) || reported.elapsed() >= REPORT_EVERY {
                match self.report(&found).await {
                    Ok(_) => reported = Instant::now(),
                    Err(error) => {
                        warn!(node = self.profile.name, %error, "the status of a node is not written");
                    }
                }
            }
        }
    }

    /// Whether the API shows something else than this node says.
    fn is_altered(&self, found: &Findings) -> bool {
        let node = self.shown.get(&ObjectKey::new(None, &self.profile.name));
        node.ok().flatten().is_some_and(|node| !self.profile.is_shown(&node, found))
    }

    /// Sees that the node is in the API, as long as that takes. Gives its uid.
    async fn register(&self) -> Option<String> {
        let mut pause = RETRY_FIRST;
        loop {
            match self.try_register().await {
                Ok(node) => {
                    info!(node = self.profile.name, "a node is registered");
                    self.tell(Event::normal("Starting", "Starting kubelet."));
                    self.tell_ready(true);
                    return node.metadata.uid;
                }
                Err(error) => {
                    warn!(node = self.profile.name, %error, "a node is not registered");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    async fn try_register(&self) -> Result<Node, kube::Error> {
        let node = self.profile.node(self.clock.now());
        match self.nodes().create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let labels = json!({"metadata": {"labels": self.profile.labels()}});
                let name = &self.profile.name;
                let labels = Patch::Merge(labels);
                self.nodes().patch(name, &PatchParams::default(), &labels).await?;
                self.report(&Findings::default()).await
            }
            created => created,
        }
    }

    async fn report(&self, found: &Findings) -> Result<Node, kube::Error> {
        let name = &self.profile.name;
        let node = self.nodes().get(name).await?;
        let old = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let status = self.profile.status(&old, found, self.clock.now());
        let patch = Patch::Strategic(json!({ "status": status }));
        self.nodes().patch_status(name, &PatchParams::default(), &patch).await
    }

    async fn renew(&self, uid: Option<&String>) -> Result<(), kube::Error> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        let (name, now) = (&self.profile.name, self.clock.now());
        let patch = Patch::Merge(json!({"spec": {"renewTime": MicroTime(now)}}));
        match leases.patch(name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let lease = self.profile.lease(uid.cloned(), now);
                leases.create(&PostParams::default(), &lease).await?;
                Ok(())
            }
            renewed => renewed.map(drop),
        }
    }

    fn tell_ready(&self, is_ready: bool) {
        let reason = if is_ready { "NodeReady" } else { "NodeNotReady" };
        let note = format!("Node {} status is now: {reason}", self.profile.name);
        self.tell(Event::normal(reason, note));
    }

    fn tell(&self, event: Event) {
        let name = Some(self.profile.name.clone());
        let node = ObjectReference {
            kind: Some("Node".to_owned()),
            name: name.clone(),
            // As upstream's kubelet does, which knows no other when it begins.
            uid: name,
            ..ObjectReference::default()
        };
        self.recorder.record(&node, event);
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }
}

/// Why a node can run nothing, as it says itself. A runtime that is started again need not cost it
/// its pods.
fn trouble(health: &Result<(), Unwell>, silent: Duration) -> Option<String> {
    match health {
        Ok(()) => None,
        Err(Unwell::Silent) if silent < SILENCE_MAX => None,
        Err(unwell) => Some(unwell.to_string()),
    }
}
