//! Schemas of built-in kinds, read from the table of built-in types.

use std::collections::HashMap;

use serde_json::{Map as Object, Value};

use super::{
    BOOLEAN, Builder, DEDUCED, Field, KeyField, ListTopology, Map, NUMERIC, STRING, Schema, Type,
    TypeId, UNTYPED, UNTYPED_SCALAR,
};
use crate::builtin::{self, Topology, Ty};

impl Schema {
    pub fn builtin(kind: &builtin::Kind) -> Self {
        let mut source = Source { builder: Builder::new(), known: HashMap::new() };
        let root = source.structure(kind.ty, None);
        source.builder.finish(root)
    }
}

/// An object of a built-in kind in which nothing is set, as Go writes it: with the structs, and
/// the lists and maps, that are written even when they are empty.
pub fn empty_object(kind: &builtin::Kind) -> Value {
    let mut object = zero_struct(kind.ty());
    let version = kind.version;
    let api_version = if kind.group.is_empty() {
        version.to_owned()
    } else {
        format!("{}/{version}", kind.group)
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.kind.into());
    Value::Object(object)
}

struct Source {
    builder: Builder,
    /// Structs read so far; a field may make its own use of a struct atomic or granular.
    known: HashMap<(builtin::TypeId, Option<bool>), TypeId>,
}

impl Source {
    fn value(&mut self, ty: &Ty, topology: &Topology, patch: &builtin::Patch) -> TypeId {
        match ty {
            Ty::Bool => BOOLEAN,
            Ty::Int32 | Ty::Int64 | Ty::Float64 => NUMERIC,
            Ty::String | Ty::Bytes | Ty::Duration => STRING,
            Ty::Time | Ty::MicroTime | Ty::Quantity => UNTYPED_SCALAR,
            Ty::RawExtension => UNTYPED,
            // Their schemas name no type.
            Ty::IntOrString | Ty::Json | Ty::SchemaOr(..) => DEDUCED,
            Ty::FieldsV1 => self.map(DEDUCED, false),
            Ty::Struct(id) => {
                let atomic = match topology {
                    Topology::Atomic => Some(true),
                    Topology::Granular => Some(false),
                    Topology::Unmarked | Topology::Set | Topology::Map(_) => None,
                };
                self.structure(*id, atomic)
            }
            Ty::Map(element) => {
                let element = self.value(element, &Topology::Unmarked, &builtin::Patch::default());
                self.map(element, *topology == Topology::Atomic)
            }
            Ty::List(element) => {
                let element = self.value(element, &Topology::Unmarked, &builtin::Patch::default());
                self.builder.add_list(element, list_topology(topology, patch))
            }
        }
    }

    fn map(&mut self, element: TypeId, atomic: bool) -> TypeId {
        let free_form = element == DEDUCED;
        self.builder.add_map(Map { element: Some(element), atomic, free_form, ..Map::default() })
    }

    fn structure(&mut self, id: builtin::TypeId, atomic: Option<bool>) -> TypeId {
        if let Some(known) = self.known.get(&(id, atomic)) {
            return *known;
        }
        let ty = id.get();
        if ty.name == "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta" {
            let object_meta = self.builder.object_meta();
            self.known.insert((id, atomic), object_meta);
            return object_meta;
        }
        // Known before its fields are, as one of them may be of this type again.
        let place = self.builder.add(Type::default());
        self.known.insert((id, atomic), place);
        let fields = ty
            .members()
            .map(|field| {
                let field_type = self.value(&field.ty, &field.topology, &field.patch);
                Field::new(field.json, field_type, field.default.clone())
            })
            .collect();
        let map = Map { atomic: atomic.unwrap_or(ty.atomic), ..Map::of_fields(fields) };
        self.builder.types[place.0 as usize].map = Some(map);
        place
    }
}

/// A list without a marker of its own follows what strategic merge patch does with it.
fn list_topology(topology: &Topology, patch: &builtin::Patch) -> ListTopology {
    let keyed = |keys: &[&str]| {
        let keys = keys.iter().map(|key| KeyField { name: (*key).into(), default: None });
        ListTopology::Keyed(keys.collect())
    };
    match topology {
        Topology::Set => ListTopology::Set,
        Topology::Map(keys) => keyed(keys),
        Topology::Unmarked if patch.merge => match patch.merge_key {
            Some(key) => keyed(&[key]),
            None => ListTopology::Set,
        },
        Topology::Unmarked | Topology::Atomic | Topology::Granular => ListTopology::Atomic,
    }
}

fn zero_struct(ty: &builtin::Type) -> Object<String, Value> {
    let always_written = |field: &&builtin::Field| {
        let zero_is_empty =
            field.pointer || !matches!(field.ty, Ty::Struct(_) | Ty::Time | Ty::MicroTime);
        !(field.omitzero || field.omitempty && zero_is_empty)
    };
    ty.members().filter(always_written).map(|field| (field.json.to_owned(), zero(field))).collect()
}

fn zero(field: &builtin::Field) -> Value {
    if field.pointer {
        return Value::Null;
    }
    match &field.ty {
        Ty::Bool => false.into(),
        Ty::Int32 | Ty::Int64 | Ty::IntOrString => 0.into(),
        Ty::Float64 => 0.0.into(),
        Ty::String => "".into(),
        Ty::Duration => "0s".into(),
        Ty::Quantity => "0".into(),
        Ty::Struct(id) => Value::Object(zero_struct(id.get())),
        Ty::Bytes | Ty::List(_) | Ty::Map(_) | Ty::Time | Ty::MicroTime => Value::Null,
        Ty::RawExtension | Ty::FieldsV1 | Ty::Json | Ty::SchemaOr(..) => Value::Null,
    }
}
