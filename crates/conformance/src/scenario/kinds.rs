//! The built-in kinds: that each is there, what is filled in, and what is said of mistakes.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, names, refused, revision, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "kinds":
    kinds_with_a_namespace_live_and_die [B1],
    kinds_of_the_whole_cluster_live_and_die [B1],
    some_kinds_count_generations [U7],
    what_is_empty_is_nothing [B2],
    a_pod_is_bound_joined_and_evicted [B1],
    an_event_is_the_same_in_both_groups [B1],
    workloads_are_filled_in [B2],
    other_kinds_are_filled_in [B2],
    what_is_required_is_named [B3],
    what_is_malformed_is_shown [B3],
    what_must_not_change_is_said [B3],
    annotations_that_were_fields_are_numbers [B3],
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/image" }] },
    })
}

fn finite_template() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    template
}

fn selector() -> Value {
    json!({ "matchLabels": { "app": "a" } })
}

/// What makes an object of each kind, besides its name.
fn namespaced() -> Vec<(&'static str, &'static str, Value)> {
    let scale_target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" });
    let backend = json!({ "service": { "name": "a", "port": { "number": 80 } } });
    let storage = json!({ "requests": { "storage": "1Gi" } });
    let address = json!({ "addresses": ["192.0.2.1"] });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a" });
    vec![
        ("v1", "configmaps", json!({ "data": { "key": "value" } })),
        ("v1", "secrets", json!({ "stringData": { "key": "value" } })),
        ("v1", "serviceaccounts", json!({})),
        ("v1", "services", json!({ "spec": { "ports": [{ "port": 80 }] } })),
        ("v1", "endpoints", json!({ "subsets": [] })),
        ("v1", "limitranges", json!({ "spec": { "limits": [] } })),
        (
            "v1",
            "resourcequotas",
            json!({ "spec": { "hard": { "count/nothing.example.com": "1" } } }),
        ),
        ("v1", "podtemplates", json!({ "template": template() })),
        ("v1", "pods", json!({ "spec": template()["spec"] })),
        (
            "v1",
            "replicationcontrollers",
            json!({ "spec": { "replicas": 0, "selector": { "app": "a" }, "template": template() } }),
        ),
        (
            "v1",
            "persistentvolumeclaims",
            json!({ "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": storage,
            } }),
        ),
        ("apps/v1", "controllerrevisions", json!({ "revision": 1, "data": { "a": 1 } })),
        (
            "apps/v1",
            "deployments",
            json!({ "spec": { "replicas": 0, "selector": selector(), "template": template() } }),
        ),
        (
            "apps/v1",
            "replicasets",
            json!({ "spec": { "replicas": 0, "selector": selector(), "template": template() } }),
        ),
        (
            "apps/v1",
            "statefulsets",
            json!({ "spec": {
                "replicas": 0, "serviceName": "a", "selector": selector(), "template": template(),
            } }),
        ),
        (
            "apps/v1",
            "daemonsets",
            json!({ "spec": { "selector": selector(), "template": template() } }),
        ),
        ("batch/v1", "jobs", json!({ "spec": { "suspend": true, "template": finite_template() } })),
        (
            "batch/v1",
            "cronjobs",
            json!({ "spec": {
                "schedule": "0 0 1 1 *", "suspend": true,
                "jobTemplate": { "spec": { "template": finite_template() } },
            } }),
        ),
        (
            "autoscaling/v1",
            "horizontalpodautoscalers",
            json!({ "spec": {
            "maxReplicas": 1, "scaleTargetRef": scale_target,
        } }),
        ),
        (
            "autoscaling/v2",
            "horizontalpodautoscalers",
            json!({ "spec": {
            "maxReplicas": 1, "scaleTargetRef": scale_target,
        } }),
        ),
        ("policy/v1", "poddisruptionbudgets", json!({ "spec": { "selector": selector() } })),
        (
            "networking.k8s.io/v1",
            "ingresses",
            json!({ "spec": {
            "ingressClassName": "a", "defaultBackend": backend,
        } }),
        ),
        ("networking.k8s.io/v1", "networkpolicies", json!({ "spec": { "podSelector": {} } })),
        ("rbac.authorization.k8s.io/v1", "roles", json!({ "rules": [] })),
        ("rbac.authorization.k8s.io/v1", "rolebindings", json!({ "roleRef": role })),
        ("coordination.k8s.io/v1", "leases", json!({ "spec": {} })),
        (
            "discovery.k8s.io/v1",
            "endpointslices",
            json!({ "addressType": "IPv4", "endpoints": [address] }),
        ),
        ("storage.k8s.io/v1", "csistoragecapacities", json!({ "storageClassName": "a" })),
    ]
}

