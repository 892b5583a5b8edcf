//! Maps, and objects, which are maps with fields of different types.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Failure, Text, Val, adapt};
use crate::cel::escape;
use crate::schema::Structural;

type Json = serde_json::Map<String, Value>;

#[derive(Clone)]
pub enum Map<'v> {
    /// An object with declared fields; `is_resource` when it carries its own kind and metadata.
    Object {
        map: &'v Json,
        schema: &'v Structural,
        is_resource: bool,
    },
    /// An object of additional properties.
    Dictionary {
        map: &'v Json,
        values: &'v Structural,
    },
    /// An object nothing is known about.
    Unknown {
        map: &'v Json,
    },
    /// A piece of an object that has no schema.
    Plain(&'v Json),
    Built(Arc<BuiltMap<'v>>),
}

/// A map that an expression made. Its entries are in order of their insertion.
#[derive(Clone, Default)]
pub struct BuiltMap<'v> {
    entries: Vec<(Val<'v>, Val<'v>)>,
    index: HashMap<Key<'v>, usize>,
}

/// Keys are the same when their values are equal, whatever type of number they have.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key<'v> {
    Bool(bool),
    Number(i128),
    Text(TextKey<'v>),
}

#[derive(Clone)]
struct TextKey<'v>(Text<'v>);

impl PartialEq for TextKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for TextKey<'_> {}

impl std::hash::Hash for TextKey<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (*self.0).hash(state);
    }
}

impl<'v> Key<'v> {
    fn of(value: &Val<'v>) -> Option<Self> {
        Some(match value {
            Val::Bool(value) => Key::Bool(*value),
            Val::Int(value) => Key::Number(i128::from(*value)),
            Val::Uint(value) => Key::Number(i128::from(*value)),
            Val::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => {
                Key::Number(*value as i128)
            }
            Val::String(text) => Key::Text(TextKey(text.clone())),
            _ => return None,
        })
    }
}

impl<'v> BuiltMap<'v> {
    /// Sets a key, or replaces its value.
    pub(in crate::cel) fn set(&mut self, key: Val<'v>, value: Val<'v>) -> Result<(), Failure> {
        let name = Key::of(&key).ok_or_else(|| unsupported_key(&key))?;
        match self.index.get(&name) {
            Some(at) => self.entries[*at].1 = value,
            None => {
                self.index.insert(name, self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    /// Sets a key that must be new.
    pub(in crate::cel) fn insert(&mut self, key: Val<'v>, value: Val<'v>) -> Result<(), Failure> {
        if Key::of(&key).is_some_and(|name| self.index.contains_key(&name)) {
            return Err(Failure::new(format!("insert failed: key {key} already exists")));
        }
        self.set(key, value)
    }
}

fn unsupported_key(key: &Val<'_>) -> Failure {
    Failure::new(format!("unsupported key type: {}", key.type_name()))
}

impl<'v> Map<'v> {
    pub(in crate::cel) fn is_built(&self) -> bool {
        matches!(self, Map::Built(_) | Map::Plain(_))
    }

    pub(in crate::cel) fn len(&self) -> usize {
        match self {
            Map::Object { map, .. } | Map::Dictionary { map, .. } | Map::Unknown { map } => {
                map.len()
            }
            Map::Plain(map) => map.len(),
            Map::Built(built) => built.entries.len(),
        }
    }

    /// The value of a key. A field that is null is not there.
    pub(in crate::cel) fn find(&self, key: &Val<'v>) -> Result<Option<Val<'v>>, Failure> {
        match (self, key) {
            (Map::Built(built), key) => {
                let at = Key::of(key).and_then(|key| built.index.get(&key));
                Ok(at.map(|at| built.entries[*at].1.clone()))
            }
            (_, Val::String(name)) => self.find_text(name),
            _ => Err(Failure::NO_SUCH_OVERLOAD),
        }
    }

    /// The same for a name, as a selection writes it.
    pub(in crate::cel) fn find_text(&self, name: &str) -> Result<Option<Val<'v>>, Failure> {
        match self {
            Map::Object { map, .. } => match escape::unescape(name) {
                Some(name) => self.field(map, &name),
                None => Ok(None),
            },
            Map::Dictionary { map, values } => {
                map.get(name).map(|value| adapt::value(value, values)).transpose()
            }
            Map::Unknown { .. } => Ok(None),
            Map::Plain(map) => Ok(map.get(name).map(Val::of_json)),
            Map::Built(_) => self.find(&Val::text(name)),
        }
    }

    /// The value of a declared field.
    fn field(&self, map: &'v Json, name: &str) -> Result<Option<Val<'v>>, Failure> {
        let Some(value) = map.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        self.schema_of(name).map(|schema| adapt::value(value, schema)).transpose()
    }

    /// The schema of the value of a key as it stands in the object.
    pub(super) fn schema_of(&self, name: &str) -> Option<&'v Structural> {
        match self {
            Map::Object { schema, is_resource, .. } => {
                adapt::field_schema(schema, name, *is_resource)
            }
            Map::Dictionary { values, .. } => Some(values),
            Map::Unknown { .. } | Map::Plain(_) | Map::Built(_) => None,
        }
    }

    /// The object with a schema that it stands in.
    pub(super) fn json(&self) -> Option<&'v Json> {
        match self {
            Map::Object { map, .. } | Map::Dictionary { map, .. } | Map::Unknown { map } => {
                Some(map)
            }
            Map::Plain(_) | Map::Built(_) => None,
        }
    }

    pub(in crate::cel) fn keys(&self) -> Vec<Val<'v>> {
        match self {
            Map::Object { map, .. } => {
                let known = map.keys().filter(|name| self.schema_of(name).is_some());
                known
                    .map(|name| match escape::escape(name) {
                        Some(escaped) if escaped != **name => Val::text(escaped),
                        _ => Val::borrowed(name),
                    })
                    .collect()
            }
            Map::Dictionary { map, .. } | Map::Plain(map) => {
                map.keys().map(|name| Val::borrowed(name)).collect()
            }
            Map::Unknown { .. } => Vec::new(),
            Map::Built(built) => built.entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    pub(in crate::cel) fn entries(&self) -> Result<Vec<(Val<'v>, Val<'v>)>, Failure> {
        if let Map::Built(built) = self {
            return Ok(built.entries.clone());
        }
        let mut entries = Vec::with_capacity(self.len());
        for key in self.keys() {
            if let Some(value) = self.find(&key)? {
                entries.push((key, value));
            }
        }
        Ok(entries)
    }
}
