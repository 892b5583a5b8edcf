//! Plugins, as a client sees them.

use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use crate::replay::{admin, send};
use crate::server::Server;
use crate::server::tests::{ask, server};
use crate::user::User;

const PODS: &str = "/api/v1/namespaces/a/pods";
const QUOTA: &str = "/api/v1/namespaces/a/resourcequotas";

/// A server with a namespace `a` and its account.
async fn with_account() -> Server {
    let server = server();
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let account = json!({"metadata": {"name": "default"}});
    create(&server, "/api/v1/namespaces/a/serviceaccounts", account).await;
    server
}

pub(super) async fn create(server: &Server, path: &str, object: Value) -> Value {
    let (code, created) = ask(server, &format!("POST {path}"), object).await;
    assert_eq!(code, 201, "{created}");
    created
}

/// Sends an object and expects it to be refused in these words.
async fn refuse(server: &Server, line: &str, object: Value, expected: &str) {
    let (code, refused) = ask(server, line, object).await;
    assert_eq!((code.as_u16(), refused["message"].as_str()), (403, Some(expected)), "{refused}");
}

fn pod(name: &str, spec: &str) -> Value {
    let mut spec = yaml::decode(spec).expect("the test writes sound YAML").value;
    if spec.is_null() {
        spec = json!({});
    }
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A quota whose usage somebody has counted.
async fn quota(server: &Server, spec: Value, used: Value) {
    let hard = spec["hard"].clone();
    create(server, QUOTA, json!({"metadata": {"name": "q"}, "spec": spec})).await;
    let counted = json!({"metadata": {"name": "q"}, "spec": spec,
        "status": {"hard": hard, "used": used}});
    let (code, answer) = ask(server, &format!("PUT {QUOTA}/q/status"), counted).await;
    assert_eq!(code, 200, "{answer}");
}

async fn used(server: &Server) -> Value {
    let (_, quota) = ask(server, &format!("GET {QUOTA}/q"), Value::Null).await;
    quota["status"]["used"].clone()
}

#[tokio::test]
async fn a_pod_gets_an_account_its_token_and_what_others_fill_in() {
    let server = with_account().await;
    let created = create(&server, PODS, pod("p", "")).await;
    let spec = &created["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["serviceAccount"], "default");
    assert_eq!(
        (&spec["priority"], &spec["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    let volume = spec["volumes"][0]["name"].as_str().expect("a volume was added");
    assert!(volume.starts_with("kube-api-access-") && volume.len() == 21, "{volume}");
    assert_eq!(
        spec["volumes"][0]["projected"],
        json!({
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ],
            "defaultMode": 420,
        })
    );
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": volume, "readOnly": true,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );
    let keys: Vec<&str> = spec["tolerations"]
        .as_array()
        .expect("tolerations were added")
        .iter()
        .filter_map(|toleration| toleration["key"].as_str())
        .collect();
    assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_its_account_is_refused() {
    let server = with_account().await;
    let line = format!("POST {PODS}");
    let expected = "pods \"p\" is forbidden: error looking up service account a/nobody: \
                    serviceaccount \"nobody\" not found";
    refuse(&server, &line, pod("p", "serviceAccountName: nobody"), expected).await;

    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "b"}})).await;
    let expected = "pods \"p\" is forbidden: error looking up service account b/default: \
                    serviceaccount \"default\" not found";
    refuse(&server, "POST /api/v1/namespaces/b/pods", pod("p", ""), expected).await;
}

#[tokio::test]
async fn a_pod_waits_for_the_account_of_a_new_namespace() {
    let server = server();
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let account = async {
        tokio::task::yield_now().await;
        let account = json!({"metadata": {"name": "default"}});
        create(&server, "/api/v1/namespaces/a/serviceaccounts", account).await
    };
    tokio::join!(create(&server, PODS, pod("p", "")), account);
}

#[tokio::test]
async fn an_account_may_keep_its_token_and_give_pull_secrets() {
    let server = with_account().await;
    let account = json!({"metadata": {"name": "s"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "registry"}]});
    create(&server, "/api/v1/namespaces/a/serviceaccounts", account).await;
    let created = create(&server, PODS, pod("p", "serviceAccountName: s")).await;
    assert_eq!(created["spec"].get("volumes"), None);
    assert_eq!(created["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    let spec = "{serviceAccountName: s, automountServiceAccountToken: true}";
    let created = create(&server, PODS, pod("o", spec)).await;
    assert!(created["spec"]["volumes"][0]["projected"].is_object(), "{created}");
}

#[tokio::test]
async fn an_account_may_limit_the_secrets_of_its_pods() {
    let server = with_account().await;
    let account = json!({"metadata": {"name": "s",
        "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "mine"}]});
    create(&server, "/api/v1/namespaces/a/serviceaccounts", account).await;
    let volume = |secret: &str| {
        let spec = format!(
            "{{serviceAccountName: s, volumes: [{{name: v, secret: {{secretName: {secret}}}}}]}}"
        );
        pod("p", &spec)
    };
    create(&server, PODS, volume("mine")).await;
    let expected = "pods \"p\" is forbidden: volume with secret.secretName=\"other\" is not \
                    allowed because service account s does not reference that secret";
    refuse(&server, &format!("POST {PODS}"), volume("other"), expected).await;
}

#[tokio::test]
async fn a_class_gives_a_pod_its_priority() {
    let server = with_account().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, default: bool| {
        json!({"metadata": {"name": name}, "value": value, "globalDefault": default,
            "preemptionPolicy": "Never"})
    };
    create(&server, classes, class("high", 1000, false)).await;
    create(&server, classes, class("usual", 5, true)).await;
    let created = create(&server, PODS, pod("p", "priorityClassName: high")).await;
    assert_eq!(
        (&created["spec"]["priority"], &created["spec"]["preemptionPolicy"]),
        (&json!(1000), &json!("Never"))
    );
    let created = create(&server, PODS, pod("o", "")).await;
    assert_eq!(
        (&created["spec"]["priority"], &created["spec"]["priorityClassName"]),
        (&json!(5), &json!("usual"))
    );

    let line = format!("POST {PODS}");
    let expected = "pods \"n\" is forbidden: no PriorityClass with name none was found";
    refuse(&server, &line, pod("n", "priorityClassName: none"), expected).await;
    let expected = "pods \"n\" is forbidden: the integer value of priority (7) must not be \
                    provided in pod spec; priority admission controller computed 1000 from the \
                    given PriorityClass name";
    refuse(&server, &line, pod("n", "{priorityClassName: high, priority: 7}"), expected).await;
    let expected = "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass \
                    usual is already marked as default. Only one default can exist";
    refuse(&server, &format!("POST {classes}"), class("second", 6, true), expected).await;
}

#[tokio::test]
async fn a_limit_range_fills_in_and_bounds() {
    let server = with_account().await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"},
            "min": {"cpu": "50m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]}});
    create(&server, "/api/v1/namespaces/a/limitranges", range).await;
    let created = create(&server, PODS, pod("p", "")).await;
    let resources = &created["spec"]["containers"][0]["resources"];
    assert_eq!(resources, &json!({"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}));
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );

    let with = |limit: &str, request: &str| {
        let spec = format!(
            "containers: [{{name: c, image: i, resources: {{limits: {{cpu: {limit}}}, \
             requests: {{cpu: {request}}}}}}}]"
        );
        pod("o", &spec)
    };
    let line = format!("POST {PODS}");
    let expected = "pods \"o\" is forbidden: maximum cpu usage per Container is 1, but limit is 2";
    refuse(&server, &line, with("2", "1"), expected).await;
    let expected = "pods \"o\" is forbidden: [minimum cpu usage per Container is 50m, but request \
                    is 10m, cpu max limit to request ratio per Container is 4, but provided ratio \
                    is 10.000000]";
    refuse(&server, &line, with("100m", "10m"), expected).await;
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}}}});
    let expected = "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per \
                    PersistentVolumeClaim is 1Gi, but request is 2Gi";
    let line = "POST /api/v1/namespaces/a/persistentvolumeclaims";
    refuse(&server, line, claim, expected).await;
}

#[tokio::test]
async fn a_claim_gets_the_default_class_and_is_protected() {
    let server = with_account().await;
    let class = json!({"metadata": {"name": "fast", "annotations":
        {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "example.com/p"});
    create(&server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
    let claims = "/api/v1/namespaces/a/persistentvolumeclaims";
    let claim = |size: &str| {
        json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}})
    };
    let mut created = create(&server, claims, claim("1Gi")).await;
    assert_eq!(created["spec"]["storageClassName"], "fast");
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));

    created["status"] = json!({"phase": "Bound"});
    let (code, mut bound) = ask(&server, &format!("PUT {claims}/c/status"), created).await;
    assert_eq!(code, 200, "{bound}");
    bound["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
    let expected = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can \
                    be resized and the storageclass that provisions the pvc must support resize";
    refuse(&server, &format!("PUT {claims}/c"), bound, expected).await;
}

#[tokio::test]
async fn an_ingress_gets_the_default_class_and_a_node_is_not_ready() {
    let server = with_account().await;
    let class = json!({"metadata": {"name": "outer", "annotations":
        {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/c"}});
    create(&server, "/apis/networking.k8s.io/v1/ingressclasses", class).await;
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend":
        {"service": {"name": "s", "port": {"number": 80}}}}});
    let path = "/apis/networking.k8s.io/v1/namespaces/a/ingresses";
    assert_eq!(create(&server, path, ingress).await["spec"]["ingressClassName"], "outer");
    let node = create(&server, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    assert_eq!(node["spec"]["taints"], taint);
}

#[tokio::test]
async fn a_runtime_class_adds_overhead_and_sends_to_its_nodes() {
    let server = with_account().await;
    let class = json!({"metadata": {"name": "vm"}, "handler": "vm",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"},
            "tolerations": [{"key": "vm", "operator": "Exists"}]}});
    create(&server, "/apis/node.k8s.io/v1/runtimeclasses", class).await;
    let created = create(&server, PODS, pod("p", "runtimeClassName: vm")).await;
    assert_eq!(created["spec"]["overhead"], json!({"cpu": "100m"}));
    assert_eq!(created["spec"]["nodeSelector"], json!({"vm": "yes"}));
    let line = format!("POST {PODS}");
    let expected = "pods \"o\" is forbidden: pod rejected: RuntimeClass \"none\" not found";
    refuse(&server, &line, pod("o", "runtimeClassName: none"), expected).await;
    let expected = "pods \"o\" is forbidden: conflict: \
                    runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no";
    let spec = "{runtimeClassName: vm, nodeSelector: {vm: \"no\"}}";
    refuse(&server, &line, pod("o", spec), expected).await;
    let expected = "pods \"o\" is forbidden: pod rejected: Pod Overhead set without corresponding \
                    RuntimeClass defined Overhead";
    refuse(&server, &line, pod("o", "overhead: {cpu: 1}"), expected).await;
}

#[tokio::test]
async fn writes_at_the_same_time_do_not_exceed_a_quota() {
    let server = with_account().await;
    quota(&server, json!({"hard": {"pods": "3"}}), json!({"pods": "0"})).await;
    let names: Vec<String> = (0..8).map(|at| format!("p{at}")).collect();
    let line = format!("POST {PODS}");
    let writes = names.iter().map(|name| ask(&server, &line, pod(name, "")));
    let done = futures::future::join_all(writes).await;
    let created = done.iter().filter(|(code, _)| *code == 201).count();
    assert_eq!(created, 3);
    assert_eq!(used(&server).await, json!({"pods": "3"}));
    let (_, quota) = ask(&server, &format!("GET {QUOTA}/q"), Value::Null).await;
    let entries = quota["metadata"]["managedFields"].as_array().expect("fields are managed");
    assert!(entries.iter().any(|entry| entry["manager"] == "kube-apiserver"), "{quota}");
    let expected = "pods \"q\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, \
                    limited: pods=3";
    refuse(&server, &line, pod("q", ""), expected).await;
}

#[tokio::test]
async fn a_quota_wants_to_know_what_containers_need() {
    let server = with_account().await;
    let hard = json!({"hard": {"limits.cpu": "2", "requests.cpu": "1"}});
    quota(&server, hard, json!({"limits.cpu": "0", "requests.cpu": "0"})).await;
    let line = format!("POST {PODS}");
    let expected = "pods \"p\" is forbidden: failed quota: q: must specify limits.cpu for: c; \
                    requests.cpu for: c";
    refuse(&server, &line, pod("p", ""), expected).await;
    let spec = "containers: [{name: c, image: i, resources: {limits: {cpu: 1500m}, \
                requests: {cpu: 500m}}}]";
    let dry = ask(&server, &format!("{line}?dryRun=All"), pod("p", spec)).await;
    assert_eq!(dry.0, 201, "{}", dry.1);
    assert_eq!(used(&server).await, json!({"limits.cpu": "0", "requests.cpu": "0"}));
    create(&server, PODS, pod("p", spec)).await;
    assert_eq!(used(&server).await, json!({"limits.cpu": "1500m", "requests.cpu": "500m"}));
    let expected = "pods \"o\" is forbidden: exceeded quota: q, requested: limits.cpu=1500m, \
                    used: limits.cpu=1500m, limited: limits.cpu=2";
    refuse(&server, &line, pod("o", spec), expected).await;
}

#[tokio::test]
async fn a_quota_counts_objects_of_any_kind_and_only_in_its_scope() {
    let server = with_account().await;
    let hard = json!({"hard": {"count/configmaps": "1"}});
    quota(&server, hard, json!({"count/configmaps": "0"})).await;
    let map = |name: &str| json!({"metadata": {"name": name}});
    let maps = "/api/v1/namespaces/a/configmaps";
    create(&server, maps, map("m")).await;
    let expected = "configmaps \"n\" is forbidden: exceeded quota: q, requested: \
                    count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1";
    refuse(&server, &format!("POST {maps}"), map("n"), expected).await;

    let (code, _) = ask(&server, &format!("DELETE {QUOTA}/q"), Value::Null).await;
    assert_eq!(code, 200);
    let hard = json!({"hard": {"pods": "0"}, "scopes": ["Terminating"]});
    quota(&server, hard, json!({"pods": "0"})).await;
    create(&server, PODS, pod("lasting", "")).await;
    let expected = "pods \"short\" is forbidden: exceeded quota: q, requested: pods=1, used: \
                    pods=0, limited: pods=0";
    let short = pod("short", "activeDeadlineSeconds: 5");
    refuse(&server, &format!("POST {PODS}"), short, expected).await;
}

#[tokio::test]
async fn a_quota_that_nobody_counted_refuses() {
    let server = with_account().await;
    let spec = json!({"hard": {"services": "2"}});
    quota(&server, spec, json!({})).await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let expected = "services \"s\" is forbidden: status unknown for quota: q, resources: services";
    refuse(&server, "POST /api/v1/namespaces/a/services", service, expected).await;
}

#[tokio::test]
async fn a_service_takes_its_endpoints_along() {
    let server = with_account().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    create(&server, "/api/v1/namespaces/a/services", service).await;
    let endpoints = "/api/v1/namespaces/a/endpoints";
    create(&server, endpoints, json!({"metadata": {"name": "s"}})).await;
    let path = "DELETE /api/v1/namespaces/a/services/s";
    ask(&server, &format!("{path}?dryRun=All"), Value::Null).await;
    assert_eq!(ask(&server, &format!("GET {endpoints}/s"), Value::Null).await.0, 200);
    ask(&server, path, Value::Null).await;
    assert_eq!(ask(&server, &format!("GET {endpoints}/s"), Value::Null).await.0, 404);
}

async fn ask_by(server: &Server, user: User, line: &str, body: Value) -> (u16, Vec<String>, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    send(server, user, method, path, "application/json", &body).await
}

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let server = with_account().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = |resource: &str| {
        json!([{"apiGroups": ["", "rbac.authorization.k8s.io"], "resources": [resource],
            "verbs": ["create", "get"]}])
    };
    let writer = json!({"metadata": {"name": "writer"}, "rules": rule("clusterroles")});
    create(&server, &format!("{rbac}/clusterroles"), writer).await;
    let binding = json!({"metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "writer"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]});
    create(&server, &format!("{rbac}/clusterrolebindings"), binding).await;
    let alice = || User::new("alice", []);
    let line = format!("POST {rbac}/clusterroles");
    let own = json!({"metadata": {"name": "own"}, "rules": rule("clusterroles")});
    let (code, _, made) = ask_by(&server, alice(), &line, own).await;
    assert_eq!(code, 201, "{made}");
    let more = json!({"metadata": {"name": "more"}, "rules": rule("secrets")});
    let (code, _, refused) = ask_by(&server, alice(), &line, more).await;
    let message = refused["message"].as_str().unwrap_or_default();
    let expected = "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" \
                    (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions \
                    not currently held:";
    assert!(code == 403 && message.starts_with(expected), "{refused}");
}

#[tokio::test]
async fn deprecated_kinds_say_so() {
    let server = with_account().await;
    let line = "GET /api/v1/namespaces/a/endpoints";
    let (_, warnings, _) = ask_by(&server, admin(), line, Value::Null).await;
    assert_eq!(
        warnings,
        ["299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\""]
    );
}

#[tokio::test]
async fn deprecated_versions_of_custom_resources_say_so() {
    let server = with_account().await;
    let version = |name: &str, deprecated: bool| {
        json!({"name": name, "served": true, "storage": !deprecated, "deprecated": deprecated,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut told = version("v1alpha1", true);
    told["deprecationWarning"] = "old".into();
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version("v1", false), version("v1beta1", true), told],
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&server, definitions, definition).await;
    let cases: [(&str, &[&str]); 3] = [
        ("v1", &[]),
        (
            "v1beta1",
            &["299 - \"example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget\""],
        ),
        ("v1alpha1", &["299 - \"old\""]),
    ];
    for (version, expected) in cases {
        let line = format!("GET /apis/example.com/{version}/namespaces/a/widgets");
        let (code, warnings, answer) = ask_by(&server, admin(), &line, Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        assert_eq!(warnings, expected);
    }
}
