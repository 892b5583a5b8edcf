//! From an object or a status to an HTTP answer, in the form that was negotiated.
//!
//! Objects leave as they are stored wherever possible: the bytes of a revision with its
//! `resourceVersion` spliced in. Another version or protobuf is rendered once per revision and kept
//! with it ([`Renderer`]). Tables, YAML and JSON for people are made anew for whoever asks.

pub mod custom;
mod renderer;
mod view;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::time::MicroTime;
use kubewright_apimachinery::{builtin, json, proto, yaml};
use kubewright_store::{Clock, Rev};
use serde_json::Value;

pub(crate) use renderer::{Heads, check, converted_form};
pub use renderer::{Piece, Renderer};
pub(crate) use view::{Tables, include, not_an_object, partial};

use crate::body::Body;
use crate::index::{Index, Stored};
use crate::negotiate::{Encoding, Format, View};
use crate::resource::{Origin, Resource};

/// What is answered with.
#[derive(Debug)]
pub enum Answer<'a> {
    /// An object of the resource, as it is stored.
    Stored(&'a Stored),
    /// An object of the resource in the version in which writes judge it that is not stored, or
    /// not in this form: the outcome of a dry run, or what was deleted.
    Hub(Value),
    /// An object or list that is what it says it is: a review, a scale, a token request.
    Own(Value),
    /// Done, and nothing to show.
    Status(Box<Status>),
}

/// Tells what a field is for: the type without `k8s.io/api/` (`core/v1.PodSpec`), the field.
pub type Describe = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// Writes answers. A clone is cheap.
#[derive(Clone)]
pub struct Encoder {
    clock: Clock,
    describe: Describe,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    /// `clock` is for ages in tables, `describe` for the descriptions of their columns.
    pub fn new(clock: Clock, describe: Describe) -> Self {
        Encoder { clock, describe }
    }

    /// The answer to a request about `resource`.
    pub fn answer(
        &self,
        answer: Answer<'_>,
        resource: &Arc<Resource>,
        format: &Format,
        code: StatusCode,
    ) -> Response<Body> {
        match self.bytes(answer, resource, format) {
            Ok(bytes) => respond(code, format.encoding, bytes.into()),
            Err(status) => failure(&status, format.failure),
        }
    }

    /// The body of an answer.
    ///
    /// # Errors
    /// The view that was asked for cannot be given of this.
    pub fn bytes(
        &self,
        answer: Answer<'_>,
        resource: &Arc<Resource>,
        format: &Format,
    ) -> Result<Bytes, Box<Status>> {
        let object = match (answer, &format.view) {
            (Answer::Status(status), _) => return encode(&to_value(&status), format.encoding),
            (Answer::Stored(rev), View::Object) => {
                return Renderer::new(resource).object(rev, format.encoding);
            }
            (Answer::Stored(rev), View::PartialObjectMetadata(version)) => {
                let renderer = Renderer::new(resource);
                return renderer.partial(rev, rev.revision, *version, format.encoding);
            }
            (Answer::Stored(rev), _) => Object::judged(resource, live(resource, rev)?),
            (Answer::Hub(object), _) => Object::written(resource, object)?,
            (Answer::Own(object), _) => Object::Own(object),
        };
        self.view(object, resource, format)
    }

    fn view(
        &self,
        object: Object,
        resource: &Arc<Resource>,
        format: &Format,
    ) -> Result<Bytes, Box<Status>> {
        let value = match (&format.view, object.is_list()) {
            (View::Object, _) => object.shown(resource)?,
            (View::PartialObjectMetadata(_), true) => return Err(view::not_an_object(resource)),
            (View::PartialObjectMetadata(version), false) => {
                view::partial(&object.shown(resource)?, *version)
            }
            (View::PartialObjectMetadataList(_), false) => return Err(view::not_a_list(resource)),
            (View::PartialObjectMetadataList(version), true) => {
                view::partial_list(&object.shown(resource)?, *version)
            }
            (View::Table { version, include }, _) => {
                let include = view::include(include)?;
                self.table(resource, include).rows(object, *version, self.now())?
            }
        };
        encode(&value, format.encoding)
    }

    pub(crate) fn now(&self) -> MicroTime {
        let now = self.clock.now();
        MicroTime::from_unix(now.as_secs().cast_signed(), now.subsec_nanos())
    }
}

/// An object on its way out.
enum Object {
    /// Of a built-in kind, in its hub version.
    Hub(Value),
    /// Of a custom resource, as the client sees it.
    Shown(Value),
    Own(Value),
}

impl Object {
    /// An object in the version in which writes judge it.
    fn judged(resource: &Resource, object: Value) -> Self {
        match resource.origin {
            Origin::Builtin(_) => Object::Hub(object),
            Origin::Custom(_) => Object::Shown(object),
        }
    }

