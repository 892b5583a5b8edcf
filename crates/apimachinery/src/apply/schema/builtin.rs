//! Schemas of built-in kinds, read from the table of built-in types.

use std::collections::HashMap;

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
