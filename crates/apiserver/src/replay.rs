//! Plays recorded requests to a whole server, which must answer as upstream did.

use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use kubewright_apimachinery::json::go_quote;
use serde_json::{Value, json};

use crate::fixtures::{self, Case, Step};
use crate::server::Server;
use crate::server::tests::server;
use crate::user::User;

/// What every time and every uid in a recording is.
const TIME: &str = "2000-01-01T00:00:00Z";
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Replays the cases of an area, each on a server of its own.
pub(crate) async fn replay(area: &str) {
    let mut differences = Vec::new();
    for case in fixtures::load(area) {
        let server = with_namespace(area, &case).await;
        for (index, step) in case.steps.iter().enumerate() {
            let (ours, theirs) = (ours(&server, step).await, theirs(step));
            if ours != theirs {
                let what = format!("{area}/{} step {}", case.name, index + 1);
                differences.push(format!("{what}: upstream says {theirs:#}, and we {ours:#}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// A server with the namespace of a case, and its account, of which pods get no token.
async fn with_namespace(area: &str, case: &Case) -> Server {
    let server = server();
    let name = format!("{area}-{}", case.name);
    let namespace = json!({"metadata": {"name": name}});
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    for (path, object) in [("/api/v1/namespaces", namespace), (&accounts, account)] {
        let (code, _, answer) =
            send(&server, admin(), "POST", path, "application/json", &object).await;
        assert_eq!(code, 201, "{answer}");
    }
    server
}

/// What upstream answered.
fn theirs(step: &Step) -> Value {
    let warnings = step.answer.warnings.iter().map(|text| format!("299 - {}", go_quote(text)));
    let body = step.answer.body.clone().unwrap_or_default();
    comparable(step.answer.status, warnings.collect(), body)
}

async fn ours(server: &Server, step: &Step) -> Value {
    let request = &step.request;
    let query: Vec<String> =
        request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let path = format!("{}?{}", request.path, query.join("&"));
    let body = request.body.clone().unwrap_or_default();
    let (code, warnings, answer) =
        send(server, admin(), &request.method, &path, &request.content_type, &body).await;
    comparable(code, warnings, answer)
}

/// Sends what the recorder would. The status code, the warnings and the body that a user is
/// answered with.
pub(crate) async fn send(
    server: &Server,
    user: User,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Vec<String>, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .header("user-agent", "kubewright-conformance")
        .extension(Arc::new(user))
        .body(Full::new(bytes::Bytes::from(body)))
        .expect("the request is well-formed");
    let response = server.call(request).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|text| text.to_str().expect("it is text").to_owned()).collect();
    let body = response.into_body().collect().await.expect("a body ends").to_bytes();
    (code, warnings, serde_json::from_slice(&body).unwrap_or_default())
}

pub(crate) fn admin() -> User {
    User::new("admin", ["system:masters".to_owned()])
}

/// An answer without what differs from server to server and from run to run.
fn comparable(code: u16, warnings: Vec<String>, mut body: Value) -> Value {
    scrub(&mut body);
    json!({ "code": code, "warnings": warnings, "body": body })
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The recorded server gives pods no account.
            for field in ["resourceVersion", "serviceAccount", "serviceAccountName"] {
                fields.shift_remove(field);
            }
            fields.values_mut().for_each(scrub);
            if let Some(uid) = fields.get_mut("uid").filter(|uid| uid.is_string()) {
                *uid = UID.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::String(text) if is_time(text) => *text = TIME.to_owned(),
        Value::String(text) => *text = without_uids(text),
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() == TIME.len() && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// Uids in a message, which are all of the same length.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &&str| word.len() == UID.len() && word.split('-').count() == 5;
    let words = text.split_inclusive([' ', '(', ')']);
    let scrubbed = words.map(|word| {
        let bare = word.trim_end_matches([' ', '(', ')']);
        if is_uid(&bare) { word.replace(bare, UID) } else { word.to_owned() }
    });
    scrubbed.collect()
}
