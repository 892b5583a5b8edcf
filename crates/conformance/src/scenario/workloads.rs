//! What controllers make of workloads. Nothing runs pods here: where one must be ready, its status
//! says so.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "workloads":
    a_replica_set_keeps_so_many_pods [K1],
    a_replica_set_lets_go_of_pods_and_takes_them_up [K1],
    a_replication_controller_is_a_replica_set [K1],
    a_deployment_names_replica_sets_after_their_template [K2],
    a_deployment_rolls_and_remembers [K2],
    a_deployment_that_recreates_waits_for_the_last_old_pod [K2],
    a_deployment_finds_another_name_when_its_own_is_taken [K2],
    a_deployment_that_is_paused_rolls_when_it_goes_on [K2],
    a_deployment_says_when_it_does_not_get_on [K2],
    a_stateful_set_numbers_its_pods [K3],
    a_stateful_set_keeps_pods_below_its_partition_as_they_are [K3],
    claims_of_a_stateful_set_go_with_their_pods_if_it_says_so [K3],
    a_daemon_set_means_a_pod_for_each_node [K4],
    a_daemon_set_replaces_its_pods_one_way_or_the_other [K4],
}

/// What upstream calls the template of [`workload`].
const TEMPLATE_HASH: &str = "bb75485bf";
const REVISION_HASH: &str = "6cc8569764";
/// What upstream calls it instead where that name is taken.
const SECOND_TEMPLATE_HASH: &str = "775db7fcb";

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

/// An object named `web` whose pods nobody runs.
fn workload(kind: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("example.com/web:1"),
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn apps(cx: &Context, resource: &str) -> String {
    cx.apis("apps/v1", resource)
}

/// Waits until an object, or a list, is so.
async fn wait(cx: &Context, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let done = |answer: &Answer| answer.json().is_ok_and(|body| is_so(&body));
    let answer = cx.endpoint.poll(&Request::get(path), PATIENCE, done).await?;
    let body = answer.json()?;
    ensure!(is_so(&body), "{path} is not so: {body}");
    Ok(body)
}

/// The pods that are there to stay.
fn pods(list: &Value) -> Vec<&Value> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter(|pod| pod["metadata"].get("deletionTimestamp").is_none()).collect()
}

async fn wait_for_pods(cx: &Context, count: usize) -> Result<Value> {
    wait(cx, &cx.core("pods?labelSelector=app%3Dweb"), |list| pods(list).len() == count).await
}

async fn merge(cx: &Context, path: &str, patch: &Value) -> Result<Value> {
    expect(&cx.send(Request::merge_patch(path, patch)).await?, 200)
}

async fn make_ready(cx: &Context, pod: &Value) -> Result<()> {
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "status": { "phase": "Running", "conditions": [ready] } });
    let path = cx.core(&format!("pods/{}/status", text(pod, "/metadata/name")));
    let answer = cx.send(Request::merge_patch(&path, &status)).await?;
    // It may be gone by now.
    ensure!(matches!(answer.status, 200 | 404), "{answer}");
    Ok(())
}

