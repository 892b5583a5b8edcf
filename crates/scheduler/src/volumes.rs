//! Binds the claims of a pod that has a node, and waits until they are bound.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, Patch, PatchParams};
use kubewright::ObjectKey;
use kubewright::informer::Informer;
use serde_json::json;
use tokio::sync::watch;

use crate::plugins::VolumeApi;
use crate::storage::{self, Plan, SELECTED_NODE};

/// Has volumes bound to their claims, or made for them, and waits for it.
///
/// # Errors
/// What went wrong.
pub(crate) async fn bind(api: &VolumeApi, plan: &Plan, node: &str) -> Result<(), String> {
    let volumes: Api<PersistentVolume> = Api::all(api.client.clone());
    for (volume, claim) in &plan.bind {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({
            "metadata": {
                // Somebody else may have taken it.
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
            },
            "spec": {"claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.metadata.namespace,
                "name": claim.metadata.name,
                "uid": claim.metadata.uid,
                "resourceVersion": claim.metadata.resource_version,
            }},
        }));
        let patched = volumes.patch(name, &PatchParams::default(), &patch).await;
        patched.map_err(|error| error.to_string())?;
    }
    for claim in &plan.provision {
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(api.client.clone(), namespace);
        let patch = Patch::Merge(json!({"metadata": {
            "resourceVersion": claim.metadata.resource_version,
            "annotations": {SELECTED_NODE: node},
        }}));
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let patched = claims.patch(name, &PatchParams::default(), &patch).await;
        api.claims.expect(&patched.map_err(|error| error.to_string())?.metadata);
    }
    api.claims.fresh().await;
    until_bound(&api.claims, plan, node).await
}

async fn until_bound(
    claims: &Informer<PersistentVolumeClaim>,
    plan: &Plan,
    node: &str,
) -> Result<(), String> {
    let (tell, mut told) = watch::channel(());
    let _subscription = claims.subscribe(move |_| tell.send_replace(()));
    loop {
        told.mark_unchanged();
        let bound = plan.bind.iter().map(|(_, claim)| is_bound(claims, claim, None));
        let made = plan.provision.iter().map(|claim| is_bound(claims, claim, Some(node)));
        let all: Vec<bool> = bound.chain(made).collect::<Result<_, String>>()?;
        if all.iter().all(|is_bound| *is_bound) {
            return Ok(());
        }
        told.changed().await.map_err(|_| "nobody tells of claims any more".to_owned())?;
    }
}

/// Whether a claim is bound by now.
fn is_bound(
    claims: &Informer<PersistentVolumeClaim>,
    claim: &Arc<PersistentVolumeClaim>,
    node: Option<&str>,
) -> Result<bool, String> {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let now = claims.get(&ObjectKey::of(&claim.metadata)).map_err(|error| error.to_string())?;
    let now = now.ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let selected = now.metadata.annotations.as_ref().and_then(|it| it.get(SELECTED_NODE));
    // Whoever cannot make a volume there takes the annotation away.
    if node.is_some_and(|node| selected.is_none_or(|selected| selected != node)) {
        return Err(format!("provisioning failed for PVC {name:?}"));
    }
    Ok(storage::is_bound(&now))
}
