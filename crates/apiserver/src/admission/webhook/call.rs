//! Asking one webhook.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Status;
use serde::Deserialize as _;
use tokio::time::Instant;
use uuid::Uuid;

use super::Failed;
use super::configuration::{Hook, ReviewVersion, Role};
use super::review::{self, Verdict};
use crate::admission::Attributes;
use crate::admission::criteria::Aspect;
use crate::admission::shown::Shown;
use crate::outbound::ConfigError;

/// How much a webhook may answer. Upstream reads on for ever; what can be stored is far less.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How often a webhook may ask to be asked later.
const RETRIES_MAX: usize = 10;
/// How much of an answer is told that is none.
const SAID_BYTES_MAX: usize = 2048;
const AGENT: &str = "kube-apiserver-admission";

impl Hook {
    /// Asks the webhook about a request.
    pub(super) async fn ask(
        &self,
        role: Role,
        aspect: &Aspect,
        attributes: &Attributes<'_>,
        shown: &Shown,
    ) -> Result<Verdict, Failed> {
        if attributes.dry_run && !self.is_harmless {
            let name = json::go_quote(&self.name);
            let why = format!("admission webhook {name} does not support dry run");
            return Err(Failed::Refused(Box::new(Status::bad_request(why))));
        }
        let Some(version) = self.review else {
            let why = "could not create admission objects: webhook does not accept known \
                       AdmissionReview versions (v1, v1beta1)";
            return Err(self.unanswered(why, 400));
        };
        let uid = Uuid::new_v4().to_string();
        let question = review::question(version, &uid, aspect, attributes, shown);
        let answer = self.exchange(question.into(), attributes.deadline).await?;
        let review = self.read_review(&answer, version)?;
        review::verify(&review, version, role, &uid).map_err(|why| {
            self.unanswered(format_args!("received invalid webhook response: {why}"), 503)
        })
    }

    /// Sends a question until it is answered, or until the time is up.
    async fn exchange(
        &self,
        question: Bytes,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failed> {
        let line = self.line.as_ref().map_err(|error| {
            let why = match error {
                ConfigError::Bundle => error.to_string(),
                _ => format!("failed calling webhook {}: {error}", json::go_quote(&self.name)),
            };
            self.unanswered(format_args!("could not get REST client: {why}"), 500)
        })?;
        let now = Instant::now();
        let until = match self.timeout {
            Some(timeout) => deadline.min(now + timeout),
            None => deadline,
        };
        let target = format!("{}?timeout={}", line.path(), whole_seconds(until - now));
        let mut retries = 0;
        loop {
            let request = Request::post(&target)
                .header(USER_AGENT, AGENT)
                .header(ACCEPT, "application/json, */*")
                .header(CONTENT_TYPE, "application/json")
                .body(question.clone())
                .expect("a stored path is one of a URL");
            let left = until.saturating_duration_since(Instant::now());
            let answer = line.call(request, left, ANSWER_BYTES_MAX).await.map_err(|error| {
                self.unanswered(format_args!("failed to call webhook: {error}"), 503)
            })?;
            match wait(&answer) {
                Some(pause) if retries < RETRIES_MAX => {
                    retries += 1;
                    tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Reads an answer as a review.
    fn read_review(
        &self,
        answer: &Response<Bytes>,
        version: ReviewVersion,
    ) -> Result<serde_json::Value, Failed> {
        let failed = |why: &str, code: i32| {
            self.unanswered(format_args!("failed to call webhook: {why}"), code)
        };
        let given = answer.headers().get(CONTENT_TYPE);
        let given = given.map(|value| value.to_str().unwrap_or_default()).unwrap_or_default();
        if let Some(why) = check_media_type(given) {
            return Err(failed(&format!("Internal error occurred: {why}"), 500));
        }
        let code = answer.status();
        if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&code) {
            let status = unexpected(answer, given);
            return Err(failed(&status.message, status.code));
        }
        if answer.body().is_empty() {
            let given = if given.is_empty() { "application/json" } else { given };
            let code = code.as_u16();
            let why =
                format!("0-length response with status code: {code} and content type: {given}");
            return Err(failed(&why, 503));
        }
        review::read(answer.body(), version).map_err(|why| failed(&why, 503))
    }

    /// The webhook gave no verdict; `code` is what metrics count it as.
    pub(super) fn unanswered(&self, why: impl std::fmt::Display, code: i32) -> Failed {
        let why = format!("failed calling webhook {}: {why}", json::go_quote(&self.name));
        Failed::Unanswered { why, code }
    }
}

/// How long to wait before a webhook may be asked again, if it wants that.
fn wait(answer: &Response<Bytes>) -> Option<Duration> {
    let code = answer.status();
    if code != StatusCode::TOO_MANY_REQUESTS && !code.is_server_error() {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// What is told of an answer that says only by its code that something is wrong.
fn unexpected(answer: &Response<Bytes>, media_type: &str) -> Status {
    let body = answer.body();
    if let Ok(tree) = json::decode(body)
        && GroupVersionKind::interpret(&tree.value)
            .is_ok_and(|gvk| gvk == GroupVersionKind::new("", "v1", "Status"))
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

/// What Go's `mime.ParseMediaType` finds wrong, if anything is given.
fn check_media_type(given: &str) -> Option<&'static str> {
    let is_token = |text: &str| {
        let is_special = |letter: char| " ()<>@,;:\\\"/[]?=".contains(letter);
        !text.is_empty() && !text.chars().any(|letter| letter.is_control() || is_special(letter))
    };
    let (media, parameters) = given.split_once(';').unwrap_or((given, ""));
    match media.trim().split_once('/') {
        _ if given.is_empty() => return None,
        None if media.trim().is_empty() => return Some("mime: no media type"),
        None if is_token(media.trim()) => {}
        None => return Some("mime: expected slash after first token"),
        Some((kind, _)) if !is_token(kind) => return Some("mime: no media type"),
        Some((_, "")) => return Some("mime: expected token after slash"),
        Some((_, sub)) if !is_token(sub) => {
            return Some("mime: unexpected content after media subtype");
        }
        Some(_) => {}
    }
    let mut parameters = parameters.split(';').map(str::trim).peekable();
    while let Some(parameter) = parameters.next() {
        // One semicolon too many at the end is let pass.
        if parameter.is_empty() && parameters.peek().is_none() {
            continue;
        }
        let is_sound = parameter.split_once('=').is_some_and(|(name, value)| {
            let quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
            is_token(name.trim()) && (is_token(value) || quoted)
        });
        if !is_sound {
            return Some("mime: invalid media parameter");
        }
    }
    None
}

/// A time as Go prints it, in seconds of which none is left out.
fn whole_seconds(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds}s"),
        _ => format!("{}m{}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_checked_as_go_checks_it() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(check_media_type(given), expected, "{given}");
        };
        check("", None);
        check("application/json", None);
        check("application/json; charset=utf-8", None);
        check("application/json;", None);
        check("text", None);
        check("app;;;x", Some("mime: invalid media parameter"));
        check("/json", Some("mime: no media type"));
        check("text/", Some("mime: expected token after slash"));
        check("text/a/b", Some("mime: unexpected content after media subtype"));
    }

    #[test]
    fn seconds_are_not_cut() {
        assert_eq!(whole_seconds(Duration::from_millis(1001)), "2s");
        assert_eq!(whole_seconds(Duration::from_secs(30)), "30s");
        assert_eq!(whole_seconds(Duration::from_secs(60)), "1m0s");
    }
}