/// Waits until the object of a path is so, with every pod made ready that appears.
async fn wait_living(cx: &Context, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let object = cx.get(path).await?;
        if is_so(&object) {
            return Ok(object);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("{path} is not so: {object}");
        }
        let list = cx.get(&cx.core("pods?labelSelector=app%3Dweb")).await?;
        for pod in pods(&list).into_iter().filter(|pod| pod["status"]["phase"] == "Pending") {
            make_ready(cx, pod).await?;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Waits for an event about `web` of a kind: its reason, the beginning of its text, and by whom.
async fn told(cx: &Context, kind: &str, reason: &str, message: &str, by: &str) -> Result<()> {
    let path = cx.core("events");
    wait(cx, &path, |list| {
        list["items"].as_array().into_iter().flatten().any(|event| {
            event["involvedObject"]["kind"] == kind
                && event["involvedObject"]["name"] == "web"
                && event["reason"] == reason
                && text(event, "/message").starts_with(message)
                && event["reportingComponent"] == by
                && event["source"]["component"] == by
                // By which people sort events.
                && event["lastTimestamp"].is_string()
                && event["count"].is_u64()
        })
    })
    .await
    .with_context(|| format!("{reason} {message}"))?;
    Ok(())
}

async fn a_replica_set_keeps_so_many_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let set = cx.create(&apps(&cx, "replicasets"), &workload("ReplicaSet", json!({}))).await?;
    let list = wait_for_pods(&cx, 2).await?;
    for pod in pods(&list) {
        ensure!(text(pod, "/metadata/name").starts_with("web-"), "{pod}");
        same("metadata generateName", &pod["metadata"]["generateName"], json!("web-"))?;
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
            "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]);
        same("metadata ownerReferences", &pod["metadata"]["ownerReferences"], owner)?;
    }
    let path = apps(&cx, "replicasets/web");
    let set = wait(&cx, &path, |set| set["status"]["replicas"] == 2).await?;
    let status = json!({
        "replicas": 2, "fullyLabeledReplicas": 2, "terminatingReplicas": 0, "observedGeneration": 1,
    });
    same("status", &set["status"], status)?;
    let first = pods(&list)[0].clone();
    let gone = cx.core(&format!("pods/{}", text(&first, "/metadata/name")));
    expect(&cx.send(Request::delete(gone)).await?, 200)?;
    let is_replaced = |list: &Value| {
        let uid = &first["metadata"]["uid"];
        pods(list).len() == 2 && pods(list).iter().all(|pod| pod["metadata"]["uid"] != *uid)
    };
    wait(&cx, &cx.core("pods?labelSelector=app%3Dweb"), is_replaced).await?;
    let ready = |set: &Value| set["status"]["availableReplicas"] == 2;
    wait_living(&cx, &path, ready).await?;
    merge(&cx, &path, &json!({ "spec": { "replicas": 0 } })).await?;
    wait(&cx, &path, |set| set["status"]["replicas"] == 0).await?;
    let by = "replicaset-controller";
    told(&cx, "ReplicaSet", "SuccessfulCreate", "Created pod: web-", by).await?;
    told(&cx, "ReplicaSet", "SuccessfulDelete", "Deleted pod: web-", by).await
}

async fn a_replica_set_lets_go_of_pods_and_takes_them_up(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&apps(&cx, "replicasets"), &workload("ReplicaSet", json!({}))).await?;
    let list = wait_for_pods(&cx, 2).await?;
    let name = text(pods(&list)[0], "/metadata/name").to_owned();
    let path = cx.core(&format!("pods/{name}"));
    merge(&cx, &path, &json!({ "metadata": { "labels": { "app": "other" } } })).await?;
    wait(&cx, &path, |pod| pod["metadata"].get("ownerReferences").is_none()).await?;
    wait_for_pods(&cx, 2).await?;
    merge(&cx, &path, &json!({ "metadata": { "labels": { "app": "web" } } })).await?;
    // It is taken up, and then one is too many.
    wait_for_pods(&cx, 2).await?;
    let path = apps(&cx, "replicasets/web");
    wait(&cx, &path, |set| set["status"]["replicas"] == 2).await?;
    Ok(())
}

async fn a_replication_controller_is_a_replica_set(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let mut object = workload("ReplicationController", json!({ "selector": { "app": "web" } }));
    object["apiVersion"] = json!("v1");
    cx.create(&cx.core("replicationcontrollers"), &object).await?;
    wait_for_pods(&cx, 2).await?;
    let path = cx.core("replicationcontrollers/web");
    let controller = wait(&cx, &path, |it| it["status"]["replicas"] == 2).await?;
    let status = json!({ "replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1 });
    same("status", &controller["status"], status)?;
    let by = "replication-controller";
    told(&cx, "ReplicationController", "SuccessfulCreate", "Created pod: web-", by).await
}

async fn a_deployment_names_replica_sets_after_their_template(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", json!({}))).await?;
    let name = format!("web-{TEMPLATE_HASH}");
    let path = apps(&cx, &format!("replicasets/{name}"));
    let set = wait(&cx, &path, |set| set["status"]["replicas"] == 2).await?;
    let labels = json!({ "app": "web", "pod-template-hash": TEMPLATE_HASH });
    same("metadata labels", &set["metadata"]["labels"], labels.clone())?;
    same("spec selector matchLabels", &set["spec"]["selector"]["matchLabels"], labels)?;
    let annotations = json!({
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
        "deployment.kubernetes.io/revision": "1",
    });
    same("metadata annotations", &set["metadata"]["annotations"], annotations)?;
    let path = apps(&cx, "deployments/web");
    let deployment = wait(&cx, &path, |it| it["status"]["updatedReplicas"] == 2).await?;
    same(
        "metadata annotations deployment.kubernetes.io/revision",
        &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        json!("1"),
    )?;
    same("metadata generation", &deployment["metadata"]["generation"], json!(1))?;
    let mut status = deployment["status"].clone();
    let conditions = status["conditions"].take();
    let mut told_by: Vec<String> = conditions
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            ["type", "status", "reason", "message"]
                .map(|key| text(it, &format!("/{key}")).to_owned())
                .join(" ")
        })
        .collect();
    told_by.sort_unstable();
    let expected = [
        "Available False MinimumReplicasUnavailable Deployment does not have minimum availability."
            .to_owned(),
        format!("Progressing True ReplicaSetUpdated ReplicaSet \"{name}\" is progressing."),
    ];
    ensure!(told_by == expected, "{told_by:?}");
    let counts = json!({
        "conditions": null, "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
        "unavailableReplicas": 2, "terminatingReplicas": 0,
    });
    same("status", &status, counts)?;
    let message = format!("Scaled up replica set {name} from 0 to 2");
    told(&cx, "Deployment", "ScalingReplicaSet", &message, "deployment-controller").await
}

