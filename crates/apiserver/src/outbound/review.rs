//! Reviews: what a webhook is asked, and how its answer is read.
//!
//! A review goes out and comes back as one object. Upstream posts it with its ordinary client, so
//! what can be wrong with an answer is told in that client's words.

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{builtin, json, yaml};
use serde_json::Value;

use super::Line;
use crate::draft::decode_yaml;
use crate::draft::identity::unregistered_in;

/// How much a webhook may answer: what it was sent is smaller, and may grow.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The versions of every kind of review that there ever were.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What upstream calls the table of kinds that it reads answers by.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

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

/// Posts a review, which says its version and kind, and reads the one that is answered.
///
/// # Errors
/// In the words of upstream's client.
pub(crate) async fn post(
    line: &Line,
    review: &Value,
    timeout: Duration,
) -> Result<Reviewed, String> {
    let asked = GroupVersionKind::interpret(review).expect("a review says what it is");
    let mut body = json::to_vec(review);
    body.push(b'\n');
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    let target = format!("{}?timeout={}s", line.path(), timeout.as_secs());
    *request.uri_mut() = target.parse().map_err(|error| format!("parse {target}: {error}"))?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    let answer = line.call(request, timeout, ANSWER_BYTES_MAX).await;
    read(&asked, &answer.map_err(|error| error.to_string())?)
}

/// Reads what was answered to a review of this kind.
pub(super) fn read(asked: &GroupVersionKind, answer: &Response<Bytes>) -> Result<Reviewed, String> {
    let (code, body) = (answer.status(), answer.body());
    let media_type = answer.headers().get(CONTENT_TYPE).map(|value| value.to_str());
    if code < StatusCode::OK || code > StatusCode::PARTIAL_CONTENT {
        return Err(refusal(code, media_type, body));
    }
    if body.is_empty() {
        let media_type = media_type.and_then(Result::ok).unwrap_or("application/json");
        return Err(format!(
            "0-length response with status code: {} and content type: {media_type}",
            code.as_u16()
        ));
    }
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
fn refusal(
    code: StatusCode,
    media_type: Option<Result<&str, http::header::ToStrError>>,
    body: &[u8],
) -> String {
    /// More of an answer is not told.
    const TOLD_BYTES_MAX: usize = 2048;
    if let Ok(status) = json::decode(body).map(|decoded| decoded.value)
        && status["kind"].as_str().is_none_or(|kind| kind == "Status")
        && status["status"] == "Failure"
    {
        return status["message"].as_str().unwrap_or_default().to_owned();
    }
    let is_text = match media_type {
        None => true,
        Some(media_type) => media_type.is_ok_and(|media_type| media_type.starts_with("text/")),
    };
    let told = &body[..body.len().min(TOLD_BYTES_MAX)];
    let told = match is_text {
        true => String::from_utf8_lossy(told).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    Status::generic(code.as_u16(), "POST", &told).message
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

/// Whether what came can be read as what was asked for. What it does not say is taken for granted.
fn check_type(asked: &GroupVersionKind, said: &GroupVersionKind) -> Result<(), String> {
    let mut found = said.clone();
    if found.kind.is_empty() {
        found.kind.clone_from(&asked.kind);
    }
    if found.version.is_empty() {
        found.group.clone_from(&asked.group);
        found.version.clone_from(&asked.version);
    }
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
