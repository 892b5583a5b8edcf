//! What becomes of a pod before it is stored: who may refuse it, and what is filled in.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, pod, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "pod_admission":
    containers_get_what_their_namespace_says [A1],
    nobody_asks_for_more_than_is_allowed [A1],
    a_pod_has_an_account_and_its_token [A1],
    a_pod_may_do_without_a_token [A1],
    an_account_lends_its_pull_secrets [A1],
    plugins_are_asked_in_order [A1],
    a_pod_has_the_priority_of_its_class [A5],
    a_pod_outlasts_its_node_by_five_minutes [A5],
    a_runtime_class_adds_what_it_costs [A5],
}

/// A pod with these fields in its `spec`.
fn pod_with(fields: Value) -> Value {
    let mut pod = pod("one");
    for (name, value) in fields.as_object().into_iter().flatten() {
        pod["spec"][name] = value.clone();
    }
    pod
}

/// A pod whose only container says this of its resources.
fn pod_asking(resources: Value) -> Value {
    let mut pod = pod("one");
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

/// What would become of a pod, were it created.
async fn admit(cx: &Context, pod: &Value) -> Result<Answer> {
    cx.send(Request::post(cx.core("pods?dryRun=All"), pod)).await
}

/// What would become of a pod, once those who judge it know of what was created just now.
async fn admit_when(cx: &Context, pod: &Value, knows: impl Fn(&Answer) -> bool) -> Result<Answer> {
    let request = Request::post(cx.core("pods?dryRun=All"), pod);
    cx.endpoint.poll(&request, PATIENCE, knows).await
}

async fn forbidden(cx: &Context, pod: &Value, why: &str) -> Result<()> {
    let message = format!("pods \"one\" is forbidden: {why}");
    let status = refused(&admit(cx, pod).await?, 403, "Forbidden", &message)?;
    same("details", &status["details"], json!({ "name": "one", "kind": "pods" }))
}

/// Limits for the containers of our namespace, which are in force on return.
async fn limit(cx: &Context) -> Result<()> {
    let containers = json!({
        "type": "Container",
        "default": { "cpu": "500m", "memory": "64Mi" },
        "defaultRequest": { "cpu": "100m" },
        "max": { "cpu": "1" },
        "min": { "cpu": "50m" },
    });
    let pods = json!({ "type": "Pod", "max": { "cpu": "1500m" } });
    let range =
        json!({ "metadata": { "name": "range" }, "spec": { "limits": [containers, pods] } });
    cx.create(&cx.core("limitranges"), &range).await?;
    cx.wait_for_account().await?;
    let is_limited = |answer: &Answer| {
        let pod = answer.json().unwrap_or_default();
        !pod["spec"]["containers"][0]["resources"]["limits"].is_null()
    };
    admit_when(cx, &pod("one"), is_limited).await?;
    Ok(())
}

async fn containers_get_what_their_namespace_says(cx: Context) -> Result<()> {
    limit(&cx).await?;
    let silent = expect(&admit(&cx, &pod("one")).await?, 201)?;
    same(
        "resources",
        &silent["spec"]["containers"][0]["resources"],
        json!({
            "limits": { "cpu": "500m", "memory": "64Mi" },
            "requests": { "cpu": "100m", "memory": "64Mi" },
        }),
    )?;
    let note = "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit \
                for container main";
    let annotations = json!({ "kubernetes.io/limit-ranger": note });
    same("annotations", &silent["metadata"]["annotations"], annotations)?;
    let asking = pod_asking(json!({ "limits": { "cpu": "1", "memory": "1Mi" } }));
    let asking = expect(&admit(&cx, &asking).await?, 201)?;
    let resources = json!({
        "limits": { "cpu": "1", "memory": "1Mi" },
        "requests": { "cpu": "1", "memory": "1Mi" },
    });
    same("resources", &asking["spec"]["containers"][0]["resources"], resources)?;
    same("annotations", &asking["metadata"]["annotations"], Value::Null)
}

async fn nobody_asks_for_more_than_is_allowed(cx: Context) -> Result<()> {
    limit(&cx).await?;
    let small = pod_asking(json!({ "requests": { "cpu": "10m" } }));
    forbidden(&cx, &small, "minimum cpu usage per Container is 50m, but request is 10m").await?;
    let large = pod_asking(json!({ "limits": { "cpu": "1200m" } }));
    forbidden(&cx, &large, "maximum cpu usage per Container is 1, but limit is 1200m").await?;
    let mut many = pod_asking(json!({ "limits": { "cpu": "1" } }));
    let mut second = many["spec"]["containers"][0].clone();
    second["name"] = json!("second");
    many["spec"]["containers"].as_array_mut().expect("it has one").push(second);
    forbidden(&cx, &many, "maximum cpu usage per Pod is 1500m, but limit is 2").await?;
    let both = pod_asking(json!({ "requests": { "cpu": "10m" }, "limits": { "cpu": "2" } }));
    let why = "[minimum cpu usage per Container is 50m, but request is 10m, maximum cpu usage per \
               Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]";
    forbidden(&cx, &both, why).await
}

async fn a_pod_has_an_account_and_its_token(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let pod = expect(&admit(&cx, &pod("one")).await?, 201)?;
    let spec = &pod["spec"];
    same("account", &spec["serviceAccountName"], json!("default"))?;
    same("account by its old name", &spec["serviceAccount"], json!("default"))?;
    let volume = text(&spec["volumes"][0], "/name");
    ensure!(volume.starts_with("kube-api-access-") && volume.len() == 21, "volume {volume:?}");
    let mount = json!({
        "name": volume,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": true,
    });
    same("mounts", &spec["containers"][0]["volumeMounts"], json!([mount]))?;
    let reference = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    let sources = json!([
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": {
            "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }],
        } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": reference }] } },
    ]);
    let projected = json!({ "sources": sources, "defaultMode": 420 });
    same("volumes", &spec["volumes"], json!([{ "name": volume, "projected": projected }]))?;
    let why = format!(
        "error looking up service account {}/nobody: serviceaccount \"nobody\" not found",
        cx.namespace
    );
    forbidden(&cx, &pod_with(json!({ "serviceAccountName": "nobody" })), &why).await
}