fn cluster_wide() -> Vec<(&'static str, &'static str, Value)> {
    let role =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a" });
    let subject = json!({ "kind": "User", "user": { "name": "nobody-at-all" } });
    let rule = json!({ "verbs": ["get"], "nonResourceURLs": ["/nowhere"] });
    let flow = json!({
        "priorityLevelConfiguration": { "name": "catch-all" },
        "rules": [{ "subjects": [subject], "nonResourceRules": [rule] }],
    });
    let level = json!({
        "type": "Limited",
        "limited": { "nominalConcurrencyShares": 0, "limitResponse": { "type": "Reject" } },
    });
    let volume = json!({
        "accessModes": ["ReadWriteOnce"],
        "capacity": { "storage": "1Gi" },
        "hostPath": { "path": "/tmp" },
        "storageClassName": "nowhere",
    });
    vec![
        ("v1", "namespaces", json!({})),
        ("v1", "nodes", json!({})),
        ("v1", "persistentvolumes", json!({ "spec": volume })),
        ("rbac.authorization.k8s.io/v1", "clusterroles", json!({ "rules": [] })),
        ("rbac.authorization.k8s.io/v1", "clusterrolebindings", json!({ "roleRef": role })),
        ("storage.k8s.io/v1", "storageclasses", json!({ "provisioner": "example.com/a" })),
        ("storage.k8s.io/v1", "csidrivers", json!({ "spec": {} })),
        ("storage.k8s.io/v1", "csinodes", json!({ "spec": { "drivers": [] } })),
        ("scheduling.k8s.io/v1", "priorityclasses", json!({ "value": 1 })),
        ("node.k8s.io/v1", "runtimeclasses", json!({ "handler": "a" })),
        (
            "networking.k8s.io/v1",
            "ingressclasses",
            json!({ "spec": { "controller": "example.com/a" } }),
        ),
        ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", json!({ "spec": flow })),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "prioritylevelconfigurations",
            json!({ "spec": level }),
        ),
        ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", json!({})),
        ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", json!({})),
    ]
}

/// Plays the life of one object: made, found, changed, and gone.
async fn live_and_die(cx: &Context, collection: &str, name: &str, mut object: Value) -> Result<()> {
    object["metadata"] = json!({ "name": name });
    let created = cx.create(collection, &object).await?;
    ensure!(!text(&created, "/metadata/uid").is_empty(), "{created}");
    let path = format!("{collection}/{name}");
    let uid = created["metadata"]["uid"].clone();
    same("uid", &cx.get(&path).await?["metadata"]["uid"], uid.clone())?;
    let listed = cx.get(&format!("{collection}?fieldSelector=metadata.name%3D{name}")).await?;
    ensure!(names(&listed) == [name], "listed {:?}", names(&listed));
    let patch = json!({ "metadata": { "labels": { "changed": "yes" } } });
    let patched = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
    same("label", &patched["metadata"]["labels"]["changed"], json!("yes"))?;
    ensure!(revision(&patched)? > revision(&created)?, "nothing was written");
    let options = json!({ "propagationPolicy": "Background", "gracePeriodSeconds": 0 });
    let answer = cx.send(Request::delete(&path).json(&options)).await?;
    ensure!(answer.is_success(), "{answer}");
    // Whoever protects an object in use may not be there to let it go.
    let answer = cx.send(Request::get(&path)).await?;
    if answer.status == 200 && answer.json()?["metadata"]["finalizers"].is_array() {
        let patch = json!({ "metadata": { "finalizers": null } });
        let answer = cx.send(Request::merge_patch(&path, &patch)).await?;
        ensure!(answer.is_success() || answer.status == 404, "{answer}");
    }
    let is_gone = |answer: &Answer| {
        answer.status == 404 || answer.json().is_ok_and(|object| object["metadata"]["uid"] != uid)
    };
    cx.endpoint.poll(&Request::get(&path), PATIENCE, is_gone).await?;
    Ok(())
}

