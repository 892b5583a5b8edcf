//! Namespaces: what each has from the start, and how it ends.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{
    Context, PATIENCE, config_map, expect, is_deleting, pod, refused, same, scenarios, text,
};
use crate::endpoint::Request;

scenarios! { "namespaces":
    a_namespace_is_labelled_with_its_name [U11],
    every_namespace_has_an_account_and_a_certificate [U11],
    the_system_s_namespaces_stay [U11],
    nothing_begins_in_a_namespace_that_ends [U11 A1],
    a_namespace_that_does_not_end_says_why [U11],
    pods_go_first [U11],
    a_namespace_can_be_finalized_by_hand [U11],
}

const NAMESPACES: &str = "/api/v1/namespaces";
const HOLD: &str = "example.com/hold";

/// A namespace beside the scenario's own.
async fn another(cx: &Context) -> Result<String> {
    let name = format!("{}-other", cx.namespace);
    cx.create(NAMESPACES, &json!({ "metadata": { "name": name } })).await?;
    Ok(format!("{NAMESPACES}/{name}"))
}

/// A ConfigMap that somebody holds on to.
async fn held(cx: &Context, namespace: &str) -> Result<String> {
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!([HOLD]);
    cx.create(&format!("{namespace}/configmaps"), &held).await?;
    Ok(format!("{namespace}/configmaps/held"))
}

async fn wait_until_gone(cx: &Context, namespace: &str) -> Result<()> {
    let get = Request::get(namespace);
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

async fn a_namespace_is_labelled_with_its_name(cx: Context) -> Result<()> {
    let path = format!("{NAMESPACES}/{}", cx.namespace);
    let namespace = cx.get(&path).await?;
    let labels = json!({ "kubernetes.io/metadata.name": cx.namespace });
    same("labels", &namespace["metadata"]["labels"], labels.clone())?;
    same("finalizers", &namespace["spec"]["finalizers"], json!(["kubernetes"]))?;
    same("status", &namespace["status"], json!({ "phase": "Active" }))?;
    for value in [json!("another"), Value::Null] {
        let patch = json!({ "metadata": { "labels": { "kubernetes.io/metadata.name": value } } });
        let answer = cx.send(Request::merge_patch(&path, &patch)).await?;
        same("labels", &expect(&answer, 200)?["metadata"]["labels"], labels.clone())?;
    }
    Ok(())
}

async fn every_namespace_has_an_account_and_a_certificate(cx: Context) -> Result<()> {
    let account = Request::get(cx.core("serviceaccounts/default"));
    let first =
        cx.endpoint.poll(&account, PATIENCE, |answer| answer.status == 200).await?.json()?;
    let certificate = Request::get(cx.core("configmaps/kube-root-ca.crt"));
    let map = cx.endpoint.poll(&certificate, PATIENCE, |answer| answer.status == 200).await?;
    let map = map.json()?;
    let pem = map["data"]["ca.crt"].as_str().unwrap_or_default();
    ensure!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{map}");
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                       using internal endpoints such as the internal service IP or \
                       kubernetes.default.svc. No other usage is guaranteed across distributions \
                       of Kubernetes clusters.";
    let annotations = json!({ "kubernetes.io/description": description });
    same("annotations", &map["metadata"]["annotations"], annotations)?;
    // Neither can be got rid of, and the certificate is not changed for long.
    expect(&cx.send(Request::delete(cx.core("serviceaccounts/default"))).await?, 200)?;
    let is_another = |account: Value| {
        let uid = text(&account, "/metadata/uid");
        !uid.is_empty() && uid != text(&first, "/metadata/uid")
    };
    cx.endpoint.poll(&account, PATIENCE, |answer| answer.json().is_ok_and(is_another)).await?;
    let forged = json!({ "data": { "ca.crt": "forged" } });
    let path = cx.core("configmaps/kube-root-ca.crt");
    expect(&cx.send(Request::merge_patch(path, &forged)).await?, 200)?;
    let is_right = |map: Value| map["data"]["ca.crt"] == pem;
    cx.endpoint.poll(&certificate, PATIENCE, |answer| answer.json().is_ok_and(is_right)).await?;
    Ok(())
}

async fn the_system_s_namespaces_stay(cx: Context) -> Result<()> {
    let delete = |name: &str| Request::delete(format!("{NAMESPACES}/{name}?dryRun=All"));
    for name in ["default", "kube-public", "kube-system"] {
        let message =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        refused(&cx.send(delete(name)).await?, 403, "Forbidden", &message)?;
    }
    expect(&cx.send(delete("kube-node-lease")).await?, 200)?;
    Ok(())
}

async fn nothing_begins_in_a_namespace_that_ends(cx: Context) -> Result<()> {
    let namespace = another(&cx).await?;
    let held = held(&cx, &namespace).await?;
    let answer = expect(&cx.send(Request::delete(&namespace)).await?, 200)?;
    same("phase", &answer["status"]["phase"], json!("Terminating"))?;
    let late = config_map("late");
    let create = Request::post(format!("{namespace}/configmaps?dryRun=All"), &late);
    let answer = cx.endpoint.poll(&create, PATIENCE, |answer| answer.status != 201).await?;
    let name = text(&cx.get(&namespace).await?, "/metadata/name").to_owned();
    let message = format!(
        "configmaps \"late\" is forbidden: unable to create new content in namespace {name} \
         because it is being terminated"
    );
    let status = refused(&answer, 403, "Forbidden", &message)?;
    let cause = json!({
        "reason": "NamespaceTerminating",
        "message": format!("namespace {name} is being terminated"),
        "field": "metadata.namespace",
    });
    let details = json!({ "name": "late", "kind": "configmaps", "causes": [cause] });
    same("details", &status["details"], details)?;
    // What is there can still be changed, which is how it is let go.
    cx.release(&held).await?;
    wait_until_gone(&cx, &namespace).await
}

async fn a_namespace_that_does_not_end_says_why(cx: Context) -> Result<()> {
    let namespace = another(&cx).await?;
    let held = held(&cx, &namespace).await?;
    expect(&cx.send(Request::delete(&namespace)).await?, 200)?;
    let get = Request::get(&namespace);
    let expected = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 \
             resource instances",
        ),
    ];
    let expected = expected.map(|(kind, status, reason, message)| {
        json!({ "type": kind, "status": status, "reason": reason, "message": message })
    });
    let says_so = |namespace: Value| {
        let mut conditions = namespace["status"]["conditions"].clone();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition.as_object_mut().map(|condition| condition.remove("lastTransitionTime"));
        }
        conditions == json!(expected)
    };
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(says_so)).await?;
    cx.release(&held).await?;
    wait_until_gone(&cx, &namespace).await
}

