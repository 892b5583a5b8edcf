//! What a node may read, and what it may do at all: its own objects, and what its pods need.

use anyhow::{Result, ensure};
use http::header::HeaderName;
use serde_json::{Value, json};

use super::{Context, OWNER, PATIENCE, config_map, expect, pod, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "node_access":
    a_node_reads_what_its_pods_refer_to [S5],
    a_node_reads_one_object_at_a_time [S5],
    a_node_reaches_volumes_by_the_claims_of_its_pods [S5],
    a_node_lists_only_its_own_pods [S5],
    a_node_reads_no_node_but_itself [S5],
    a_node_lives_where_nodes_live [S5],
    a_node_does_not_do_what_is_no_business_of_nodes [S5],
    a_name_without_its_group_makes_no_node [S5],
    reviews_know_what_nodes_may [S2 S5],
}

/// A node that is not there: only its name counts.
pub(super) struct Kubelet {
    pub(super) name: String,
}

impl Kubelet {
    pub(super) fn of(cx: &Context, which: &str) -> Self {
        Kubelet { name: format!("{which}-{}", cx.namespace) }
    }

    pub(super) fn user(&self) -> String {
        format!("system:node:{}", self.name)
    }

    /// The request as this node makes it.
    pub(super) fn makes(&self, request: Request) -> Request {
        let group = HeaderName::from_static("impersonate-group");
        request.impersonate(&self.user()).header(group, "system:nodes")
    }

    pub(super) async fn send(&self, cx: &Context, request: Request) -> Result<Answer> {
        cx.send(self.makes(request)).await
    }

    /// Waits until the node may read something: upstream hears of pods a little later.
    pub(super) async fn reads(&self, cx: &Context, path: &str) -> Result<Value> {
        let get = self.makes(Request::get(path));
        let answer = cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 200).await?;
        expect(&answer, 200)
    }

    /// Expects that the node is told that it cannot do this, and why.
    async fn cannot(&self, cx: &Context, request: Request, what: &str, why: &str) -> Result<()> {
        let answer = self.send(cx, request).await?;
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let message = format!("User {:?} cannot {what}{why}", self.user());
        let found = expect(&answer, 403)?;
        let found = text(&found, "/message");
        let told = found.split_once("forbidden: ").map_or(found, |(_, told)| told);
        ensure!(told == message, "expected {message:?}, got {told:?}");
        Ok(())
    }

    fn unrelated(&self) -> String {
        format!("no relationship found between node '{}' and this object", self.name)
    }
}

/// A pod of a node that needs nothing.
pub(super) fn pod_on(node: &Kubelet, name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = json!(node.name);
    pod["spec"]["automountServiceAccountToken"] = json!(false);
    pod
}

fn core(verb: &str, resource: &str, cx: &Context) -> String {
    format!("{verb} resource \"{resource}\" in API group \"\" in the namespace {:?}", cx.namespace)
}

async fn secret(cx: &Context, name: &str) -> Result<Value> {
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": name } })).await
}

