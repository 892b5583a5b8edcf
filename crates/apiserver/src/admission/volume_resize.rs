//! PersistentVolumeClaimResize: only volumes that can grow are asked to.

use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::quota::storage_class;
use serde_json::Value;

use super::{Attributes, Operation, Scene};
use crate::refusal::Refusal;

pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    claim: &Value,
) -> Result<(), Refusal> {
    let Some(old) = attributes.old else { return Ok(()) };
    if attributes.operation != Operation::Update || attributes.part.is_some() {
        return Ok(());
    }
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        let why = "Only bound persistent volume claims can be expanded";
        return Err(attributes.forbid(Some(claim), why));
    }
    let (class, before) = (storage_class(claim), storage_class(old));
    let can_grow = || {
        let class = scene.get(&format!("/registry/storageclasses/{class}"));
        class.is_some_and(|class| class["allowVolumeExpansion"] == true)
    };
    if class.is_empty() || class != before || !can_grow() {
        let why = "only dynamically provisioned pvc can be resized and the storageclass that \
                   provisions the pvc must support resize";
        return Err(attributes.forbid(Some(claim), why));
    }
    Ok(())
}

fn size(claim: &Value) -> Quantity {
    Quantity::from_value(&claim["spec"]["resources"]["requests"]["storage"]).unwrap_or_default()
}