async fn kinds_with_a_namespace_live_and_die(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    for (version, resource, object) in namespaced() {
        let collection = match version {
            "v1" => cx.core(resource),
            _ => cx.apis(version, resource),
        };
        let life = live_and_die(&cx, &collection, "one", object).await;
        life.with_context(|| format!("{resource} in {version}"))?;
    }
    Ok(())
}

async fn kinds_of_the_whole_cluster_live_and_die(cx: Context) -> Result<()> {
    let name = format!("{}-one", cx.namespace);
    for (version, resource, object) in cluster_wide() {
        let collection = match version {
            "v1" => format!("/api/v1/{resource}"),
            _ => format!("/apis/{version}/{resource}"),
        };
        let life = live_and_die(&cx, &collection, &name, object).await;
        life.with_context(|| format!("{resource} in {version}"))?;
    }
    Ok(())
}

async fn a_pod_is_bound_joined_and_evicted(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let pods = cx.core("pods");
    let pod = json!({ "metadata": { "name": "one" }, "spec": template()["spec"] });
    let pod = cx.create(&pods, &pod).await?;
    let binding = json!({
        "metadata": { "name": "one" }, "target": { "kind": "Node", "name": "nowhere" },
    });
    let bound = cx.create(&format!("{pods}/one/binding"), &binding).await?;
    same("status", &bound["status"], json!("Success"))?;
    let again = cx.send(Request::post(format!("{pods}/one/binding"), &binding)).await?;
    let message = "Operation cannot be fulfilled on pods/binding \"one\": pod one is already \
                   assigned to node \"nowhere\"";
    refused(&again, 409, "Conflict", message)?;
    let answer = cx.get(&format!("{pods}/one")).await?;
    same("node", &answer["spec"]["nodeName"], json!("nowhere"))?;
    let condition = &answer["status"]["conditions"][0];
    same("condition", &condition["type"], json!("PodScheduled"))?;
    let debugger = json!({ "name": "debugger", "image": "example.com/image" });
    let patch = json!({ "spec": { "ephemeralContainers": [debugger] } });
    let target = format!("{pods}/one/ephemeralcontainers");
    let answer = expect(&cx.send(Request::strategic_patch(target, &patch)).await?, 200)?;
    same("debugger", &answer["spec"]["ephemeralContainers"][0]["name"], json!("debugger"))?;
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "one" },
        "deleteOptions": { "gracePeriodSeconds": 0 },
    });
    let evicted = cx.create(&format!("{pods}/one/eviction"), &eviction).await?;
    same("status", &evicted["status"], json!("Success"))?;
    let uid = pod["metadata"]["uid"].clone();
    let is_gone = |answer: &Answer| {
        answer.status == 404 || answer.json().is_ok_and(|pod| pod["metadata"]["uid"] != uid)
    };
    cx.endpoint.poll(&Request::get(format!("{pods}/one")), PATIENCE, is_gone).await?;
    Ok(())
}

