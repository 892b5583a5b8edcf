//! What nodes may write, as they see it.

use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::labels;
use crate::admission::tests::create;
use crate::replay::send;
use crate::server::Server;
use crate::server::tests::server;
use crate::user::User;

const PODS: &str = "/api/v1/namespaces/a/pods";
const NODES: &str = "/api/v1/nodes";

/// A server with the nodes `n` and `m`, each with a pod of its own in the namespace `a`.
async fn with_nodes() -> Server {
    let server = server();
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    create(&server, "/api/v1/namespaces/a/serviceaccounts", account).await;
    for name in ["n", "m"] {
        create(&server, NODES, json!({"metadata": {"name": name}})).await;
        create(&server, PODS, pod(&format!("of-{name}"), name)).await;
    }
    server
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    })
}

/// A pod that the node `n` has by itself.
async fn mirror(server: &Server) -> Value {
    let node = as_node(server, &format!("GET {NODES}/n"), Value::Null).await.1;
    let mut pod = pod("mirror", "n");
    pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Node", "name": "n", "uid": node["metadata"]["uid"],
        "controller": true,
    }]);
    pod
}

/// Makes a request as the node `n`.
async fn as_node(server: &Server, line: &str, body: Value) -> (u16, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let user = User::new("system:node:n", ["system:nodes".to_owned()]);
    let (code, _, answer) = send(server, user, method, path, media, &body).await;
    (code, answer)
}

async fn may(server: &Server, line: &str, body: Value) -> Value {
    let (code, answer) = as_node(server, line, body).await;
    assert!((200..300).contains(&code), "{line}: {answer}");
    answer
}

/// Expects a refusal in these words, which follow what was refused.
async fn may_not(server: &Server, line: &str, body: Value, expected: &str) {
    let (code, answer) = as_node(server, line, body).await;
    let message = answer["message"].as_str().unwrap_or_default();
    let why = message.split_once(" is forbidden: ").map_or(message, |(_, why)| why);
    assert_eq!((code, why), (403, expected), "{line}: {answer}");
}

#[tokio::test]
async fn a_node_writes_itself_and_no_other() {
    let server = with_nodes().await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    may(&server, &format!("PATCH {NODES}/n/status"), ready.clone()).await;
    let why = "node \"n\" is not allowed to modify node \"m\"";
    may_not(&server, &format!("PATCH {NODES}/m/status"), ready, why).await;
    may_not(&server, &format!("POST {NODES}"), json!({"metadata": {"name": "m"}}), why).await;
    let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let why = "node \"n\" is not allowed to modify taints";
    may_not(&server, &format!("PATCH {NODES}/n"), taints, why).await;
    let owners = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
    ]}});
    let why = "node \"n\" is not allowed to modify ownerReferences";
    may_not(&server, &format!("PATCH {NODES}/n"), owners, why).await;
    let source = json!({"spec": {"configSource": {"configMap": {
        "namespace": "a", "name": "c", "kubeletConfigKey": "k",
    }}}});
    let why = "node \"n\" is not allowed to update configSource to a new non-nil configSource";
    may_not(&server, &format!("PATCH {NODES}/n"), source, why).await;
}

