//! Claims and volumes find each other, and part.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "volumes":
    a_claim_is_bound_to_the_volume_that_suits_it_best [J5],
    a_volume_is_released_when_its_claim_goes [J5],
    a_claim_waits_for_whoever_provides_its_class [J5],
    a_claim_waits_for_its_first_pod [J5],
    a_claim_that_loses_its_volume_is_lost [J5],
    a_pod_brings_its_claim_along [J5],
    a_claim_that_was_there_before_is_not_the_pods [J5],
}

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// A volume of a class that nobody else asks for.
fn volume(cx: &Context, name: &str, size: &str) -> Value {
    json!({
        "metadata": { "name": format!("{name}-{}", cx.namespace) },
        "spec": {
            "capacity": { "storage": size },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": cx.namespace,
            "hostPath": { "path": "/tmp" },
        },
    })
}

fn claim(cx: &Context) -> Value {
    json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": cx.namespace,
            "resources": { "requests": { "storage": "2Gi" } },
        },
    })
}

async fn wait(cx: &Context, path: &str, right: impl Fn(&Value) -> bool) -> Result<Value> {
    let is_right = |object: Value| right(&object);
    let answer = cx
        .endpoint
        .poll(&Request::get(path), PATIENCE, |answer| answer.json().is_ok_and(is_right))
        .await?;
    answer.json()
}

async fn told(cx: &Context, reason: &str, note: &str) -> Result<()> {
    let is_told = |events: &Value| {
        events["items"].as_array().into_iter().flatten().any(|event| {
            text(event, "/regarding/name") == "data"
                && text(event, "/reason") == reason
                && text(event, "/note") == note
        })
    };
    wait(cx, &cx.apis("events.k8s.io/v1", "events"), is_told).await?;
    Ok(())
}

fn is_bound(object: &Value) -> bool {
    object["status"]["phase"] == "Bound"
}

/// Deletes volumes, and whatever holds them.
async fn clean_up(cx: &Context, names: &[&str]) -> Result<()> {
    cx.send(Request::delete(cx.core("persistentvolumeclaims/data"))).await?;
    for name in names {
        let path = format!("{VOLUMES}/{name}-{}", cx.namespace);
        expect(&cx.send(Request::delete(&path)).await?, 200)?;
    }
    Ok(())
}

async fn a_claim_is_bound_to_the_volume_that_suits_it_best(cx: Context) -> Result<()> {
    for (name, size) in [("small", "1Gi"), ("large", "9Gi"), ("right", "3Gi")] {
        cx.create(VOLUMES, &volume(&cx, name, size)).await?;
        let path = format!("{VOLUMES}/{name}-{}", cx.namespace);
        wait(&cx, &path, |volume| volume["status"]["phase"] == "Available").await?;
    }
    let made = cx.create(&cx.core("persistentvolumeclaims"), &claim(&cx)).await?;
    let claim = wait(&cx, &cx.core("persistentvolumeclaims/data"), is_bound).await?;
    let name = format!("right-{}", cx.namespace);
    same("volume", &claim["spec"]["volumeName"], json!(name))?;
    let status = json!({
        "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "3Gi" },
    });
    same("status", &claim["status"], status)?;
    let annotations = json!({
        "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
    });
    same("annotations", &claim["metadata"]["annotations"], annotations)?;
    let volume = wait(&cx, &format!("{VOLUMES}/{name}"), is_bound).await?;
    let reference = &volume["spec"]["claimRef"];
    same("claim", &reference["uid"], made["metadata"]["uid"].clone())?;
    same("kind", &reference["kind"], json!("PersistentVolumeClaim"))?;
    let annotations = json!({ "pv.kubernetes.io/bound-by-controller": "yes" });
    same("annotations", &volume["metadata"]["annotations"], annotations)?;
    clean_up(&cx, &["small", "large", "right"]).await
}

async fn a_volume_is_released_when_its_claim_goes(cx: Context) -> Result<()> {
    cx.create(VOLUMES, &volume(&cx, "only", "2Gi")).await?;
    cx.create(&cx.core("persistentvolumeclaims"), &claim(&cx)).await?;
    wait(&cx, &cx.core("persistentvolumeclaims/data"), is_bound).await?;
    let path = format!("{VOLUMES}/only-{}", cx.namespace);
    wait(&cx, &path, is_bound).await?;
    expect(&cx.send(Request::delete(cx.core("persistentvolumeclaims/data"))).await?, 200)?;
    let volume = wait(&cx, &path, |volume| volume["status"]["phase"] == "Released").await?;
    same("claim", &volume["spec"]["claimRef"]["name"], json!("data"))?;
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    Ok(())
}

/// A class with a provisioner that does not exist.
async fn class(cx: &Context, mode: &str) -> Result<String> {
    let class = json!({
        "metadata": { "name": cx.namespace }, "provisioner": "example.com/nobody",
        "volumeBindingMode": mode,
    });
    cx.create(CLASSES, &class).await?;
    Ok(format!("{CLASSES}/{}", cx.namespace))
}

