//! From messages to values.
//!
//! A field that comes twice is merged when it is a message and replaced when it is not, as the
//! format demands. Parsing two messages one after another is the same as merging them, so the bytes
//! of messages are kept until the end of the one around them.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::DecodeError;
use super::time;
use super::wire::{Reader, Wire};
use crate::builtin::{Draft, Field, SchemaOr, Ty, Type, zero_of};
use crate::json;
use crate::quantity::Quantity;
use crate::time::GoDuration;

/// A whole object. `names` are the `apiVersion` and `kind` that its envelope told.
pub(super) fn object(
    ty: &'static Type,
    bytes: &[u8],
    names: Option<(&str, &str)>,
) -> Result<Value, DecodeError> {
    if ty.messages().next().is_none() {
        return Err(DecodeError::NoProtobuf { kind: ty.short_name() });
    }
    let mut draft = Draft::new(ty);
    if let Some((api_version, kind)) = names {
        draft.set("apiVersion", api_version.into());
        draft.set("kind", kind.into());
    }
    read_fields(&mut draft, 0, ty, bytes, Depth::default())?;
    Ok(draft.finish())
}

/// How deep in the tree a value stands.
#[derive(Debug, Clone, Copy, Default)]
struct Depth(usize);

impl Depth {
    fn below(self) -> Result<Self, DecodeError> {
        if self.0 == json::DEPTH_MAX { Err(DecodeError::TooDeep) } else { Ok(Depth(self.0 + 1)) }
    }
}

fn read_struct(ty: &'static Type, bytes: &[u8], depth: Depth) -> Result<Value, DecodeError> {
    let mut draft = Draft::new(ty);
    read_fields(&mut draft, 0, ty, bytes, depth.below()?)?;
    Ok(draft.finish())
}

/// Reads the fields of a struct whose members start at `base` in the draft.
fn read_fields(
    draft: &mut Draft,
    base: usize,
    ty: &'static Type,
    bytes: &[u8],
    depth: Depth,
) -> Result<(), DecodeError> {
    let mut messages: Vec<(&Field, Cow<'_, [u8]>)> = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        let Some(field) = ty.numbered(number) else {
            continue;
        };
        if is_message(field) {
            let bytes = wire.bytes(name(field))?;
            match messages.iter_mut().find(|(earlier, _)| earlier.proto == field.proto) {
                None => messages.push((field, Cow::Borrowed(bytes))),
                // Times replace instead of merging.
                Some((_, kept)) if matches!(field.ty, Ty::Time | Ty::MicroTime) => {
                    *kept = Cow::Borrowed(bytes);
                }
                Some((_, kept)) => kept.to_mut().extend_from_slice(bytes),
            }
        } else {
            let slot = draft.value(field.slot(base));
            read_field(slot, field, wire, depth)?;
        }
    }
    for (field, bytes) in messages {
        let slot = field.slot(base);
        match field.ty {
            Ty::Struct(inner) if field.inline => {
                read_fields(draft, slot, inner.get(), &bytes, depth)?;
            }
            _ => {
                let value = read_message(&field.ty, &bytes, depth)?;
                // Where no map made the list, upstream makes none for no items.
                let is_nil = field.wrapped && value.as_array().is_some_and(Vec::is_empty);
                *draft.value(slot) = Some(if is_nil { Value::Null } else { value });
            }
        }
    }
    Ok(())
}

fn name(field: &Field) -> &'static str {
    if field.inline { "inline" } else { field.json }
}

/// Whether the field is one message, to be read when all of it is there.
fn is_message(field: &Field) -> bool {
    match field.ty {
        Ty::Bool | Ty::Int32 | Ty::Int64 | Ty::Float64 | Ty::String | Ty::Bytes => false,
        Ty::List(_) => field.wrapped,
        Ty::Map(_) => false,
        _ => true,
    }
}

/// Reads one occurrence of a scalar, or of an element of a collection.
fn read_field(
    slot: &mut Option<Value>,
    field: &Field,
    wire: Wire<'_>,
    depth: Depth,
) -> Result<(), DecodeError> {
    let name = field.json;
    match &field.ty {
        Ty::List(of) => {
            let Value::Array(items) = slot.get_or_insert_with(|| Value::Array(Vec::new())) else {
                unreachable!("lists are only read here");
            };
            read_items(items, of, wire, name, depth.below()?)
        }
        Ty::Map(of) => {
            let Value::Object(entries) = slot.get_or_insert_with(|| Value::Object(Map::new()))
            else {
                unreachable!("maps are only read here");
            };
            let (key, value) = read_entry(of, wire.bytes(name)?, depth.below()?)?;
            entries.insert(key, value);
            Ok(())
        }
        scalar => {
            *slot = Some(read_value(scalar, wire, name, depth)?);
            Ok(())
        }
    }
}

fn read_items(
    items: &mut Vec<Value>,
    of: &Ty,
    wire: Wire<'_>,
    name: &'static str,
    depth: Depth,
) -> Result<(), DecodeError> {
    match (of, wire) {
        // Numbers may come packed into one string of bytes, though nobody here sends them so.
        (Ty::Bool | Ty::Int32 | Ty::Int64, Wire::Bytes(packed)) => {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                let wire = Wire::Varint(reader.varint()?);
                items.push(read_value(of, wire, name, depth)?);
            }
        }
        _ => items.push(read_value(of, wire, name, depth)?),
    }
    Ok(())
}

