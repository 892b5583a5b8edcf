//! What nodes may do, by what is in the store.

use kubewright_apimachinery::selector::field::Selector;
use kubewright_apimachinery::yaml;
use kubewright_store::{Expect, Key, Put};
use serde_json::Value;

use crate::authz::{Attributes, Authorizer, Decision, Mode, Resource};
use crate::index::{self, Store};
use crate::sample;
use crate::user::User;

/// Two nodes: `n` runs pods in `web` that refer to everything there is, `m` runs one that refers to
/// nothing.
const OBJECTS: &str = r#"
- at: pods/web/p
  spec:
    nodeName: "n"
    serviceAccountName: robot
    imagePullSecrets: [{name: pull}]
    containers:
    - envFrom: [{secretRef: {name: env}}, {configMapRef: {name: map}}]
    ephemeralContainers:
    - env: [{valueFrom: {secretKeyRef: {name: late, key: k}}}]
    volumes:
    - {name: a, projected: {sources: [{secret: {name: part}}, {configMap: {name: part}}]}}
    - {name: b, persistentVolumeClaim: {claimName: claim}}
    - {name: scratch, ephemeral: {}}
    - {name: c, csi: {driver: d, nodePublishSecretRef: {name: publish}}}
    resourceClaims: [{name: gpu, resourceClaimName: gpu}, {name: t, resourceClaimTemplateName: t}]
  status:
    resourceClaimStatuses: [{name: t, resourceClaimName: made}]
    extendedResourceClaimStatus: {resourceClaimName: extended}
- at: pods/web/mirror
  metadata: {annotations: {kubernetes.io/config.mirror: x}}
  spec: {nodeName: "n", volumes: [{name: v, secret: {secretName: stolen}}]}
- at: pods/web/other
  spec: {nodeName: m, containers: [{}]}
- at: pods/web/waiting
  spec: {containers: [{envFrom: [{secretRef: {name: later}}]}]}
- at: persistentvolumes/v
  spec:
    claimRef: {namespace: web, name: claim}
    csi: {nodeStageSecretRef: {namespace: vault, name: stage},
          controllerPublishSecretRef: {namespace: vault, name: publish}}
- at: persistentvolumes/old
  spec: {claimRef: {namespace: web, name: p-scratch}, rbd: {secretRef: {name: ceph}}}
- at: persistentvolumes/free
  spec: {csi: {nodeStageSecretRef: {namespace: vault, name: free}}}
- at: volumeattachments/a
  spec: {nodeName: "n"}
- at: resourceslices/s
  spec: {nodeName: "n"}
"#;

async fn authorizer(modes: &[Mode]) -> Authorizer {
    let store = sample::store();
    let objects = yaml::decode(OBJECTS).expect("the test writes sound YAML").value;
    for object in objects.as_array().expect("it is a list") {
        put(&store, object.clone()).await;
    }
    Authorizer::new(store).with_modes(modes.to_vec())
}

async fn put(store: &Store, mut object: Value) {
    let at = object["at"].as_str().expect("it says where it is").to_owned();
    object["metadata"]["name"] = at.rsplit('/').next().into();
    object["metadata"]["uid"] = "4c2b5a52-0c34-4b8b-8f0f-0b1f5a2d7c11".into();
    let put = Put::new(Key::from(format!("/registry/{at}")), index::to_bytes(&object));
    store.put(put).await.expect("memory takes all");
}

fn node(name: &str) -> User {
    User::new(format!("system:node:{name}"), ["system:nodes".to_owned()])
}

/// `get secrets/web/env`, `create serviceaccounts/web/robot/token`, `list pods/web ? spec.nodeName=n`;
/// a place without a namespace is `-`.
fn decided(authorizer: &Authorizer, user: &User, what: &str) -> String {
    let (what, selector) = what.split_once(" ? ").unwrap_or((what, ""));
    let fields = Selector::parse(selector).expect("the test writes sound selectors").terms;
    let (verb, path) = what.split_once(' ').expect("a verb and a place");
    let mut parts = path.split('/');
    let mut part = || parts.next().unwrap_or_default();
    let (resource, namespace, name, subresource) = (part(), part(), part(), part());
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let namespace = if namespace == "-" { "" } else { namespace };
    let of = Resource { group, resource, subresource, namespace, name, fields: &fields };
    match authorizer.decide(user, &Attributes::resource(verb, of)) {
        Decision::Allowed(grant) => format!("yes{grant}"),
        Decision::Denied(denial) => format!("no: {denial}"),
    }
}

