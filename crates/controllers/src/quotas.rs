//! What is used of quotas.
//!
//! The server charges a quota before each write, and never gives anything back. That is done here,
//! by counting anew, and only for a reason: a quota is new or its limits are others, something that
//! it counts is gone or has become cheaper, or a long time has passed. A count that nobody asked for
//! does harm: what is charged already and not yet written would be missing from it, and could be
//! used twice.

mod plan;
mod reason;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::api::{Api, ListParams};
use kube::core::Request;
use kube::{Client, Error};
use kubewright::context::Kind as Object;
use kubewright::controller::Trigger;
use kubewright::informer::{self, Informer, Scope};
use kubewright::predicate::Predicate;
use kubewright::{Action, Cache, Clock, Context, Controller, Reconciler};
use kubewright_apimachinery::quota::Evaluator;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answer::Refusal as _;
use crate::census::{Census, Change, Listener};
use crate::kinds::{Kind, Kinds};
use crate::part::text;
use crate::{names, part};
use plan::{Count, plan};

const QUOTAS_AT_ONCE: usize = 5;
/// After this long every quota is counted, whether there is a reason or not.
const RESYNC: Duration = Duration::from_secs(300);

/// The controller of all quotas. The census tells it of what is gone.
pub(crate) fn controller(
    cache: &Cache,
    census: &mut Census,
    clock: &Clock,
) -> Controller<ResourceQuota, Quotas> {
    let quotas = Quotas { kinds: census.kinds(), complete: census.complete() };
    let controller = part::controller(names::RESOURCE_QUOTA, quotas)
        // That it was charged is no reason to count.
        .when(Predicate::new(|old: &ResourceQuota, new: &ResourceQuota| old.spec != new.spec))
        // These may become cheaper while they are there.
        .depends_on(becomes::<Pod>(Evaluator::Pods, clock))
        .depends_on(becomes::<Service>(Evaluator::Services, clock))
        .depends_on(becomes::<PersistentVolumeClaim>(Evaluator::Claims, clock))
        .resync(RESYNC)
        .at_once(QUOTAS_AT_ONCE);
    census.tell(Arc::new(Returns {
        quotas: cache.informer(&Scope::default()),
        trigger: controller.trigger("objects"),
        kinds: Mutex::default(),
    }));
    controller
}

/// Whether an object matters to a quota because it counts otherwise than before.
fn becomes<T: Object>(
    evaluator: Evaluator,
    clock: &Clock,
) -> impl Fn(&informer::Change<T>, &ResourceQuota) -> bool + Send + Sync + 'static {
    let clock = clock.clone();
    move |change, quota| {
        reason::counts(&evaluator, quota)
            && reason::counts_otherwise(change, &evaluator, clock.now())
    }
}

/// Has quotas counted when something goes that they count, or a kind comes.
struct Returns {
    quotas: Informer<ResourceQuota>,
    trigger: Trigger,
    kinds: Mutex<Arc<Kinds>>,
}

impl Listener for Returns {
    fn wants(&self, kind: &Kind) -> bool {
        reason::evaluator(kind).is_some()
    }

    fn observe(&self, change: &Change<'_>) {
        let (quotas, evaluators) = match change {
            Change::Kinds(kinds) => {
                let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
                let before = std::mem::replace(&mut *known, Arc::clone(kinds));
                (self.quotas.list(), reason::new(&before, kinds))
            }
            Change::Deleted(kind, object) => {
                let quotas = self.quotas.list_in(text(&object.namespace));
                (quotas, reason::evaluator(kind).into_iter().collect())
            }
            Change::Applied(..) => return,
        };
        // Those that are not known yet are counted once they are.
        for quota in reason::concerned(&quotas.unwrap_or_default(), &evaluators) {
            self.trigger.fire(quota);
        }
    }
}

pub(crate) struct Quotas {
    kinds: watch::Receiver<Arc<Kinds>>,
    complete: watch::Receiver<bool>,
}

/// What a quota counts and could not be listed. The rest was counted.
#[derive(Debug, thiserror::Error)]
#[error("list {}", .0.join(", "))]
struct Unlisted(Vec<String>);

impl Reconciler<ResourceQuota> for Quotas {
    async fn reconcile(
        &self,
        quota: &mut ResourceQuota,
        ctx: &Context,
    ) -> Result<Action, kubewright::Error> {
        // What goes away after a count must be noticed, so nothing is counted before it would be.
        // The sender is gone only when all ends.
        let _ = self.complete.clone().wait_for(|complete| *complete).await;
        // The cache may not have heard yet of what was charged, and what is charged later is no
        // reason to count again. The account may list, and not get.
        let quotas: Api<ResourceQuota> =
            Api::namespaced(ctx.client().clone(), text(&quota.metadata.namespace));
        let named = format!("metadata.name={}", text(&quota.metadata.name));
        let found = quotas.list(&ListParams::default().fields(&named)).await?.items.pop();
        let Some(live) = found else { return Ok(Action::Done) };
        let (counts, unlisted) = self.count(ctx.client(), &live).await;
        if let Some(status) = plan(&json!(live), &counts, ctx.now()) {
            let status = serde_json::from_value(status)?;
            // It is written only if nothing was charged meanwhile, which the version tells.
            ctx.replace(&live, |quota| quota.status = status).await?;
        }
        match unlisted.is_empty() {
            true => Ok(Action::Done),
            false => Err(Unlisted(unlisted).into()),
        }
    }
}

impl Quotas {
    /// Reads all that a quota counts; the kinds that cannot be read besides.
    async fn count(&self, client: &Client, quota: &ResourceQuota) -> (Vec<Count>, Vec<String>) {
        let kinds = Arc::clone(&self.kinds.borrow());
        let (mut counts, mut unlisted) = (Vec::new(), Vec::new());
        for kind in &kinds.preferred {
            let Some(evaluator) = reason::evaluator(kind) else { continue };
            if !reason::counts(&evaluator, quota) {
                continue;
            }
            let namespace = text(&quota.metadata.namespace);
            let objects = match objects(client, kind, &evaluator, namespace).await {
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
}

async fn objects(
    client: &Client,
    kind: &Kind,
    evaluator: &Evaluator,
    namespace: &str,
) -> Result<Vec<Value>, Error> {
    let request = Request::new(kind.within(client, namespace).resource_url());
    let parameters = ListParams::default();
    let request = match evaluator {
        // Their number is all that counts.
        Evaluator::Objects(_) => request.list_metadata(&parameters),
        _ => request.list(&parameters),
    };
    let mut list: Value = client.request(request.map_err(Error::BuildRequest)?).await?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}
