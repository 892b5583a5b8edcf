//! Volumes: whose they are, and what becomes of them when they are nobody's any more.

mod plan;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::Api;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use super::{claims, matching};
use crate::part;
use crate::part::text;
use plan::Step;

pub(crate) fn controller() -> Controller<PersistentVolume, Volumes> {
    let is_of = |change: &Change<PersistentVolumeClaim>, volume: &PersistentVolume| {
        let (Change::Applied { object: claim, .. } | Change::Deleted(claim)) = change;
        let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        claims::key_of(volume) == Some(kubewright::ObjectKey::of(&claim.metadata))
            || named.is_some_and(|name| Some(name) == volume.metadata.name.as_ref())
    };
    part::controller("persistentvolume-controller", Volumes)
        .depends_on::<PersistentVolumeClaim>(is_of)
}

/// The controller of all volumes.
pub(crate) struct Volumes;

impl Reconciler<PersistentVolume> for Volumes {
    async fn reconcile(
        &self,
        volume: &mut PersistentVolume,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let claim = match claims::key_of(volume) {
            Some(key) => {
                claim(ctx, volume, key.namespace().unwrap_or_default(), key.name()).await?
            }
            None => None,
        };
        match plan::plan(volume, claim.as_ref()) {
            Step::Nothing => {}
            Step::Phase(phase) => plan::set_phase(volume, phase, None),
            Step::Unbind => plan::unbind(volume),
            Step::Mismatch => {
                let (claim, volume) = (claim.unwrap_or_default(), &*volume);
                let name = text(&claim.metadata.name);
                let note = format!(
                    "Cannot bind PersistentVolume to requested PersistentVolumeClaim {name:?} due to \
                     incompatible volumeMode."
                );
                ctx.event(Event::warning("VolumeMismatch", note));
                let name = text(&volume.metadata.name);
                let note = format!(
                    "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to \
                     incompatible volumeMode."
                );
                ctx.event_about(&claim, Event::warning("VolumeMismatch", note));
            }
            Step::Fail { reason, why } => {
                if plan::phase(volume) != "Failed" {
                    plan::set_phase(volume, "Failed", Some(&why));
                    ctx.event(Event::warning(reason, why));
                }
            }
        }
        Ok(Action::Done)
    }
}

/// The claim of a volume, if it is still that one. What is not in the cache is asked for: a volume
/// that is released by mistake is lost.
async fn claim(
    ctx: &Context,
    volume: &PersistentVolume,
    namespace: &str,
    name: &str,
) -> Result<Option<PersistentVolumeClaim>, Error> {
    let uid = matching::claim_of(volume).and_then(|claim| claim.uid.clone());
    let is_same = |claim: &PersistentVolumeClaim| claim.metadata.uid == uid;
    let cached = ctx.get::<PersistentVolumeClaim>(Some(namespace), name).await?;
    if let Some(claim) = cached.filter(|claim| is_same(claim)) {
        return Ok(Some(PersistentVolumeClaim::clone(&claim)));
    }
    if matches!(plan::phase(volume), "Released" | "Failed") {
        return Ok(None);
    }
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ctx.client().clone(), namespace);
    Ok(claims.get_opt(name).await?.filter(is_same))
}
