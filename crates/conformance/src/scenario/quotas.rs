//! What a namespace may use together: what a quota counts, refuses, and gives back.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, config_map, expect, pod, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "quotas":
    a_quota_has_room_again_when_a_pod_is_gone_or_over [A1],
    a_quota_follows_its_limits [A1],
    a_quota_counts_objects_of_any_kind [A1],
    a_quota_counts_what_services_give_back [A1],
    a_quota_counts_storage_by_class [A1],
    a_quota_wants_to_know_what_containers_need [A1],
    a_quota_is_about_its_scopes [A1],
    what_is_tried_is_not_charged [A1],
}

/// A quota that is counted, and known to whoever charges it, on return.
async fn quota(cx: &Context, spec: Value, used: Value) -> Result<()> {
    let quotas = cx.core("resourcequotas");
    let quota = json!({ "metadata": { "name": "quota" }, "spec": spec });
    cx.create(&quotas, &quota).await?;
    wait_until_used(cx, used).await?;
    // Who knows a later quota knows the first.
    let later = json!({
        "metadata": { "name": "later" }, "spec": { "hard": { "count/podtemplates": "0" } },
    });
    cx.create(&quotas, &later).await?;
    let template =
        json!({ "metadata": { "name": "one" }, "template": { "spec": pod("one")["spec"] } });
    let full = "exceeded quota: later, requested: count/podtemplates=1, used: count/podtemplates=0, \
                limited: count/podtemplates=0";
    refuse(cx, &cx.core("podtemplates"), &template, full).await
}

async fn wait_until_used(cx: &Context, used: Value) -> Result<()> {
    let is_used = |quota: Value| {
        let status = &quota["status"];
        status["used"] == used && status["hard"] == quota["spec"]["hard"]
    };
    let get = Request::get(cx.core("resourcequotas/quota"));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_used)).await?;
    Ok(())
}

/// Creates what fits again, once those who judge it know that.
async fn create_again(cx: &Context, collection: &str, object: &Value) -> Result<()> {
    let create = Request::post(collection, object);
    cx.endpoint.poll(&create, PATIENCE, |answer| answer.status == 201).await?;
    Ok(())
}

/// Creates what does not fit, once those who judge it know the quota.
async fn refuse(cx: &Context, collection: &str, object: &Value, why: &str) -> Result<()> {
    let target = format!("{collection}?dryRun=All");
    let is_refused = |answer: &Answer| answer.status != 201;
    let answer = cx.endpoint.poll(&Request::post(target, object), PATIENCE, is_refused).await?;
    let status = expect(&answer, 403)?;
    same("reason", &status["reason"], json!("Forbidden"))?;
    let message = text(&status, "/message");
    let named = format!(" {} is forbidden: ", object["metadata"]["name"]);
    same("why", &json!(message.split_once(&named).map(|(_, why)| why)), json!(why))
}

async fn a_quota_has_room_again_when_a_pod_is_gone_or_over(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let hard = json!({ "pods": "1", "count/pods": "2" });
    quota(&cx, json!({ "hard": hard }), json!({ "pods": "0", "count/pods": "0" })).await?;
    let pods = cx.core("pods");
    cx.create(&pods, &pod("first")).await?;
    wait_until_used(&cx, json!({ "pods": "1", "count/pods": "1" })).await?;
    let full = "exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1";
    refuse(&cx, &pods, &pod("second"), full).await?;
    let over = json!({ "status": { "phase": "Succeeded" } });
    expect(&cx.send(Request::merge_patch(format!("{pods}/first/status"), &over)).await?, 200)?;
    wait_until_used(&cx, json!({ "pods": "0", "count/pods": "1" })).await?;
    create_again(&cx, &pods, &pod("second")).await?;
    let full = "exceeded quota: quota, requested: count/pods=1,pods=1, used: count/pods=2,pods=1, \
                limited: count/pods=2,pods=1";
    refuse(&cx, &pods, &pod("third"), full).await?;
    expect(&cx.send(Request::delete(format!("{pods}/second"))).await?, 200)?;
    wait_until_used(&cx, json!({ "pods": "0", "count/pods": "1" })).await?;
    create_again(&cx, &pods, &pod("third")).await
}

