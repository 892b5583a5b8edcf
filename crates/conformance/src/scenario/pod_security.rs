//! What a namespace's labels allow its pods, by the Pod Security Standards.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, pod, refused, same, scenarios};
use crate::endpoint::{Answer, Request};

scenarios! { "pod_security":
    a_namespace_enforces_a_level [A6],
    a_namespace_enforces_the_level_of_a_version [A6],
    a_namespace_may_only_warn [A6],
    what_makes_pods_is_warned_about [A6],
    a_pod_that_was_there_may_stay_as_it_is [A6],
    a_namespace_that_becomes_strict_names_its_pods [A6],
    labels_name_levels_and_versions [A6],
}

const LABEL: &str = "pod-security.kubernetes.io";

/// Labels our namespace: `enforce`, `warn` or `audit`, and `-version` after each.
async fn label(cx: &Context, mode: &str, value: &str) -> Result<Answer> {
    let patch = json!({ "metadata": { "labels": { format!("{LABEL}/{mode}"): value } } });
    cx.send(Request::merge_patch(format!("/api/v1/namespaces/{}", cx.namespace), &patch)).await
}

/// A pod that no level but `privileged` allows.
fn daring() -> Value {
    let mut pod = pod("daring");
    pod["spec"]["hostNetwork"] = json!(true);
    pod["spec"]["containers"][0]["securityContext"] = json!({ "privileged": true });
    let other = json!({ "name": "other", "image": "example.com/image" });
    pod["spec"]["containers"].as_array_mut().expect("it has one").push(other);
    pod
}

/// A pod that every level allows.
fn modest() -> Value {
    let mut pod = pod("modest");
    pod["spec"]["securityContext"] =
        json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
    pod["spec"]["containers"][0]["securityContext"] =
        json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    pod
}

/// What would become of a pod, were it created.
fn admit(cx: &Context, pod: &Value) -> Request {
    Request::post(cx.core("pods?dryRun=All"), pod)
}

/// Waits until the label is in force.
async fn forbidden(cx: &Context, pod: &Value, name: &str, why: &str) -> Result<()> {
    let is_judged = |answer: &Answer| answer.status == 403;
    let answer = cx.endpoint.poll(&admit(cx, pod), PATIENCE, is_judged).await?;
    let message = format!("pods \"{name}\" is forbidden: violates PodSecurity {why}");
    let status = refused(&answer, 403, "Forbidden", &message)?;
    same("details", &status["details"], json!({ "name": name, "kind": "pods" }))
}

const BASELINE: &str = "host namespaces (hostNetwork=true), privileged (container \"main\" must not \
                        set securityContext.privileged=true)";
const RESTRICTED: &str = "allowPrivilegeEscalation != false (container \"main\" must set \
                          securityContext.allowPrivilegeEscalation=false), unrestricted \
                          capabilities (container \"main\" must set \
                          securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod \
                          or container \"main\" must set securityContext.runAsNonRoot=true), \
                          seccompProfile (pod or container \"main\" must set \
                          securityContext.seccompProfile.type to \"RuntimeDefault\" or \
                          \"Localhost\")";
const RESTRICTED_BOTH: &str = "allowPrivilegeEscalation != false (containers \"main\", \"other\" must set \
     securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \
     \"main\", \"other\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != \
     true (pod or containers \"main\", \"other\" must set securityContext.runAsNonRoot=true), \
     seccompProfile (pod or containers \"main\", \"other\" must set \
     securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

async fn a_namespace_enforces_a_level(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    // Without a label everything goes.
    expect(&cx.send(admit(&cx, &daring())).await?, 201)?;
    expect(&label(&cx, "enforce", "baseline").await?, 200)?;
    forbidden(&cx, &daring(), "daring", &format!("\"baseline:latest\": {BASELINE}")).await?;
    expect(&cx.send(admit(&cx, &pod("plain"))).await?, 201)?;
    expect(&label(&cx, "enforce", "restricted").await?, 200)?;
    let why = format!("\"restricted:latest\": {RESTRICTED}");
    forbidden(&cx, &pod("plain"), "plain", &why).await?;
    let why = format!("\"restricted:latest\": {BASELINE}, {RESTRICTED_BOTH}");
    forbidden(&cx, &daring(), "daring", &why).await?;
    expect(&cx.send(admit(&cx, &modest())).await?, 201)?;
    expect(&label(&cx, "enforce", "privileged").await?, 200)?;
    cx.endpoint.poll(&admit(&cx, &daring()), PATIENCE, |answer| answer.status == 201).await?;
    Ok(())
}

async fn a_namespace_enforces_the_level_of_a_version(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    expect(&label(&cx, "enforce-version", "v1.18").await?, 200)?;
    expect(&label(&cx, "enforce", "restricted").await?, 200)?;
    // Nobody thought of capabilities and seccomp then.
    let why = "\"restricted:v1.18\": allowPrivilegeEscalation != false (container \"main\" must \
               set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or \
               container \"main\" must set securityContext.runAsNonRoot=true)";
    forbidden(&cx, &pod("plain"), "plain", why).await
}

