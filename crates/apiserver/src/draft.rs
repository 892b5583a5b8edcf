//! A body becomes an object: decoded in its media type, checked field by field, in normal form,
//! with defaults, in the version of the request.

pub(crate) mod identity;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json::Decoded;
use kubewright_apimachinery::json::strict::{self, Violation};
use kubewright_apimachinery::schema::{self, Malformed};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{json, proto, yaml};
use serde_json::Value;

use identity::Mismatch;

use crate::options::FieldValidation;
use crate::refusal::Refusal;
use crate::resource::{Custom, Origin, Resource};
use crate::warnings::Warnings;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An object that a client sent, in the version of the request, with defaults.
#[derive(Debug)]
pub(crate) struct Draft(Value);

impl Draft {
    /// What the server itself writes, whole, and so need not read.
    pub(crate) fn of_server(object: Value) -> Self {
        Draft(object)
    }

    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn object_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    pub(crate) fn into_object(self) -> Value {
        self.0
    }
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    /// The media type of a body; without one it is JSON. Custom resources have no protobuf.
    pub(crate) fn of(headers: &HeaderMap, takes_protobuf: bool) -> Result<Media, Refusal> {
        let given = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or(";"));
        let given = given.filter(|value| !value.is_empty()).unwrap_or(JSON);
        let media = given.split(';').next().unwrap_or_default().trim();
        match media.to_ascii_lowercase().as_str() {
            "*/*" | JSON => Ok(Media::Json),
            YAML => Ok(Media::Yaml),
            PROTOBUF if takes_protobuf => Ok(Media::Protobuf),
            // Upstream takes this for an object, and then breaks the connection.
            PROTOBUF => Err(Box::new(Status::unsupported_media_type(&[JSON, YAML]))),
            _ => Err(Box::new(Status::unsupported_media_type(&[JSON, YAML, PROTOBUF]))),
        }
    }
}

/// What a body is read as: the kind of the resource, or that of one of its parts.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) gvk: &'a GroupVersionKind,
    pub(crate) shape: Shape<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    Builtin(&'static builtin::Kind),
    Custom(&'a Custom),
}

impl Resource {
    pub(crate) fn takes_protobuf(&self) -> bool {
        matches!(self.origin, Origin::Builtin(_))
    }

    pub(crate) fn expected(&self) -> Expected<'_> {
        let shape = match &self.origin {
            Origin::Builtin(builtin) => Shape::Builtin(builtin.kind),
            Origin::Custom(custom) => Shape::Custom(custom),
        };
        Expected { gvk: &self.gvk, shape }
    }

    /// Reads a body as an object of this resource.
    pub(crate) fn draft(
        &self,
        media: Media,
        body: &[u8],
        validation: FieldValidation,
        warnings: &Warnings,
    ) -> Result<Draft, Refusal> {
        let mut object = decode(self.expected(), media, body, validation, warnings)?;
        if let Some(why) = self.unreadable(&object) {
            return Err(Box::new(Status::undecodable(&self.gvk, &self.gvk.kind, why)));
        }
        self.default(&mut object);
        Ok(Draft(object))
    }
}