/// Whether all pods of a Deployment are of its present template, which has this number.
fn is_rolled_out(deployment: &Value, revision: &str) -> bool {
    let status = &deployment["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == revision
        && status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|key| status[key] == 2)
        && conditions.iter().any(|it| it["reason"] == "NewReplicaSetAvailable")
}

async fn a_deployment_rolls_and_remembers(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", json!({}))).await?;
    let path = apps(&cx, "deployments/web");
    wait_living(&cx, &path, |it| is_rolled_out(it, "1")).await?;
    let second = json!({ "spec": { "template": template("example.com/web:2") } });
    merge(&cx, &path, &second).await?;
    wait_living(&cx, &path, |it| is_rolled_out(it, "2")).await?;
    let first = json!({ "spec": { "template": template("example.com/web:1") } });
    merge(&cx, &path, &first).await?;
    wait_living(&cx, &path, |it| is_rolled_out(it, "3")).await?;
    let set = cx.get(&apps(&cx, &format!("replicasets/web-{TEMPLATE_HASH}"))).await?;
    let annotations = &set["metadata"]["annotations"];
    same(
        "deployment.kubernetes.io/revision",
        &annotations["deployment.kubernetes.io/revision"],
        json!("3"),
    )?;
    same(
        "deployment.kubernetes.io/revision-history",
        &annotations["deployment.kubernetes.io/revision-history"],
        json!("1"),
    )?;
    let message = format!("Scaled down replica set web-{TEMPLATE_HASH} from 1 to 0");
    let by = "deployment-controller";
    told(&cx, "Deployment", "ScalingReplicaSet", &message, by).await?;
    merge(&cx, &path, &json!({ "spec": { "paused": true, "replicas": 1 } })).await?;
    let is_paused = |it: &Value| {
        let conditions = it["status"]["conditions"].as_array();
        it["status"]["replicas"] == 1
            && conditions.into_iter().flatten().any(|it| it["reason"] == "DeploymentPaused")
    };
    wait_living(&cx, &path, is_paused).await?;
    Ok(())
}

