//! `up --audit-policy --audit-log`: what a user finds in the log.

use std::path::Path;

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::User;
use crate::client::Access;
use crate::server;

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

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_was_asked_is_in_the_log_when_the_cluster_is_down() {
    let user = User::new();
    write_policy(user.home.path(), POLICY);
    let up = user.json(&UP);
    let port = up["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
    let access = Access::new(server::address(port), &server::pki(user.home.path(), "kubewright"));
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
