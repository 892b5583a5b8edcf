//! Claims, volumes and networks of Services that are in use outlive their deletion.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, is_deleting, pod, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "protection":
    a_claim_that_nobody_uses_goes_at_once [A5],
    a_claim_waits_for_the_pod_that_uses_it [A5],
    a_claim_waits_for_no_pod_without_a_node [A5],
    a_claim_gets_its_protection_back [A5],
    a_volume_that_is_not_bound_goes_at_once [A5],
    a_volume_waits_for_its_claim [A5],
    a_namespace_with_a_claim_ends [A5 U11],
    a_network_of_services_waits_for_their_addresses [B4],
}

const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn claim() -> Value {
    json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            // No class, so that nobody provides for it.
            "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

fn volume(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": { "path": "/tmp" },
            // Of a class that no other claim asks for.
            "storageClassName": name,
        },
    })
}

/// A pod with a volume of the claim.
fn user() -> Value {
    let mut pod = pod("user");
    let source = json!({ "claimName": "data" });
    pod["spec"]["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": source }]);
    pod
}

async fn wait_until_gone(cx: &Context, path: &str) -> Result<()> {
    cx.endpoint.poll(&Request::get(path), PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

/// Has it deleted, and sees that its finalizer holds it.
async fn delete_in_use(cx: &Context, path: &str, finalizer: &str) -> Result<()> {
    let answer = cx.send(Request::delete(path)).await?;
    same("finalizers", &expect(&answer, 200)?["metadata"]["finalizers"], json!([finalizer]))
}

async fn a_claim_that_nobody_uses_goes_at_once(cx: Context) -> Result<()> {
    cx.create(&cx.core("persistentvolumeclaims"), &claim()).await?;
    let path = cx.core("persistentvolumeclaims/data");
    delete_in_use(&cx, &path, "kubernetes.io/pvc-protection").await?;
    wait_until_gone(&cx, &path).await
}

async fn a_claim_waits_for_the_pod_that_uses_it(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let free = json!({ "metadata": { "name": "free" }, "spec": claim()["spec"] });
    cx.create(&cx.core("persistentvolumeclaims"), &claim()).await?;
    cx.create(&cx.core("persistentvolumeclaims"), &free).await?;
    let mut pod = user();
    pod["spec"]["nodeName"] = json!("nowhere");
    // What becomes of a pod on a node that is not there is not for others to decide meanwhile.
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cx.create(&cx.core("pods"), &pod).await?;
    let path = cx.core("persistentvolumeclaims/data");
    delete_in_use(&cx, &path, "kubernetes.io/pvc-protection").await?;
    // The other claim of the namespace was deleted later, so the first had its turn.
    let other = cx.core("persistentvolumeclaims/free");
    expect(&cx.send(Request::delete(&other)).await?, 200)?;
    wait_until_gone(&cx, &other).await?;
    expect(&cx.send(Request::delete(cx.core("pods/user?gracePeriodSeconds=0"))).await?, 200)?;
    // A pod that is over and still there uses what it names.
    let used = cx.get(&path).await?;
    let finalizers = json!(["kubernetes.io/pvc-protection"]);
    same("finalizers", &used["metadata"]["finalizers"], finalizers)?;
    cx.release(&cx.core("pods/user")).await?;
    wait_until_gone(&cx, &path).await
}

async fn a_claim_waits_for_no_pod_without_a_node(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("persistentvolumeclaims"), &claim()).await?;
    let mut pod = user();
    pod["spec"]["schedulingGates"] = json!([{ "name": "example.com/never" }]);
    cx.create(&cx.core("pods"), &pod).await?;
    let path = cx.core("persistentvolumeclaims/data");
    delete_in_use(&cx, &path, "kubernetes.io/pvc-protection").await?;
    wait_until_gone(&cx, &path).await?;
    cx.get(&cx.core("pods/user")).await?;
    Ok(())
}

async fn a_claim_gets_its_protection_back(cx: Context) -> Result<()> {
    cx.create(&cx.core("persistentvolumeclaims"), &claim()).await?;
    let path = cx.core("persistentvolumeclaims/data");
    cx.release(&path).await?;
    let is_held =
        |claim: Value| claim["metadata"]["finalizers"] == json!(["kubernetes.io/pvc-protection"]);
    let get = Request::get(&path);
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_held)).await?;
    Ok(())
}

async fn a_volume_that_is_not_bound_goes_at_once(cx: Context) -> Result<()> {
    cx.create(VOLUMES, &volume(&cx.namespace)).await?;
    let path = format!("{VOLUMES}/{}", cx.namespace);
    delete_in_use(&cx, &path, "kubernetes.io/pv-protection").await?;
    wait_until_gone(&cx, &path).await
}

