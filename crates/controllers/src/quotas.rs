//! What is used of quotas.
//!
//! The server charges a quota before each write, and never gives anything back. That is done here,
//! by counting anew, and only for a reason: a quota is new or its limits are others, something that
//! it counts is gone or has become cheaper, or a long time has passed. A count that nobody asked for
//! does harm: what is charged already and not yet written would be missing from it, and could be
//! used twice.

mod footprints;
mod ledger;
mod plan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::Request;
use kube::{Client, Error, Resource};
use kubewright_apimachinery::quota::Evaluator;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::Now;
use crate::answer::{Refusal as _, present};
use crate::controller::{Change, Controller, text};
use crate::feed::{self, Seen};
use crate::kinds::Kind;
use crate::queue::{self, Outcome, Queue};
use footprints::Footprints;
use ledger::{Key, Ledger};
use plan::{Count, plan};

const QUOTAS_AT_ONCE: usize = 5;
/// After this long every quota is counted, whether there is a reason or not.
const RESYNC: Duration = Duration::from_secs(300);

/// Pods, services and claims may become cheaper while they are there, so their metadata is not
/// enough.
const FOLLOWED: usize = 3;

/// The controller of all quotas.
pub(crate) struct Quotas {
    client: Client,
    now: Now,
    complete: watch::Receiver<bool>,
    ledger: Mutex<Ledger>,
    /// How much is known that must be before anything is counted.
    progress: watch::Sender<Progress>,
    queue: Queue<Key>,
}

#[derive(Default)]
struct Progress {
    /// There is a quota, so that whole objects are of interest.
    needed: bool,
    /// How many kinds are followed whole.
    followed: usize,
}

/// Why a quota is not counted.
#[derive(Debug, thiserror::Error)]
enum CountError {
    #[error("reach the API")]
    Api(#[from] Error),
    /// The rest was counted.
    #[error("list {}", .0.join(", "))]
    Unlisted(Vec<String>),
}

impl Quotas {
    pub(crate) fn new(client: Client, complete: watch::Receiver<bool>, now: Now) -> Self {
        let progress = watch::Sender::new(Progress::default());
        Self { client, now, complete, ledger: Mutex::default(), progress, queue: Queue::new() }
    }

    async fn work(&self, key: Key) -> Outcome {
        self.wait_for_feeds().await;
        let Key { namespace, name } = &key;
        match self.reconcile(&key).await {
            Ok(()) => Outcome::Done,
            Err(CountError::Api(error)) if error.is_conflict() => Outcome::Failed,
            Err(CountError::Api(error)) => {
                warn!(namespace, name, error = error.text(), "a quota is not counted");
                Outcome::Failed
            }
            Err(error @ CountError::Unlisted(_)) => {
                warn!(namespace, name, %error, "a quota is counted in part");
                Outcome::Failed
            }
        }
    }

    /// What goes away after a count must be noticed, so nothing is counted before it would be.
    async fn wait_for_feeds(&self) {
        // The senders live as long as the census, which ends after this does, and as this.
        let _ = self.complete.clone().wait_for(|complete| *complete).await;
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.followed == FOLLOWED).await;
    }

    async fn reconcile(&self, key: &Key) -> Result<(), CountError> {
        let api: Api<ResourceQuota> = Api::namespaced(self.client.clone(), &key.namespace);
        // Its account may list, and not get.
        let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let Some(mut quota) = api.list(&named).await?.items.pop() else { return Ok(()) };
        let found = json!(quota);
        let (counts, unlisted) = self.count(&key.namespace, &found["spec"]).await;
        if let Some(status) = plan(&found, &counts, (self.now)()) {
            quota.status = serde_json::from_value(status).expect("it is a status");
            // It counts only if nothing was charged meanwhile, which the version tells.
            present(api.replace_status(&key.name, &PostParams::default(), &quota).await)?;
        }
        match unlisted.is_empty() {
            true => Ok(()),
            false => Err(CountError::Unlisted(unlisted)),
        }
    }

