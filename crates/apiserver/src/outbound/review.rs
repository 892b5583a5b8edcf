//! Reviews: what a webhook is asked, and how its answer is read.
//!
//! A review goes out and comes back as one object. Upstream posts it with its ordinary client, so
//! what can be wrong with an answer is told in that client's words, a webhook may ask to be asked
//! later, and it may send who asks to somebody else.

mod media_type;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{builtin, json, yaml};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;

use super::Line;
use crate::draft::decode_yaml;
use crate::draft::identity::unregistered_in;

/// How much a webhook may answer. Upstream reads on for ever; what can be stored is far less.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How often a webhook may ask to be asked later.
const RETRIES_MAX: usize = 10;
/// How much of an answer is told that is none.
const SAID_BYTES_MAX: usize = 2048;

/// The versions of every kind of review that there ever were.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What upstream calls the table of kinds that it reads answers by.
pub(crate) const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// An answer to a review.
#[derive(Debug)]
pub(crate) struct Reviewed {
    /// What the answer says it is; what it does not say is empty.
    pub(crate) said: GroupVersionKind,
    /// In the normal form of its kind.
    pub(crate) review: Value,
    /// The JSON that was read.
    pub(crate) text: Vec<u8>,
}

/// A review that has no answer, or none that can be read.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Unreviewed {
    /// In the words of upstream's client.
    pub(crate) why: String,
    /// As what it is counted, in the way of HTTP.
    pub(crate) code: i32,
}

/// Posts a review, which says its version and kind, and reads the one that is answered.
pub(crate) async fn post(
    line: &Line,
    review: &Value,
    timeout: Duration,
) -> Result<Reviewed, Unreviewed> {
    let asked = GroupVersionKind::interpret(review).expect("a review says what it is");
    let mut body = json::to_vec(review);
    body.push(b'\n');
    let answer = exchange(line, body.into(), timeout).await?;
    read(&asked, &answer)
}

/// Posts until the webhook does not ask to be asked later, or until the time is up.
async fn exchange(
    line: &Line,
    body: Bytes,
    timeout: Duration,
) -> Result<Response<Bytes>, Unreviewed> {
    let until = Instant::now() + timeout;
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    let target = format!("{}?timeout={}", line.path(), whole_seconds(timeout));
    *request.uri_mut() =
        target.parse().map_err(|error| Unreviewed::unread(format!("parse {target}: {error}")))?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    let mut retries = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Boxed, as reviews are posted from deep within requests.
        let call = line.call_through(request.clone(), left, ANSWER_BYTES_MAX).boxed();
        let answer = call.await;
        let answer = answer.map_err(|error| Unreviewed::unread(error.to_string()))?;
        match pause(&answer) {
            Some(pause) if retries < RETRIES_MAX => {
                retries += 1;
                let left = until.saturating_duration_since(Instant::now());
                tokio::time::sleep(pause.min(left)).await;
            }
            _ => return Ok(answer),
        }
    }
}

/// How long to wait before a webhook may be asked again, if it wants that.
fn pause(answer: &Response<Bytes>) -> Option<Duration> {
    let code = answer.status();
    if code != StatusCode::TOO_MANY_REQUESTS && !code.is_server_error() {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// Reads what was answered to a review of this kind.
pub(crate) fn read(
    asked: &GroupVersionKind,
    answer: &Response<Bytes>,
) -> Result<Reviewed, Unreviewed> {
    let (code, body) = (answer.status(), answer.body());
    let given = given(answer.headers());
    if let Some(why) = media_type::check(given) {
        return Err(Unreviewed { why: format!("Internal error occurred: {why}"), code: 500 });
    }
    if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&code) {
        let status = refusal(answer, given);
        return Err(Unreviewed { why: status.message, code: status.code });
    }
    if body.is_empty() {
        let given = if given.is_empty() { "application/json" } else { given };
        let code = code.as_u16();
        return Err(Unreviewed::unread(format!(
            "0-length response with status code: {code} and content type: {given}"
        )));
    }
    decode(asked, body).map_err(Unreviewed::unread)
}

impl Unreviewed {
    fn unread(why: String) -> Self {
        Unreviewed { why, code: 503 }
    }
}

/// The media type that an answer says it has.
fn given(headers: &HeaderMap) -> &str {
    let given = headers.get(CONTENT_TYPE);
    given.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The review in the body of an answer.
pub(crate) fn decode(asked: &GroupVersionKind, body: &[u8]) -> Result<Reviewed, String> {
    let tree = tree(body)?;
    let said = GroupVersionKind::interpret(&tree).map_err(|error| error.to_string())?;
    check_type(asked, &said)?;
    let text = match yaml::is_json(body) {
        true => body.to_vec(),
        false => json::to_vec(&tree),
    };
    // All versions of a review have the same fields.
    let kind = builtin::kind(&asked.group, VERSIONS[0], &asked.kind).expect("it is in the table");
    let decoded = builtin::decode(kind, tree).map_err(|error| error.to_string())?;
    Ok(Reviewed { said, review: decoded.value, text })
}

/// What upstream's client makes of an answer that is no success: the status in it, if there is one.
fn refusal(answer: &Response<Bytes>, media_type: &str) -> Status {
    let body = answer.body();
    if let Ok(tree) = json::decode(body)
        && let Ok(said) = GroupVersionKind::interpret(&tree.value)
        && let expected = GroupVersionKind::new("", "v1", "Status")
        && taken_for(&said, &expected) == expected
        && let Ok(status) = Status::deserialize(&tree.value)
        && status.status == "Failure"
    {
        return status;
    }
    let is_text = media_type.is_empty() || media_type.starts_with("text/");
    let said = String::from_utf8_lossy(&body[..body.len().min(SAID_BYTES_MAX)]);
    let said = if is_text { said.trim() } else { "unknown" };
    Status::generic(answer.status().as_u16(), "POST", said)
}

/// The tree of an answer. Whatever is no JSON is read as YAML.
fn tree(body: &[u8]) -> Result<Value, String> {
    let tree = match yaml::is_json(body) {
        true => json::decode(body)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?,
        false => decode_yaml(body)?,
    };
    match tree.value {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        value => Ok(value),
    }
}

/// Whether what came can be read as what was asked for.
fn check_type(asked: &GroupVersionKind, said: &GroupVersionKind) -> Result<(), String> {
    let found = taken_for(said, asked);
    if found == *asked {
        return Ok(());
    }
    let is_version = found.group == asked.group && VERSIONS.contains(&found.version.as_str());
    let is_status = found == GroupVersionKind::new("", "v1", "Status");
    if (is_version && found.kind == asked.kind) || is_status {
        return Err(format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            found.version, found.kind, asked.version, asked.kind
        ));
    }
    Err(unregistered_in(&found, SCHEME))
}

/// What something is that says so much of itself: what it does not say is taken for granted.
fn taken_for(said: &GroupVersionKind, expected: &GroupVersionKind) -> GroupVersionKind {
    let mut found = said.clone();
    if found.kind.is_empty() {
        found.kind.clone_from(&expected.kind);
    }
    if found.version.is_empty() {
        found.group.clone_from(&expected.group);
        found.version.clone_from(&expected.version);
    }
    found
}

/// A time as Go prints it, in seconds of which none is left out.
fn whole_seconds(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds}s"),
        _ => format!("{}m{}s", seconds / 60, seconds % 60),
    }
}