#[tokio::test]
async fn a_node_registers_with_taints_and_labels_of_its_own() {
    let server = server();
    let node = |label: &str| {
        json!({
            "metadata": {"name": "n", "labels": {label: "x", "kubernetes.io/hostname": "n"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        })
    };
    let why = "node \"n\" is not allowed to set the following labels: \
               node-role.kubernetes.io/control-plane";
    let post = format!("POST {NODES}");
    may_not(&server, &post, node("node-role.kubernetes.io/control-plane"), why).await;
    may(&server, &post, node("example.com/rack")).await;
    let label = |value: Value| json!({"metadata": {"labels": {"x.k8s.io/y": value}}});
    let why = "is not allowed to modify labels: x.k8s.io/y";
    may_not(&server, &format!("PATCH {NODES}/n"), label(json!("z")), why).await;
}

#[test]
fn labels_that_steer_pods_are_not_a_nodes_to_change() {
    let check = |new: Value, old: Value, expected: &[&str]| {
        assert_eq!(labels::forbidden(&new, &old), expected, "{new} over {old}");
    };
    let old = json!({"kubernetes.io/os": "linux", "k8s.io/kept": "1", "k8s.io/gone": "1"});
    let new = json!({"kubernetes.io/os": "other", "k8s.io/kept": "1", "mine": "1"});
    check(new, old, &["k8s.io/gone"]);
    let own = json!({
        "node.kubernetes.io/any": "1", "x.kubelet.kubernetes.io/any": "1",
        "topology.kubernetes.io/zone": "z", "notk8s.io/any": "1",
    });
    check(own, Value::Null, &[]);
    let others = json!({
        "kubernetes.io/any": "1", "example.node-restriction.kubernetes.io/team": "1",
        "node-restriction.kubernetes.io/team": "1", "x.k8s.io/any": "1",
    });
    let expected = [
        "example.node-restriction.kubernetes.io/team",
        "kubernetes.io/any",
        "node-restriction.kubernetes.io/team",
        "x.k8s.io/any",
    ];
    check(others, Value::Null, &expected);
}

#[tokio::test]
async fn a_node_makes_mirror_pods_of_its_own_and_nothing_else() {
    let server = with_nodes().await;
    let post = format!("POST {PODS}");
    let why = "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only \
               create mirror pods";
    may_not(&server, &post, pod("p", "n"), why).await;

    let sound = mirror(&server).await;
    let mut changed = sound.clone();
    changed["spec"]["nodeName"] = "m".into();
    let why = "node \"n\" can only create pods with spec.nodeName set to itself";
    may_not(&server, &post, changed, why).await;

    let owners = |change: &dyn Fn(&mut Value)| {
        let mut pod = sound.clone();
        change(&mut pod["metadata"]["ownerReferences"]);
        pod
    };
    let own = "node \"n\" can only create pods with an owner reference set to itself";
    may_not(&server, &post, owners(&|list| *list = json!([])), own).await;
    may_not(&server, &post, owners(&|list| list[0]["name"] = "m".into()), own).await;
    let why = "node \"n\" can only create pods with a controller owner reference set to itself";
    may_not(&server, &post, owners(&|list| list[0]["controller"] = false.into()), why).await;
    let why = "node \"n\" must not set blockOwnerDeletion on an owner reference";
    may_not(&server, &post, owners(&|list| list[0]["blockOwnerDeletion"] = true.into()), why).await;
    let uid = &sound["metadata"]["ownerReferences"][0]["uid"];
    let why = format!("node n UID mismatch: expected other got {}", uid.as_str().unwrap());
    may_not(&server, &post, owners(&|list| list[0]["uid"] = "other".into()), &why).await;

    for (volume, resource) in [
        (json!({"configMap": {"name": "m"}}), "configmaps"),
        (json!({"configMap": {}}), "configmaps (via configmap volumes)"),
        (json!({"persistentVolumeClaim": {"claimName": "c"}}), "persistentvolumeclaims"),
        (json!({"csi": {"driver": "d"}}), "csidrivers (via CSI volumes)"),
        (
            json!({"projected": {"sources": [{"downwardAPI": {}}, {"clusterTrustBundle": {}}]}}),
            "clustertrustbundles",
        ),
    ] {
        let mut pod = sound.clone();
        let mut volume = volume;
        volume["name"] = "v".into();
        pod["spec"]["volumes"] = json!([{"name": "e", "emptyDir": {}}, volume]);
        let why = format!("node \"n\" can not create pods that reference {resource}");
        may_not(&server, &post, pod, &why).await;
    }
    may(&server, &post, sound).await;
}

#[tokio::test]
async fn a_node_speaks_for_the_pods_that_it_runs() {
    let server = with_nodes().await;
    let status = json!({"status": {"phase": "Running"}});
    may(&server, &format!("PATCH {PODS}/of-n/status"), status.clone()).await;
    let why = "node \"n\" can only update pod status for pods with spec.nodeName set to itself";
    may_not(&server, &format!("PATCH {PODS}/of-m/status"), status, why).await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let why = "node \"n\" cannot update labels through pod status";
    may_not(&server, &format!("PATCH {PODS}/of-n/status"), labels, why).await;
    let claims = json!({"status": {"resourceClaimStatuses": [{"name": "c"}]}});
    let why = "node \"n\" cannot update resource claim statues";
    may_not(&server, &format!("PATCH {PODS}/of-n/status"), claims, why).await;

    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let why = "node m can only evict pods with spec.nodeName set to itself";
    let why = why.replace("node m", "node n");
    may_not(&server, &format!("POST {PODS}/of-m/eviction"), eviction("of-m"), &why).await;
    let (code, gone) =
        as_node(&server, &format!("POST {PODS}/none/eviction"), eviction("none")).await;
    assert_eq!((code, &gone["message"]), (404, &json!("pod \"none\" not found")), "{gone}");
    may(&server, &format!("POST {PODS}/of-n/eviction"), eviction("of-n")).await;

    let why = "node \"n\" can only delete pods with spec.nodeName set to itself";
    may_not(&server, &format!("DELETE {PODS}/of-m"), Value::Null, why).await;
    let now = json!({"gracePeriodSeconds": 0});
    may(&server, &format!("DELETE {PODS}/of-n"), now).await;
}

#[tokio::test]
async fn a_node_tells_how_far_the_volume_of_a_claim_has_grown() {
    let server = with_nodes().await;
    let claims = "/api/v1/namespaces/a/persistentvolumeclaims";
    let spec = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    create(&server, claims, json!({"metadata": {"name": "c"}, "spec": spec})).await;
    let mut user = pod("user", "n");
    user["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    create(&server, PODS, user).await;

    let patch = format!("PATCH {claims}/c/status");
    may(&server, &patch, json!({"status": {"capacity": {"storage": "2Gi"}}})).await;
    let (code, answer) =
        as_node(&server, &patch, json!({"metadata": {"labels": {"a": "b"}}})).await;
    let message = answer["message"].as_str().unwrap_or_default();
    let expected = "persistentvolumeclaims \"c\" is forbidden: node \"n\" is not allowed to update \
                    fields other than status.quantity and status.conditions: @@ -";
    assert!(code == 403 && message.starts_with(expected), "{answer}");
    assert!(message.contains("\n+ \"labels\": {\n+  \"a\": \"b\"\n+ },\n"), "{message}");
}

#[tokio::test]
async fn a_node_has_one_lease_and_one_csi_node() {
    let server = with_nodes().await;
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "kube-node-lease"}})).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    let lease = |name: &str| json!({"metadata": {"name": name}});
    let why = "can only access node lease with the same name as the requesting node";
    may_not(&server, &format!("POST {leases}"), lease("m"), why).await;
    may(&server, &format!("POST {leases}"), lease("n")).await;
    let csi_node = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    let why = "can only access CSINode with the same name as the requesting node";
    may_not(&server, &format!("POST {csi_nodes}"), csi_node("m"), why).await;
    may(&server, &format!("POST {csi_nodes}"), csi_node("n")).await;
}