async fn a_namespace_may_only_warn(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    expect(&label(&cx, "warn", "restricted").await?, 200)?;
    let is_warned = |answer: &Answer| !answer.warnings().is_empty();
    let answer = cx.endpoint.poll(&admit(&cx, &pod("plain")), PATIENCE, is_warned).await?;
    expect(&answer, 201)?;
    let warning = format!("would violate PodSecurity \"restricted:latest\": {RESTRICTED}");
    same("warnings", &json!(answer.warnings()), json!([warning]))?;
    let answer = cx.send(admit(&cx, &modest())).await?;
    expect(&answer, 201)?;
    same("warnings", &json!(answer.warnings()), json!([]))
}

async fn what_makes_pods_is_warned_about(cx: Context) -> Result<()> {
    expect(&label(&cx, "enforce", "baseline").await?, 200)?;
    let labels = json!({ "app": "a" });
    let template = json!({ "metadata": { "labels": labels }, "spec": daring()["spec"] });
    let deployment = json!({
        "metadata": { "name": "one" },
        "spec": { "selector": { "matchLabels": labels }, "template": template },
    });
    let create = Request::post(cx.apis("apps/v1", "deployments?dryRun=All"), &deployment);
    let is_warned = |answer: &Answer| !answer.warnings().is_empty();
    let answer = cx.endpoint.poll(&create, PATIENCE, is_warned).await?;
    expect(&answer, 201)?;
    let warning = format!("would violate PodSecurity \"baseline:latest\": {BASELINE}");
    same("warnings", &json!(answer.warnings()), json!([warning]))
}

async fn a_pod_that_was_there_may_stay_as_it_is(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), &daring()).await?;
    expect(&label(&cx, "enforce", "baseline").await?, 200)?;
    forbidden(&cx, &daring(), "daring", &format!("\"baseline:latest\": {BASELINE}")).await?;
    let path = cx.core("pods/daring");
    for patch in [
        json!({ "metadata": { "labels": { "a": "b" } } }),
        json!({ "spec": { "activeDeadlineSeconds": 100 } }),
    ] {
        expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
    }
    let image = json!({ "name": "main", "image": "example.com/another" });
    let patch = json!({ "spec": { "containers": [image] } });
    let answer = cx.send(Request::strategic_patch(&path, &patch)).await?;
    let message = format!(
        "pods \"daring\" is forbidden: violates PodSecurity \"baseline:latest\": {BASELINE}"
    );
    refused(&answer, 403, "Forbidden", &message)?;
    let guest = json!({
        "name": "guest", "image": "example.com/image", "securityContext": { "privileged": true },
    });
    let patch = json!({ "spec": { "ephemeralContainers": [guest] } });
    let path = cx.core("pods/daring/ephemeralcontainers");
    let answer = cx.send(Request::strategic_patch(path, &patch)).await?;
    let message = message.replace("container \"main\"", "containers \"main\", \"guest\"");
    refused(&answer, 403, "Forbidden", &message)?;
    Ok(())
}

async fn a_namespace_that_becomes_strict_names_its_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), &daring()).await?;
    cx.create(&cx.core("pods"), &modest()).await?;
    let strict = json!({ "metadata": { "labels": { format!("{LABEL}/enforce"): "baseline" } } });
    let path = format!("/api/v1/namespaces/{}?dryRun=All", cx.namespace);
    // The pods are counted from what has been heard of them.
    let is_warned = |answer: &Answer| !answer.warnings().is_empty();
    let request = Request::merge_patch(path, &strict);
    let answer = cx.endpoint.poll(&request, PATIENCE, is_warned).await?;
    expect(&answer, 200)?;
    let existing = format!(
        "existing pods in namespace \"{}\" violate the new PodSecurity enforce level \
         \"baseline:latest\"",
        cx.namespace
    );
    let pods = "daring: host namespaces, privileged";
    same("warnings", &json!(answer.warnings()), json!([existing, pods]))
}

async fn labels_name_levels_and_versions(cx: Context) -> Result<()> {
    for (mode, value, why) in [
        ("enforce", "nonsense", "must be one of privileged, baseline, restricted"),
        ("warn", "", "must be one of privileged, baseline, restricted"),
        ("enforce-version", "v2", "must be \"latest\" or \"v1.x\""),
        ("audit-version", "1.20", "must be \"latest\" or \"v1.x\""),
    ] {
        let answer = label(&cx, mode, value).await?;
        let message = format!(
            "Namespace \"{}\" is invalid: metadata.labels[{LABEL}/{mode}]: Invalid value: \
             \"{value}\": {why}",
            cx.namespace
        );
        refused(&answer, 422, "Invalid", &message)?;
    }
    Ok(())
}