async fn a_pod_may_do_without_a_token(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let quiet = json!({ "metadata": { "name": "quiet" }, "automountServiceAccountToken": false });
    cx.create(&cx.core("serviceaccounts"), &quiet).await?;
    let cases = [
        (json!({ "automountServiceAccountToken": false }), false),
        (json!({ "serviceAccountName": "quiet" }), false),
        (json!({ "serviceAccountName": "quiet", "automountServiceAccountToken": true }), true),
    ];
    for (fields, has_token) in cases {
        let pod = expect(&admit(&cx, &pod_with(fields.clone())).await?, 201)?;
        ensure!(pod["spec"]["volumes"].is_array() == has_token, "{fields}: {pod}");
    }
    Ok(())
}

async fn an_account_lends_its_pull_secrets(cx: Context) -> Result<()> {
    let secrets = json!([{ "name": "a" }, { "name": "b" }]);
    let account = json!({ "metadata": { "name": "robot" }, "imagePullSecrets": secrets });
    cx.create(&cx.core("serviceaccounts"), &account).await?;
    let pod = pod_with(json!({ "serviceAccountName": "robot" }));
    let pod = expect(&admit(&cx, &pod).await?, 201)?;
    same("secrets", &pod["spec"]["imagePullSecrets"], secrets)?;
    let own = json!([{ "name": "own" }]);
    let pod = pod_with(json!({ "serviceAccountName": "robot", "imagePullSecrets": own }));
    let pod = expect(&admit(&cx, &pod).await?, 201)?;
    same("secrets", &pod["spec"]["imagePullSecrets"], own)
}

async fn plugins_are_asked_in_order(cx: Context) -> Result<()> {
    limit(&cx).await?;
    let quota = json!({ "metadata": { "name": "quota" }, "spec": { "hard": { "pods": "0" } } });
    cx.create(&cx.core("resourcequotas"), &quota).await?;
    let full = "exceeded quota: quota, requested: pods=1, used: pods=0, limited: pods=0";
    let is_charged = |answer: &Answer| answer.status == 403;
    admit_when(&cx, &pod("one"), is_charged).await?;
    // Everything is wrong with this pod; what is wrong first is told, and mended.
    let mut pod = pod_with(json!({
        "serviceAccountName": "nobody",
        "priorityClassName": "nonsense",
        "runtimeClassName": "nonsense",
        "restartPolicy": "Sometimes",
    }));
    pod["spec"]["containers"][0]["resources"] = json!({ "limits": { "cpu": "1200m" } });
    let account = format!(
        "error looking up service account {}/nobody: serviceaccount \"nobody\" not found",
        cx.namespace
    );
    forbidden(&cx, &pod, &account).await?;
    pod["spec"]["serviceAccountName"] = json!("default");
    forbidden(&cx, &pod, "no PriorityClass with name nonsense was found").await?;
    pod["spec"]["priorityClassName"] = json!("");
    forbidden(&cx, &pod, "pod rejected: RuntimeClass \"nonsense\" not found").await?;
    pod["spec"].as_object_mut().expect("it is one").remove("runtimeClassName");
    // Between those who change a pod and those who judge it stands validation.
    let message = "Pod \"one\" is invalid: spec.restartPolicy: Unsupported value: \"Sometimes\": \
                   supported values: \"Always\", \"OnFailure\", \"Never\"";
    refused(&admit(&cx, &pod).await?, 422, "Invalid", message)?;
    pod["spec"]["restartPolicy"] = json!("Always");
    forbidden(&cx, &pod, "maximum cpu usage per Container is 1, but limit is 1200m").await?;
    pod["spec"]["containers"][0]["resources"] = json!({});
    forbidden(&cx, &pod, full).await
}

