//! What controllers, a scheduler and nodes make of workloads together: pods run, or are said to.
//!
//! For endpoints with at least one node that takes pods. Images and commands are such that any
//! runtime can run them, and none needs to.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, expect, names, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "running":
    a_deployment_rolls_out_and_back [K2],
    a_stateful_set_comes_and_goes_in_order [K3],
    a_daemon_set_is_on_every_node_that_takes_pods [K4],
    a_replica_set_replaces_a_pod_that_is_deleted [K1],
    a_job_runs_to_its_end [B1],
    an_indexed_job_has_a_pod_for_each_index [B1],
    a_service_leads_to_pods_that_are_ready [B5],
    an_eviction_waits_for_the_budget [B1],
    a_pod_has_a_life_that_is_told [B1],
    init_containers_come_first_and_in_order [B1],
    a_pod_that_is_deleted_ends_before_it_goes [B1],
    what_a_container_says_can_be_read [B7],
    a_resize_waits_for_room [B1],
}

fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": image, "command": ["sleep", "100000"] }],
        },
    })
}

fn workload(kind: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": template(name, "busybox"),
        },
    })
}

async fn make(cx: &Context, resource: &str, object: &Value) -> Result<String> {
    cx.wait_for_account().await?;
    let collection = cx.apis("apps/v1", resource);
    cx.create(&collection, object).await?;
    Ok(format!("{collection}/{}", text(object, "/metadata/name")))
}

async fn merge(cx: &Context, path: &str, patch: &Value) -> Result<Value> {
    expect(&cx.send(Request::merge_patch(path, patch)).await?, 200)
}

/// The conditions of an object that are true.
fn conditions(object: &Value) -> Vec<&str> {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(|it| it["status"] == "True").filter_map(|it| it["type"].as_str()).collect()
}

fn is_ready(pod: &Value) -> bool {
    conditions(pod).contains(&"Ready")
}

