//! Claims: each gets a volume, or waits for one.

mod plan;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, ObjectKey, Reconciler};

use super::{PROVISIONER, matching};
use crate::part;
use crate::part::text;
use plan::Step;

pub(crate) fn controller() -> Controller<PersistentVolumeClaim, Claims> {
    let may_suit = |change: &Change<PersistentVolume>, claim: &PersistentVolumeClaim| {
        let (Change::Applied { object: volume, .. } | Change::Deleted(volume)) = change;
        let named = claim.spec.as_ref().map_or("", |spec| text(&spec.volume_name));
        match named {
            "" => matching::claim_of(volume).is_none() || matching::is_claimed_by(volume, claim),
            named => named == text(&volume.metadata.name),
        }
    };
    let is_of = |change: &Change<StorageClass>, claim: &PersistentVolumeClaim| {
        let (Change::Applied { object: class, .. } | Change::Deleted(class)) = change;
        let is_unbound = claim.spec.as_ref().is_none_or(|spec| text(&spec.volume_name).is_empty());
        let is_named = matching::requested_class(claim) == text(&class.metadata.name);
        is_unbound && (is_named || !matching::has_class(claim))
    };
    part::controller("persistentvolume-controller", Claims)
        .depends_on::<PersistentVolume>(may_suit)
        .depends_on::<StorageClass>(is_of)
        .reads::<Pod>()
}

/// The controller of all claims. One at a time, so that no two take one volume.
pub(crate) struct Claims;

impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(
        &self,
        claim: &mut PersistentVolumeClaim,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let volumes = ctx.list::<PersistentVolume>().await?;
        let classes = ctx.list::<StorageClass>().await?;
        let pods = match plan::is_bound(claim) {
            true => Vec::new(),
            false => ctx.informer::<Pod>()?.list_in(text(&claim.metadata.namespace))?,
        };
        let volumes: Vec<&PersistentVolume> = volumes.iter().map(AsRef::as_ref).collect();
        let classes: Vec<&StorageClass> = classes.iter().map(AsRef::as_ref).collect();
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        match plan::plan(claim, &volumes, &classes, &pods) {
            Step::Bind(volume) => bind(ctx, volume, claim).await?,
            Step::Wait(event) => {
                event.into_iter().for_each(|event| ctx.event(event));
                plan::set_phase(claim, "Pending");
            }
            Step::Lose(event) => {
                if plan::phase(claim) != "Lost" {
                    plan::set_phase(claim, "Lost");
                    ctx.event(event);
                }
            }
            Step::Class(name) => {
                claim.spec.get_or_insert_default().storage_class_name = Some(name);
            }
            Step::Ask { provisioner, event } => {
                let annotations = claim.metadata.annotations.get_or_insert_default();
                for key in PROVISIONER {
                    annotations.insert(key.to_owned(), provisioner.clone());
                }
                ctx.event(event);
            }
        }
        Ok(Action::Done)
    }
}

/// Has a volume and a claim name each other, the volume first: a claim that names a volume which
/// does not name it back is not bound.
async fn bind(
    ctx: &Context,
    volume: &PersistentVolume,
    claim: &mut PersistentVolumeClaim,
) -> Result<(), Error> {
    let mut volume = volume.clone();
    let mut named = volume.clone();
    if plan::claim_volume(&mut named, claim) {
        volume = PersistentVolume::clone(&*ctx.replace(&volume, |it| *it = named).await?);
    }
    if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
        let set = |volume: &mut PersistentVolume| {
            let status = volume.status.get_or_insert_default();
            status.phase = Some("Bound".to_owned());
            status.message = None;
        };
        volume = PersistentVolume::clone(&*ctx.replace(&volume, set).await?);
    }
    plan::bind_claim(claim, &volume);
    Ok(())
}

/// The key of a claim that a volume is for.
pub(super) fn key_of(volume: &PersistentVolume) -> Option<ObjectKey> {
    let claim = matching::claim_of(volume)?;
    Some(ObjectKey::new(claim.namespace.as_deref(), text(&claim.name)))
}