async fn pods_go_first(cx: Context) -> Result<()> {
    let namespace = another(&cx).await?;
    let account = Request::get(format!("{namespace}/serviceaccounts/default"));
    cx.endpoint.poll(&account, PATIENCE, |answer| answer.status == 200).await?;
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!([HOLD]);
    cx.create(&format!("{namespace}/pods"), &held).await?;
    cx.create(&format!("{namespace}/configmaps"), &config_map("other")).await?;
    expect(&cx.send(Request::delete(&namespace)).await?, 200)?;
    let path = format!("{namespace}/pods/held");
    cx.endpoint.poll(&Request::get(&path), PATIENCE, is_deleting).await?;
    // The conditions are written when a round is over; those of pods say nothing of what remains.
    let is_over = |namespace: Value| namespace["status"]["conditions"].is_array();
    let get = Request::get(&namespace);
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_over)).await?;
    let other = cx.get(&format!("{namespace}/configmaps/other")).await?;
    same("deletion", &other["metadata"]["deletionTimestamp"], Value::Null)?;
    cx.release(&path).await?;
    wait_until_gone(&cx, &namespace).await
}

async fn a_namespace_can_be_finalized_by_hand(cx: Context) -> Result<()> {
    let namespace = another(&cx).await?;
    let mut mine = cx.get(&namespace).await?;
    mine["spec"]["finalizers"] = json!(["example.com/mine", "kubernetes"]);
    let put = |body: &Value| Request::put(format!("{namespace}/finalize"), body);
    let answer = expect(&cx.send(put(&mine)).await?, 200)?;
    same("finalizers", &answer["spec"]["finalizers"], mine["spec"]["finalizers"].clone())?;
    // A plain update leaves them alone.
    let patch = json!({ "spec": { "finalizers": [] } });
    let answer = expect(&cx.send(Request::merge_patch(&namespace, &patch)).await?, 200)?;
    same("finalizers", &answer["spec"]["finalizers"], mine["spec"]["finalizers"].clone())?;
    expect(&cx.send(Request::delete(&namespace)).await?, 200)?;
    // The server's own work is done when its finalizer is gone; mine holds on.
    let is_mine = |namespace: Value| namespace["spec"]["finalizers"] == json!(["example.com/mine"]);
    let get = Request::get(&namespace);
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_mine)).await?;
    let mut done = cx.get(&namespace).await?;
    done["spec"]["finalizers"] = json!([]);
    expect(&cx.send(put(&done)).await?, 200)?;
    wait_until_gone(&cx, &namespace).await
}