async fn a_node_reads_what_its_pods_refer_to(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    for name in ["pull", "env", "mounted", "part", "unused"] {
        secret(&cx, name).await?;
        cx.create(&cx.core("configmaps"), &config_map(name)).await?;
    }
    let mut pod = pod_on(&own, "p");
    pod["spec"]["imagePullSecrets"] = json!([{ "name": "pull" }]);
    let key = |kind: &str| json!({ kind: { "name": "env", "key": "k" } });
    pod["spec"]["containers"][0]["env"] = json!([
        { "name": "A", "valueFrom": key("secretKeyRef") },
        { "name": "B", "valueFrom": key("configMapKeyRef") },
    ]);
    pod["spec"]["volumes"] = json!([
        { "name": "a", "secret": { "secretName": "mounted" } },
        { "name": "b", "configMap": { "name": "mounted" } },
        { "name": "c", "projected": { "sources": [
            { "secret": { "name": "part" } }, { "configMap": { "name": "part" } },
        ] } },
    ]);
    cx.create(&cx.core("pods"), &pod).await?;
    for name in ["secrets/pull", "secrets/env", "secrets/mounted", "secrets/part"] {
        own.reads(&cx, &cx.core(name)).await?;
    }
    for name in ["configmaps/env", "configmaps/mounted", "configmaps/part", "pods/p"] {
        own.reads(&cx, &cx.core(name)).await?;
    }
    own.reads(&cx, &cx.core("serviceaccounts/default")).await?;
    for resource in ["secrets", "configmaps"] {
        let get = Request::get(cx.core(&format!("{resource}/unused")));
        own.cannot(&cx, get, &core("get", resource, &cx), &own.unrelated()).await?;
        let get = Request::get(cx.core(&format!("{resource}/env")));
        other.cannot(&cx, get, &core("get", resource, &cx), &other.unrelated()).await?;
    }
    let get = Request::get(cx.core("pods/p"));
    other.cannot(&cx, get, &core("get", "pods", &cx), &other.unrelated()).await?;
    // The whole answer, once.
    let get = own.makes(Request::get(cx.core("secrets/unused")));
    let message = format!(
        "secrets \"unused\" is forbidden: User {:?} cannot {}: {}",
        own.user(),
        core("get", "secrets", &cx),
        own.unrelated()
    );
    refused(&cx.send(get).await?, 403, "Forbidden", &message)?;
    // With the pod goes what it needed.
    cx.send(Request::delete(cx.core("pods/p?gracePeriodSeconds=0"))).await?;
    let get = own.makes(Request::get(cx.core("secrets/env")));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 403).await?;
    Ok(())
}

async fn a_node_reads_one_object_at_a_time(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let own = Kubelet::of(&cx, "own");
    secret(&cx, "one").await?;
    secret(&cx, "two").await?;
    let mut pod = pod_on(&own, "p");
    pod["spec"]["volumes"] = json!([{ "name": "a", "secret": { "secretName": "one" } }]);
    cx.create(&cx.core("pods"), &pod).await?;
    own.reads(&cx, &cx.core("secrets/one")).await?;
    let list = Request::get(cx.core("secrets?fieldSelector=metadata.name%3Done"));
    let list = expect(&own.send(&cx, list).await?, 200)?;
    same("names", &list["items"][0]["metadata"]["name"], json!("one"))?;
    let list = || Request::get(cx.core("secrets"));
    own.cannot(&cx, list(), &core("list", "secrets", &cx), "No Object name found").await?;
    let all = "list resource \"secrets\" in API group \"\" at the cluster scope";
    let why = "can only read namespaced object of this type";
    own.cannot(&cx, Request::get("/api/v1/secrets"), all, why).await?;
    let put = Request::put(cx.core("secrets/one"), &json!({ "metadata": { "name": "one" } }));
    let why = "can only read resources of this type";
    own.cannot(&cx, put, &core("update", "secrets", &cx), why).await
}