async fn a_deployment_that_recreates_waits_for_the_last_old_pod(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    // Pods on a node go when the node says so, and this one says nothing.
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": cx.namespace } });
    cx.create("/api/v1/nodes", &node).await?;
    let template = |image: &str| {
        let mut template = template(image);
        template["spec"]["nodeName"] = json!(cx.namespace);
        template
    };
    let spec = json!({
        "strategy": { "type": "Recreate" }, "template": template("example.com/web:1"),
    });
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", spec)).await?;
    let path = apps(&cx, "deployments/web");
    wait_living(&cx, &path, |it| is_rolled_out(it, "1")).await?;
    let old = wait_for_pods(&cx, 2).await?;
    let second = json!({ "spec": { "template": template("example.com/web:2") } });
    merge(&cx, &path, &second).await?;
    let (message, by) = ("Scaled down replica set web-", "deployment-controller");
    told(&cx, "Deployment", "ScalingReplicaSet", message, by).await?;
    // Whatever else it is told, it waits.
    wait_for_pods(&cx, 0).await?;
    let deadline = json!({ "spec": { "progressDeadlineSeconds": 700 } });
    let changed = merge(&cx, &path, &deadline).await?;
    let generation = &changed["metadata"]["generation"];
    let is_seen = |it: &Value| {
        it["status"]["observedGeneration"] == *generation && it["status"].get("replicas").is_none()
    };
    wait(&cx, &path, is_seen).await?;
    let sets = cx.get(&apps(&cx, "replicasets")).await?;
    same("the number of ReplicaSets", &json!(sets["items"].as_array().map(Vec::len)), json!(1))?;
    for pod in pods(&old) {
        let name = text(pod, "/metadata/name");
        let now = cx.core(&format!("pods/{name}?gracePeriodSeconds=0"));
        expect(&cx.send(Request::delete(now)).await?, 200)?;
    }
    wait_living(&cx, &path, |it| is_rolled_out(it, "2")).await?;
    let node = format!("/api/v1/nodes/{}", cx.namespace);
    expect(&cx.send(Request::delete(node)).await?, 200)?;
    Ok(())
}

async fn a_deployment_finds_another_name_when_its_own_is_taken(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    // Somebody else's, under the name that the Deployment's own would have.
    let other = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": format!("web-{TEMPLATE_HASH}") },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": "other" } },
            "template": {
                "metadata": { "labels": { "app": "other" } },
                "spec": { "containers": [{ "name": "other", "image": "example.com/other:1" }] },
            },
        },
    });
    cx.create(&apps(&cx, "replicasets"), &other).await?;
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", json!({}))).await?;
    let path = apps(&cx, "deployments/web");
    let deployment = wait_living(&cx, &path, |it| is_rolled_out(it, "1")).await?;
    same("status collisionCount", &deployment["status"]["collisionCount"], json!(1))?;
    let set = apps(&cx, &format!("replicasets/web-{SECOND_TEMPLATE_HASH}"));
    let set = cx.get(&set).await?;
    same(
        "metadata labels",
        &set["metadata"]["labels"],
        json!({ "app": "web", "pod-template-hash": SECOND_TEMPLATE_HASH }),
    )?;
    let other = cx.get(&apps(&cx, &format!("replicasets/web-{TEMPLATE_HASH}"))).await?;
    same("spec replicas", &other["spec"]["replicas"], json!(0))?;
    ensure!(other["metadata"].get("ownerReferences").is_none(), "{other}");
    Ok(())
}

fn progress(deployment: &Value) -> Option<&Value> {
    let conditions = deployment["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == "Progressing")
}

async fn a_deployment_that_is_paused_rolls_when_it_goes_on(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", json!({}))).await?;
    let path = apps(&cx, "deployments/web");
    wait_living(&cx, &path, |it| is_rolled_out(it, "1")).await?;
    merge(&cx, &path, &json!({ "spec": { "paused": true } })).await?;
    let is = |reason: &'static str| {
        move |it: &Value| progress(it).is_some_and(|it| it["reason"] == reason)
    };
    let paused = wait(&cx, &path, is("DeploymentPaused")).await?;
    let condition = progress(&paused).cloned().unwrap_or_default();
    same("status", &condition["status"], json!("Unknown"))?;
    same("message", &condition["message"], json!("Deployment is paused"))?;
    let second = json!({ "spec": { "template": template("example.com/web:2") } });
    let patched = merge(&cx, &path, &second).await?;
    let generation = &patched["metadata"]["generation"];
    wait(&cx, &path, |it| it["status"]["observedGeneration"] == *generation).await?;
    let sets = cx.get(&apps(&cx, "replicasets")).await?;
    same("replica sets", &json!(sets["items"].as_array().map(Vec::len)), json!(1))?;
    merge(&cx, &path, &json!({ "spec": { "paused": false } })).await?;
    wait_living(&cx, &path, |it| is_rolled_out(it, "2")).await?;
    Ok(())
}

