//! From values to messages.
//!
//! Upstream writes every field that is not a nil pointer, a nil byte string or an element of a
//! collection, whatever its value: an absent string is written as an empty one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::EncodeError;
use super::time;
use super::wire::Writer;
use crate::builtin::{Field, SchemaOr, Ty, Type};
use crate::time::GoDuration;

pub(super) fn message(ty: &'static Type, value: &Value) -> Result<Vec<u8>, EncodeError> {
    if ty.messages().next().is_none() {
        return Err(EncodeError::NoProtobuf { kind: ty.short_name() });
    }
    let object = value.as_object();
    let object = object.ok_or(EncodeError::NotNormal { ty: ty.short_name(), field: "" })?;
    let mut writer = Writer::default();
    write_struct(&mut writer, ty, Some(object))?;
    Ok(writer.finish())
}

/// `NotNormal` without its place: the field that holds the value adds it.
struct Mismatch;

type Written<E = Mismatch> = Result<(), E>;

/// An absent object is a struct of zeros.
fn write_struct(
    writer: &mut Writer,
    ty: &'static Type,
    object: Option<&Map<String, Value>>,
) -> Written<EncodeError> {
    for field in ty.messages().rev() {
        let number = field.proto.expect("only numbered fields are sent");
        if let (true, Ty::Struct(inner)) = (field.inline, &field.ty) {
            writer.message(number, |writer| write_struct(writer, inner.get(), object))?;
            continue;
        }
        let value = object.and_then(|object| object.get(field.json));
        match write_field(writer, field, number, value) {
            Ok(()) => {}
            Err(FieldError::Here) => {
                return Err(EncodeError::NotNormal { ty: ty.short_name(), field: field.json });
            }
            Err(FieldError::Below(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Where a mismatch is: in this field, or in one of a struct below it.
enum FieldError {
    Here,
    Below(EncodeError),
}

impl From<Mismatch> for FieldError {
    fn from(Mismatch: Mismatch) -> Self {
        FieldError::Here
    }
}

impl From<EncodeError> for FieldError {
    fn from(error: EncodeError) -> Self {
        FieldError::Below(error)
    }
}

fn write_field(
    writer: &mut Writer,
    field: &Field,
    number: u32,
    value: Option<&Value>,
) -> Written<FieldError> {
    let value = match value {
        None if field.pointer => return Ok(()),
        // A nil pointer would have been left out; this is one to a zero time.
        Some(Value::Null) if field.pointer && !field.omitempty => return Ok(()),
        value => value.unwrap_or(&Value::Null),
    };
    if field.wrapped {
        return match value {
            Value::Null => Ok(()),
            items => writer.message(number, |writer| write(writer, &field.ty, 1, items)),
        };
    }
    write(writer, &field.ty, number, value)
}

/// Writes a value under a number; `null` is the zero value of the type.
fn write(writer: &mut Writer, ty: &Ty, number: u32, value: &Value) -> Written<FieldError> {
    match ty {
        Ty::Bool => writer.varint(number, or_zero(value, Value::as_bool)?.into()),
        Ty::Int32 | Ty::Int64 => writer.varint(number, or_zero(value, Value::as_i64)? as u64),
        Ty::Float64 => {
            writer.fixed64(number, or_zero(value, Value::as_f64)?.to_bits());
        }
        Ty::String => writer.bytes(number, or_zero(value, Value::as_str)?.as_bytes()),
        Ty::Bytes => write_bytes(writer, number, value)?,
        Ty::List(of) => {
            for item in or_zero(value, |value| value.as_array().map(Vec::as_slice))?.iter().rev() {
                write_item(writer, of, number, item)?;
            }
        }
        Ty::Map(of) => write_map(writer, of, number, value)?,
        Ty::Struct(id) => {
            if !value.is_null() && !value.is_object() {
                return Err(FieldError::Here);
            }
            let ty = id.get();
            writer.message(number, |writer| write_struct(writer, ty, value.as_object()))?;
        }
        Ty::SchemaOr(or, schema) => {
            writer.message(number, |writer| write_schema_or(writer, *or, schema.get(), value))?;
        }
        _ => writer.message(number, |writer| write_special(writer, ty, value))?,
    }
    Ok(())
}

/// An element of a list or map. A list there is a message of its own.
fn write_item(writer: &mut Writer, ty: &Ty, number: u32, value: &Value) -> Written<FieldError> {
    match ty {
        Ty::List(_) => writer.message(number, |writer| write(writer, ty, 1, value)),
        _ => write(writer, ty, number, value),
    }
}

fn write_bytes(writer: &mut Writer, number: u32, value: &Value) -> Written {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            writer.bytes(number, &STANDARD.decode(text).map_err(|_| Mismatch)?);
            Ok(())
        }
        _ => Err(Mismatch),
    }
}

fn write_map(writer: &mut Writer, of: &Ty, number: u32, value: &Value) -> Written<FieldError> {
    if value.is_null() {
        return Ok(());
    }
    let entries = value.as_object().ok_or(FieldError::Here)?;
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in entries.into_iter().rev() {
        writer.message(number, |writer| {
            write_item(writer, of, 2, value)?;
            writer.bytes(1, key.as_bytes());
            Ok::<_, FieldError>(())
        })?;
    }
    Ok(())
}

/// The fields of the types that are not what their Go fields say.
fn write_special(writer: &mut Writer, ty: &Ty, value: &Value) -> Written {
    match (ty, value) {
        (Ty::Time | Ty::MicroTime, Value::Null) => {}
        (Ty::Time, Value::String(text)) => {
            time::encode(writer, text).ok_or(Mismatch)?;
        }
        (Ty::MicroTime, Value::String(text)) => {
            time::encode_micro(writer, text).ok_or(Mismatch)?;
        }
        (Ty::Duration, Value::Null) => writer.varint(1, 0),
        (Ty::Duration, Value::String(text)) => {
            let duration = GoDuration::parse(text).map_err(|_| Mismatch)?;
            writer.varint(1, duration.nanos as u64);
        }
        (Ty::Quantity, Value::Null) => writer.bytes(1, b"0"),
        (Ty::Quantity, Value::String(text)) => writer.bytes(1, text.as_bytes()),
        (Ty::IntOrString, Value::String(text)) => {
            writer.bytes(3, text.as_bytes());
            writer.varint(2, 0);
            writer.varint(1, 1);
        }
        (Ty::IntOrString, number) => {
            writer.bytes(3, b"");
            writer.varint(2, or_zero(number, Value::as_i64)? as u64);
            writer.varint(1, 0);
        }
        (Ty::RawExtension | Ty::FieldsV1 | Ty::Json, Value::Null) => {}
        (Ty::RawExtension | Ty::FieldsV1 | Ty::Json, json) => {
            writer.bytes(1, &crate::json::to_vec(json));
        }
        _ => return Err(Mismatch),
    }
    Ok(())
}

fn write_schema_or(
    writer: &mut Writer,
    or: SchemaOr,
    schema: &'static Type,
    value: &Value,
) -> Written<FieldError> {
    let schema_number = match or {
        SchemaOr::Schemas | SchemaOr::Strings => 1,
        SchemaOr::Bool => 2,
    };
    if let Value::Object(object) = value {
        writer.message(schema_number, |writer| write_struct(writer, schema, Some(object)))?;
    }
    match (or, value) {
        // A schema allows.
        (SchemaOr::Bool, Value::Object(_)) => writer.varint(1, 1),
        (SchemaOr::Bool, allows) => writer.varint(1, or_zero(allows, Value::as_bool)?.into()),
        (SchemaOr::Schemas | SchemaOr::Strings, Value::Object(_) | Value::Null) => {}
        (SchemaOr::Schemas, Value::Array(schemas)) => {
            for item in schemas.iter().rev() {
                let object = item.as_object().ok_or(FieldError::Here)?;
                writer.message(2, |writer| write_struct(writer, schema, Some(object)))?;
            }
        }
        (SchemaOr::Strings, names @ Value::Array(_)) => {
            write(writer, &Ty::List(Box::new(Ty::String)), 2, names)?;
        }
        _ => return Err(FieldError::Here),
    }
    Ok(())
}

fn or_zero<'a, T: Default>(
    value: &'a Value,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<T, Mismatch> {
    if value.is_null() { Ok(T::default()) } else { read(value).ok_or(Mismatch) }
}