#[tokio::test]
async fn a_node_has_slices_of_its_own_devices() {
    let server = with_nodes().await;
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let slice = |node: &str| {
        json!({"metadata": {"name": node}, "spec": {
            "driver": "d.example.com", "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        }})
    };
    let why = "can only create ResourceSlice with the same NodeName as the requesting node";
    may_not(&server, &format!("POST {slices}"), slice("m"), why).await;
    may(&server, &format!("POST {slices}"), slice("n")).await;
    create(&server, slices, slice("m")).await;
    let all = format!("DELETE {slices}?fieldSelector=spec.nodeName%3Dn");
    may(&server, &all, Value::Null).await;
    let (_, left) = as_node(&server, &format!("GET {slices}/n"), Value::Null).await;
    assert_eq!(left["code"], 403, "what is gone is nobody's: {left}");
}

#[tokio::test]
async fn a_node_asks_for_certificates_in_its_own_name() {
    let server = with_nodes().await;
    let path = "POST /apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are no mistake");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("there is randomness");
        let pem = params.serialize_request(&key).and_then(|request| request.pem());
        let request = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            pem.expect("it can be written"),
        );
        json!({"metadata": {"name": "r"}, "spec": {
            "request": request, "usages": ["digital signature", "client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        }})
    };
    let why = "can only create a node CSR with CN=system:node:n";
    may_not(&server, path, request("system:node:m"), why).await;
    let mut unread = request("system:node:n");
    unread["spec"]["request"] = "eA==".into();
    let why = "unable to parse csr: PEM block type must be CERTIFICATE REQUEST";
    may_not(&server, path, unread, why).await;
    may(&server, path, request("system:node:n")).await;
}

#[tokio::test]
async fn others_are_not_held_to_what_nodes_may() {
    let server = with_nodes().await;
    create(&server, PODS, pod("p", "n")).await;
    let label = json!({"metadata": {"labels": {"k8s.io/x": "y"}}});
    let admin = User::new("system:node:n", ["system:masters".to_owned()]);
    let media = "application/merge-patch+json";
    let (code, _, answer) =
        send(&server, admin, "PATCH", &format!("{NODES}/m"), media, &label).await;
    assert_eq!(code, 200, "{answer}");
}
