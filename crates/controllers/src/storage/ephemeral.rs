//! Claims that pods bring along: generic ephemeral volumes.
//!
//! A claim is made for each, owned by its pod, and goes with it. One of that name which is not the
//! pod's is never taken.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright::informer::Change;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use crate::part::text;
use crate::{names, part, pods};

/// The controller of pods with such volumes.
pub(crate) fn controller() -> Controller<Pod, Ephemeral> {
    part::controller(names::EPHEMERAL_VOLUME, Ephemeral)
        .reporter("ephemeral_volume")
        // The volumes of a pod stay as they are.
        .when(Predicate::new(|_, _| false))
        .depends_on(|change: &Change<PersistentVolumeClaim>, pod: &Pod| match change {
            Change::Applied { .. } => false,
            // Somebody deleted it: the pod needs another.
            Change::Deleted(claim) => {
                wanted(pod).any(|volume| name(pod, volume) == text(&claim.metadata.name))
            }
        })
}

pub(crate) struct Ephemeral;

impl Reconciler<Pod> for Ephemeral {
    async fn reconcile(&self, pod: &mut Pod, ctx: &Context) -> Result<Action, Error> {
        let namespace = text(&pod.metadata.namespace);
        for volume in wanted(pod) {
            let known =
                ctx.get::<PersistentVolumeClaim>(Some(namespace), &name(pod, volume)).await?;
            let why = match plan(pod, volume, known.as_deref()) {
                Plan::Nothing => continue,
                Plan::Create(claim) => {
                    let name = text(&claim.metadata.name).to_owned();
                    match ctx.create(*claim).await {
                        Ok(_) => continue,
                        Err(error) => format!("create PVC {name}: {}", pods::message(&error)),
                    }
                }
                Plan::Refuse(why) => why,
            };
            let note = format!("ephemeral volume {}: {why}", volume.name);
            ctx.event(Event::warning("FailedBinding", note.clone()));
            return Err(Error::retry(note));
        }
        Ok(Action::Done)
    }
}

/// What is to be done about a volume.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    /// This claim is to be the pod's.
    Create(Box<PersistentVolumeClaim>),
    /// Its claim is somebody else's.
    Refuse(String),
}

fn plan(pod: &Pod, volume: &Volume, known: Option<&PersistentVolumeClaim>) -> Plan {
    let metadata = &pod.metadata;
    if let Some(claim) = known {
        let mut owners = claim.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        return match owner.is_some_and(|owner| owner.uid == text(&metadata.uid)) {
            true => Plan::Nothing,
            false => Plan::Refuse(format!(
                "PVC {namespace}/{} was not created for pod {namespace}/{} (pod is not owner)",
                text(&claim.metadata.name),
                text(&metadata.name),
                namespace = text(&metadata.namespace),
            )),
        };
    }
    let source = volume.ephemeral.as_ref();
    let Some(template) = source.and_then(|source| source.volume_claim_template.clone()) else {
        return Plan::Nothing;
    };
    let marks = template.metadata.unwrap_or_default();
    Plan::Create(Box::new(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name(pod, volume)),
            namespace: metadata.namespace.clone(),
            annotations: marks.annotations,
            labels: marks.labels,
            ..ObjectMeta::default()
        },
        spec: Some(template.spec),
        status: None,
    }))
}

/// The volumes of a pod that claims are made for, while it is there to stay.
fn wanted(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let is_staying = pod.metadata.deletion_timestamp.is_none();
    let spec = pod.spec.as_ref().filter(|_| is_staying);
    let volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter(|volume| volume.ephemeral.is_some())
}

/// What the claim of a volume is called.
fn name(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", text(&pod.metadata.name), volume.name)
}