/// Waits until all of a Deployment's replicas are of its newest template, and available.
async fn rolled_out(cx: &Context, path: &str, replicas: u64) -> Result<Value> {
    cx.wait(path, |it| {
        let status = &it["status"];
        let count = |field: &str| status[field].as_u64().unwrap_or_default();
        status["observedGeneration"] == it["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
                .map(count)
                .iter()
                .all(|it| *it == replicas)
    })
    .await
}

async fn a_deployment_rolls_out_and_back(cx: Context) -> Result<()> {
    let path = make(&cx, "deployments", &workload("Deployment", "web", 3)).await?;
    let first = rolled_out(&cx, &path, 3).await?;
    let revision = "/metadata/annotations/deployment.kubernetes.io~1revision";
    same("revision", &json!(text(&first, revision)), json!("1"))?;
    ensure!(conditions(&first).contains(&"Available"), "{first}");
    for (image, expected) in [("busybox:2", "2"), ("busybox", "3")] {
        let containers = json!([{ "name": "main", "image": image }]);
        let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        expect(&cx.send(Request::strategic_patch(&path, &patch)).await?, 200)?;
        let rolled = rolled_out(&cx, &path, 3).await?;
        same("revision", &json!(text(&rolled, revision)), json!(expected))?;
        let progress = rolled["status"]["conditions"].as_array().into_iter().flatten();
        let progress = progress.filter(|it| it["type"] == "Progressing");
        let reasons: Vec<&Value> = progress.map(|it| &it["reason"]).collect();
        ensure!(reasons == ["NewReplicaSetAvailable"], "{rolled}");
    }
    // Back at the first template, whose ReplicaSet is taken up again.
    let sets = cx.get(&cx.apis("apps/v1", "replicasets")).await?;
    ensure!(names(&sets).len() == 2, "{sets}");
    merge(&cx, &path, &json!({ "spec": { "replicas": 1 } })).await?;
    rolled_out(&cx, &path, 1).await?;
    Ok(())
}

async fn a_stateful_set_comes_and_goes_in_order(cx: Context) -> Result<()> {
    let mut set = workload("StatefulSet", "db", 3);
    set["spec"]["serviceName"] = json!("db");
    let path = make(&cx, "statefulsets", &set).await?;
    cx.wait(&path, |set| set["status"]["readyReplicas"] == 3).await?;
    let mut before = String::new();
    for number in 0..3 {
        let pod = cx.get(&cx.core(&format!("pods/db-{number}"))).await?;
        let ready = pod["status"]["conditions"].as_array().into_iter().flatten();
        let ready = ready.filter(|it| it["type"] == "Ready");
        let since: String = ready.map(|it| text(it, "/lastTransitionTime")).collect();
        let born = text(&pod, "/metadata/creationTimestamp").to_owned();
        // Each is made when the one before is ready.
        ensure!(born >= before, "db-{number} was born at {born}, before {before}");
        before = since;
    }
    merge(&cx, &path, &json!({ "spec": { "replicas": 1 } })).await?;
    let left = |list: &Value| names(list) == ["db-0"];
    cx.wait(&cx.core("pods?labelSelector=app%3Ddb"), left).await?;
    cx.wait(&path, |set| set["status"]["replicas"] == 1).await?;
    Ok(())
}

async fn a_daemon_set_is_on_every_node_that_takes_pods(cx: Context) -> Result<()> {
    let mut set = workload("DaemonSet", "agent", 0);
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    let path = make(&cx, "daemonsets", &set).await?;
    let done = cx.wait(&path, |set| {
        let count = |field: &str| set["status"][field].as_u64().unwrap_or_default();
        count("desiredNumberScheduled") > 0
            && count("numberAvailable") == count("desiredNumberScheduled")
            && count("updatedNumberScheduled") == count("desiredNumberScheduled")
    });
    let status = done.await?["status"].clone();
    let pods = cx.get(&cx.core("pods?labelSelector=app%3Dagent")).await?;
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let mut nodes: Vec<&str> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    nodes.sort_unstable();
    nodes.dedup();
    ensure!(json!(nodes.len()) == status["desiredNumberScheduled"], "{nodes:?}, {status}");
    Ok(())
}

async fn a_replica_set_replaces_a_pod_that_is_deleted(cx: Context) -> Result<()> {
    let path = make(&cx, "replicasets", &workload("ReplicaSet", "web", 2)).await?;
    let all_ready = |set: &Value| set["status"]["readyReplicas"] == 2;
    cx.wait(&path, all_ready).await?;
    let selected = cx.core("pods?labelSelector=app%3Dweb");
    let pods = cx.get(&selected).await?;
    let gone = names(&pods)[0].to_owned();
    expect(&cx.send(Request::delete(cx.core(&format!("pods/{gone}")))).await?, 200)?;
    let replaced = |list: &Value| {
        let pods = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        pods.len() == 2
            && pods.iter().all(|pod| is_ready(pod) && text(pod, "/metadata/name") != gone)
    };
    cx.wait(&selected, replaced).await?;
    cx.wait(&path, all_ready).await?;
    Ok(())
}

fn job(name: &str, spec: Value) -> Value {
    let mut template = template(name, "busybox");
    template["spec"]["containers"][0]["command"] = json!(["true"]);
    template["spec"]["restartPolicy"] = json!("Never");
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "template": template },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

async fn a_job_runs_to_its_end(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let jobs = cx.apis("batch/v1", "jobs");
    cx.create(&jobs, &job("sum", json!({ "completions": 3, "parallelism": 2 }))).await?;
    let done = |job: &Value| conditions(job).contains(&"Complete");
    let job = cx.wait(&format!("{jobs}/sum"), done).await?;
    same("succeeded", &job["status"]["succeeded"], json!(3))?;
    same("active", &job["status"]["active"], Value::Null)?;
    let pods = cx.get(&cx.core("pods?labelSelector=app%3Dsum")).await?;
    for pod in pods["items"].as_array().into_iter().flatten() {
        same("phase", &pod["status"]["phase"], json!("Succeeded"))?;
        same("finalizers", &pod["metadata"]["finalizers"], Value::Null)?;
    }
    Ok(())
}

async fn an_indexed_job_has_a_pod_for_each_index(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let jobs = cx.apis("batch/v1", "jobs");
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed" });
    cx.create(&jobs, &job("parts", spec)).await?;
    let done = |job: &Value| conditions(job).contains(&"Complete");
    let job = cx.wait(&format!("{jobs}/parts"), done).await?;
    same("completedIndexes", &job["status"]["completedIndexes"], json!("0-2"))
}

async fn a_service_leads_to_pods_that_are_ready(cx: Context) -> Result<()> {
    let path = make(&cx, "deployments", &workload("Deployment", "web", 2)).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] },
    });
    cx.create(&cx.core("services"), &service).await?;
    rolled_out(&cx, &path, 2).await?;
    let pods = cx.get(&cx.core("pods?labelSelector=app%3Dweb")).await?;
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let mut expected: Vec<String> =
        pods.iter().map(|pod| text(pod, "/status/podIP").to_owned()).collect();
    expected.sort();
    let ready = |list: &Value| -> Vec<String> {
        let slices = list["items"].as_array().into_iter().flatten();
        let endpoints = slices.flat_map(|it| it["endpoints"].as_array().into_iter().flatten());
        let endpoints = endpoints.filter(|it| it["conditions"]["ready"] == true);
        let mut found: Vec<String> =
            endpoints.map(|it| text(it, "/addresses/0").to_owned()).collect();
        found.sort();
        found
    };
    let slices = cx.apis(
        "discovery.k8s.io/v1",
        "endpointslices?labelSelector=kubernetes.io/service-name%3Dweb",
    );
    cx.wait(&slices, |list| ready(list) == expected).await?;
    merge(&cx, &path, &json!({ "spec": { "replicas": 0 } })).await?;
    cx.wait(&slices, |list| ready(list).is_empty()).await?;
    Ok(())
}