/// Reads a body as an object of a kind, in normal form. What strictness finds is refused, warned
/// about, or passed over, as the client asked.
pub(crate) fn decode(
    expected: Expected<'_>,
    media: Media,
    body: &[u8],
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Value, Refusal> {
    let kind = &expected.gvk.kind;
    let unread = |why: &dyn std::fmt::Display| Box::new(Status::unrecognized(kind, why, body));
    let Decoded { value, violations } = match media {
        Media::Protobuf => {
            let value = proto::decode(body).map_err(|error| match proto::type_of(body) {
                Some((api_version, kind)) => misfit(&api_version, kind, expected.gvk, &error),
                None => unread(&error),
            })?;
            Decoded { value, violations: Vec::new() }
        }
        Media::Yaml if !is_json(body) => decode_yaml(body).map_err(|error| unread(&error))?,
        _ => match expected.shape {
            Shape::Builtin(kind) => json::decode_shaped(body, builtin::shape(kind)),
            Shape::Custom(_) => json::decode(body),
        }
        // Upstream looks for the kind first, and fails there.
        .map_err(|error| {
            unread(&format_args!("couldn't get version/kind; json parse error: {error}"))
        })?,
    };
    let text = || String::from_utf8_lossy(body).into_owned();
    let found = identity::identify(&value, expected, text)
        .map_err(|mismatch| unfit(mismatch, &value, expected, body))?;
    let (value, violations) = shape(expected, &found, value, violations)?;
    judge(&violations, &found, kind, validation, warnings)?;
    Ok(value)
}

/// Whether YAML is JSON, which has a reader of its own. A brace may also begin what only YAML has.
pub(crate) fn is_json(body: &[u8]) -> bool {
    yaml::is_json(body) && json::decode(body).is_ok()
}

/// Reads YAML, which is text.
pub(crate) fn decode_yaml(body: &[u8]) -> Result<Decoded, String> {
    let text = std::str::from_utf8(body).map_err(|_| INVALID_UTF8.to_owned())?;
    yaml::decode(text).map_err(|error| error.to_string())
}

const INVALID_UTF8: &str = "yaml: invalid leading UTF-8 octet";

/// The refusal of a body that is not what was expected.
fn unfit(mismatch: Mismatch, value: &Value, expected: Expected<'_>, body: &[u8]) -> Refusal {
    let gvk = expected.gvk;
    match mismatch {
        Mismatch::Unreadable(why) => Box::new(Status::unrecognized(&gvk.kind, why, body)),
        Mismatch::Version(found) => Box::new(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            found.api_version(),
            gvk.api_version()
        ))),
        Mismatch::Kind { found, why } => Box::new(Status::undecodable(&found, &gvk.kind, why)),
        Mismatch::Name(found) => identity::misnamed(value, &found, gvk),
    }
}

/// What is said of a protobuf message that does not fit what its envelope says it is.
fn misfit(
    api_version: &str,
    kind: String,
    expected: &GroupVersionKind,
    error: &proto::DecodeError,
) -> Refusal {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = GroupVersionKind::new(group, version, kind);
    let why = match error {
        proto::DecodeError::UnknownKind { .. } => identity::unregistered(&found),
        error => error.to_string(),
    };
    Box::new(Status::undecodable(&found, &expected.kind, why))
}

/// Brings a tree into the form of its kind.
fn shape(
    expected: Expected<'_>,
    found: &GroupVersionKind,
    value: Value,
    mut violations: Vec<Violation>,
) -> Result<(Value, Vec<Violation>), Refusal> {
    let refuse = |why: String| Box::new(Status::undecodable(found, &expected.gvk.kind, why));
    let mut value = match expected.shape {
        Shape::Builtin(kind) => {
            let decoded =
                builtin::decode(kind, value).map_err(|error| refuse(error.to_string()))?;
            // A tree that was read along the shape has told of unknown fields already.
            for violation in decoded.violations {
                if !violations.contains(&violation) {
                    violations.push(violation);
                }
            }
            decoded.value
        }
        Shape::Custom(custom) => {
            let (value, unknown) = custom.admit_tree(value, Malformed::Refuse).map_err(refuse)?;
            violations.extend(unknown.into_iter().map(Violation::UnspecifiedField));
            value
        }
    };
    identity::label(&mut value, expected.gvk);
    Ok((value, violations))
}

fn judge(
    violations: &[Violation],
    found: &GroupVersionKind,
    expected: &str,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<(), Refusal> {
    match validation {
        _ if violations.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            warnings.extend(strict::warnings(violations));
            Ok(())
        }
        FieldValidation::Strict => {
            Err(Box::new(Status::undecodable(found, expected, strict::error(violations))))
        }
    }
}

impl Custom {
    /// Brings a tree into the form of a custom resource: metadata in normal form, unknown fields
    /// and meaningless nulls dropped. Also gives the paths of what was unknown.
    ///
    /// # Errors
    /// In the words of Go's decoder, when metadata has fields of the wrong type and this is an
    /// error.
    pub(crate) fn admit_tree(
        &self,
        mut value: Value,
        malformed: Malformed,
    ) -> Result<(Value, Vec<String>), String> {
        let metadata = value.get("metadata").cloned().unwrap_or_else(|| serde_json::json!({}));
        let normalized = schema::normalize_object_meta(&metadata, malformed)?;
        let mut unknown: Vec<String> =
            normalized.unknown.iter().map(|field| format!("metadata.{field}")).collect();
        value["metadata"] = Value::Object(normalized.metadata);
        if !self.definition.spec.preserve_unknown_fields {
            unknown.extend(schema::prune(&mut value, &self.schema));
        }
        schema::drop_nulls(&mut value, &self.schema);
        let embedded = schema::coerce(&mut value, &self.schema, malformed);
        unknown.extend(embedded.map_err(|error| error.to_string())?);
        Ok((value, unknown))
    }
}
