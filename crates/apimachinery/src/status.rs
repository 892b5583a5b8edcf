//! `metav1.Status`: how the API answers when there is no object to answer with.
//!
//! One constructor for each way of failing, with upstream's code, reason and words, so that a
//! client cannot tell by an error whom it talks to.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field;
use crate::gvk::{GroupKind, GroupResource, GroupVersionKind};
use crate::json::go_quote;

/// The answer to a request that gave no object. Serializes as upstream prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    pub metadata: Metadata,
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "Reason::is_unknown")]
    pub reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// The HTTP status; zero when nobody said.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: i32,
}

/// The `metadata` of a status, which is that of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// What the request was about, and what in it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind, or as often the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

/// One of the things that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// A word for programs: [`field::ErrorKind::reason`], `FieldManagerConflict`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Why a request failed, in a word for programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    #[default]
    #[serde(rename = "")]
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    #[serde(rename = "StorageReadError")]
    StoreReadError,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
    /// A word of somebody else's: extension servers and webhooks have their own.
    #[serde(untagged)]
    Other(String),
}

impl Reason {
    fn is_unknown(&self) -> bool {
        *self == Reason::Unknown
    }
}

impl Status {
    /// The answer to a request that did what was asked and has nothing to show.
    pub fn success() -> Self {
        Status {
            kind: "Status".to_owned(),
            api_version: "v1".to_owned(),
            status: "Success".to_owned(),
            ..Status::default()
        }
    }