async fn a_node_reaches_volumes_by_the_claims_of_its_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    secret(&cx, "stage").await?;
    secret(&cx, "publish").await?;
    let volumes = "/api/v1/persistentvolumes";
    let reference = |name: &str| json!({ "namespace": cx.namespace, "name": name });
    let volume = json!({
        "metadata": { "name": cx.namespace, "labels": { OWNER: cx.namespace } },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": reference("claim"),
            "csi": {
                "driver": "d.example.com", "volumeHandle": "h",
                "nodeStageSecretRef": reference("stage"),
                "controllerPublishSecretRef": reference("publish"),
            },
        },
    });
    cx.create(volumes, &volume).await?;
    let claim = json!({ "metadata": { "name": "claim" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": { "requests": { "storage": "1Gi" } },
    } });
    cx.create(&cx.core("persistentvolumeclaims"), &claim).await?;
    let volume = format!("{volumes}/{}", cx.namespace);
    let get = || Request::get(volume.as_str());
    let get_volume = "get resource \"persistentvolumes\" in API group \"\" at the cluster scope";
    own.cannot(&cx, get(), get_volume, &own.unrelated()).await?;

    let mut pod = pod_on(&own, "p");
    pod["spec"]["volumes"] = json!([
        { "name": "v", "persistentVolumeClaim": { "claimName": "claim" } },
    ]);
    cx.create(&cx.core("pods"), &pod).await?;
    own.reads(&cx, &volume).await?;
    own.reads(&cx, &cx.core("persistentvolumeclaims/claim")).await?;
    own.reads(&cx, &cx.core("secrets/stage")).await?;
    let publish = Request::get(cx.core("secrets/publish"));
    own.cannot(&cx, publish, &core("get", "secrets", &cx), &own.unrelated()).await?;
    other.cannot(&cx, get(), get_volume, &other.unrelated()).await?;
    let list = "list resource \"persistentvolumes\" in API group \"\" at the cluster scope";
    let why = "can only get individual resources of this type";
    own.cannot(&cx, Request::get(volumes), list, why).await?;
    cx.send(Request::delete(volume.as_str())).await?;
    cx.release(&volume).await
}

async fn a_node_lists_only_its_own_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    cx.create(&cx.core("pods"), &pod_on(&own, "p")).await?;
    cx.create(&cx.core("pods"), &pod_on(&other, "q")).await?;
    let of = |node: &Kubelet| format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", node.name);
    let list = expect(&own.send(&cx, Request::get(of(&own))).await?, 200)?;
    let names: Vec<&str> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pod| text(pod, "/metadata/name"))
        .collect();
    ensure!(names == ["p"], "{names:?}");
    let what = "list resource \"pods\" in API group \"\" at the cluster scope";
    let why = "can only list/watch pods with spec.nodeName field selector";
    own.cannot(&cx, Request::get(of(&other)), what, why).await?;
    own.cannot(&cx, Request::get("/api/v1/pods"), what, why).await?;
    let watch = Request::get(cx.core("pods?watch=1"));
    own.cannot(&cx, watch, &core("watch", "pods", &cx), why).await?;
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let of = |node: &Kubelet| format!("{slices}?fieldSelector=spec.nodeName%3D{}", node.name);
    expect(&own.send(&cx, Request::get(of(&own))).await?, 200)?;
    let what = "list resource \"resourceslices\" in API group \"resource.k8s.io\" at the cluster \
                scope";
    let why = "can only list/watch/deletecollection resourceslices with nodeName field selector";
    own.cannot(&cx, Request::get(of(&other)), what, why).await
}

async fn a_node_reads_no_node_but_itself(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let nodes = "/api/v1/nodes";
    // It may ask for itself before it is there.
    let get = Request::get(format!("{nodes}/{}", own.name));
    expect(&own.send(&cx, get).await?, 404)?;
    let named = Request::get(format!("{nodes}?fieldSelector=metadata.name%3D{}", own.name));
    expect(&own.send(&cx, named).await?, 200)?;
    let at = "resource \"nodes\" in API group \"\" at the cluster scope";
    let why = format!("node '{}' cannot read all nodes, only its own Node object", own.name);
    own.cannot(&cx, Request::get(nodes), &format!("list {at}"), &why).await?;
    let why = format!("node '{}' cannot read '{}', only its own Node object", own.name, other.name);
    let get = Request::get(format!("{nodes}/{}", other.name));
    own.cannot(&cx, get, &format!("get {at}"), &why).await?;
    let delete = Request::delete(format!("{nodes}/{}", own.name));
    own.cannot(&cx, delete, &format!("delete {at}"), "").await
}