async fn check(who: &str, cases: &[(&str, &str)]) {
    let authorizer = authorizer(&[Mode::Node, Mode::Rbac]).await;
    for (what, expected) in cases {
        assert_eq!(decided(&authorizer, &node(who), what), *expected, "{who}: {what}");
    }
}

const UNRELATED: &str = "no: no relationship found between node 'n' and this object";

#[tokio::test]
async fn a_node_reads_what_its_pods_refer_to() {
    let names = [
        "secrets/web/pull",
        "secrets/web/env",
        "secrets/web/late",
        "secrets/web/part",
        "secrets/web/publish",
        "secrets/vault/stage",
        "secrets/web/ceph",
        "configmaps/web/map",
        "configmaps/web/part",
        "persistentvolumeclaims/web/claim",
        "persistentvolumeclaims/web/p-scratch",
        "persistentvolumes/-/v",
        "persistentvolumes/-/old",
        "resourceclaims.resource.k8s.io/web/gpu",
        "resourceclaims.resource.k8s.io/web/made",
        "resourceclaims.resource.k8s.io/web/extended",
        "serviceaccounts/web/robot",
        "pods/web/p",
        "pods/web/mirror",
        "volumeattachments.storage.k8s.io/-/a",
        "resourceslices.resource.k8s.io/-/s",
    ];
    let authorizer = authorizer(&[Mode::Node]).await;
    for name in names {
        let get = |who| decided(&authorizer, &node(who), &format!("get {name}"));
        let none = "no: no relationship found between node 'm' and this object";
        assert_eq!((get("n").as_str(), get("m").as_str()), ("yes", none), "{name}");
    }
}