async fn a_quota_follows_its_limits(cx: Context) -> Result<()> {
    let secrets = cx.core("secrets");
    let secret = |name: &str| json!({ "metadata": { "name": name } });
    cx.create(&secrets, &secret("one")).await?;
    quota(&cx, json!({ "hard": { "secrets": "5" } }), json!({ "secrets": "1" })).await?;
    let patch = json!({ "spec": { "hard": { "secrets": null, "count/secrets": "1" } } });
    let path = cx.core("resourcequotas/quota");
    expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    wait_until_used(&cx, json!({ "count/secrets": "1" })).await?;
    let full = "exceeded quota: quota, requested: count/secrets=1, used: count/secrets=1, limited: \
                count/secrets=1";
    refuse(&cx, &secrets, &secret("two"), full).await
}

async fn a_quota_counts_objects_of_any_kind(cx: Context) -> Result<()> {
    let hard = json!({
        "count/leases.coordination.k8s.io": "1",
        "count/roles.rbac.authorization.k8s.io": "1",
        "replicationcontrollers": "1",
        "resourcequotas": "2",
    });
    let used = |leases: &str, roles: &str, quotas: &str| {
        json!({
            "count/leases.coordination.k8s.io": leases,
            "count/roles.rbac.authorization.k8s.io": roles,
            "replicationcontrollers": "0",
            "resourcequotas": quotas,
        })
    };
    quota(&cx, json!({ "hard": hard }), used("0", "0", "1")).await?;
    let object = |name: &str| json!({ "metadata": { "name": name } });
    let leases = cx.apis("coordination.k8s.io/v1", "leases");
    let roles = cx.apis("rbac.authorization.k8s.io/v1", "roles");
    cx.create(&leases, &object("one")).await?;
    cx.create(&roles, &object("one")).await?;
    wait_until_used(&cx, used("1", "1", "2")).await?;
    let full = "exceeded quota: quota, requested: count/leases.coordination.k8s.io=1, used: \
                count/leases.coordination.k8s.io=1, limited: count/leases.coordination.k8s.io=1";
    refuse(&cx, &leases, &object("two"), full).await?;
    expect(&cx.send(Request::delete(format!("{leases}/one"))).await?, 200)?;
    expect(&cx.send(Request::delete(format!("{roles}/one"))).await?, 200)?;
    wait_until_used(&cx, used("0", "0", "2")).await
}

async fn a_quota_counts_what_services_give_back(cx: Context) -> Result<()> {
    let hard = json!({ "services": "2", "services.nodeports": "2" });
    let used =
        |services: &str, ports: &str| json!({ "services": services, "services.nodeports": ports });
    quota(&cx, json!({ "hard": hard }), used("0", "0")).await?;
    let services = cx.core("services");
    let service = |name: &str, kind: &str| {
        json!({
            "metadata": { "name": name },
            "spec": { "type": kind, "ports": [
                { "name": "a", "port": 1 }, { "name": "b", "port": 2 },
            ] },
        })
    };
    cx.create(&services, &service("one", "NodePort")).await?;
    wait_until_used(&cx, used("1", "2")).await?;
    let full = "exceeded quota: quota, requested: services.nodeports=2, used: \
                services.nodeports=2, limited: services.nodeports=2";
    refuse(&cx, &services, &service("two", "NodePort"), full).await?;
    let plain = json!({ "spec": { "type": "ClusterIP" } });
    expect(&cx.send(Request::merge_patch(format!("{services}/one"), &plain)).await?, 200)?;
    wait_until_used(&cx, used("1", "0")).await?;
    expect(&cx.send(Request::delete(format!("{services}/one"))).await?, 200)?;
    wait_until_used(&cx, used("0", "0")).await
}

async fn a_quota_counts_storage_by_class(cx: Context) -> Result<()> {
    let gold = "gold.storageclass.storage.k8s.io/requests.storage";
    let hard = json!({ "persistentvolumeclaims": "5", "requests.storage": "10Gi", gold: "2Gi" });
    let used = |claims: &str, all: &str, of_gold: &str| json!({ "persistentvolumeclaims": claims, "requests.storage": all, gold: of_gold });
    quota(&cx, json!({ "hard": hard }), used("0", "0", "0")).await?;
    let claims = cx.core("persistentvolumeclaims");
    let claim = |name: &str, class: &str, storage: &str| {
        json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": class,
                "resources": { "requests": { "storage": storage } },
            },
        })
    };
    cx.create(&claims, &claim("one", "gold", "1Gi")).await?;
    cx.create(&claims, &claim("two", "tin", "4Gi")).await?;
    wait_until_used(&cx, used("2", "5Gi", "1Gi")).await?;
    let full = format!(
        "exceeded quota: quota, requested: {gold}=2Gi, used: {gold}=1Gi, limited: {gold}=2Gi"
    );
    refuse(&cx, &claims, &claim("three", "gold", "2Gi"), &full).await?;
    for name in ["one", "two"] {
        let path = format!("{claims}/{name}");
        cx.release(&path).await?;
        expect(&cx.send(Request::delete(&path)).await?, 200)?;
    }
    wait_until_used(&cx, used("0", "0", "0")).await
}

