//! Replays what upstream answered to pods, workloads and namespaces.

use kubewright_apimachinery::json::go_quote;
use serde_json::{Value, json};

use crate::admission::tests::{admin, ask_by, create};
use crate::fixtures::{self, Case, Step};
use crate::server::Server;
use crate::server::tests::server;

#[tokio::test]
async fn pods_are_judged_as_upstream_judges_them() {
    for case in fixtures::load("pod-security") {
        let server = with_namespace(&case).await;
        for (index, step) in case.steps.iter().enumerate() {
            let what = format!("pod-security/{} step {}", case.name, index + 1);
            check(&server, step, &what).await;
        }
    }
}

/// A server with the namespace of a case, and its account, of which pods get no token: the recorded
/// server gives them none.
async fn with_namespace(case: &Case) -> Server {
    let server = server();
    let name = format!("pod-security-{}", case.name);
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    create(&server, &accounts, account).await;
    server
}

async fn check(server: &Server, step: &Step, what: &str) {
    let line = format!("{} {}", step.request.method, step.request.path);
    let body = step.request.body.clone().unwrap_or_default();
    let (code, warnings, answer) = ask_by(server, admin(), &line, body).await;
    assert_eq!(code, step.answer.status, "{what}: {answer}");
    let theirs = step.answer.warnings.iter().map(|text| format!("299 - {}", go_quote(text)));
    assert_eq!(warnings, theirs.collect::<Vec<_>>(), "{what}");
    if code >= 400 {
        let theirs = step.answer.body.as_ref().expect("a refusal is a status");
        let told =
            |status: &Value| ["message", "reason", "details"].map(|part| status[part].clone());
        assert_eq!(told(&answer), told(theirs), "{what}");
    }
}