fn read_entry(of: &Ty, bytes: &[u8], depth: Depth) -> Result<(String, Value), DecodeError> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => key = json::replace_invalid(wire.bytes("key")?),
            2 => value = Some(read_value(of, wire, "value", depth)?),
            _ => {}
        }
    }
    let value = value.unwrap_or_else(|| match of {
        // Upstream starts from an empty value here, not from a nil one.
        Ty::Bytes => Value::from(""),
        Ty::List(_) => Value::Array(Vec::new()),
        _ => zero_of(of),
    });
    Ok((key, value))
}

fn read_value(
    ty: &Ty,
    wire: Wire<'_>,
    name: &'static str,
    depth: Depth,
) -> Result<Value, DecodeError> {
    Ok(match ty {
        Ty::Bool => Value::Bool(wire.varint(name)? != 0),
        Ty::Int32 => Value::from(wire.varint(name)? as i32),
        Ty::Int64 => Value::from(wire.varint(name)? as i64),
        Ty::Float64 => match wire {
            Wire::Fixed64(bits) => {
                let number = Number::from_f64(f64::from_bits(bits));
                Value::Number(number.ok_or(DecodeError::NotFinite)?)
            }
            other => return Err(other.wrong(name)),
        },
        Ty::String => Value::String(json::replace_invalid(wire.bytes(name)?)),
        Ty::Bytes => Value::String(STANDARD.encode(wire.bytes(name)?)),
        _ => read_message(ty, wire.bytes(name)?, depth)?,
    })
}

fn read_message(ty: &Ty, bytes: &[u8], depth: Depth) -> Result<Value, DecodeError> {
    match ty {
        Ty::Struct(id) => read_struct(id.get(), bytes, depth),
        Ty::Time => time::decode(bytes),
        Ty::MicroTime => time::decode_micro(bytes),
        Ty::Duration => {
            let mut nanos = 0;
            each(bytes, |number, wire| {
                if number == 1 {
                    nanos = wire.varint("duration")? as i64;
                }
                Ok(())
            })?;
            Ok(GoDuration { nanos }.to_string().into())
        }
        Ty::Quantity => {
            let mut quantity = Quantity::default();
            each(bytes, |number, wire| {
                if number == 1 {
                    quantity = Quantity::parse(&json::replace_invalid(wire.bytes("string")?))?;
                }
                Ok(())
            })?;
            Ok(quantity.to_string().into())
        }
        Ty::IntOrString => read_int_or_string(bytes),
        Ty::RawExtension | Ty::FieldsV1 | Ty::Json => read_raw(bytes, depth),
        Ty::SchemaOr(or, schema) => read_schema_or(*or, schema.get(), bytes, depth),
        Ty::List(of) => {
            let depth = depth.below()?;
            let mut items = Vec::new();
            each(bytes, |number, wire| match number {
                1 => read_items(&mut items, of, wire, "items", depth),
                _ => Ok(()),
            })?;
            Ok(Value::Array(items))
        }
        Ty::Bool | Ty::Int32 | Ty::Int64 | Ty::Float64 | Ty::String | Ty::Bytes | Ty::Map(_) => {
            unreachable!("these are not messages")
        }
    }
}

fn read_int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut is_string, mut number, mut string) = (false, 0, String::new());
    each(bytes, |field, wire| {
        match field {
            1 => is_string = wire.varint("type")? != 0,
            2 => number = wire.varint("intVal")? as i32,
            3 => string = json::replace_invalid(wire.bytes("strVal")?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(if is_string { Value::String(string) } else { Value::from(number) })
}

fn read_raw(bytes: &[u8], depth: Depth) -> Result<Value, DecodeError> {
    let mut raw: &[u8] = &[];
    each(bytes, |number, wire| {
        if number == 1 {
            raw = wire.bytes("raw")?;
        }
        Ok(())
    })?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let value = json::decode(raw)?.value;
    if depth.0 + json::depth(&value) > json::DEPTH_MAX {
        return Err(DecodeError::TooDeep);
    }
    Ok(value)
}

fn read_schema_or(
    or: SchemaOr,
    schema: &'static Type,
    bytes: &[u8],
    depth: Depth,
) -> Result<Value, DecodeError> {
    let mut one: Option<Vec<u8>> = None;
    let mut allows = false;
    let mut several = Vec::new();
    each(bytes, |number, wire| {
        match (or, number) {
            (SchemaOr::Schemas | SchemaOr::Strings, 1) | (SchemaOr::Bool, 2) => {
                one.get_or_insert_default().extend_from_slice(wire.bytes("schema")?);
            }
            (SchemaOr::Bool, 1) => allows = wire.varint("allows")? != 0,
            (SchemaOr::Schemas, 2) => {
                let bytes = wire.bytes("jSONSchemas")?;
                several.push(read_struct(schema, bytes, depth.below()?)?);
            }
            (SchemaOr::Strings, 2) => {
                several.push(Value::String(json::replace_invalid(wire.bytes("property")?)));
            }
            _ => {}
        }
        Ok(())
    })?;
    // When both are there, Go prints the list.
    Ok(match one.filter(|_| several.is_empty()) {
        Some(bytes) => read_struct(schema, &bytes, depth)?,
        None if or == SchemaOr::Bool => Value::Bool(allows),
        None if several.is_empty() => Value::Null,
        None => Value::Array(several),
    })
}

fn each<'a>(
    bytes: &'a [u8],
    mut read: impl FnMut(u32, Wire<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        read(number, wire)?;
    }
    Ok(())
}