    /// Reads all that a quota counts; the kinds that cannot be read besides.
    async fn count(&self, namespace: &str, spec: &Value) -> (Vec<Count>, Vec<String>) {
        let kinds = Arc::clone(&self.ledger().kinds);
        let (mut counts, mut unlisted) = (Vec::new(), Vec::new());
        for kind in &kinds.preferred {
            let Some(evaluator) = ledger::evaluator(kind) else { continue };
            if !ledger::counts(&evaluator, spec) {
                continue;
            }
            let objects = match self.objects(kind, &evaluator, namespace).await {
                Ok(objects) => Some(objects),
                Err(error) => {
                    unlisted.push(format!("{kind}: {}", error.text()));
                    None
                }
            };
            counts.push(Count { evaluator, objects });
        }
        (counts, unlisted)
    }

    async fn objects(
        &self,
        kind: &Kind,
        evaluator: &Evaluator,
        namespace: &str,
    ) -> Result<Vec<Value>, Error> {
        let request = Request::new(kind.within(&self.client, namespace).resource_url());
        let parameters = ListParams::default();
        let request = match evaluator {
            // Their number is all that counts.
            Evaluator::Objects(_) => request.list_metadata(&parameters),
            _ => request.list(&parameters),
        };
        let mut list: Value = self.client.request(request.map_err(Error::BuildRequest)?).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    async fn follow_quotas(&self) {
        let quotas = ApiResource::erase::<ResourceQuota>(&());
        feed::follow(Api::all_with(self.client.clone(), &quotas), |seen| self.see(seen)).await;
    }

    fn see(&self, seen: Seen<DynamicObject>) {
        match seen {
            Seen::Listed(quotas) => {
                self.ledger().retain(&quotas.iter().map(key).collect());
                quotas.into_iter().for_each(|quota| self.apply(quota));
            }
            Seen::Applied(quota) => self.apply(quota),
            Seen::Deleted(quota) => self.ledger().delete(&key(&quota)),
            Seen::Unreadable => {}
        }
    }

    fn apply(&self, mut quota: DynamicObject) {
        let key = key(&quota);
        if self.ledger().apply(&key, quota.data["spec"].take()) {
            self.queue.add(key);
        }
        self.progress.send_if_modified(|progress| !std::mem::replace(&mut progress.needed, true));
    }

    /// Follows a kind whole, from the first quota on.
    async fn follow<K: Resource<DynamicType = ()>>(&self) {
        let mut progress = self.progress.subscribe();
        if progress.wait_for(|progress| progress.needed).await.is_err() {
            return;
        }
        let resource = ApiResource::erase::<K>(&());
        let evaluator = Evaluator::of(&resource.group, &resource.plural).expect("it is counted");
        let mut footprints = Footprints::new(evaluator.clone());
        let mut is_told = false;
        let api = Api::all_with(self.client.clone(), &resource);
        feed::follow(api, |seen| {
            for namespace in footprints.see(&seen, (self.now)()) {
                self.enqueue(self.ledger().concerned(&evaluator, &namespace));
            }
            if !std::mem::replace(&mut is_told, true) {
                self.progress.send_modify(|progress| progress.followed += 1);
            }
        })
        .await;
    }

    async fn resync(&self) {
        loop {
            tokio::time::sleep(RESYNC).await;
            self.enqueue(self.ledger().all());
        }
    }

    fn enqueue(&self, quotas: Vec<Key>) {
        for quota in quotas {
            self.queue.add(quota);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(quota: &DynamicObject) -> Key {
    let metadata = &quota.metadata;
    Key { namespace: text(&metadata.namespace).to_owned(), name: text(&metadata.name).to_owned() }
}

impl Controller for Quotas {
    fn wants(&self, kind: &Kind) -> bool {
        ledger::evaluator(kind).is_some()
    }

    fn observe(&self, change: &Change<'_>) {
        match change {
            Change::Kinds(kinds) => self.enqueue(self.ledger().learn(kinds)),
            Change::Deleted(kind, object) => {
                if let Some(evaluator) = ledger::evaluator(kind) {
                    let namespace = text(&object.namespace);
                    self.enqueue(self.ledger().concerned(&evaluator, namespace));
                }
            }
            Change::Applied(..) => {}
        }
    }

    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let watching = async {
                futures::join!(
                    self.follow_quotas(),
                    self.follow::<Pod>(),
                    self.follow::<Service>(),
                    self.follow::<PersistentVolumeClaim>(),
                    self.resync(),
                )
            };
            futures::join!(
                queue::work(&self.queue, QUOTAS_AT_ONCE, &shutdown, |key| self.work(key)),
                shutdown.run_until_cancelled(watching),
            );
        })
    }
}