async fn some_kinds_count_generations(cx: Context) -> Result<()> {
    let counting = [
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "jobs",
        "cronjobs",
        "ingresses",
        "ingressclasses",
        "networkpolicies",
        "poddisruptionbudgets",
        "endpointslices",
        "priorityclasses",
        "flowschemas",
        "prioritylevelconfigurations",
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ];
    cx.wait_for_account().await?;
    let path = |version: &str, resource: &str, namespaced: bool| match (version, namespaced) {
        ("v1", true) => cx.core(resource),
        ("v1", false) => format!("/api/v1/{resource}"),
        (version, true) => cx.apis(version, resource),
        (version, false) => format!("/apis/{version}/{resource}"),
    };
    let namespaced = namespaced().into_iter().map(|kind| (kind, true));
    let all = namespaced.chain(cluster_wide().into_iter().map(|kind| (kind, false)));
    for ((version, resource, mut object), namespaced) in all {
        object["metadata"] = json!({ "name": format!("{}-one", cx.namespace) });
        let collection = path(version, resource, namespaced);
        let created = cx.create(&format!("{collection}?dryRun=All"), &object).await?;
        let expected = match counting.contains(&resource) {
            true => json!(1),
            false => Value::Null,
        };
        same(resource, &created["metadata"]["generation"], expected)?;
    }
    Ok(())
}

async fn what_is_empty_is_nothing(cx: Context) -> Result<()> {
    let empty = json!({ "labels": {}, "annotations": {}, "finalizers": [], "name": "one" });
    let map = json!({ "metadata": empty, "data": {} });
    let map = cx.create(&cx.core("configmaps"), &map).await?;
    same("data", &map["data"], Value::Null)?;
    for field in ["labels", "annotations", "finalizers"] {
        same(field, &map["metadata"][field], Value::Null)?;
    }
    // What has a name is there.
    let secret = json!({ "metadata": { "name": "one" }, "data": { "a": null } });
    let secret = cx.create(&cx.core("secrets"), &secret).await?;
    same("data", &secret["data"], json!({ "a": "" }))?;
    // A list that cannot be left out is nothing all the same, at once and for good.
    let slices = cx.apis("discovery.k8s.io/v1", "endpointslices");
    let slice = json!({ "metadata": empty, "addressType": "IPv4", "endpoints": [], "ports": [] });
    for query in ["?dryRun=All", ""] {
        let slice = cx.create(&format!("{slices}{query}"), &slice).await?;
        same("endpoints", &slice["endpoints"], Value::Null)?;
        same("ports", &slice["ports"], Value::Null)?;
    }
    let stored = cx.get(&format!("{slices}/one")).await?;
    same("endpoints", &stored["endpoints"], Value::Null)?;
    let again = cx.send(Request::put(format!("{slices}/one"), &slice)).await?;
    let again = expect(&again, 200)?;
    same("endpoints", &again["endpoints"], Value::Null)?;
    same("generation", &again["metadata"]["generation"], json!(1))
}

async fn an_event_is_the_same_in_both_groups(cx: Context) -> Result<()> {
    let event = json!({
        "metadata": { "name": "one" },
        "involvedObject": { "kind": "ConfigMap", "name": "a", "namespace": cx.namespace },
        "reason": "Tested",
        "message": "a note",
        "type": "Normal",
        "source": { "component": "tester" },
    });
    cx.create(&cx.core("events"), &event).await?;
    let same_event = cx.get(&cx.apis("events.k8s.io/v1", "events/one")).await?;
    same("note", &same_event["note"], json!("a note"))?;
    same("regarding", &same_event["regarding"]["name"], json!("a"))?;
    same("source", &same_event["deprecatedSource"]["component"], json!("tester"))?;
    let event = json!({
        "metadata": { "name": "two" },
        "regarding": { "kind": "ConfigMap", "name": "a", "namespace": cx.namespace },
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Testing",
        "reason": "Tested",
        "note": "a note",
        "type": "Normal",
    });
    cx.create(&cx.apis("events.k8s.io/v1", "events"), &event).await?;
    let same_event = cx.get(&cx.core("events/two")).await?;
    same("message", &same_event["message"], json!("a note"))?;
    same("reporter", &same_event["reportingComponent"], json!("example.com/tester"))
}

