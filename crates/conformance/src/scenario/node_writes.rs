//! What a node may write: how it and its pods are, and nothing that would give it more.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::node_access::{Kubelet, pod_on};
use super::{Context, OWNER, PATIENCE, expect, refused, scenarios, text};
use crate::endpoint::Request;

scenarios! { "node_writes":
    a_node_writes_no_node_but_itself [A7 S5],
    a_node_does_not_steer_pods_to_itself [A7],
    a_node_makes_no_pods_but_mirrors [A7],
    a_mirror_refers_to_nothing [A7],
    a_node_speaks_for_the_pods_that_it_runs [A7 S5],
    a_node_gets_tokens_for_its_pods_alone [A7 S5],
    a_node_tells_of_a_claim_how_far_it_has_grown [A7 S5],
    a_node_has_one_lease_and_one_csi_node [A7],
    a_node_has_slices_of_its_own_devices [A7 S5],
    a_node_asks_for_certificates_in_its_own_name [A7],
}

const NODES: &str = "/api/v1/nodes";

impl Kubelet {
    /// Has the node register itself, and take pods.
    async fn register(&self, cx: &Context) -> Result<Value> {
        let node = json!({ "metadata": { "name": self.name, "labels": { OWNER: cx.namespace } } });
        expect(&self.send(cx, Request::post(NODES, &node)).await?, 201)
    }

    /// Expects that the node may not write this, and why.
    async fn may_not(&self, cx: &Context, request: Request, what: &str, why: &str) -> Result<()> {
        let answer = self.send(cx, request).await?;
        refused(&answer, 403, "Forbidden", &format!("{what} is forbidden: {why}"))?;
        Ok(())
    }
}

async fn a_node_writes_no_node_but_itself(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    own.register(&cx).await?;
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let status = |node: &Kubelet| format!("{NODES}/{}/status", node.name);
    let patch = Request::strategic_patch(status(&own), &ready);
    expect(&own.send(&cx, patch).await?, 200)?;
    let why = format!("node {:?} is not allowed to modify node {:?}", own.name, other.name);
    let what = format!("nodes {:?}", other.name);
    let node = json!({ "metadata": { "name": other.name, "labels": { OWNER: cx.namespace } } });
    own.may_not(&cx, Request::post(NODES, &node), &what, &why).await?;
    cx.create(NODES, &node).await?;
    let patch = Request::strategic_patch(status(&other), &ready);
    own.may_not(&cx, patch, &what, &why).await?;
    for node in [&own, &other] {
        expect(&cx.send(Request::delete(format!("{NODES}/{}", node.name))).await?, 200)?;
    }
    Ok(())
}

async fn a_node_does_not_steer_pods_to_itself(cx: Context) -> Result<()> {
    let own = Kubelet::of(&cx, "own");
    let what = format!("nodes {:?}", own.name);
    let node = json!({ "metadata": { "name": own.name, "labels": {
        "kubernetes.io/hostname": "h", "node-role.kubernetes.io/control-plane": "",
        "team.node-restriction.kubernetes.io/a": "b", "example.com/rack": "1",
    } } });
    let why = format!(
        "node {:?} is not allowed to set the following labels: \
         node-role.kubernetes.io/control-plane, team.node-restriction.kubernetes.io/a",
        own.name
    );
    own.may_not(&cx, Request::post(NODES, &node), &what, &why).await?;
    own.register(&cx).await?;
    let path = format!("{NODES}/{}", own.name);
    let patch = |patch: Value| Request::merge_patch(path.as_str(), &patch);
    let labels = |labels: Value| patch(json!({ "metadata": { "labels": labels } }));
    let fine =
        labels(json!({ "topology.kubernetes.io/zone": "z", "x.kubelet.kubernetes.io/y": "" }));
    expect(&own.send(&cx, fine).await?, 200)?;
    let why = "is not allowed to modify labels: k8s.io/a, kubernetes.io/b";
    let wrong = labels(json!({ "k8s.io/a": "1", "kubernetes.io/b": "1", "c": "1" }));
    own.may_not(&cx, wrong, &what, why).await?;
    let taints = json!([{ "key": "example.com/mine", "effect": "NoSchedule" }]);
    let why = format!("node {:?} is not allowed to modify taints", own.name);
    own.may_not(&cx, patch(json!({ "spec": { "taints": taints } })), &what, &why).await?;
    let owners = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }]);
    let why = format!("node {:?} is not allowed to modify ownerReferences", own.name);
    let owned = patch(json!({ "metadata": { "ownerReferences": owners } }));
    own.may_not(&cx, owned, &what, &why).await?;
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    Ok(())
}

/// A pod that a node has by itself.
fn mirror(own: &Kubelet, node: &Value) -> Value {
    let mut pod = pod_on(own, "mirror");
    pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Node", "name": own.name, "controller": true,
        "uid": node["metadata"]["uid"],
    }]);
    pod
}

