//! `up --audit-policy --audit-log`: what a user finds in the log.

use std::net::Ipv4Addr;
use std::path::Path;

use http::Request;
use http_body_util::Full;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::User;
use crate::client::Access;
use crate::server;
use crate::site::{self, Site, Stream};

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:serviceaccounts"]}
- {level: None, users: ["system:apiserver", "system:kube-controller-manager"]}
- {level: Metadata, resources: [{group: "", resources: [secrets]}]}
- {level: RequestResponse, omitManagedFields: true, namespaces: [default]}
"#;

const UP: [&str; 12] = [
    "up",
    "--node",
    "none",
    "--detach",
    "--port",
    "0",
    "--output",
    "json",
    "--audit-policy",
    "policy.yaml",
    "--audit-log",
    "logs/audit.log",
];

fn events(user: &User) -> Vec<Value> {
    let text = std::fs::read_to_string(user.home.path().join("logs/audit.log")).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn write_policy(home: &Path, text: &str) {
    std::fs::write(home.join("policy.yaml"), text).expect("written");
}

/// A cluster that writes a log, and how to reach it.
fn start() -> (User, Access) {
    let user = User::new();
    write_policy(user.home.path(), POLICY);
    let up = user.json(&UP);
    let port = up["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
    let access = Access::new(server::address(port), &server::pki(user.home.path(), "kubewright"));
    (user, access)
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_was_asked_is_in_the_log_when_the_cluster_is_down() {
    let (user, access) = start();
    let mut client = access.client().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "v"}});
    client.create(maps, &map).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    client.create("/api/v1/namespaces/default/secrets", &secret).await;
    let request = Request::get(format!("{maps}/none"))
        .header("audit-id", "mine")
        .body(Full::default())
        .expect("a request");
    let response = client.begin(request).await.expect("an answer");
    assert_eq!(response.headers()["audit-id"], "mine");
    drop(response);
    // A watch that the end of the cluster ends.
    let _watch = access.watch(maps, "0").await;
    for n in 0..100 {
        client.create(maps, &json!({"metadata": {"name": format!("n-{n}")}})).await;
    }
    user.run(&["down"]).expect("down");

    let events = events(&user);
    let about = |resource: &str, name: &str, verb: &str| {
        let is_it = |event: &&Value| {
            let object = &event["objectRef"];
            (&object["resource"], &object["name"], &event["verb"])
                == (&json!(resource), &json!(name), &json!(verb))
        };
        let found: Vec<&Value> = events.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{verb} {resource}/{name}: {found:#?}");
        found[0]
    };
    let created = about("configmaps", "m", "create");
    assert_eq!(created["level"], "RequestResponse");
    assert_eq!(created["stage"], "ResponseComplete");
    assert_eq!(created["user"]["username"], "kubernetes-admin");
    assert_eq!(created["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(created["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(created["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(created["responseObject"]["metadata"]["namespace"], "default");
    assert_eq!(created["responseObject"]["metadata"].get("managedFields"), None);
    assert_eq!(created["annotations"]["authorization.k8s.io/decision"], "allow");

    let secret = about("secrets", "s", "create");
    assert_eq!((secret.get("requestObject"), secret.get("responseObject")), (None, None));
    assert!(!events.iter().any(|event| event.to_string().contains("hunter2")));
    let missed = about("configmaps", "none", "get");
    assert_eq!(
        (&missed["auditID"], &missed["responseStatus"]["code"]),
        (&json!("mine"), &json!(404))
    );

    for n in 0..100 {
        about("configmaps", &format!("n-{n}"), "create");
    }
    let is_watch = |event: &&Value| {
        event["verb"] == "watch"
            && event["requestURI"].as_str().is_some_and(|uri| uri.starts_with(maps))
    };
    let stages: Vec<&Value> = events.iter().filter(is_watch).map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
    let controllers = |event: &Value| {
        event["user"]["username"].as_str().is_some_and(|name| name.starts_with("system:"))
    };
    assert!(!events.iter().any(controllers), "the policy leaves out who works inside");
}

#[test]
fn a_policy_that_is_no_good_is_told_before_anything_starts() {
    let user = User::new();
    let alone = user.run(&["up", "--audit-log", "audit.log"]).expect_err("there is no policy");
    assert!(alone.contains("--audit-policy <FILE>"), "{alone}");
    let alone = user.run(&["up", "--audit-policy", "policy.yaml"]).expect_err("there is no log");
    assert!(alone.contains("--audit-log <FILE>"), "{alone}");

    let missing = user.run(&UP).expect_err("there is no file");
    assert!(missing.starts_with("error: read the audit policy policy.yaml: "), "{missing}");
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n";
    write_policy(user.home.path(), policy);
    assert_eq!(
        user.run(&UP).expect_err("it has no such level"),
        "error: use the audit policy policy.yaml: rules[0].level: Unsupported value: \"All\": \
         supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"\n"
    );
    write_policy(user.home.path(), POLICY);
    let args = ["up", "--detach", "--audit-policy", "policy.yaml", "--audit-log", "-"];
    assert_eq!(
        user.run(&args).expect_err("nobody would see it"),
        "error: --audit-log - is no place for a cluster in the background: name a file\n"
    );
    assert_eq!(user.json(&["clusters", "--output", "json"]), json!([]));
    std::fs::write(user.home.path().join("logs"), "a file").expect("written");
    let blocked = user.run(&UP).expect_err("the log has no folder");
    let place = user.home.path().join("logs/audit.log");
    let expected = format!("write the audit log: open {}: ", place.display());
    assert!(blocked.contains(&expected), "{blocked}");
}

/// Says yes to every review, and what it thinks of it; who is asked at `/paint` labels the object.
async fn comment(mut stream: Stream) {
    let Some((head, body)) = site::read(&mut stream).await else { return };
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    match head.contains(" /paint") {
        true => {
            let patch = r#"[{"op":"add","path":"/metadata/labels","value":{"colour":"blue"}}]"#;
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(ByteString(patch.as_bytes().to_vec()));
            response["auditAnnotations"] = json!({"colour": "blue"});
        }
        false => response["auditAnnotations"] = json!({"verdict": "fine"}),
    }
    let document = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    // The client may have hung up.
    let _ = stream.write_all(&site::answer(&document)).await;
    let _ = stream.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_webhooks_note_and_change_is_in_the_log() {
    let (user, access) = start();
    let mut client = access.client().await;
    let site = Site::start(Ipv4Addr::LOCALHOST.into(), "127.0.0.1", comment).await;
    for (role, word) in [("mutating", "paint"), ("validating", "judge")] {
        let webhook = json!({
            "name": format!("{word}.kubewright.dev"),
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/{word}", site.port), "caBundle": site.bundle,
            },
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps", "secrets"],
            }],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        let configuration = json!({"metadata": {"name": word}, "webhooks": [webhook]});
        let path = format!("/apis/admissionregistration.k8s.io/v1/{role}webhookconfigurations");
        client.create(&path, &configuration).await;
    }
    let object = json!({"metadata": {"name": "noted"}});
    for resource in ["configmaps", "secrets"] {
        let path = format!("/api/v1/namespaces/default/{resource}");
        let created = client.create(&path, &object).await;
        assert_eq!(created["metadata"]["labels"]["colour"], "blue", "{created}");
    }
    user.run(&["down"]).expect("down");

    let events = events(&user);
    let noted = |resource: &str| {
        let mut found = events.iter().filter(|event| {
            let object = &event["objectRef"];
            object["resource"] == resource && object["name"] == "noted"
        });
        let mut notes = found.next().expect("an event")["annotations"].clone();
        assert!(found.next().is_none(), "one event for {resource}");
        // Who was allowed what, and why, is another's business.
        let notes = notes.as_object_mut().expect("annotations");
        notes.retain(|key, _| !key.starts_with("authorization.k8s.io/"));
        Value::Object(std::mem::take(notes))
    };
    let mutation = r#"{"configuration":"paint","webhook":"paint.kubewright.dev","mutated":true}"#;
    let patch = concat!(
        r#"{"configuration":"paint","webhook":"paint.kubewright.dev","patch":"#,
        r#"[{"op":"add","path":"/metadata/labels","value":{"colour":"blue"}}],"#,
        r#""patchType":"JSONPatch"}"#,
    );
    let mut expected = json!({
        "judge.kubewright.dev/verdict": "fine",
        "mutation.webhook.admission.k8s.io/round_0_index_0": mutation,
        "paint.kubewright.dev/colour": "blue",
    });
    // Of Secrets only metadata is told, and so not what was changed in them.
    assert_eq!(noted("secrets"), expected);
    expected["patch.webhook.admission.k8s.io/round_0_index_0"] = json!(patch);
    assert_eq!(noted("configmaps"), expected);
}
