//! PodDisruptionBudgets: how many pods may be evicted now.
//!
//! The server asks and charges a budget when a pod is evicted; here is counted what there is to
//! spend. `stale` takes back what was said of pods that were to be evicted and then were not.

mod plan;
mod stale;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::discovery;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use crate::part;
use crate::part::text;
use plan::Scale;

pub(crate) use stale::controller as stale;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<PodDisruptionBudget, Disruptions> {
    let concerns = |change: &Change<Pod>, budget: &PodDisruptionBudget| match change {
        Change::Applied { object, old, .. } => {
            let was_selected = old.as_ref().is_some_and(|old| plan::selects(budget, old));
            plan::selects(budget, object) || was_selected
        }
        Change::Deleted(pod) => plan::selects(budget, pod),
    };
    part::controller("disruption-controller", Disruptions)
        .depends_on::<Pod>(concerns)
        .reads::<ReplicaSet>()
        .reads::<Deployment>()
        .reads::<StatefulSet>()
        .reads::<ReplicationController>()
        .reporter("controllermanager")
        .at_once(AT_ONCE)
        .until_gone()
}

/// The controller of all budgets.
pub(crate) struct Disruptions;

/// Why it cannot be told how many pods there should be.
#[derive(Debug, thiserror::Error)]
enum ScaleError {
    /// Said in the budget's status.
    #[error("{0}")]
    Unknown(String),
    #[error("ask for the scale of a controller")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Reconciler<PodDisruptionBudget> for Disruptions {
    async fn reconcile(
        &self,
        budget: &mut PodDisruptionBudget,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let pods = ctx.informer::<Pod>()?;
        pods.fresh().await;
        let mut pods = pods.list_in(text(&budget.metadata.namespace))?;
        pods.retain(|pod| plan::selects(budget, pod));
        if pods.is_empty() {
            ctx.event(Event::normal("NoPods", "No matching pods found"));
        }
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let now = ctx.now();
        let scales = match plan::needs_scale(budget) {
            true => scales(ctx, &pods).await,
            false => Ok(BTreeMap::new()),
        };
        let planned = match scales {
            Ok(scales) => plan::plan(budget, &pods, &scales, now),
            Err(ScaleError::Unknown(why)) => Err(why),
            Err(ScaleError::Failed(error)) => return Err(Error::retry(error)),
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(why) => {
                let note = format!("Failed to calculate the number of expected pods: {why}");
                ctx.event(Event::warning("CalculateExpectedPodCountFailed", note));
                budget.status = Some(plan::fail_safe(budget, &why, now));
                return Ok(Action::Done);
            }
        };
        if plan.has_unmanaged {
            ctx.event(Event::warning("UnmanagedPods", plan::unmanaged(budget)));
        }
        for pod in &plan.overdue {
            let namespace = text(&budget.metadata.namespace);
            let note = format!(
                "Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            );
            ctx.event_about(*pod, Event::warning("NotDeleted", note));
        }
        budget.status = Some(plan.status);
        Ok(match plan.again_after {
            Some(after) => Action::RequeueAfter(Duration::try_from(after).unwrap_or_default()),
            None => Action::Done,
        })
    }
}

/// How many pods each controller of some of these wants, by its uid.
async fn scales(ctx: &Context, pods: &[&Pod]) -> Result<BTreeMap<String, Scale>, ScaleError> {
    let mut scales: BTreeMap<String, Scale> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = plan::controller_of(&pod.metadata) else { continue };
        if scales.contains_key(&owner.uid) {
            continue;
        }
        let found = find(ctx, owner, text(&pod.metadata.namespace)).await?;
        let name = text(&pod.metadata.name);
        let unknown = || ScaleError::Unknown(format!("found no controllers for pod {name:?}"));
        scales.insert(owner.uid.clone(), found.ok_or_else(unknown)?);
    }
    Ok(scales)
}

async fn find(
    ctx: &Context,
    owner: &OwnerReference,
    namespace: &str,
) -> Result<Option<Scale>, ScaleError> {
    let failed = |error: kubewright::context::ReadError| ScaleError::Failed(error.into());
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let beside = Some(namespace);
    match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => {
            let set = ctx.get::<ReplicaSet>(beside, &owner.name).await.map_err(failed)?;
            let Some(set) = set.filter(|it| it.metadata.uid.as_ref() == Some(&owner.uid)) else {
                return Ok(None);
            };
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
            let Some(above) =
                plan::controller_of(&set.metadata).filter(|it| it.kind == "Deployment")
            else {
                return Ok(Some(Scale::new(&owner.uid, replicas)));
            };
            let above = above.clone();
            let deployment = ctx.get::<Deployment>(beside, &above.name).await.map_err(failed)?;
            let deployment = deployment.filter(|it| it.metadata.uid.as_ref() == Some(&above.uid));
            Ok(deployment
                .map(|it| Scale::new(&above.uid, it.spec.as_ref().and_then(|spec| spec.replicas))))
        }
        ("apps", "StatefulSet") => {
            let set = ctx.get::<StatefulSet>(beside, &owner.name).await.map_err(failed)?;
            let set = set.filter(|it| it.metadata.uid.as_ref() == Some(&owner.uid));
            Ok(set.map(|it| Scale::new(&owner.uid, it.spec.as_ref().and_then(|it| it.replicas))))
        }
        ("", "ReplicationController") => {
            let it = ctx.get::<ReplicationController>(beside, &owner.name).await.map_err(failed)?;
            let it = it.filter(|it| it.metadata.uid.as_ref() == Some(&owner.uid));
            Ok(it.map(|it| Scale::new(&owner.uid, it.spec.as_ref().and_then(|it| it.replicas))))
        }
        _ => ask(ctx, owner, namespace).await,
    }
}

/// Asks the server for the scale of a controller of any kind.
async fn ask(
    ctx: &Context,
    owner: &OwnerReference,
    namespace: &str,
) -> Result<Option<Scale>, ScaleError> {
    let failed = |error: kube::Error| ScaleError::Failed(error.into());
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let kind = GroupVersionKind::gvk(group, version, &owner.kind);
    let (resource, _) = match discovery::pinned_kind(ctx.client(), &kind).await {
        Ok(found) => found,
        Err(kube::Error::Discovery(_)) => {
            let kind = format!("{}.{group}", owner.kind);
            let why = format!("no matches for kind {:?} in version {:?}", kind, owner.api_version);
            return Err(ScaleError::Unknown(why));
        }
        Err(error) => return Err(failed(error)),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client().clone(), namespace, &resource);
    match api.get_scale(&owner.name).await {
        Ok(scale) if scale.metadata.uid.as_ref() == Some(&owner.uid) => {
            Ok(Some(Scale::new(&owner.uid, scale.spec.and_then(|spec| spec.replicas))))
        }
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
            let name = format!("{}{suffix}", resource.plural);
            let why = format!("{name} does not implement the scale subresource");
            Err(ScaleError::Unknown(why))
        }
        Err(error) => Err(failed(error)),
    }
}