async fn an_eviction_waits_for_the_budget(cx: Context) -> Result<()> {
    let path = make(&cx, "deployments", &workload("Deployment", "web", 2)).await?;
    let budgets = cx.apis("policy/v1", "poddisruptionbudgets");
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    });
    cx.create(&budgets, &budget).await?;
    let healthy = |count: u64| move |it: &Value| it["status"]["currentHealthy"] == count;
    cx.wait(&format!("{budgets}/web"), healthy(2)).await?;
    let pods = cx.get(&cx.core("pods?labelSelector=app%3Dweb")).await?;
    let name = names(&pods)[0].to_owned();
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name },
    });
    let evict = Request::post(cx.core(&format!("pods/{name}/eviction")), &eviction);
    let refused = expect(&cx.send(evict.clone()).await?, 429)?;
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    same("message", &refused["message"], json!(why))?;
    merge(&cx, &path, &json!({ "spec": { "replicas": 3 } })).await?;
    cx.wait(&format!("{budgets}/web"), |it| it["status"]["disruptionsAllowed"] == 1).await?;
    expect(&cx.send(evict).await?, 201)?;
    let replaced = |list: &Value| {
        let pods = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        pods.len() == 3
            && pods.iter().all(|pod| is_ready(pod) && text(pod, "/metadata/name") != name)
    };
    cx.wait(&cx.core("pods?labelSelector=app%3Dweb"), replaced).await?;
    Ok(())
}

/// A pod of one container, with more in its spec.
fn pod(name: &str, more: Value) -> Value {
    let mut spec = template(name, "busybox")["spec"].clone();
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

/// Makes a pod and waits until it is so.
async fn run(cx: &Context, pod: &Value, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), pod).await?;
    cx.wait(&cx.core(&format!("pods/{}", text(pod, "/metadata/name"))), is_so).await
}