/// A cluster may have somebody who binds claims, and then does so as this scenario does.
async fn a_volume_waits_for_its_claim(cx: Context) -> Result<()> {
    let mut claim = claim();
    claim["spec"]["storageClassName"] = json!(cx.namespace);
    claim["spec"]["volumeName"] = json!(cx.namespace);
    let claim = cx.create(&cx.core("persistentvolumeclaims"), &claim).await?;
    let mut volume = volume(&cx.namespace);
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": cx.namespace,
        "name": "data",
        "uid": text(&claim, "/metadata/uid"),
    });
    cx.create(VOLUMES, &volume).await?;
    let path = format!("{VOLUMES}/{}", cx.namespace);
    let phase = |phase: &str| {
        let patch = json!({ "status": { "phase": phase } });
        Request::merge_patch(format!("{path}/status"), &patch)
    };
    expect(&cx.send(phase("Bound")).await?, 200)?;
    let is_bound = |volume: Value| volume["status"]["phase"] == "Bound";
    let get = Request::get(&path);
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_bound)).await?;
    delete_in_use(&cx, &path, "kubernetes.io/pv-protection").await?;
    let claim = cx.core("persistentvolumeclaims/data");
    expect(&cx.send(Request::delete(&claim)).await?, 200)?;
    wait_until_gone(&cx, &claim).await?;
    // Nobody but a binder looks at the claim; who is faster matters not.
    let released = cx.send(phase("Released")).await?;
    if released.status != 404 {
        expect(&released, 200)?;
    }
    wait_until_gone(&cx, &path).await
}

async fn a_namespace_with_a_claim_ends(cx: Context) -> Result<()> {
    let name = format!("{}-other", cx.namespace);
    cx.create("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
    let namespace = format!("/api/v1/namespaces/{name}");
    let account = Request::get(format!("{namespace}/serviceaccounts/default"));
    cx.endpoint.poll(&account, PATIENCE, |answer| answer.status == 200).await?;
    cx.create(&format!("{namespace}/persistentvolumeclaims"), &claim()).await?;
    let mut pod = user();
    pod["spec"]["nodeName"] = json!("nowhere");
    cx.create(&format!("{namespace}/pods"), &pod).await?;
    expect(&cx.send(Request::delete(&namespace)).await?, 200)?;
    // On a node that is there, the node would say that the pod is over.
    let pod = format!("{namespace}/pods/user");
    cx.endpoint
        .poll(&Request::get(&pod), PATIENCE, |answer| answer.status == 404 || is_deleting(answer))
        .await?;
    cx.send(Request::delete(format!("{pod}?gracePeriodSeconds=0"))).await?;
    wait_until_gone(&cx, &namespace).await
}

async fn a_network_of_services_waits_for_their_addresses(cx: Context) -> Result<()> {
    // Has two addresses to give, and nobody else finds one.
    let network = json!({
        "metadata": { "name": cx.namespace },
        "spec": { "cidrs": ["203.0.113.16/30"] },
    });
    cx.create(NETWORKS, &network).await?;
    let path = format!("{NETWORKS}/{}", cx.namespace);
    let is_ready = |status: &'static str| {
        move |network: Value| {
            let ready = &network["status"]["conditions"][0];
            ready["type"] == "Ready" && ready["status"] == status
        }
    };
    let get = Request::get(&path);
    let ready = is_ready("True");
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(ready)).await?;
    for (name, address) in [("one", "203.0.113.17"), ("other", "203.0.113.18")] {
        let service = json!({
            "metadata": { "name": name },
            "spec": { "clusterIP": address, "ports": [{ "port": 80 }] },
        });
        // A server may hear of the network after whoever says that it is ready.
        let request = Request::post(cx.core("services"), &service);
        cx.endpoint.poll(&request, PATIENCE, |answer| answer.status == 201).await?;
    }
    delete_in_use(&cx, &path, "networking.k8s.io/service-cidr-finalizer").await?;
    let ready = is_ready("False");
    let answer = cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(ready)).await?;
    let reason = answer.json()?["status"]["conditions"][0]["reason"].clone();
    same("reason", &reason, json!("Terminating"))?;
    for name in ["one", "other"] {
        let path = cx.core(&format!("services/{name}"));
        expect(&cx.send(Request::delete(path)).await?, 200)?;
    }
    wait_until_gone(&cx, &path).await
}
