//! Protobuf encodings of built-in kinds, transcoded from and to JSON values.
//!
//! An object travels as a four-byte prefix, then an envelope that names its version and kind, then
//! its message. There are no message types here: the table of built-in types has the number of
//! every field, and upstream's encoder writes by fixed rules (ascending numbers, scalars even when
//! zero, maps in the order of their keys), so one walk over the table gives its bytes exactly.
//!
//! JSON is expected and given in normal form, as [`crate::builtin`] makes it. Kinds without
//! protobuf (`Table`) are refused.

mod decode;
mod encode;
mod envelope;
mod frame;
mod time;
mod wire;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::builtin::{self, Kind, Type};

pub use envelope::{Envelope, open, seal};
pub use frame::{Frames, WatchEvent, frame};

/// Why a value has no protobuf encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Answer in JSON instead.
    #[error("{kind} has no protobuf encoding")]
    NoProtobuf { kind: &'static str },
    /// The value is not in normal form: a bug of the caller's.
    #[error("encode {ty}.{field}: not in normal form")]
    NotNormal { ty: &'static str, field: &'static str },
}

/// Why bytes are not an object. Displays in upstream's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("empty data")]
    Empty,
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("empty body")]
    EmptyBody,
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    #[error("proto: unexpected end of group")]
    EndGroup,
    #[error("proto: illegal tag 0")]
    IllegalTag,
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType { field: &'static str, wire: u8 },
    /// Raw JSON inside the message is none.
    #[error(transparent)]
    Json(#[from] crate::json::DecodeError),
    #[error(transparent)]
    Quantity(#[from] crate::quantity::ParseError),
    /// A year that has no RFC 3339 form.
    #[error("time out of range")]
    Time,
    /// JSON has no such number.
    #[error("json: unsupported value")]
    NotFinite,
    #[error("nested deeper than {} levels", crate::json::DEPTH_MAX)]
    TooDeep,
    #[error("Object 'Kind' is missing in '{}'", type_meta(api_version, ""))]
    MissingKind { api_version: String },
    #[error("Object 'apiVersion' is missing in '{}'", type_meta("", kind))]
    MissingVersion { kind: String },
    /// The envelope names a kind that is not built in.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind { api_version: String, kind: String },
    #[error("{kind} has no protobuf encoding")]
    NoProtobuf { kind: &'static str },
}

/// An object as it travels. Its own `apiVersion` and `kind` go into the envelope, else the kind's.
pub fn encode(kind: &Kind, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let own = match kind.group {
        "" => kind.version.to_owned(),
        group => format!("{group}/{}", kind.version),
    };
    let message = encode_message(kind.ty(), value)?;
    let api_version = text("apiVersion").unwrap_or(&own);
    Ok(seal(api_version, text("kind").unwrap_or(kind.kind), &message))
}

/// An object that carries its version and kind.
///
/// Fields that the table does not know are dropped, as upstream's decoder drops them.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let envelope = open(bytes)?;
    if envelope.kind.is_empty() {
        return Err(DecodeError::MissingKind { api_version: envelope.api_version });
    }
    if envelope.api_version.is_empty() {
        return Err(DecodeError::MissingVersion { kind: envelope.kind });
    }
    let (group, version) =
        envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let kind = builtin::kind(group, version, &envelope.kind).ok_or_else(|| {
        let Envelope { api_version, kind, .. } = &envelope;
        DecodeError::UnknownKind { api_version: api_version.clone(), kind: kind.clone() }
    })?;
    decode::object(kind.ty(), envelope.raw, Some((&envelope.api_version, &envelope.kind)))
}

/// The `apiVersion` and `kind` that an object says it is of, whatever may be wrong with the rest.
pub fn type_of(bytes: &[u8]) -> Option<(String, String)> {
    let Envelope { api_version, kind, .. } = open(bytes).ok()?;
    (!api_version.is_empty() && !kind.is_empty()).then_some((api_version, kind))
}

/// The message of a value without an envelope, as nested objects and raw streams have it.
pub fn encode_message(ty: &'static Type, value: &Value) -> Result<Vec<u8>, EncodeError> {
    encode::message(ty, value)
}

/// The value of a message without an envelope.
pub fn decode_message(ty: &'static Type, bytes: &[u8]) -> Result<Value, DecodeError> {
    decode::object(ty, bytes, None)
}

/// The names in an envelope, as Go shows a struct.
fn type_meta(api_version: &str, kind: &str) -> String {
    let quote = crate::json::go_quote;
    format!("runtime.TypeMeta{{APIVersion:{}, Kind:{}}}", quote(api_version), quote(kind))
}
