//! Schemas of custom resources, read from the structural schema of a CRD version.

use serde_json::Value;

use super::{
    BOOLEAN, Builder, DEDUCED, Field, KeyField, List, ListTopology, Map, NUMERIC, STRING, Scalar,
    Schema, Type,
};
use super::{TypeId, UNTYPED, UNTYPED_SCALAR};

impl Schema {
    /// From `openAPIV3Schema` of a version whose schema has been accepted as structural.
    ///
    /// `apiVersion`, `kind` and `metadata` have the types they have everywhere, whatever the
    /// schema says of them.
    pub fn structural(open_api_v3_schema: &Value) -> Self {
        let mut source = Source { builder: Builder::new(), object_meta: None };
        let root = source.read(open_api_v3_schema, Place { root: true, preserve_unknown: false });
        source.builder.finish(root)
    }
}

struct Source {
    builder: Builder,
    object_meta: Option<TypeId>,
}

/// What a schema inherits from where it stands.
#[derive(Clone, Copy)]
struct Place {
    root: bool,
    /// Some schema above keeps unknown fields, which upstream extends to all below it.
    preserve_unknown: bool,
}

impl Source {
    fn read(&mut self, schema: &Value, place: Place) -> TypeId {
        let place = Place {
            preserve_unknown: place.preserve_unknown || preserves_unknown(schema),
            ..place
        };
        match schema["type"].as_str() {
            Some("object") => {
                let map = self.map(schema, place);
                self.builder.add_map(map)
            }
            Some("array") => {
                let list = self.list(schema, place);
                self.builder.add(Type { list: Some(list), ..Type::default() })
            }
            Some("integer" | "number") => NUMERIC,
            Some("boolean") => BOOLEAN,
            Some("string") => match schema["format"].as_str() {
                None | Some("" | "byte") => STRING,
                Some(_) => UNTYPED_SCALAR,
            },
            // Int-or-string and anything-goes alike: no type means any.
            _ => {
                let (list, map) = (self.list(schema, place), self.map(schema, place));
                self.builder.add(Type {
                    scalar: Some(Scalar::Untyped),
                    list: Some(list),
                    map: Some(map),
                })
            }
        }
    }

    fn map(&mut self, schema: &Value, place: Place) -> Map {
        let inside = Place { root: false, ..place };
        let properties = schema["properties"].as_object();
        let is_resource = place.root || schema["x-kubernetes-embedded-resource"] == true;
        let mut fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| {
                !(is_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
            })
            .map(|(name, property)| {
                Field::new(name, self.read(property, inside), Some(property["default"].clone()))
            })
            .collect();
        if is_resource {
            let object_meta = *self.object_meta.get_or_insert_with(|| self.builder.object_meta());
            fields.push(Field::new("apiVersion", STRING, None));
            fields.push(Field::new("kind", STRING, None));
            fields.push(Field::new("metadata", object_meta, None));
        }
        let element = match &schema["additionalProperties"] {
            Value::Null if place.preserve_unknown || fields.is_empty() => Some(DEDUCED),
            Value::Null => None,
            Value::Bool(allowed) => allowed.then_some(DEDUCED),
            element => Some(self.read(element, inside)),
        };
        let free_form = fields.is_empty()
            && element.is_some_and(|element| {
                element == DEDUCED
                    || self.builder.types[element.0 as usize].scalar == Some(Scalar::Untyped)
            });
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        Map { element, atomic, free_form, ..Map::of_fields(fields) }
    }

    fn list(&mut self, schema: &Value, place: Place) -> List {
        let element = match &schema["items"] {
            Value::Null => UNTYPED,
            items => self.read(items, Place { root: false, ..place }),
        };
        let topology = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => ListTopology::Set,
            Some("map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                let keys = keys.filter_map(Value::as_str);
                ListTopology::Keyed(
                    keys.map(|key| KeyField { name: key.into(), default: None }).collect(),
                )
            }
            _ => ListTopology::Atomic,
        };
        List { element, topology }
    }
}

fn preserves_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}
