//! What strategic merge knows of a type: the patch tags of its fields, by the table of built-in
//! types.

use super::Error;
use crate::builtin::{Field, Patch, SchemaOr, Ty, Type};
use crate::json::go_quote;

/// The type of the value that is being patched.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    shape: Shape,
    pointer: bool,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Struct(&'static Type),
    Value(&'static Ty),
}

impl Schema {
    /// The schema of a kind, or of any other struct.
    pub fn of(ty: &'static Type) -> Self {
        Schema { shape: Shape::Struct(ty), pointer: false }
    }

    /// The tags and the type of a field that holds an object.
    pub(super) fn object(self, key: &str) -> Result<(&'static Patch, Schema), Error> {
        let field = self.field(key)?;
        Ok((&field.patch, Schema::new(&field.ty, field.pointer)))
    }

    /// The tags of a field that holds a list, and the type of its items.
    pub(super) fn list(self, key: &str) -> Result<(&'static Patch, Schema), Error> {
        let field = self.field(key)?;
        let item = match &field.ty {
            Ty::List(item) if matches!(**item, Ty::List(_) | Ty::Bytes) => {
                return Err(Error::Unmergeable("unexpected slice of slice".to_owned()));
            }
            Ty::List(item) => item,
            other if field.pointer => other,
            _ => {
                let kind = self.kind();
                return Err(Error::Unmergeable(format!(
                    "expected slice or array type, but got: {kind}"
                )));
            }
        };
        Ok((&field.patch, Schema::new(item, false)))
    }

    /// The kind of the type, as Go's reflection calls it.
    pub(super) fn kind(self) -> &'static str {
        match self.pointer {
            true => "ptr",
            false => self.shape.kind(),
        }
    }

    fn new(ty: &'static Ty, pointer: bool) -> Schema {
        let shape = match ty {
            Ty::Struct(id) => Shape::Struct(id.get()),
            other => Shape::Value(other),
        };
        Schema { shape, pointer }
    }

    fn field(self, key: &str) -> Result<&'static Field, Error> {
        let name = match self.shape {
            Shape::Struct(ty) => {
                // Go's decoder takes a name in another case for want of a better one.
                let found = ty
                    .field(key)
                    .or_else(|| ty.members().find(|field| field.json.eq_ignore_ascii_case(key)));
                match found {
                    Some(field) => return Ok(field),
                    None => ty.short_name(),
                }
            }
            Shape::Value(ty) => match opaque_struct(ty) {
                Some(name) => name,
                None => {
                    let kind = self.shape.kind();
                    return Err(Error::Unmergeable(format!(
                        "merging an object in json but data type is not struct, instead is: {kind}"
                    )));
                }
            },
        };
        let key = go_quote(key);
        Err(Error::Unmergeable(format!(
            "unable to find api field in struct {name} for the json field {key}"
        )))
    }
}

impl Shape {
    fn kind(self) -> &'static str {
        match self {
            Shape::Struct(_) => "struct",
            Shape::Value(ty) => match ty {
                Ty::Bool => "bool",
                Ty::Int32 => "int32",
                Ty::Int64 => "int64",
                Ty::Float64 => "float64",
                Ty::String => "string",
                Ty::Bytes | Ty::List(_) => "slice",
                Ty::Map(_) => "map",
                _ => "struct",
            },
        }
    }
}

/// The Go name of a type that is a struct without fields in JSON.
fn opaque_struct(ty: &Ty) -> Option<&'static str> {
    match ty {
        Ty::Time => Some("Time"),
        Ty::MicroTime => Some("MicroTime"),
        Ty::Duration => Some("Duration"),
        Ty::Quantity => Some("Quantity"),
        Ty::IntOrString => Some("IntOrString"),
        Ty::RawExtension => Some("RawExtension"),
        Ty::FieldsV1 => Some("FieldsV1"),
        Ty::Json => Some("JSON"),
        Ty::SchemaOr(SchemaOr::Schemas, _) => Some("JSONSchemaPropsOrArray"),
        Ty::SchemaOr(SchemaOr::Bool, _) => Some("JSONSchemaPropsOrBool"),
        Ty::SchemaOr(SchemaOr::Strings, _) => Some("JSONSchemaPropsOrStringArray"),
        _ => None,
    }
}
