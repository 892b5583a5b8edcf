//! StorageObjectInUseProtection: what somebody uses is not gone before nobody does. Controllers
//! take the finalizers away again.

use serde_json::Value;

use super::{Attributes, Scene};
use crate::meta;
use crate::refusal::Refusal;

pub(super) fn admit(
    _scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> Result<(), Refusal> {
    let finalizer = match attributes.resource.gvr.resource.as_str() {
        "persistentvolumes" => "kubernetes.io/pv-protection",
        "persistentvolumeclaims" => "kubernetes.io/pvc-protection",
        _ => "kubernetes.io/vac-protection",
    };
    let mut finalizers: Vec<String> =
        meta::finalizers(object).into_iter().map(str::to_owned).collect();
    if attributes.creates() && !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set_finalizers(object, &finalizers);
    }
    Ok(())
}