#[tokio::test]
async fn a_node_does_not_read_what_others_refer_to() {
    check(
        "n",
        &[
            // In another namespace, of a mirror pod, of a pod that runs nowhere.
            ("get secrets/default/env", UNRELATED),
            ("get secrets/web/stolen", UNRELATED),
            ("get secrets/web/later", UNRELATED),
            // For the driver's controller alone, and of a volume that nobody has claimed.
            ("get secrets/vault/publish", UNRELATED),
            ("get secrets/vault/free", UNRELATED),
            ("get persistentvolumes/-/free", UNRELATED),
            ("get persistentvolumes/-/none", UNRELATED),
            ("get persistentvolumeclaims/web/p-other", UNRELATED),
            ("get pods/web/other", UNRELATED),
            ("get pods/web/waiting", UNRELATED),
            ("get serviceaccounts/web/default", UNRELATED),
            ("get secrets/web/\"env", UNRELATED),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_node_reads_one_object_at_a_time() {
    check(
        "n",
        &[
            ("list secrets/web/env", "yes"),
            ("watch configmaps/web/map", "yes"),
            ("list secrets/web", "no: No Object name found"),
            ("list secrets", "no: can only read namespaced object of this type"),
            ("get secrets/web/env/status", "no: cannot read subresource"),
            ("update secrets/web/env", "no: can only read resources of this type"),
            (
                "list persistentvolumeclaims/web/claim",
                "no: can only get individual resources of this type",
            ),
            ("get persistentvolumes/-/v/status", "no: cannot get subresource"),
            ("update persistentvolumeclaims/web/claim/status", "yes"),
            ("patch persistentvolumeclaims/web/p/status", UNRELATED),
            (
                "get persistentvolumeclaims/web/claim/status",
                "no: can only get/update/patch this type",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_node_gets_tokens_for_accounts_of_its_pods() {
    check(
        "n",
        &[
            ("create serviceaccounts/web/robot/token", "yes"),
            ("create serviceaccounts/web/default/token", UNRELATED),
            (
                "create serviceaccounts/web",
                "no: can only create tokens for individual service accounts",
            ),
            (
                "create serviceaccounts/web/robot",
                "no: can only create token subresource of serviceaccount",
            ),
            (
                "list serviceaccounts/web",
                "no: can only create tokens for individual service accounts",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_node_lists_its_own_pods_and_slices() {
    let pods = "no: can only list/watch pods with spec.nodeName field selector";
    let slices = "no: can only list/watch/deletecollection resourceslices with nodeName field \
                  selector";
    check(
        "n",
        &[
            ("list pods ? spec.nodeName=n", "yes"),
            ("watch pods/web ? status.phase!=Failed,spec.nodeName=n", "yes"),
            ("list pods ? spec.nodeName=m", pods),
            ("list pods ? spec.nodeName!=n", pods),
            ("list pods", pods),
            ("list pods/web/p", "yes"),
            ("list pods/web/other", UNRELATED),
            ("create pods/web", "yes"),
            ("delete pods/web/other", "yes"),
            ("patch pods/web/other/status", "yes"),
            ("create pods/web/other/eviction", "yes"),
            ("update pods/web/p", "no: "),
            ("deletecollection pods/web ? spec.nodeName=n", "no: "),
            ("create pods/web/p/binding", "no: "),
            ("get pods/web/p/log", "no: "),
            ("list resourceslices.resource.k8s.io ? spec.nodeName=n", "yes"),
            ("deletecollection resourceslices.resource.k8s.io ? spec.nodeName=n", "yes"),
            ("list resourceslices.resource.k8s.io", slices),
            ("create resourceslices.resource.k8s.io", "yes"),
            ("update resourceslices.resource.k8s.io/-/s", "yes"),
            ("delete resourceslices.resource.k8s.io/-/t", UNRELATED),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_node_has_its_own_node_and_lease() {
    let lease = "no: can only access node lease with the same name as the requesting node";
    let csi = "no: can only access CSINode with the same name as the requesting node";
    check(
        "n",
        &[
            ("get nodes/-/n", "yes"),
            ("watch nodes/-/n", "yes"),
            ("create nodes", "yes"),
            ("patch nodes/-/m/status", "yes"),
            ("list nodes", "no: node 'n' cannot read all nodes, only its own Node object"),
            ("get nodes/-/m", "no: node 'n' cannot read 'm', only its own Node object"),
            ("delete nodes/-/n", "no: "),
            ("get nodes/-/n/proxy", "no: "),
            ("create leases.coordination.k8s.io/kube-node-lease", "yes"),
            ("update leases.coordination.k8s.io/kube-node-lease/n", "yes"),
            ("get leases.coordination.k8s.io/kube-node-lease/m", lease),
            (
                "get leases.coordination.k8s.io/web/n",
                "no: can only access leases in the \"kube-node-lease\" system namespace",
            ),
            (
                "list leases.coordination.k8s.io/kube-node-lease",
                "no: can only get, create, update, patch, or delete a node lease",
            ),
            ("create csinodes.storage.k8s.io", "yes"),
            ("delete csinodes.storage.k8s.io/-/n", "yes"),
            ("get csinodes.storage.k8s.io/-/m", csi),
        ],
    )
    .await;
}

#[tokio::test]
async fn all_nodes_share_the_rules_of_a_role() {
    check(
        "n",
        &[
            ("list services", "yes"),
            ("create events.events.k8s.io/web", "yes"),
            ("create tokenreviews.authentication.k8s.io", "yes"),
            ("watch runtimeclasses.node.k8s.io", "yes"),
            ("get csidrivers.storage.k8s.io/-/d", "yes"),
            ("delete services/web/s", "no: "),
            ("list deployments.apps", "no: "),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_name_and_a_group_make_a_node() {
    let authorizer = authorizer(&[Mode::Node]).await;
    let ask = |user: &User| decided(&authorizer, user, "list services");
    assert_eq!(ask(&User::new("system:node:n", [])), "no: ");
    assert_eq!(ask(&User::new("n", ["system:nodes".to_owned()])), "no: ");
    assert_eq!(ask(&node("")), "no: unknown node for user \"system:node:\"");
    assert_eq!(ask(&node("n")), "yes");
}

#[tokio::test]
async fn whoever_is_refused_by_one_is_judged_by_the_next() {
    let policy = "clusterrolebinding reader missing\n  group system:nodes";
    let store = sample::store();
    crate::authz::tests::write(&store, policy).await;
    let problem = "RBAC: clusterrole.rbac.authorization.k8s.io \"missing\" not found";
    let own = "node 'n' cannot read all nodes, only its own Node object";
    let ask = |modes: &[Mode]| {
        let authorizer = Authorizer::new(store.clone()).with_modes(modes.to_vec());
        decided(&authorizer, &node("n"), "list nodes")
    };
    assert_eq!(ask(&[Mode::Node, Mode::Rbac]), format!("no: {own}\n{problem}"));
    assert_eq!(ask(&[Mode::Rbac, Mode::Node]), format!("no: {problem}\n{own}"));
    assert_eq!(ask(&[Mode::Node, Mode::AlwaysAllow]), "yes");
    assert_eq!(ask(&[Mode::Rbac]), format!("no: {problem}"));
}

#[tokio::test]
async fn a_pod_that_is_gone_leads_nowhere() {
    let authorizer = authorizer(&[Mode::Node]).await;
    let ask = || decided(&authorizer, &node("n"), "get secrets/web/env");
    assert_eq!(ask(), "yes");
    let pod = Key::from("/registry/pods/web/p");
    authorizer.store.delete(&pod, Expect::Anything).await.expect("it is there");
    assert_eq!(ask(), UNRELATED);
}