async fn a_deployment_says_when_it_does_not_get_on(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let spec = json!({ "progressDeadlineSeconds": 1 });
    cx.create(&apps(&cx, "deployments"), &workload("Deployment", spec)).await?;
    let path = apps(&cx, "deployments/web");
    let is_late = |it: &Value| progress(it).is_some_and(|it| it["status"] == "False");
    let late = wait(&cx, &path, is_late).await?;
    let condition = progress(&late).cloned().unwrap_or_default();
    same("reason", &condition["reason"], json!("ProgressDeadlineExceeded"))?;
    let message = format!("ReplicaSet \"web-{TEMPLATE_HASH}\" has timed out progressing.");
    same("message", &condition["message"], json!(message))?;
    wait_living(&cx, &path, |it| is_rolled_out(it, "1")).await?;
    Ok(())
}

async fn a_stateful_set_numbers_its_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let set = workload("StatefulSet", json!({ "serviceName": "web" }));
    cx.create(&apps(&cx, "statefulsets"), &set).await?;
    let revision = format!("web-{REVISION_HASH}");
    let list = wait_for_pods(&cx, 1).await?;
    let pod = pods(&list)[0];
    same("metadata name", &pod["metadata"]["name"], json!("web-0"))?;
    let labels = json!({
        "app": "web", "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0",
    });
    same("metadata labels", &pod["metadata"]["labels"], labels)?;
    same("spec hostname", &pod["spec"]["hostname"], json!("web-0"))?;
    same("spec subdomain", &pod["spec"]["subdomain"], json!("web"))?;
    let path = apps(&cx, "statefulsets/web");
    let set = wait(&cx, &path, |set| set["status"]["replicas"] == 1).await?;
    let status = json!({
        "availableReplicas": 0, "collisionCount": 0, "currentReplicas": 1, "replicas": 1,
        "currentRevision": revision, "updateRevision": revision, "updatedReplicas": 1,
        "observedGeneration": 1,
    });
    same("status", &set["status"], status)?;
    wait_living(&cx, &path, |set| set["status"]["availableReplicas"] == 2).await?;
    merge(&cx, &path, &json!({ "spec": { "template": template("example.com/web:2") } })).await?;
    let is_updated = |set: &Value| {
        let status = &set["status"];
        status["availableReplicas"] == 2
            && status["currentRevision"] == status["updateRevision"]
            && status["currentRevision"] != revision.as_str()
    };
    wait_living(&cx, &path, is_updated).await?;
    let (by, message) =
        ("statefulset-controller", "Create Pod web-0 in StatefulSet web successful");
    told(&cx, "StatefulSet", "SuccessfulCreate", message, by).await?;
    let message = "Delete Pod web-1 in StatefulSet web successful";
    told(&cx, "StatefulSet", "SuccessfulDelete", message, by).await
}

async fn a_stateful_set_keeps_pods_below_its_partition_as_they_are(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let update = |partition: u32| json!({ "rollingUpdate": { "partition": partition } });
    let spec = json!({ "serviceName": "web", "updateStrategy": update(1) });
    cx.create(&apps(&cx, "statefulsets"), &workload("StatefulSet", spec)).await?;
    let path = apps(&cx, "statefulsets/web");
    wait_living(&cx, &path, |set| set["status"]["availableReplicas"] == 2).await?;
    merge(&cx, &path, &json!({ "spec": { "template": template("example.com/web:2") } })).await?;
    let is_updated = |count: u64| {
        move |set: &Value| {
            let status = &set["status"];
            status["updatedReplicas"] == count
                && status["availableReplicas"] == 2
                && status["observedGeneration"] == set["metadata"]["generation"]
        }
    };
    let set = wait_living(&cx, &path, is_updated(1)).await?;
    ensure!(set["status"]["currentRevision"] != set["status"]["updateRevision"], "{set}");
    let image = "/spec/containers/0/image";
    for (number, expected) in [(0, "example.com/web:1"), (1, "example.com/web:2")] {
        let pod = cx.get(&cx.core(&format!("pods/web-{number}"))).await?;
        same("image", &json!(text(&pod, image)), json!(expected))?;
    }
    merge(&cx, &path, &json!({ "spec": { "updateStrategy": update(0) } })).await?;
    wait_living(&cx, &path, is_updated(2)).await?;
    let pod = cx.get(&cx.core("pods/web-0")).await?;
    same("image", &json!(text(&pod, image)), json!("example.com/web:2"))
}