async fn a_quota_wants_to_know_what_containers_need(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let hard = json!({ "requests.cpu": "1", "limits.cpu": "2" });
    let used =
        |requests: &str, limits: &str| json!({ "requests.cpu": requests, "limits.cpu": limits });
    quota(&cx, json!({ "hard": hard }), used("0", "0")).await?;
    let pods = cx.core("pods");
    let missing = "failed quota: quota: must specify limits.cpu for: main; requests.cpu for: main";
    refuse(&cx, &pods, &pod("silent"), missing).await?;
    let asking = |name: &str, requests: &str, limits: &str| {
        let mut pod = pod(name);
        pod["spec"]["containers"][0]["resources"] =
            json!({ "requests": { "cpu": requests }, "limits": { "cpu": limits } });
        pod
    };
    cx.create(&pods, &asking("one", "250m", "1")).await?;
    wait_until_used(&cx, used("250m", "1")).await?;
    let full = "exceeded quota: quota, requested: limits.cpu=1500m,requests.cpu=800m, used: \
                limits.cpu=1,requests.cpu=250m, limited: limits.cpu=2,requests.cpu=1";
    refuse(&cx, &pods, &asking("two", "800m", "1500m"), full).await?;
    expect(&cx.send(Request::delete(format!("{pods}/one"))).await?, 200)?;
    wait_until_used(&cx, used("0", "0")).await
}

async fn a_quota_is_about_its_scopes(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let critical = json!({
        "scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"],
    });
    let spec = json!({
        "hard": { "pods": "1" },
        "scopes": ["NotTerminating"],
        "scopeSelector": { "matchExpressions": [critical] },
    });
    quota(&cx, spec, json!({ "pods": "0" })).await?;
    let pods = cx.core("pods");
    let scoped = |name: &str, class: &str, seconds: Value| {
        let mut pod = pod(name);
        pod["spec"]["priorityClassName"] = json!(class);
        pod["spec"]["activeDeadlineSeconds"] = seconds;
        pod
    };
    let class = "system-node-critical";
    cx.create(&pods, &scoped("plain", "system-cluster-critical", Value::Null)).await?;
    cx.create(&pods, &scoped("short", class, json!(60))).await?;
    cx.create(&pods, &scoped("one", class, Value::Null)).await?;
    wait_until_used(&cx, json!({ "pods": "1" })).await?;
    let full = "exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1";
    refuse(&cx, &pods, &scoped("two", class, Value::Null), full).await?;
    // A pod that gets an end leaves the scope.
    let patch = json!({ "spec": { "activeDeadlineSeconds": 60 } });
    expect(&cx.send(Request::merge_patch(format!("{pods}/one"), &patch)).await?, 200)?;
    wait_until_used(&cx, json!({ "pods": "0" })).await
}

async fn what_is_tried_is_not_charged(cx: Context) -> Result<()> {
    let map = |name: &str| config_map(name);
    let get = Request::get(cx.core("configmaps/kube-root-ca.crt"));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 200).await?;
    quota(&cx, json!({ "hard": { "configmaps": "2" } }), json!({ "configmaps": "1" })).await?;
    let maps = cx.core("configmaps");
    for _ in 0..3 {
        cx.create(&format!("{maps}?dryRun=All"), &map("tried")).await?;
    }
    let mut invalid = map("tried");
    invalid["data"] = json!({ "no/key": "" });
    expect(&cx.send(Request::post(&maps, &invalid)).await?, 422)?;
    let quota = cx.get(&cx.core("resourcequotas/quota")).await?;
    same("used", &quota["status"]["used"], json!({ "configmaps": "1" }))?;
    cx.create(&maps, &map("real")).await?;
    let full = "exceeded quota: quota, requested: configmaps=1, used: configmaps=2, limited: \
                configmaps=2";
    refuse(&cx, &maps, &map("more"), full).await
}
