//! Volumes that are directories of this machine, made when they are asked for.
//!
//! As programs do that provide volumes from outside, this one looks for claims that name it, and
//! makes volumes for them; whoever mounts a volume makes its directory. When a volume is released,
//! the directory and the volume are deleted, if the volume says so.

mod plan;

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use crate::part;
use crate::part::text;

pub use plan::standard_class;

pub(crate) fn controller(root: &Path) -> Controller<PersistentVolumeClaim, LocalPath> {
    part::controller(plan::NAME, LocalPath { root: root.to_owned() })
        .reads::<StorageClass>()
        .reads::<PersistentVolume>()
        .reads::<Node>()
}

/// Provides volumes.
pub(crate) struct LocalPath {
    root: PathBuf,
}

impl Reconciler<PersistentVolumeClaim> for LocalPath {
    async fn reconcile(
        &self,
        claim: &mut PersistentVolumeClaim,
        ctx: &Context,
    ) -> Result<Action, Error> {
        if !plan::is_asked(claim) {
            return Ok(Action::Done);
        }
        let class = ctx.get::<StorageClass>(None, plan::class_name(claim)).await?;
        let Some(class) = class else { return Ok(Action::Done) };
        let name = plan::volume_name(claim);
        if ctx.get::<PersistentVolume>(None, &name).await?.is_some() {
            return Ok(Action::Done);
        }
        let node = match plan::selected_node(claim) {
            Some(node) => ctx.get::<Node>(None, node).await?,
            None => None,
        };
        let key = kubewright::ObjectKey::of(&claim.metadata);
        let note = format!("External provisioner is provisioning volume for claim \"{key}\"");
        ctx.event(Event::normal("Provisioning", note));
        let volume = plan::volume(claim, &class, node.as_deref(), &self.root);
        match ctx.create_unowned(volume).await {
            Ok(_) => {
                let note = format!("Successfully provisioned volume {name}");
                ctx.event(Event::normal("ProvisioningSucceeded", note));
            }
            Err(error) if error.reason() == Some("AlreadyExists") => {}
            Err(error) => {
                let said = error.answer().map(|status| status.message.clone());
                let why = said.unwrap_or_else(|| error.to_string());
                let class = text(&class.metadata.name);
                let note = format!("failed to provision volume with StorageClass {class:?}: {why}");
                ctx.event(Event::warning("ProvisioningFailed", note));
                return Err(error.into());
            }
        }
        Ok(Action::Done)
    }
}

pub(crate) fn cleanup(root: &Path) -> Controller<PersistentVolume, Cleanup> {
    part::controller(plan::NAME, Cleanup { root: root.to_owned() })
}

/// Deletes volumes that were provided and are released.
pub(crate) struct Cleanup {
    root: PathBuf,
}

impl Reconciler<PersistentVolume> for Cleanup {
    async fn reconcile(
        &self,
        volume: &mut PersistentVolume,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let Some(directory) = plan::released(volume, &self.root) else { return Ok(Action::Done) };
        match tokio::fs::remove_dir_all(&directory).await {
            // Nobody has ever mounted it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                ctx.event(Event::warning("VolumeFailedDelete", error.to_string()));
                return Err(error.into());
            }
            Ok(()) => {}
        }
        ctx.delete(volume).await?;
        Ok(Action::Done)
    }
}
