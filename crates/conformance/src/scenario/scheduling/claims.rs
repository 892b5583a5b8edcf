//! Pods and their claims: volumes say where pods may be, and pods where volumes are bound.

use anyhow::Result;
use serde_json::{Value, json};

use super::{create, full_name, goes_to, make, node, placed, pod, remove, told_of, with};
use crate::scenario::{Context, OWNER, scenarios};

scenarios! { "scheduling":
    a_claim_is_bound_where_its_pod_fits [J5 K5],
    a_pod_goes_where_its_volume_is [J5 K5],
    a_claim_for_one_pod_is_had_by_one [J5 K5],
    a_pod_waits_for_its_claim [J5 K5],
}

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const CLAIMS: &str = "persistentvolumeclaims";

/// A volume of a class of our own on one node.
async fn volume(cx: &Context, node: &str, size: &str, mode: &str) -> Result<()> {
    let here = json!({ "key": "name", "operator": "In", "values": [node] });
    let volume = json!({
        "metadata": { "name": full_name(cx, node), "labels": { OWNER: cx.namespace } },
        "spec": {
            "capacity": { "storage": size },
            "accessModes": [mode],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": cx.namespace,
            "local": { "path": "/tmp" },
            "nodeAffinity": {
                "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] },
            },
        },
    });
    cx.create(VOLUMES, &volume).await?;
    // A claim may have waited for it.
    let is_known = |volume: &Value| {
        ["Available", "Bound"].iter().any(|phase| volume["status"]["phase"] == *phase)
    };
    cx.wait(&format!("{VOLUMES}/{}", full_name(cx, node)), is_known).await?;
    Ok(())
}

async fn class(cx: &Context, mode: &str) -> Result<()> {
    let class = json!({
        "metadata": { "name": cx.namespace, "labels": { OWNER: cx.namespace } },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    });
    cx.create(CLASSES, &class).await?;
    Ok(())
}

async fn claim(cx: &Context, mode: &str) -> Result<()> {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": [mode],
            "storageClassName": cx.namespace,
            "resources": { "requests": { "storage": "2Gi" } },
        },
    });
    cx.create(&cx.core(CLAIMS), &claim).await?;
    Ok(())
}

/// Waits until the claim has the volume of a node.
async fn bound(cx: &Context, node: &str) -> Result<()> {
    let name = full_name(cx, node);
    let is_bound =
        |it: &Value| it["status"]["phase"] == "Bound" && it["spec"]["volumeName"] == name;
    cx.wait(&cx.core(&format!("{CLAIMS}/data")), is_bound).await?;
    Ok(())
}

/// A pod that uses the claim.
fn user(cx: &Context, name: &str, cpu: &str) -> Value {
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    with(pod(cx, name, cpu), "/spec", json!({ "volumes": volumes }))
}

async fn a_claim_is_bound_where_its_pod_fits(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "1"), node(&cx, "right", "4")])
        .await?;
    class(&cx, "WaitForFirstConsumer").await?;
    // The largest node has no room on its disk, and the next best disk is on too small a node.
    for (node, size) in [("large", "1Gi"), ("small", "2Gi"), ("right", "3Gi")] {
        volume(&cx, node, size, "ReadWriteOnce").await?;
    }
    claim(&cx, "ReadWriteOnce").await?;
    goes_to(&cx, user(&cx, "user", "2"), "right").await?;
    bound(&cx, "right").await?;
    Ok(())
}

async fn a_pod_goes_where_its_volume_is(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "1")]).await?;
    class(&cx, "Immediate").await?;
    volume(&cx, "small", "2Gi", "ReadWriteOnce").await?;
    claim(&cx, "ReadWriteOnce").await?;
    bound(&cx, "small").await?;
    goes_to(&cx, user(&cx, "user", "100m"), "small").await?;
    create(&cx, user(&cx, "heavy", "2")).await?;
    told_of(&cx, "heavy", "node(s) didn't match PersistentVolume's node affinity").await?;
    Ok(())
}

async fn a_claim_for_one_pod_is_had_by_one(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "4")]).await?;
    class(&cx, "Immediate").await?;
    volume(&cx, "only", "2Gi", "ReadWriteOncePod").await?;
    claim(&cx, "ReadWriteOncePod").await?;
    bound(&cx, "only").await?;
    goes_to(&cx, user(&cx, "one", "1"), "only").await?;
    create(&cx, user(&cx, "two", "1")).await?;
    let reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                  mode already in-use by another pod";
    told_of(&cx, "two", reason).await?;
    remove(&cx, "one").await?;
    placed(&cx, "two").await?;
    Ok(())
}

async fn a_pod_waits_for_its_claim(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "4")]).await?;
    create(&cx, user(&cx, "user", "1")).await?;
    told_of(&cx, "user", "persistentvolumeclaim \"data\" not found").await?;
    class(&cx, "Immediate").await?;
    claim(&cx, "ReadWriteOnce").await?;
    told_of(&cx, "user", "pod has unbound immediate PersistentVolumeClaims").await?;
    volume(&cx, "only", "2Gi", "ReadWriteOnce").await?;
    placed(&cx, "user").await?;
    Ok(())
}