async fn a_node_lives_where_nodes_live(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({ "metadata": { "name": own.name } });
    expect(&own.send(&cx, Request::post(leases, &lease)).await?, 201)?;
    let path = format!("{leases}/{}", own.name);
    expect(&own.send(&cx, Request::get(path.as_str())).await?, 200)?;
    let what = "get resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \
                \"kube-node-lease\"";
    let why = "can only access node lease with the same name as the requesting node";
    other.cannot(&cx, Request::get(path.as_str()), what, why).await?;
    let what = format!(
        "create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace {:?}",
        cx.namespace
    );
    let why = "can only access leases in the \"kube-node-lease\" system namespace";
    let elsewhere = cx.apis("coordination.k8s.io/v1", "leases");
    own.cannot(&cx, Request::post(elsewhere, &lease), &what, why).await?;
    expect(&own.send(&cx, Request::delete(path)).await?, 200)?;

    let get = Request::get(format!("/apis/storage.k8s.io/v1/csinodes/{}", own.name));
    let what = "get resource \"csinodes\" in API group \"storage.k8s.io\" at the cluster scope";
    let why = "can only access CSINode with the same name as the requesting node";
    other.cannot(&cx, get, what, why).await
}

async fn a_node_does_not_do_what_is_no_business_of_nodes(cx: Context) -> Result<()> {
    let own = Kubelet::of(&cx, "own");
    expect(&own.send(&cx, Request::get("/api/v1/services")).await?, 200)?;
    expect(&own.send(&cx, Request::get("/apis/node.k8s.io/v1/runtimeclasses")).await?, 200)?;
    let make = Request::post(cx.core("configmaps"), &config_map("m"));
    let why = "can only read resources of this type";
    own.cannot(&cx, make, &core("create", "configmaps", &cx), why).await?;
    let make = Request::post(cx.core("services"), &json!({ "metadata": { "name": "s" } }));
    own.cannot(&cx, make, &core("create", "services", &cx), "").await?;
    let path = Request::get("/logs");
    own.cannot(&cx, path, "get path \"/logs\"", "").await
}

async fn a_name_without_its_group_makes_no_node(cx: Context) -> Result<()> {
    let own = Kubelet::of(&cx, "own");
    let list = Request::get("/api/v1/services").impersonate(&own.user());
    let message = format!(
        "services is forbidden: User {:?} cannot list resource \"services\" in API group \"\" at \
         the cluster scope",
        own.user()
    );
    refused(&cx.send(list).await?, 403, "Forbidden", &message)?;
    Ok(())
}

async fn reviews_know_what_nodes_may(cx: Context) -> Result<()> {
    let own = Kubelet::of(&cx, "own");
    let reviews = "/apis/authorization.k8s.io/v1";
    let ask = |attributes: Value| {
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {
                "user": own.user(), "groups": ["system:nodes"], "resourceAttributes": attributes,
            },
        });
        Request::post(format!("{reviews}/subjectaccessreviews"), &review)
    };
    let selects = |node: &str| {
        json!({ "verb": "list", "resource": "pods", "fieldSelector": { "requirements": [
            { "key": "spec.nodeName", "operator": "In", "values": [node] },
        ] } })
    };
    let answer = expect(&cx.send(ask(selects(&own.name))).await?, 201)?;
    same("status", &answer["status"], json!({ "allowed": true }))?;
    let answer = expect(&cx.send(ask(selects("another"))).await?, 201)?;
    let why = "can only list/watch pods with spec.nodeName field selector";
    same("status", &answer["status"], json!({ "allowed": false, "reason": why }))?;
    let raw = format!("spec.nodeName={}", own.name);
    let raw =
        json!({ "verb": "watch", "resource": "pods", "fieldSelector": { "rawSelector": raw } });
    // Selectors may be raw here, too.
    let answer = expect(&cx.send(ask(raw)).await?, 201)?;
    same("status", &answer["status"], json!({ "allowed": true }))?;

    let review = json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": { "namespace": cx.namespace },
    });
    let review = Request::post(format!("{reviews}/selfsubjectrulesreviews"), &review);
    let answer = expect(&own.send(&cx, review).await?, 201)?;
    same("incomplete", &answer["status"]["incomplete"], json!(true))?;
    let error = "node authorizer does not support user rule resolution";
    same("error", &answer["status"]["evaluationError"], json!(error))
}