/// What is stored for a spec.
async fn filled(cx: &Context, version: &str, resource: &str, spec: Value) -> Result<Value> {
    let object = json!({ "metadata": { "name": "one" }, "spec": spec });
    let collection = match version {
        "v1" => cx.core(resource),
        _ => cx.apis(version, resource),
    };
    let created = cx.create(&format!("{collection}?dryRun=All"), &object).await?;
    Ok(created["spec"].clone())
}

/// [`template`], filled in.
fn full_template() -> Value {
    let container = json!({
        "name": "main",
        "image": "example.com/image",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    });
    json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": {
            "containers": [container],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
    })
}

async fn workloads_are_filled_in(cx: Context) -> Result<()> {
    let given = || json!({ "selector": selector(), "template": template() });
    let deployment = filled(&cx, "apps/v1", "deployments", given()).await?;
    let rolling = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
    let expected = json!({
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": selector(),
        "strategy": { "type": "RollingUpdate", "rollingUpdate": rolling },
        "template": full_template(),
    });
    same("deployment", &deployment, expected)?;
    let daemon_set = filled(&cx, "apps/v1", "daemonsets", given()).await?;
    let rolling = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    let expected = json!({
        "revisionHistoryLimit": 10,
        "selector": selector(),
        "template": full_template(),
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": rolling },
    });
    same("daemon set", &daemon_set, expected)?;
    let stateful_set = filled(&cx, "apps/v1", "statefulsets", given()).await?;
    let expected = json!({
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": selector(),
        "serviceName": "",
        "template": full_template(),
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
    });
    same("stateful set", &stateful_set, expected)?;
    let job = json!({ "spec": { "template": finite_template() } });
    let spec = json!({ "schedule": "0 0 * * *", "jobTemplate": job });
    let cron_job = filled(&cx, "batch/v1", "cronjobs", spec).await?;
    let mut template = full_template();
    template["spec"]["restartPolicy"] = json!("Never");
    let expected = json!({
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "jobTemplate": { "metadata": {}, "spec": { "template": template } },
        "schedule": "0 0 * * *",
        "successfulJobsHistoryLimit": 3,
        "suspend": false,
    });
    same("cron job", &cron_job, expected)?;
    let job = filled(&cx, "batch/v1", "jobs", json!({ "template": finite_template() })).await?;
    let uid = job["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"].clone();
    template["metadata"]["labels"] = json!({
        "app": "a",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "one",
        "controller-uid": uid,
        "job-name": "one",
    });
    let expected = json!({
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": false,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": { "matchLabels": { "batch.kubernetes.io/controller-uid": uid } },
        "suspend": false,
        "template": template,
    });
    same("job", &job, expected)
}

async fn other_kinds_are_filled_in(cx: Context) -> Result<()> {
    let ingress = json!([{ "ports": [{ "port": 80 }] }]);
    let spec = json!({ "podSelector": {}, "ingress": ingress });
    let policy = filled(&cx, "networking.k8s.io/v1", "networkpolicies", spec).await?;
    let ports = json!([{ "port": 80, "protocol": "TCP" }]);
    let expected = json!({
        "podSelector": {}, "ingress": [{ "ports": ports }], "policyTypes": ["Ingress"],
    });
    same("network policy", &policy, expected)?;
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" });
    let spec = json!({ "maxReplicas": 3, "scaleTargetRef": target });
    let scaler = filled(&cx, "autoscaling/v2", "horizontalpodautoscalers", spec).await?;
    let usage = json!({ "type": "Utilization", "averageUtilization": 80 });
    let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": usage } });
    let expected = json!({
        "maxReplicas": 3, "minReplicas": 1, "metrics": [metric], "scaleTargetRef": target,
    });
    same("autoscaler", &scaler, expected)?;
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    let mut expected = spec.clone();
    expected["volumeMode"] = json!("Filesystem");
    same("claim", &filled(&cx, "v1", "persistentvolumeclaims", spec).await?, expected)?;
    let limit = json!({ "type": "Container", "max": { "cpu": "2" }, "min": { "cpu": "1" } });
    let range = filled(&cx, "v1", "limitranges", json!({ "limits": [limit] })).await?;
    let expected = json!({
        "type": "Container",
        "default": { "cpu": "2" },
        "defaultRequest": { "cpu": "2" },
        "max": { "cpu": "2" },
        "min": { "cpu": "1" },
    });
    same("limit range", &range["limits"][0], expected)
}