    /// A failure of which only code, reason and message are known.
    pub fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Status {
            kind: "Status".to_owned(),
            api_version: "v1".to_owned(),
            status: "Failure".to_owned(),
            message: message.into(),
            reason,
            code: code.into(),
            ..Status::default()
        }
    }

    /// Upstream prints details even when it has none to give.
    fn detailed(mut self) -> Self {
        self.details.get_or_insert_default();
        self
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = group.to_owned();
        details.kind = kind.to_owned();
        details.name = name.to_owned();
        self
    }

    fn retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    fn caused_by(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} not found", go_quote(name));
        Status::failure(404, Reason::NotFound, message).about(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// A failure that happened before anyone looked at what the request is about (no such path,
    /// no such method on it, no common media type), told by its HTTP status alone.
    ///
    /// `said` is what the HTTP layer has to say; for some codes it is the message.
    pub fn generic(code: u16, method: &str, said: &str) -> Self {
        let (reason, message) = match code {
            400 => (Reason::BadRequest, "the server rejected our request for an unknown reason"),
            401 => {
                (Reason::Unauthorized, "the server has asked for the client to provide credentials")
            }
            403 => (Reason::Forbidden, said),
            404 => (Reason::NotFound, "the server could not find the requested resource"),
            405 => (
                Reason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            ),
            406 if said.is_empty() || said == "unknown" => (
                Reason::NotAcceptable,
                "the server was unable to respond with a content type that the client supports",
            ),
            406 => (Reason::NotAcceptable, said),
            409 if method == "POST" => (Reason::AlreadyExists, "the server reported a conflict"),
            409 => (Reason::Conflict, "the server reported a conflict"),
            415 => (Reason::UnsupportedMediaType, said),
            422 => {
                (Reason::Invalid, "the server rejected our request due to an error in our request")
            }
            429 => (
                Reason::TooManyRequests,
                "the server has received too many requests and has asked us to try again later",
            ),
            503 => {
                (Reason::ServiceUnavailable, "the server is currently unable to handle the request")
            }
            504 => (
                Reason::Timeout,
                "the server was unable to return a response in the time allotted, but may still \
                 be processing the request",
            ),
            500.. => {
                let quoted = go_quote(said);
                let message = format!(
                    "an error on the server ({quoted}) has prevented the request from succeeding"
                );
                return Status::failure(code, Reason::InternalError, message).detailed();
            }
            _ => {
                let message = format!(
                    "the server responded with the status code {code} but did not return more \
                     information"
                );
                return Status::failure(code, Reason::Unknown, message).detailed();
            }
        };
        Status::failure(code, reason, message).detailed()
    }

    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", go_quote(name));
        Status::failure(409, Reason::AlreadyExists, message).about(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// Every name that was made up from `generateName` was taken.
    pub fn generate_name_conflict(
        resource: &GroupResource,
        name: &str,
        retry_after_seconds: i32,
    ) -> Self {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for \
             the object",
            go_quote(name)
        );
        Status::failure(409, Reason::AlreadyExists, message)
            .about(&resource.group, &resource.resource, name)
            .retry_after(retry_after_seconds)
    }

    /// `reason` empty means the usual words.
    pub fn unauthorized(reason: &str) -> Self {
        let message = if reason.is_empty() { "not authorized" } else { reason };
        Status::failure(401, Reason::Unauthorized, message)
    }

    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = if resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", go_quote(name))
        };
        Status::failure(403, Reason::Forbidden, message).about(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {resource} {}: {why}", go_quote(name));
        Status::failure(409, Reason::Conflict, message).about(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// The object changed since the client read it.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        Status::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// Fields of an applied object belong to other managers: a cause for each, as
    /// [`Cause::field_manager_conflict`] makes them.
    pub fn apply_conflict(causes: Vec<Cause>, message: impl Into<String>) -> Self {
        Status::failure(409, Reason::Conflict, message).caused_by(causes)
    }

    pub fn gone(message: impl Into<String>) -> Self {
        Status::failure(410, Reason::Gone, message)
    }

    /// The revision asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Status::failure(410, Reason::Expired, message)
    }

    /// The object breaks rules of its type.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let mut message = format!("{kind} {} is invalid", go_quote(name));
        if !errors.is_empty() {
            message.push_str(": ");
            message.push_str(&aggregate(errors));
        }
        Status::failure(422, Reason::Invalid, message)
            .about(&kind.group, &kind.kind, name)
            .caused_by(errors.iter().map(Cause::from).collect())
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Status::failure(400, Reason::BadRequest, message)
    }

    /// The body holds an object of a type, but strict decoding or its types refuse it.
    pub fn undecodable(found: &GroupVersionKind, expected: &str, why: impl fmt::Display) -> Self {
        Status::bad_request(format!(
            "{} in version {} cannot be handled as a {expected}: {why}",
            found.kind,
            go_quote(&found.version)
        ))
    }

    /// Nobody can tell what the body holds.
    pub fn unrecognized(expected: &str, why: impl fmt::Display, body: &[u8]) -> Self {
        let summary = summary(body);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): {why} ({summary})"
        ))
    }

    /// The server as a whole is doing too much.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Self {
        Status::failure(429, Reason::TooManyRequests, message).retry_after(retry_after_seconds)
    }

    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Status::failure(503, Reason::ServiceUnavailable, message)
    }

    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let quoted = go_quote(&resource.to_string());
        let message = format!("{action} is not supported on resources of kind {quoted}");
        Status::failure(405, Reason::MethodNotAllowed, message).about(
            &resource.group,
            &resource.resource,
            "",
        )
    }

    pub fn server_timeout(
        resource: &GroupResource,
        operation: &str,
        retry_after_seconds: i32,
    ) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, \
             please try again."
        );
        Status::failure(500, Reason::ServerTimeout, message)
            .about(&resource.group, &resource.resource, operation)
            .retry_after(retry_after_seconds)
    }

    pub fn internal_error(why: impl fmt::Display) -> Self {
        let cause = Cause { message: why.to_string(), ..Cause::default() };
        let message = format!("Internal error occurred: {why}");
        Status::failure(500, Reason::InternalError, message).caused_by(vec![cause])
    }

    pub fn timeout(message: impl fmt::Display, retry_after_seconds: i32) -> Self {
        Status::failure(504, Reason::Timeout, format!("Timeout: {message}"))
            .retry_after(retry_after_seconds)
    }

    /// The revision asked for lies in the future.
    pub fn resource_version_too_large(asked: u64, current: u64, retry_after_seconds: i32) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        Status::timeout(message, retry_after_seconds).caused_by(vec![Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }])
    }

    pub fn request_entity_too_large(message: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {message}");
        Status::failure(413, Reason::RequestEntityTooLarge, message)
    }

    /// None of the media types that the client accepts can be given.
    pub fn not_acceptable(accepted: &[impl AsRef<str>]) -> Self {
        let types = join(accepted);
        let message = format!("only the following media types are accepted: {types}");
        Status::failure(406, Reason::NotAcceptable, message)
    }

    /// The body is in a media type that nobody here reads.
    pub fn unsupported_media_type(accepted: &[impl AsRef<str>]) -> Self {
        let types = join(accepted);
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {types}"
        );
        Status::failure(415, Reason::UnsupportedMediaType, message)
    }

    /// Whether some cause has this reason.
    pub fn has_cause(&self, reason: &str) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == reason)
    }
}

/// A status is an error of which the message is for the person at the client.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

impl Cause {
    /// A field that another manager owns; `manager` is printed as it comes.
    pub fn field_manager_conflict(manager: impl fmt::Display, field: impl Into<String>) -> Self {
        Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {manager}"),
            field: field.into(),
        }
    }
}

impl From<&field::Error> for Cause {
    fn from(error: &field::Error) -> Self {
        Cause {
            reason: error.kind.reason().to_owned(),
            message: error.body(),
            field: error.field.clone(),
        }
    }
}

/// Several messages as one: each distinct one once, in brackets unless it is alone.
pub fn aggregate(errors: &[impl ToString]) -> String {
    let mut seen = HashSet::new();
    let mut distinct: Vec<String> = errors.iter().map(ToString::to_string).collect();
    distinct.retain(|message| seen.insert(message.clone()));
    match distinct.len() {
        1 => distinct.remove(0),
        _ => format!("[{}]", distinct.join(", ")),
    }
}

/// The beginning of a body, for the message that refuses it.
fn summary(body: &[u8]) -> String {
    const BYTES_MAX: usize = 30;
    let start = &body[..body.len().min(BYTES_MAX)];
    let mut summary = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > BYTES_MAX {
        summary.push_str(" ...");
    }
    summary
}

fn join(types: &[impl AsRef<str>]) -> String {
    types.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
