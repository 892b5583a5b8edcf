//! Values walked along their schema.
//!
//! [`validate`] comes first: it says whether a value has the shape its schema gives it. The other
//! walks are total on values that passed it.

mod compare;
mod merge;
mod reconcile;
mod remove;
mod to_set;
mod validate;

use serde_json::Value;

pub(super) use self::compare::compare;
pub(super) use self::merge::merge;
pub(super) use self::reconcile::{name_fields, reconcile};
pub(super) use self::remove::{extract, remove};
pub(super) use self::to_set::to_set;
pub(super) use self::validate::{Duplicates, validate};

use super::path::PathElement;
use super::schema::{List, ListTopology, Map, Scalar, Type};

/// The form in which a type takes a value.
enum Form<'s> {
    Scalar(Scalar),
    List(&'s List),
    Map(&'s Map),
}

/// The forms of a type that a value leaves open: one where the value decides, all of them where
/// it is null or fits none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Forms {
    scalar: bool,
    list: bool,
    map: bool,
}

impl Forms {
    fn of(ty: &Type, value: &Value) -> Self {
        let none = Forms { scalar: false, list: false, map: false };
        match value {
            Value::Number(_) | Value::String(_) | Value::Bool(_) if ty.scalar.is_some() => {
                Forms { scalar: true, ..none }
            }
            Value::Array(_) if ty.list.is_some() => Forms { list: true, ..none },
            Value::Object(_) if ty.map.is_some() => Forms { map: true, ..none },
            _ => Forms {
                scalar: ty.scalar.is_some(),
                list: ty.list.is_some(),
                map: ty.map.is_some(),
            },
        }
    }

    /// The form to walk: of several, map before scalar before list.
    fn first<'s>(self, ty: &'s Type) -> Form<'s> {
        match ty {
            Type { map: Some(map), .. } if self.map => Form::Map(map),
            Type { scalar: Some(scalar), .. } if self.scalar => Form::Scalar(*scalar),
            Type { list: Some(list), .. } if self.list => Form::List(list),
            _ => unreachable!("every type has a form"),
        }
    }
}

/// The form in which `ty` takes `value`.
fn form<'s>(ty: &'s Type, value: &Value) -> Form<'s> {
    Forms::of(ty, value).first(ty)
}

impl List {
    fn is_atomic(&self) -> bool {
        matches!(self.topology, ListTopology::Atomic)
    }

    /// What tells `item` from the other items of a list that is not atomic.
    fn element_of(&self, item: &Value) -> Result<PathElement, ItemError> {
        match &self.topology {
            ListTopology::Atomic => Err(ItemError::Atomic),
            ListTopology::Set => match item {
                Value::Object(_) => Err(ItemError::MapInSet),
                Value::Array(_) => Err(ItemError::ListInSet),
                Value::Null => Err(ItemError::NullInSet),
                scalar => Ok(PathElement::Value(Box::new(scalar.clone()))),
            },
            ListTopology::Keyed(keys) => {
                let item = match item {
                    Value::Object(item) => item,
                    Value::Null => return Err(ItemError::NullWithKeys),
                    _ => return Err(ItemError::NotAMap),
                };
                let fields: Vec<_> = keys
                    .iter()
                    .filter_map(|key| {
                        let value = item.get(key.name.as_ref()).or(key.default.as_ref())?;
                        Some((key.name.clone(), value.clone()))
                    })
                    .collect();
                if fields.is_empty() && !keys.is_empty() {
                    return Err(ItemError::NoKeys(
                        keys.iter().map(|key| key.name.to_string()).collect(),
                    ));
                }
                Ok(PathElement::key(fields))
            }
        }
    }

    /// Whether [`List::element_of`] would succeed, without building the element.
    fn check_item(&self, item: &Value) -> Result<(), ItemError> {
        match (&self.topology, item) {
            (ListTopology::Keyed(keys), Value::Object(item))
                if keys
                    .iter()
                    .any(|key| key.default.is_some() || item.contains_key(key.name.as_ref())) =>
            {
                Ok(())
            }
            (ListTopology::Set, Value::Bool(_) | Value::Number(_) | Value::String(_)) => Ok(()),
            _ => self.element_of(item).map(drop),
        }
    }
}

/// Why an item has no place in its list. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
enum ItemError {
    #[error("invalid indexing of non-associative list")]
    Atomic,
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("associative list with keys may not have a null element")]
    NullWithKeys,
    #[error("associative list with keys may not have non-map elements")]
    NotAMap,
    #[error(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
        .0.iter().map(|key| crate::json::go_quote(key)).collect::<Vec<_>>().join(" ")
    )]
    NoKeys(Vec<String>),
}