/// What is said of a mistake, after the name of the object.
async fn mistake(cx: &Context, collection: &str, object: &Value, why: &str) -> Result<()> {
    let answer = cx.send(Request::post(format!("{collection}?dryRun=All"), object)).await?;
    let status = expect(&answer, 422)?;
    let message = text(&status, "/message");
    let said = message.split_once(" is invalid: ").map(|(_, said)| said);
    same("message", &json!(said), json!(why))
}

async fn what_is_required_is_named(cx: Context) -> Result<()> {
    let one = |rest: Value| {
        let mut object = rest;
        object["metadata"] = json!({ "name": "one" });
        object
    };
    cx.wait_for_account().await?;
    let pods = cx.core("pods");
    mistake(&cx, &pods, &one(json!({ "spec": {} })), "spec.containers: Required value").await?;
    let nameless = json!({ "spec": { "containers": [{}] } });
    let why = "[spec.containers[0].name: Required value, spec.containers[0].image: Required value]";
    mistake(&cx, &pods, &one(nameless), why).await?;
    let deployments = cx.apis("apps/v1", "deployments");
    let mut other = json!({ "spec": { "selector": selector(), "template": template() } });
    other["spec"]["template"]["metadata"]["labels"] = json!({ "app": "b" });
    let why = "spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not \
               match template `labels`";
    mistake(&cx, &deployments, &one(other), why).await?;
    let services = cx.core("services");
    mistake(&cx, &services, &one(json!({ "spec": {} })), "spec.ports: Required value").await?;
    let roles = cx.apis("rbac.authorization.k8s.io/v1", "roles");
    let why = "[rules[0].verbs: Required value: verbs must contain at least one value, \
               rules[0].apiGroups: Required value: resource rules must supply at least one api \
               group, rules[0].resources: Required value: resource rules must supply at least one \
               resource]";
    mistake(&cx, &roles, &one(json!({ "rules": [{}] })), why).await
}

async fn what_is_malformed_is_shown(cx: Context) -> Result<()> {
    let maps = cx.core("configmaps");
    let map = json!({ "metadata": { "name": "one" }, "data": { "a b": "" } });
    let why = "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric \
               characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex \
               used for validation is '[-._a-zA-Z0-9]+')";
    mistake(&cx, &maps, &map, why).await?;
    let map = json!({ "metadata": { "name": "one", "labels": { "a": "-" } } });
    let why = "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or \
               consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
               alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
               validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    mistake(&cx, &maps, &map, why).await?;
    let services = cx.core("services");
    let service = json!({ "metadata": { "name": "one" }, "spec": { "ports": [{ "port": 0 }] } });
    let why = "[spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, \
               spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]";
    mistake(&cx, &services, &service, why).await?;
    let cron_jobs = cx.apis("batch/v1", "cronjobs");
    let job = json!({ "spec": { "template": finite_template() } });
    let cron_job = json!({
        "metadata": { "name": "one" }, "spec": { "schedule": "sometimes", "jobTemplate": job },
    });
    let why = "spec.schedule: Invalid value: \"sometimes\": expected exactly 5 fields, found 1: \
               [sometimes]";
    mistake(&cx, &cron_jobs, &cron_job, why).await
}

