//! A volume waits for the claim that it is bound to.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, Error};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{is_unsettled, settle};
use crate::answer::Refusal as _;
use crate::controller::{Change, Controller, text};
use crate::kinds::Kind;
use crate::queue::{self, Outcome, Queue};

const FINALIZER: &str = "kubernetes.io/pv-protection";
const VOLUMES_AT_ONCE: usize = 8;

/// The controller of all volumes.
pub(crate) struct Volumes {
    api: Api<DynamicObject>,
    /// Names of volumes to look at.
    queue: Queue<String>,
}

impl Volumes {
    pub(crate) fn new(client: Client) -> Self {
        let volumes = ApiResource::erase::<PersistentVolume>(&());
        Self { api: Api::all_with(client, &volumes), queue: Queue::new() }
    }

    async fn work(&self, name: String) -> Outcome {
        match self.reconcile(&name).await {
            Ok(()) => Outcome::Done,
            Err(error) if error.is_conflict() => Outcome::Failed,
            Err(error) => {
                warn!(name, error = error.text(), "a volume's protection is not settled");
                Outcome::Failed
            }
        }
    }

    async fn reconcile(&self, name: &str) -> Result<(), Error> {
        let Some(volume) = self.api.get_opt(name).await? else { return Ok(()) };
        let is_bound = volume.data["status"]["phase"] == "Bound";
        settle(&self.api, volume, FINALIZER, is_bound).await
    }
}

impl Controller for Volumes {
    fn wants(&self, kind: &Kind) -> bool {
        kind.is("", "persistentvolumes")
    }

    fn observe(&self, change: &Change<'_>) {
        if let Change::Applied(_, volume) = change
            && is_unsettled(volume, FINALIZER)
        {
            self.queue.add(text(&volume.name).to_owned());
        }
    }

    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            queue::work(&self.queue, VOLUMES_AT_ONCE, &shutdown, |name| self.work(name)).await;
        })
    }
}