async fn a_pod_has_a_life_that_is_told(cx: Context) -> Result<()> {
    let pod = run(&cx, &pod("web", json!({})), is_ready).await?;
    let mut told = conditions(&pod);
    told.sort_unstable();
    let expected =
        ["ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready"];
    ensure!(told == expected, "{told:?}");
    let status = &pod["status"];
    same("phase", &status["phase"], json!("Running"))?;
    same("qosClass", &status["qosClass"], json!("BestEffort"))?;
    for field in ["podIP", "hostIP", "startTime"] {
        ensure!(!text(status, &format!("/{field}")).is_empty(), "no {field} in {status}");
    }
    let container = &status["containerStatuses"][0];
    same("name", &container["name"], json!("main"))?;
    same("ready", &container["ready"], json!(true))?;
    same("started", &container["started"], json!(true))?;
    same("restartCount", &container["restartCount"], json!(0))?;
    ensure!(!text(container, "/state/running/startedAt").is_empty(), "{container}");
    let events = cx.core("events?fieldSelector=involvedObject.name%3Dweb");
    let is_told = |list: &Value| {
        let events = list["items"].as_array().into_iter().flatten();
        let reasons: Vec<&str> = events.map(|event| text(event, "/reason")).collect();
        ["Scheduled", "Created", "Started"].iter().all(|reason| reasons.contains(reason))
    };
    cx.wait(&events, is_told).await?;
    Ok(())
}

async fn init_containers_come_first_and_in_order(cx: Context) -> Result<()> {
    let init = |name: &str| json!({ "name": name, "image": "busybox", "command": ["true"] });
    let more = json!({ "initContainers": [init("first"), init("second")] });
    let pod = run(&cx, &pod("web", more), is_ready).await?;
    let mut before = String::new();
    for (index, name) in ["first", "second"].iter().enumerate() {
        let status = &pod["status"]["initContainerStatuses"][index];
        same("name", &status["name"], json!(name))?;
        let ended = &status["state"]["terminated"];
        same("reason", &ended["reason"], json!("Completed"))?;
        let started = text(ended, "/startedAt").to_owned();
        ensure!(started >= before, "{name} started at {started}, before {before}");
        before = text(ended, "/finishedAt").to_owned();
    }
    let started = text(&pod, "/status/containerStatuses/0/state/running/startedAt");
    ensure!(started >= &*before, "main started at {started}, before {before}");
    Ok(())
}

async fn a_pod_that_is_deleted_ends_before_it_goes(cx: Context) -> Result<()> {
    let made = run(&cx, &pod("web", json!({})), is_ready).await?;
    let version = text(&made, "/metadata/resourceVersion");
    let target = format!("pods?watch=true&resourceVersion={version}");
    let mut watch = cx.watch(cx.core(&target)).await?;
    expect(&cx.send(Request::delete(cx.core("pods/web"))).await?, 200)?;
    loop {
        let event = watch.event().await?;
        let object = &event["object"];
        if event["type"] == "DELETED" {
            let ended = &object["status"]["containerStatuses"][0]["state"]["terminated"];
            ensure!(ended["exitCode"].is_number(), "it went before it ended: {object}");
            let grace = &object["metadata"]["deletionGracePeriodSeconds"];
            return same("deletionGracePeriodSeconds", grace, json!(0));
        }
        ensure!(object["metadata"]["deletionTimestamp"].is_string() || !is_gone(object), "{event}");
    }
}

