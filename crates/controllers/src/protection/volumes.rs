//! A volume waits for the claim that it is bound to.

use k8s_openapi::api::core::v1::PersistentVolume;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::plan;
use crate::{names, part};

const FINALIZER: &str = "kubernetes.io/pv-protection";
const VOLUMES_AT_ONCE: usize = 8;

/// The controller of all volumes.
pub(crate) fn volumes() -> Controller<PersistentVolume, Volumes> {
    part::controller(names::VOLUME_PROTECTION, Volumes).until_gone().at_once(VOLUMES_AT_ONCE)
}

pub(crate) struct Volumes;

impl Reconciler<PersistentVolume> for Volumes {
    async fn reconcile(&self, volume: &mut PersistentVolume, _: &Context) -> Result<Action, Error> {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        if let Some(finalizers) = plan(&volume.metadata, FINALIZER, phase == Some("Bound")) {
            volume.metadata.finalizers = Some(finalizers);
        }
        Ok(Action::Done)
    }
}