    /// The same, as a write left it.
    fn written(resource: &Resource, mut object: Value) -> Result<Self, Box<Status>> {
        if let Origin::Custom(_) = resource.origin {
            match resource.is_converted() {
                // Only what comes out of storage has its defaults filled in.
                true => json::sort_keys(&mut object),
                false => object = renderer::in_version(resource, object)?,
            }
        }
        Ok(Object::judged(resource, object))
    }

    fn is_list(&self) -> bool {
        matches!(self, Object::Own(value) if value.get("items").is_some())
    }

    /// In the version that the client asked for.
    fn shown(self, resource: &Resource) -> Result<Value, Box<Status>> {
        match self {
            Object::Hub(object) => renderer::in_version(resource, object),
            Object::Shown(object) | Object::Own(object) => Ok(object),
        }
    }
}

/// The object as a tree in the version of the resource, with its `resourceVersion`.
///
/// # Errors
/// What is stored is no object.
pub fn value(resource: &Resource, rev: &Rev<Index>) -> Result<Value, Box<Status>> {
    renderer::shown(resource, rev)
}

/// The object as a tree in the version in which writes judge it: the hub of a built-in kind, the
/// version of the request for a custom resource.
///
/// # Errors
/// What is stored is no object.
pub(crate) fn live(resource: &Resource, rev: &Rev<Index>) -> Result<Value, Box<Status>> {
    match resource.origin {
        Origin::Builtin(_) => renderer::hub(resource, rev),
        Origin::Custom(_) => renderer::shown(resource, rev),
    }
}

/// The answer to a request that failed.
pub fn failure(status: &Status, encoding: Encoding) -> Response<Body> {
    let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let bytes = encode(&to_value(status), encoding).expect("a status has every encoding");
    let mut response = respond(code, encoding, bytes.into());
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// An answer with this body.
pub(crate) fn respond(code: StatusCode, encoding: Encoding, body: Body) -> Response<Body> {
    typed(code, HeaderValue::from_static(encoding.media_type()), body)
}

pub(crate) fn typed(code: StatusCode, media_type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(CONTENT_TYPE, media_type);
    response
}

fn to_value(status: &Status) -> Value {
    serde_json::to_value(status).expect("a status is JSON")
}

/// An object that says its version and kind, as it travels.
///
/// # Errors
/// There is no protobuf of it.
pub(crate) fn encode(value: &Value, encoding: Encoding) -> Result<Bytes, Box<Status>> {
    Ok(match encoding {
        Encoding::Json => {
            let mut bytes = json::to_vec(value);
            bytes.push(b'\n');
            bytes.into()
        }
        Encoding::JsonPretty => json::to_string_pretty(value).into(),
        Encoding::Yaml => yaml::to_string(value).into(),
        Encoding::Protobuf => sealed(value)?.into(),
    })
}

fn sealed(value: &Value) -> Result<Vec<u8>, Box<Status>> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    if (version, text("kind")) == ("v1beta1", "PartialObjectMetadataList") {
        return sealed_beta_list(value);
    }
    // Both versions of other kinds have the same messages; the table has the newer ones.
    let version = if group == "meta.k8s.io" { "v1" } else { version };
    let kind = builtin::kind(group, version, text("kind")).ok_or_else(|| {
        let offered = [Encoding::Json, Encoding::Yaml].map(Encoding::media_type);
        Status::not_acceptable(&offered)
    })?;
    proto::encode(kind, value).map_err(|error| Box::new(Status::internal_error(error)))
}

/// The older list of metadata, which has its fields under other numbers than any other list.
fn sealed_beta_list(list: &Value) -> Result<Vec<u8>, Box<Status>> {
    let message = |ty: &str, value: &Value| {
        let ty = builtin::type_named(ty).expect("it is in the table");
        proto::encode_message(ty, value).map_err(|error| Box::new(Status::internal_error(error)))
    };
    let mut bytes = Vec::new();
    for item in list["items"].as_array().into_iter().flatten() {
        let item = message("k8s.io/apimachinery/pkg/apis/meta/v1.PartialObjectMetadata", item)?;
        bytes.extend(field(1, item.len()));
        bytes.extend(item);
    }
    let metadata = message("k8s.io/apimachinery/pkg/apis/meta/v1.ListMeta", &list["metadata"])?;
    bytes.extend(field(2, metadata.len()));
    bytes.extend(metadata);
    Ok(proto::seal("meta.k8s.io/v1beta1", "PartialObjectMetadataList", &bytes))
}

/// How a field of a message begins that is this long.
pub(crate) fn field(number: u8, mut length: usize) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}