fn is_gone(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

async fn what_a_container_says_can_be_read(cx: Context) -> Result<()> {
    run(&cx, &pod("web", json!({})), is_ready).await?;
    let answer = cx.send(Request::get(cx.core("pods/web/log"))).await?;
    ensure!(answer.status == 200, "{answer}");
    ensure!(answer.content_type() == "text/plain", "{}", answer.content_type());
    let wrong = cx.send(Request::get(cx.core("pods/web/log?container=other"))).await?;
    let wrong = expect(&wrong, 400)?;
    same("message", &wrong["message"], json!("container other is not valid for pod web"))
}

/// A node that takes pods, and how many thousandths of processors it has for them.
async fn roomy_node(cx: &Context) -> Result<(String, u64)> {
    let nodes = cx.get("/api/v1/nodes").await?;
    let mut nodes = nodes["items"].as_array().into_iter().flatten();
    let node = nodes.find(|node| node["spec"]["taints"].is_null()).context("a node")?;
    let cpu = text(node, "/status/allocatable/cpu");
    let milli = match cpu.strip_suffix('m') {
        Some(milli) => milli.parse(),
        None => cpu.parse().map(|cpus: u64| cpus * 1000),
    };
    Ok((text(node, "/metadata/name").to_owned(), milli.with_context(|| cpu.to_owned())?))
}

/// There is no room for a pod that wants to grow, until another has gone.
async fn a_resize_waits_for_room(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (node, milli) = roomy_node(&cx).await?;
    let (little, most) = (format!("{}m", milli / 10), format!("{}m", milli * 6 / 10));
    for (name, cpu) in [("stays", &most), ("grows", &little)] {
        let mut pod = template(name, "busybox");
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(name);
        pod["spec"]["nodeName"] = json!(node);
        pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
        cx.create(&cx.core("pods"), &pod).await?;
        cx.wait(&cx.core(&format!("pods/{name}")), is_ready).await?;
    }
    let path = cx.core("pods/grows");
    let container = json!({ "name": "main", "resources": { "requests": { "cpu": most } } });
    let patch = json!({ "spec": { "containers": [container] } });
    let resize = cx.core("pods/grows/resize");
    expect(&cx.send(Request::strategic_patch(&resize, &patch)).await?, 200)?;
    let allocated =
        |pod: &Value| text(pod, "/status/containerStatuses/0/allocatedResources/cpu").to_owned();
    let given =
        |pod: &Value| text(pod, "/status/containerStatuses/0/resources/requests/cpu").to_owned();
    let waits = cx.wait(&path, |pod| conditions(pod).contains(&"PodResizePending")).await?;
    let all = waits["status"]["conditions"].as_array().into_iter().flatten();
    let pending =
        all.into_iter().find(|it| it["type"] == "PodResizePending").context("it was there")?;
    same("reason", &pending["reason"], json!("Deferred"))?;
    same("generation", &pending["observedGeneration"], json!(2))?;
    same("generation", &waits["status"]["observedGeneration"], json!(2))?;
    let why =
        format!("Node didn't have enough resource: cpu, requested: {}, used: ", milli * 6 / 10);
    ensure!(text(pending, "/message").starts_with(&why), "{pending}");
    ensure!((allocated(&waits), given(&waits)) == (little.clone(), little), "{waits}");
    let gone = Request::delete(cx.core("pods/stays?gracePeriodSeconds=0"));
    expect(&cx.send(gone).await?, 200)?;
    let is_done = |pod: &Value| {
        (allocated(pod), given(pod)) == (most.clone(), most.clone())
            && !conditions(pod).iter().any(|it| it.starts_with("PodResize"))
    };
    let done = cx.wait(&path, is_done).await?;
    same("restarts", &done["status"]["containerStatuses"][0]["restartCount"], json!(0))?;
    let events = cx.core("events?fieldSelector=involvedObject.name%3Dgrows");
    let reasons = ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"];
    let is_told = |list: &Value| {
        let mut all = reasons.iter();
        let has = |reason: &str| {
            list["items"].as_array().into_iter().flatten().any(|it| it["reason"] == reason)
        };
        all.all(|reason| has(reason))
    };
    cx.wait(&events, is_told).await?;
    Ok(())
}