async fn claims_of_a_stateful_set_go_with_their_pods_if_it_says_so(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
            // Nobody provides such.
            "storageClassName": "none",
        },
    });
    let spec = json!({
        "serviceName": "web", "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete", "whenDeleted": "Delete" },
    });
    cx.create(&apps(&cx, "statefulsets"), &workload("StatefulSet", spec)).await?;
    let path = apps(&cx, "statefulsets/web");
    wait_living(&cx, &path, |set| set["status"]["availableReplicas"] == 2).await?;
    let claims = cx.core("persistentvolumeclaims");
    let owners = |kind: &'static str| {
        move |claim: &Value| {
            let owners = claim["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["kind"] == kind)
        }
    };
    wait(&cx, &format!("{claims}/data-web-0"), owners("StatefulSet")).await?;
    merge(&cx, &path, &json!({ "spec": { "replicas": 1 } })).await?;
    let is_gone = |answer: &Answer| answer.status == 404;
    let condemned = Request::get(format!("{claims}/data-web-1"));
    cx.endpoint.poll(&condemned, PATIENCE, is_gone).await?;
    cx.get(&format!("{claims}/data-web-0")).await?;
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    let last = Request::get(format!("{claims}/data-web-0"));
    cx.endpoint.poll(&last, PATIENCE, is_gone).await?;
    Ok(())
}

async fn a_daemon_set_replaces_its_pods_one_way_or_the_other(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": cx.namespace, "labels": { "place": cx.namespace } },
    });
    cx.create("/api/v1/nodes", &node).await?;
    let mut set = workload("DaemonSet", json!({}));
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({ "place": cx.namespace });
    cx.create(&apps(&cx, "daemonsets"), &set).await?;
    let path = apps(&cx, "daemonsets/web");
    let is_done = |set: &Value| {
        let status = &set["status"];
        status["observedGeneration"] == set["metadata"]["generation"]
            && status["updatedNumberScheduled"] == 1
            && status["numberAvailable"] == 1
    };
    wait_living(&cx, &path, is_done).await?;
    let image = |image: &str| {
        json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "web", "image": image },
        ] } } } })
    };
    // The old one goes, and then there is another.
    merge(&cx, &path, &image("example.com/web:2")).await?;
    wait_living(&cx, &path, is_done).await?;
    let list = wait_for_pods(&cx, 1).await?;
    same("image", &pods(&list)[0]["spec"]["containers"][0]["image"], json!("example.com/web:2"))?;
    // The other is there, and then the old one goes.
    let surge = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    let mut patch = image("example.com/web:3");
    patch["spec"]["updateStrategy"] = surge;
    merge(&cx, &path, &patch).await?;
    wait_for_pods(&cx, 2).await?;
    wait_living(&cx, &path, is_done).await?;
    let list = wait_for_pods(&cx, 1).await?;
    same("image", &pods(&list)[0]["spec"]["containers"][0]["image"], json!("example.com/web:3"))?;
    let node = format!("/api/v1/nodes/{}", cx.namespace);
    expect(&cx.send(Request::delete(node)).await?, 200)?;
    Ok(())
}

async fn a_daemon_set_means_a_pod_for_each_node(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    // Nodes are everybody's: only those with our label are ours.
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": cx.namespace, "labels": { "place": cx.namespace } },
    });
    cx.create("/api/v1/nodes", &node).await?;
    let mut set = workload("DaemonSet", json!({}));
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({ "place": cx.namespace });
    cx.create(&apps(&cx, "daemonsets"), &set).await?;
    let list = wait_for_pods(&cx, 1).await?;
    let required = json!({ "nodeSelectorTerms": [{ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": [cx.namespace] },
    ] }] });
    let affinity = &pods(&list)[0]["spec"]["affinity"]["nodeAffinity"];
    same(
        "requiredDuringSchedulingIgnoredDuringExecution",
        &affinity["requiredDuringSchedulingIgnoredDuringExecution"],
        required,
    )?;
    let path = apps(&cx, "daemonsets/web");
    let set = wait_living(&cx, &path, |set| set["status"]["numberAvailable"] == 1).await?;
    let status = json!({
        "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0,
        "numberReady": 1, "numberAvailable": 1, "updatedNumberScheduled": 1,
        "observedGeneration": 1,
    });
    same("status", &set["status"], status)?;
    let by = "daemonset-controller";
    told(&cx, "DaemonSet", "SuccessfulCreate", "Created pod: web-", by).await?;
    let node = format!("/api/v1/nodes/{}", cx.namespace);
    expect(&cx.send(Request::delete(node)).await?, 200)?;
    Ok(())
}