async fn a_claim_waits_for_whoever_provides_its_class(cx: Context) -> Result<()> {
    let class = class(&cx, "Immediate").await?;
    cx.create(&cx.core("persistentvolumeclaims"), &claim(&cx)).await?;
    let path = cx.core("persistentvolumeclaims/data");
    let claim = wait(&cx, &path, |claim| claim["metadata"]["annotations"].is_object()).await?;
    let annotations = json!({
        "volume.beta.kubernetes.io/storage-provisioner": "example.com/nobody",
        "volume.kubernetes.io/storage-provisioner": "example.com/nobody",
    });
    same("annotations", &claim["metadata"]["annotations"], annotations)?;
    same("phase", &claim["status"]["phase"], json!("Pending"))?;
    let note = "Waiting for a volume to be created either by the external provisioner \
                'example.com/nobody' or manually by the system administrator. If volume creation is \
                delayed, please verify that the provisioner is running and correctly registered.";
    told(&cx, "ExternalProvisioning", note).await?;
    expect(&cx.send(Request::delete(class)).await?, 200)?;
    Ok(())
}

async fn a_claim_waits_for_its_first_pod(cx: Context) -> Result<()> {
    let class = class(&cx, "WaitForFirstConsumer").await?;
    cx.create(VOLUMES, &volume(&cx, "free", "2Gi")).await?;
    let path = format!("{VOLUMES}/free-{}", cx.namespace);
    wait(&cx, &path, |volume| volume["status"]["phase"] == "Available").await?;
    cx.create(&cx.core("persistentvolumeclaims"), &claim(&cx)).await?;
    let note = "waiting for first consumer to be created before binding";
    told(&cx, "WaitForFirstConsumer", note).await?;
    expect(&cx.send(Request::delete(class)).await?, 200)?;
    clean_up(&cx, &["free"]).await
}

async fn a_claim_that_loses_its_volume_is_lost(cx: Context) -> Result<()> {
    cx.create(VOLUMES, &volume(&cx, "only", "2Gi")).await?;
    cx.create(&cx.core("persistentvolumeclaims"), &claim(&cx)).await?;
    wait(&cx, &cx.core("persistentvolumeclaims/data"), is_bound).await?;
    let path = format!("{VOLUMES}/only-{}", cx.namespace);
    wait(&cx, &path, is_bound).await?;
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    cx.release(&path).await?;
    let is_lost = |claim: &Value| claim["status"]["phase"] == "Lost";
    wait(&cx, &cx.core("persistentvolumeclaims/data"), is_lost).await?;
    let note = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    told(&cx, "ClaimLost", note).await
}

/// A pod that nobody runs, with a claim of its own.
fn pod_with_claim(cx: &Context) -> Value {
    let claim = claim(cx);
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "containers": [{ "name": "main", "image": "example.com/web:1" }],
            "schedulerName": "nobody",
            "volumes": [{ "name": "own", "ephemeral": { "volumeClaimTemplate": {
                "metadata": { "labels": { "of": "web" } }, "spec": claim["spec"],
            } } }],
        },
    })
}

async fn a_pod_brings_its_claim_along(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let pod = cx.create(&cx.core("pods"), &pod_with_claim(&cx)).await?;
    let path = cx.core("persistentvolumeclaims/web-own");
    let owner = json!([{
        "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let is_its = |claim: &Value| claim["metadata"]["ownerReferences"] == owner;
    let made = wait(&cx, &path, is_its).await?;
    same("metadata ownerReferences", &made["metadata"]["ownerReferences"], owner.clone())?;
    same("metadata labels", &made["metadata"]["labels"], json!({ "of": "web" }))?;
    same("spec resources", &made["spec"]["resources"], claim(&cx)["spec"]["resources"].clone())?;
    // One that goes is made again for as long as the pod is there.
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    let uid = made["metadata"]["uid"].clone();
    let again = wait(&cx, &path, |claim| is_its(claim) && claim["metadata"]["uid"] != uid).await?;
    same("metadata ownerReferences", &again["metadata"]["ownerReferences"], owner.clone())?;
    expect(&cx.send(Request::delete(cx.core("pods/web"))).await?, 200)?;
    let gone = cx.endpoint.poll(&Request::get(&path), PATIENCE, |it| it.status == 404).await?;
    expect(&gone, 404)?;
    Ok(())
}

async fn a_claim_that_was_there_before_is_not_the_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let mut other = claim(&cx);
    other["metadata"]["name"] = json!("web-own");
    let other = cx.create(&cx.core("persistentvolumeclaims"), &other).await?;
    cx.create(&cx.core("pods"), &pod_with_claim(&cx)).await?;
    let note = format!(
        "ephemeral volume own: PVC {0}/web-own was not created for pod {0}/web (pod is not owner)",
        cx.namespace
    );
    let is_told = |events: &Value| {
        events["items"].as_array().into_iter().flatten().any(|event| {
            text(event, "/involvedObject/name") == "web"
                && text(event, "/reason") == "FailedBinding"
                && text(event, "/message") == note
                && text(event, "/reportingComponent") == "ephemeral_volume"
        })
    };
    let events = wait(&cx, &cx.core("events"), is_told).await?;
    anyhow::ensure!(is_told(&events), "{note} is not among {events}");
    let left = cx.get(&cx.core("persistentvolumeclaims/web-own")).await?;
    same("metadata uid", &left["metadata"]["uid"], other["metadata"]["uid"].clone())
}
