//! Claims that wait for their first pod are bound where it goes, and pods go where their volumes
//! are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Client;
use kubewright::informer::Informer;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Assignment, Code, Filter, Plugin, Point, Prepared, Rejection, Work};
use crate::pod::Pod;
use crate::snapshot::Snapshot;
use crate::storage::{Claims, Plan, Storage, volume_name};
use crate::volumes;

const REASON_IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

pub(crate) struct VolumeBinding {
    /// None where nothing is written, as in tests of decisions.
    api: Option<VolumeApi>,
    timeout: Duration,
    /// What was reserved for pods, by uid.
    plans: Mutex<HashMap<Arc<str>, Plan>>,
}

/// Where claims are written and seen.
#[derive(Clone)]
pub(crate) struct VolumeApi {
    pub(crate) client: Client,
    pub(crate) claims: Informer<PersistentVolumeClaim>,
}

#[derive(Clone)]
struct Reachable<'s> {
    storage: &'s Storage,
    claims: Claims,
}

impl VolumeBinding {
    pub(crate) const NAME: &str = "VolumeBinding";

    pub(crate) fn new(api: Option<VolumeApi>, timeout: Duration) -> Self {
        VolumeBinding { api, timeout, plans: Mutex::default() }
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Arc<str>, Plan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &str {
        VolumeBinding::NAME
    }

    fn points(&self) -> &[Point] {
        &[
            Point::PreFilter,
            Point::Filter,
            Point::Reserve,
            Point::PreBind,
            Point::PreScore,
            Point::Score,
        ]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        if pod.claims.is_empty() {
            return Ok(Prepared::Anywhere);
        }
        let storage = &snapshot.storage;
        are_usable(pod, storage).map_err(Rejection::unresolvable)?;
        let claims = storage.claims_of(pod).map_err(Rejection::error)?;
        match claims.immediate.is_empty() {
            true => Ok(Prepared::Check(Box::new(Reachable { storage, claims }))),
            false => Err(Rejection::unresolvable(REASON_IMMEDIATE)),
        }
    }

    fn reserve(&self, pod: &Pod, node: &str, snapshot: &mut Snapshot) -> Result<(), Rejection> {
        if pod.claims.is_empty() {
            return Ok(());
        }
        let claims = snapshot.storage.claims_of(pod).map_err(Rejection::error)?;
        let Some(node) = snapshot.node(node) else { return Ok(()) };
        let name = Arc::clone(&node.name);
        let plan = snapshot.storage.plan(&claims, node).map_err(rejection)?;
        if !plan.is_empty() {
            snapshot.storage.promise(&plan, &name);
            self.plans().insert(Arc::clone(&pod.uid), plan);
        }
        Ok(())
    }

    fn unreserve(&self, pod: &Pod, _node: &str, snapshot: &mut Snapshot) {
        if let Some(plan) = self.plans().remove(&pod.uid) {
            snapshot.storage.release(&plan);
        }
    }

    fn pre_bind(&self, assignment: &Arc<Assignment>) -> Option<Work> {
        let plan = self.plans().get(&assignment.pod.uid).cloned()?;
        let api = self.api.clone()?;
        let (assignment, timeout) = (Arc::clone(assignment), self.timeout);
        Some(Box::pin(async move {
            match tokio::time::timeout(timeout, volumes::bind(&api, &plan, &assignment.node)).await
            {
                Ok(bound) => bound.map_err(|error| format!("binding volumes: {error}")),
                Err(_) => Err("binding volumes: context deadline exceeded".to_owned()),
            }
        }))
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        match change {
            Change::Storage | Change::NodeAdded(_) => true,
            Change::NodeUpdated { old, new } => old.metadata.labels != new.metadata.labels,
            _ => false,
        }
    }
}

impl Filter for Reachable<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        self.storage.plan(&self.claims, node).map(drop).map_err(rejection)
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

fn rejection(reasons: Vec<&'static str>) -> Rejection {
    let reasons = reasons.into_iter().map(Into::into).collect();
    Rejection { code: Code::Unresolvable, reasons }
}

fn are_usable(pod: &Pod, storage: &Storage) -> Result<(), String> {
    for used in &pod.claims {
        let name = &used.name;
        let Some(claim) = storage.claim(pod, name) else {
            return Err(match used.is_ephemeral {
                true => format!(
                    "waiting for ephemeral volume controller to create the \
                     persistentvolumeclaim {name:?}"
                ),
                false => format!("persistentvolumeclaim {name:?} not found"),
            });
        };
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Lost") {
            let volume = volume_name(claim).unwrap_or_default();
            return Err(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
            ));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if used.is_ephemeral && !is_owned(claim, pod) {
            let key = format!("{}/{name}", pod.namespace());
            let (pod, uid) = (&pod.key, &pod.uid);
            return Err(format!(
                "PVC {key} was not created for pod {pod} (pod is not owner) (uid {uid})"
            ));
        }
    }
    Ok(())
}

fn is_owned(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && *owner.uid == *pod.uid)
}