async fn what_must_not_change_is_said(cx: Context) -> Result<()> {
    let frozen = json!({ "metadata": { "name": "one" }, "immutable": true, "data": { "a": "b" } });
    cx.create(&cx.core("configmaps"), &frozen).await?;
    let patch = json!({ "data": { "a": "c" } });
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?;
    let message = "ConfigMap \"one\" is invalid: data: Forbidden: field is immutable when \
                   `immutable` is set";
    refused(&answer, 422, "Invalid", message)?;
    let spec = json!({ "replicas": 0, "selector": selector(), "template": template() });
    let deployment = json!({ "metadata": { "name": "one" }, "spec": spec });
    let deployments = cx.apis("apps/v1", "deployments");
    cx.create(&deployments, &deployment).await?;
    let labels = json!({ "app": "a", "more": "b" });
    let patch = json!({ "spec": {
        "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } },
    } });
    let answer = cx.send(Request::merge_patch(format!("{deployments}/one"), &patch)).await?;
    let message = "Deployment.apps \"one\" is invalid: spec.selector: Invalid value: \
                   {\"matchLabels\":{\"app\":\"a\",\"more\":\"b\"}}: field is immutable";
    refused(&answer, 422, "Invalid", message)?;
    let class = json!({
        "metadata": { "name": cx.namespace }, "provisioner": "example.com/a", "parameters": {},
    });
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    cx.create(classes, &class).await?;
    let patch = json!({ "parameters": { "a": "b" } });
    let path = format!("{classes}/{}", cx.namespace);
    let answer = cx.send(Request::merge_patch(&path, &patch)).await?;
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    let message = format!(
        "StorageClass.storage.k8s.io \"{}\" is invalid: parameters: Invalid value: \
         {{\"a\":\"b\"}}: field is immutable",
        cx.namespace
    );
    refused(&answer, 422, "Invalid", &message)?;
    Ok(())
}

async fn annotations_that_were_fields_are_numbers(cx: Context) -> Result<()> {
    let generation = "deprecated.daemonset.template.generation";
    let rollback = "deprecated.deployment.rollback.to";
    let number = "strconv.ParseInt: parsing \"x\": invalid syntax";
    let revision = format!("failed to parse annotation[{rollback}]=x as int64: {number}");
    for (resource, kind, annotation, why) in [
        ("daemonsets", "DaemonSet", generation, number),
        ("deployments", "Deployment", rollback, revision.as_str()),
    ] {
        let collection = cx.apis("apps/v1", resource);
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": { "name": "one" },
            "spec": { "selector": selector(), "template": template() },
        });
        cx.create(&collection, &object).await?;
        object["metadata"]["annotations"] = json!({ annotation: "x" });
        let path = format!("{collection}/one");
        let unreadable = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}");
        let create = Request::post(format!("{collection}?dryRun=All"), &object);
        for request in [create, Request::put(&path, &object)] {
            refused(&cx.send(request).await?, 400, "BadRequest", &unreadable)?;
        }
        let patch = json!({ "metadata": { "annotations": { annotation: "x" } } });
        let status = expect(&cx.send(Request::strategic_patch(&path, &patch)).await?, 500)?;
        same("strategic patch", &status["message"], json!(why))?;
        let status = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 422)?;
        ensure!(text(&status, "/message").ends_with(&format!(": {why}")), "{status}");
        let applied = json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": { "name": "one", "annotations": { annotation: "x" } },
        });
        let apply = Request::apply(format!("{path}?fieldManager=a&force=true"), &applied);
        let status = expect(&cx.send(apply).await?, 500)?;
        let message =
            format!("failed to convert to unversioned (/one; apps/v1, Kind={kind}): {why}");
        same("apply", &status["message"], json!(message))?;
    }
    Ok(())
}
