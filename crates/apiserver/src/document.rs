//! Documents about the API itself: how they are asked for, and how they are answered.
//!
//! Discovery, OpenAPI and the version are not resources, but clients negotiate and cache them as
//! carefully. What they have in common is here; what they say is not.

#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use kubewright_apimachinery::builtin::{self, Kind};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{json, proto, yaml};
use serde_json::Value;
use sha2::{Digest, Sha512};

use crate::negotiate::{Accept, Encoding};

/// A document, or why there is none. A failure is still to be put in the client's media type.
pub type Answer = Result<Response<Bytes>, Box<Status>>;

/// What is asked of a document, apart from which one it is.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    parts: &'a Parts,
}

impl<'a> Question<'a> {
    pub fn new(parts: &'a Parts) -> Self {
        Question { parts }
    }

    pub fn path(self) -> &'a str {
        self.parts.uri.path()
    }

    pub fn query(self) -> &'a str {
        self.parts.uri.query().unwrap_or_default()
    }

    /// The value of a header; empty when there is none, or none that is text.
    pub fn header(self, name: &HeaderName) -> &'a str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn accept(self) -> Accept<'a> {
        Accept::of(self.header(&ACCEPT), self.header(&USER_AGENT), self.query())
    }

    /// The encoding of a document that has only one form. Fails when no clause asks for that.
    pub fn plain_encoding(self) -> Result<Encoding, Box<Status>> {
        self.accept().plain().ok_or_else(|| Box::new(Status::not_acceptable(&MEDIA_TYPES)))
    }

    /// Fails as upstream's router does, which knows documents by method and media type.
    pub fn routed(self, types: &[&str]) -> Result<(), Box<Status>> {
        if self.parts.method != Method::GET {
            return Err(Box::new(Status::generic(405, self.parts.method.as_str(), "")));
        }
        self.accept().route(types)
    }
}

/// What documents that are objects come in.
pub const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The bytes of an object of a built-in kind, which says its own version and kind.
///
/// # Panics
/// When the value is not in the kind's normal form.
pub fn encode(kind: &Kind, value: &Value, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::JsonPretty => json::to_string_pretty(value).into(),
        Encoding::Json => {
            let mut text = json::to_vec(value);
            text.push(b'\n');
            text.into()
        }
        Encoding::Yaml => yaml::to_string(value).into(),
        Encoding::Protobuf => {
            let message = proto::encode_message(kind.ty(), value)
                .expect("documents have protobuf encodings and are made in normal form");
            let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
            proto::seal(text("apiVersion"), text("kind"), &message).into()
        }
    }
}

/// The built-in kind that a document is of.
///
/// # Panics
/// When there is none.
pub fn kind_of(group: &str, version: &str, kind: &str) -> &'static Kind {
    builtin::kind(group, version, kind).expect("the kinds of documents are built in")
}

/// An answer with a body.
pub fn respond(content_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What tells one content from another: upstream's choice, so that tags are the same.
pub fn hash(content: &[u8]) -> String {
    format!("{:X}", Bytes::copy_from_slice(&Sha512::digest(content)))
}

/// What is said of a request that cannot be read at all.
pub fn bad_request() -> Response<Bytes> {
    let mut response = respond("text/plain; charset=utf-8", "400 Bad Request");
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// What there is at a path that nobody knows.
pub fn page_not_found() -> Response<Bytes> {
    let mut response = respond("text/plain; charset=utf-8", "404 page not found\n");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
        .headers_mut()
        .insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