async fn a_pod_has_the_priority_of_its_class(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let pod = expect(&admit(&cx, &pod("one")).await?, 201)?;
    same("priority", &pod["spec"]["priority"], json!(0))?;
    same("preemption", &pod["spec"]["preemptionPolicy"], json!("PreemptLowerPriority"))?;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = json!({
        "metadata": { "name": cx.namespace }, "value": 7, "preemptionPolicy": "Never",
    });
    cx.create(classes, &class).await?;
    let classy = pod_with(json!({ "priorityClassName": cx.namespace }));
    let answer = admit_when(&cx, &classy, |answer| answer.status == 201).await?.json()?;
    same("priority", &answer["spec"]["priority"], json!(7))?;
    same("preemption", &answer["spec"]["preemptionPolicy"], json!("Never"))?;
    let unknown = pod_with(json!({ "priorityClassName": "nonsense" }));
    forbidden(&cx, &unknown, "no PriorityClass with name nonsense was found").await?;
    let why = "the integer value of priority (5) must not be provided in pod spec; priority \
               admission controller computed 0 from the given PriorityClass name";
    forbidden(&cx, &pod_with(json!({ "priority": 5 })), why).await?;
    let why = "the string value of PreemptionPolicy (Never) must not be provided in pod spec; \
               priority admission controller computed PreemptLowerPriority from the given \
               PriorityClass name";
    forbidden(&cx, &pod_with(json!({ "preemptionPolicy": "Never" })), why).await?;
    expect(&cx.send(Request::delete(format!("{classes}/{}", cx.namespace))).await?, 200)?;
    Ok(())
}

async fn a_pod_outlasts_its_node_by_five_minutes(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let toleration = |name: &str, seconds: u32| {
        json!({
            "key": format!("node.kubernetes.io/{name}"),
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        })
    };
    let pod = expect(&admit(&cx, &pod("one")).await?, 201)?;
    let both = json!([toleration("not-ready", 300), toleration("unreachable", 300)]);
    same("tolerations", &pod["spec"]["tolerations"], both)?;
    let own = pod_with(json!({ "tolerations": [toleration("unreachable", 5)] }));
    let own = expect(&admit(&cx, &own).await?, 201)?;
    let both = json!([toleration("unreachable", 5), toleration("not-ready", 300)]);
    same("tolerations", &own["spec"]["tolerations"], both)
}

async fn a_runtime_class_adds_what_it_costs(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    let toleration = json!({ "key": "special", "operator": "Exists" });
    let class = json!({
        "metadata": { "name": cx.namespace },
        "handler": "special",
        "overhead": { "podFixed": { "cpu": "10m" } },
        "scheduling": { "nodeSelector": { "a": "b" }, "tolerations": [toleration] },
    });
    cx.create(classes, &class).await?;
    let special = |fields: Value| {
        let mut pod = pod_with(fields);
        pod["spec"]["runtimeClassName"] = json!(cx.namespace);
        pod
    };
    let pod = special(json!({ "nodeSelector": { "c": "d" } }));
    let pod = admit_when(&cx, &pod, |answer| answer.status == 201).await?.json()?;
    same("overhead", &pod["spec"]["overhead"], json!({ "cpu": "10m" }))?;
    same("selector", &pod["spec"]["nodeSelector"], json!({ "a": "b", "c": "d" }))?;
    same("toleration", &pod["spec"]["tolerations"][2], toleration)?;
    let why = "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c";
    forbidden(&cx, &special(json!({ "nodeSelector": { "a": "c" } })), why).await?;
    let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    forbidden(&cx, &special(json!({ "overhead": { "cpu": "5m" } })), why).await?;
    let unknown = pod_with(json!({ "runtimeClassName": "nonsense" }));
    forbidden(&cx, &unknown, "pod rejected: RuntimeClass \"nonsense\" not found").await?;
    expect(&cx.send(Request::delete(format!("{classes}/{}", cx.namespace))).await?, 200)?;
    Ok(())
}