async fn a_node_makes_no_pods_but_mirrors(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let node = own.register(&cx).await?;
    let name = &own.name;
    let pods = cx.core("pods");
    let what = "pods \"mirror\"";
    let plain = pod_on(&own, "mirror");
    let why = format!(
        "pod does not have \"kubernetes.io/config.mirror\" annotation, node {name:?} can only \
         create mirror pods"
    );
    own.may_not(&cx, Request::post(pods.as_str(), &plain), what, &why).await?;
    let sound = mirror(&own, &node);
    let mut elsewhere = sound.clone();
    elsewhere["spec"]["nodeName"] = json!(other.name);
    let why = format!("node {name:?} can only create pods with spec.nodeName set to itself");
    own.may_not(&cx, Request::post(pods.as_str(), &elsewhere), what, &why).await?;
    let owner = &sound["metadata"]["ownerReferences"][0];
    let with = |field: &str, value: Value| {
        let mut owner = owner.clone();
        owner[field] = value;
        json!([owner])
    };
    let cases = [
        (json!([]), "can only create pods with an owner reference set to itself"),
        (
            with("name", json!(other.name)),
            "can only create pods with an owner reference set to itself",
        ),
        (
            json!([owner, { "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }]),
            "can only create pods with a single owner reference set to itself",
        ),
        (
            with("controller", json!(false)),
            "can only create pods with a controller owner reference set to itself",
        ),
        (
            with("blockOwnerDeletion", json!(true)),
            "must not set blockOwnerDeletion on an owner reference",
        ),
    ];
    for (owners, why) in cases {
        let mut pod = sound.clone();
        pod["metadata"]["ownerReferences"] = owners;
        let why = format!("node {name:?} {why}");
        own.may_not(&cx, Request::post(pods.as_str(), &pod), what, &why).await?;
    }
    // Upstream hears of the node a little later.
    let make = own.makes(Request::post(pods.as_str(), &sound));
    let made = cx.endpoint.poll(&make, PATIENCE, |answer| answer.status == 201).await?;
    expect(&made, 201)?;
    let mut pod = sound.clone();
    pod["metadata"]["ownerReferences"] = with("uid", json!("other"));
    let uid = text(&node, "/metadata/uid");
    let why = format!("node {name} UID mismatch: expected other got {uid}");
    own.may_not(&cx, Request::post(pods.as_str(), &pod), what, &why).await?;
    expect(&cx.send(Request::delete(format!("{NODES}/{name}"))).await?, 200)?;
    Ok(())
}

async fn a_mirror_refers_to_nothing(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let own = Kubelet::of(&cx, "own");
    let node = own.register(&cx).await?;
    let pods = cx.core("pods");
    let sound = mirror(&own, &node);
    let make = Request::post(format!("{pods}?dryRun=All"), &sound);
    let make = own.makes(make);
    expect(&cx.endpoint.poll(&make, PATIENCE, |answer| answer.status == 201).await?, 201)?;
    let cases = [
        (json!({ "configMap": { "name": "m" } }), "configmaps"),
        (json!({ "persistentVolumeClaim": { "claimName": "c" } }), "persistentvolumeclaims"),
        (
            json!({ "ephemeral": { "volumeClaimTemplate": { "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            } } } }),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (json!({ "csi": { "driver": "d.example.com" } }), "csidrivers (via CSI volumes)"),
        (
            json!({ "glusterfs": { "endpoints": "e", "path": "p" } }),
            "endpoints (via glusterFS volumes)",
        ),
    ];
    for (mut volume, resource) in cases {
        volume["name"] = json!("v");
        let mut pod = sound.clone();
        pod["spec"]["volumes"] = json!([{ "name": "fine", "emptyDir": {} }, volume]);
        let why = format!("node {:?} can not create pods that reference {resource}", own.name);
        let make = Request::post(pods.as_str(), &pod);
        own.may_not(&cx, make, "pods \"mirror\"", &why).await?;
    }
    let mut pod = sound.clone();
    pod["spec"]["resourceClaims"] = json!([{ "name": "c", "resourceClaimName": "c" }]);
    let why = format!("node {:?} can not create pods that reference resourceclaims", own.name);
    own.may_not(&cx, Request::post(pods, &pod), "pods \"mirror\"", &why).await?;
    expect(&cx.send(Request::delete(format!("{NODES}/{}", own.name))).await?, 200)?;
    Ok(())
}

async fn a_node_speaks_for_the_pods_that_it_runs(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    cx.create(&cx.core("pods"), &pod_on(&own, "p")).await?;
    cx.create(&cx.core("pods"), &pod_on(&other, "q")).await?;
    let name = &own.name;
    let running = json!({ "status": { "message": "it runs" } });
    let tell = |pod: &str, what: &Value| {
        Request::strategic_patch(cx.core(&format!("pods/{pod}/status")), what)
    };
    expect(&own.send(&cx, tell("p", &running)).await?, 200)?;
    let why = format!(
        "node {name:?} can only update pod status for pods with spec.nodeName set to itself"
    );
    own.may_not(&cx, tell("q", &running), "pods \"q\"", &why).await?;
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let why = format!("node {name:?} cannot update labels through pod status");
    own.may_not(&cx, tell("p", &labels), "pods \"p\"", &why).await?;
    let claims = json!({ "status": { "resourceClaimStatuses": [{ "name": "c" }] } });
    let why = format!("node {name:?} cannot update resource claim statues");
    own.may_not(&cx, tell("p", &claims), "pods \"p\"", &why).await?;

    let evict = |pod: &str| {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod },
            "deleteOptions": { "gracePeriodSeconds": 0 },
        });
        Request::post(cx.core(&format!("pods/{pod}/eviction")), &eviction)
    };
    refused(&own.send(&cx, evict("none")).await?, 404, "NotFound", "pod \"none\" not found")?;
    let why = format!("node {name} can only evict pods with spec.nodeName set to itself");
    own.reads(&cx, &cx.core("pods/p")).await?;
    let known = own.makes(evict("q"));
    cx.endpoint.poll(&known, PATIENCE, |answer| answer.status == 403).await?;
    own.may_not(&cx, evict("q"), "pods \"q\"", &why).await?;
    let delete = |pod: &str| Request::delete(cx.core(&format!("pods/{pod}?gracePeriodSeconds=0")));
    let why = format!("node {name:?} can only delete pods with spec.nodeName set to itself");
    own.may_not(&cx, delete("q"), "pods \"q\"", &why).await?;
    let evict = own.makes(evict("p"));
    expect(&cx.endpoint.poll(&evict, PATIENCE, |answer| answer.status == 201).await?, 201)?;
    Ok(())
}

async fn a_node_gets_tokens_for_its_pods_alone(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let mut pod = pod_on(&own, "p");
    pod["spec"]["volumes"] = json!([{ "name": "t", "projected": { "sources": [
        { "serviceAccountToken": { "path": "t", "audience": "vault" } },
    ] } }]);
    let pod = cx.create(&cx.core("pods"), &pod).await?;
    let foreign = cx.create(&cx.core("pods"), &pod_on(&other, "q")).await?;
    own.reads(&cx, &cx.core("serviceaccounts/default")).await?;
    let path = cx.core("serviceaccounts/default/token");
    let ask = |bound: Value, audiences: Value| {
        let spec = json!({ "audiences": audiences, "boundObjectRef": bound });
        Request::post(path.as_str(), &json!({ "spec": spec }))
    };
    let bound = |pod: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        })
    };
    let what = "serviceaccounts \"default\"";
    let fine = own.makes(ask(bound(&pod), json!(["vault"])));
    expect(&cx.endpoint.poll(&fine, PATIENCE, |answer| answer.status == 201).await?, 201)?;
    let why = "node requested token not bound to a pod";
    own.may_not(&cx, ask(Value::Null, json!(["vault"])), what, why).await?;
    let unsure = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p" });
    let why = "node requested token with a pod binding without a uid";
    own.may_not(&cx, ask(unsure, json!(["vault"])), what, why).await?;
    let mut wrong = bound(&pod);
    wrong["uid"] = json!("other");
    let why = "the UID in the bound object reference (other) does not match the UID in record. The \
               object might have been deleted and then recreated";
    own.may_not(&cx, ask(wrong, json!(["vault"])), what, why).await?;
    let why = "node requested token bound to a pod scheduled on a different node";
    let known = own.makes(ask(bound(&foreign), json!(["vault"])));
    cx.endpoint.poll(&known, PATIENCE, |answer| answer.status == 403).await?;
    own.may_not(&cx, ask(bound(&foreign), json!(["vault"])), what, why).await?;
    let why = "node may only request 0 or 1 audiences";
    own.may_not(&cx, ask(bound(&pod), json!(["vault", "b"])), what, why).await?;
    let why = format!(
        "audience \"b\" not found in pod spec volume, {} is not authorized to request tokens for \
         this audience",
        own.user()
    );
    own.may_not(&cx, ask(bound(&pod), json!(["b"])), what, &why).await?;
    let why = format!(
        "audience \"\" not found in pod spec volume, {} is not authorized to request tokens for \
         this audience",
        own.user()
    );
    own.may_not(&cx, ask(bound(&pod), json!([])), what, &why).await
}

async fn a_node_tells_of_a_claim_how_far_it_has_grown(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let own = Kubelet::of(&cx, "own");
    let claim = json!({ "metadata": { "name": "c" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": { "requests": { "storage": "1Gi" } },
    } });
    cx.create(&cx.core("persistentvolumeclaims"), &claim).await?;
    let mut pod = pod_on(&own, "p");
    pod["spec"]["volumes"] =
        json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    cx.create(&cx.core("pods"), &pod).await?;
    let path = cx.core("persistentvolumeclaims/c");
    own.reads(&cx, &path).await?;
    let status = format!("{path}/status");
    let grown = json!({ "status": { "capacity": { "storage": "2Gi" } } });
    let tell = Request::merge_patch(status.as_str(), &grown);
    expect(&own.send(&cx, tell).await?, 200)?;
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let answer = own.send(&cx, Request::merge_patch(status, &label)).await?;
    let refusal = expect(&answer, 403)?;
    let message = text(&refusal, "/message");
    let begins = format!(
        "persistentvolumeclaims \"c\" is forbidden: node {:?} is not allowed to update fields other \
         than status.quantity and status.conditions: @@ -",
        own.name
    );
    ensure!(message.starts_with(&begins), "{message}");
    ensure!(message.contains("\n+ \"labels\": {\n+  \"a\": \"b\"\n+ },\n"), "{message}");
    Ok(())
}

async fn a_node_has_one_lease_and_one_csi_node(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({ "metadata": { "name": other.name } });
    let why = "can only access node lease with the same name as the requesting node";
    let what = format!("leases.coordination.k8s.io {:?}", other.name);
    own.may_not(&cx, Request::post(leases, &lease), &what, why).await?;
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    let csi_node = |node: &Kubelet| {
        let object = json!({ "metadata": { "name": node.name }, "spec": { "drivers": [] } });
        Request::post(csi_nodes, &object)
    };
    let why = "can only access CSINode with the same name as the requesting node";
    let what = format!("csinodes.storage.k8s.io {:?}", other.name);
    own.may_not(&cx, csi_node(&other), &what, why).await?;
    expect(&own.send(&cx, csi_node(&own)).await?, 201)?;
    let delete = Request::delete(format!("{csi_nodes}/{}", own.name));
    expect(&own.send(&cx, delete).await?, 200)?;
    Ok(())
}

async fn a_node_has_slices_of_its_own_devices(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let make = |node: &Kubelet| {
        let object = json!({ "metadata": { "name": node.name }, "spec": {
            "driver": "d.example.com", "nodeName": node.name,
            "pool": { "name": node.name, "generation": 1, "resourceSliceCount": 1 },
        } });
        Request::post(slices, &object)
    };
    let why = "can only create ResourceSlice with the same NodeName as the requesting node";
    let what = format!("resourceslices.resource.k8s.io {:?}", other.name);
    own.may_not(&cx, make(&other), &what, why).await?;
    expect(&own.send(&cx, make(&own)).await?, 201)?;
    expect(&cx.send(make(&other)).await?, 201)?;
    own.reads(&cx, &format!("{slices}/{}", own.name)).await?;
    let get = Request::get(format!("{slices}/{}", other.name));
    expect(&own.send(&cx, get).await?, 403)?;
    let all = format!("{slices}?fieldSelector=spec.nodeName%3D{}", own.name);
    expect(&own.send(&cx, Request::delete(all)).await?, 200)?;
    expect(&cx.send(Request::get(format!("{slices}/{}", own.name))).await?, 404)?;
    expect(&cx.send(Request::delete(format!("{slices}/{}", other.name))).await?, 200)?;
    Ok(())
}

async fn a_node_asks_for_certificates_in_its_own_name(cx: Context) -> Result<()> {
    let (own, other) = (Kubelet::of(&cx, "own"), Kubelet::of(&cx, "other"));
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let ask = |pem: &str| {
        let object = json!({
            "metadata": { "name": cx.namespace },
            "spec": {
                "request": BASE64_STANDARD.encode(pem),
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "usages": ["digital signature", "client auth"],
            },
        });
        Request::post(requests, &object)
    };
    let pem = |name: &str| -> Result<String> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(params.serialize_request(&KeyPair::generate()?)?.pem()?)
    };
    let what = format!("certificatesigningrequests.certificates.k8s.io {:?}", cx.namespace);
    let why = format!("can only create a node CSR with CN={}", own.user());
    let foreign = ask(&pem(&other.user())?);
    own.may_not(&cx, foreign, &what, &why).await?;
    let why = "unable to parse csr: PEM block type must be CERTIFICATE REQUEST";
    own.may_not(&cx, ask("x"), &what, why).await?;
    expect(&own.send(&cx, ask(&pem(&own.user())?)).await?, 201)?;
    let path = format!("{requests}/{}", cx.namespace);
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    Ok(())
}
