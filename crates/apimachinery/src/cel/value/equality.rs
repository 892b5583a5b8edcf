//! When values are the same.

use serde_json::Value;

use super::bucket::{self, Buckets, Key};
use super::{Items, List, ListKind, Map, Number, Val};

impl<'v> Val<'v> {
    /// Whether two values are equal; `None` when they cannot be compared, which is a mistake
    /// rather than a difference.
    pub(in crate::cel) fn equals(&self, other: &Val<'v>) -> Option<bool> {
        if let (Val::Null, _) | (_, Val::Null) = (self, other) {
            return Some(matches!((self, other), (Val::Null, Val::Null)));
        }
        if let Some(number) = Number::of(self) {
            let other = Number::of(other);
            return Some(
                other.is_some_and(|other| number.compare(other).is_some_and(|o| o.is_eq())),
            );
        }
        Some(match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::String(a), Val::String(b)) => **a == **b,
            (Val::Bytes(a), Val::Bytes(b)) => a == b,
            (Val::Duration(a), Val::Duration(b)) => a == b,
            (Val::Timestamp(a), Val::Timestamp(b)) => a.instant() == b.instant(),
            (Val::Type(a), Val::Type(b)) => a == b,
            (Val::List(a), Val::List(b)) => return a.equals(b),
            (Val::Map(a), Val::Map(b)) => return a.equals(b),
            (Val::Optional(a), Val::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => return a.equals(b),
                _ => false,
            },
            (Val::Ip(a), Val::Ip(b)) => a == b,
            (Val::Cidr(a), Val::Cidr(b)) => a == b,
            (Val::Url(a), Val::Url(b)) => a == b,
            (Val::Quantity { amount, .. }, Val::Quantity { amount: other, computed: false }) => {
                amount == other
            }
            (Val::Semver(a), Val::Semver(b)) => a.compare(b).is_eq(),
            (Val::Format(a), Val::Format(b)) => a.name == b.name,
            (Val::Struct(a), Val::Struct(b)) => a.equals(b),
            (Val::Preserved(a), other) => is_native(a, other),
            (Val::List(list), _) if !list.is_built() => return None,
            (Val::Map(map), _) if !map.is_built() => return None,
            (
                Val::Ip(_)
                | Val::Cidr(_)
                | Val::Url(_)
                | Val::Quantity { .. }
                | Val::Semver(_)
                | Val::Format(_)
                | Val::Composed
                | Val::Foreign(_),
                _,
            ) => return None,
            _ => false,
        })
    }
}

impl<'v> List<'v> {
    fn equals(&self, other: &List<'v>) -> Option<bool> {
        if self.len() != other.len() {
            return Some(false);
        }
        match (self.kind, &self.items) {
            (ListKind::Set, Items::Json { items, .. }) => {
                let buckets = Buckets::new(items.iter().map(Key::of_json));
                let has = |item: Val<'v>| {
                    let places = buckets.places(Key::of(&item).as_ref());
                    places.into_iter().any(|place| is_native(&items[place], &item))
                };
                Some(other.iter().all(|item| item.is_ok_and(has)))
            }
            (ListKind::Set, Items::Built(items)) => {
                let buckets = Buckets::new(items.iter().map(Key::of));
                let has = |item: Val<'v>| {
                    let places = buckets.places(Key::of(&item).as_ref());
                    places.into_iter().any(|place| items[place].equals(&item) == Some(true))
                };
                Some(other.iter().all(|item| item.is_ok_and(has)))
            }
            (ListKind::Map(keys), _) => {
                let items = self.to_vec().ok()?;
                let buckets = Buckets::new(items.iter().map(|known| bucket::item(known, keys)));
                for other in other.iter() {
                    let other = other.ok()?;
                    let places = buckets.places(bucket::item(&other, keys).as_ref()).into_iter();
                    let place = places.filter(|at| same_keys(&items[*at], &other, keys)).max();
                    let Some(place) = place else { return Some(false) };
                    match items[place].equals(&other) {
                        Some(true) => {}
                        unequal => return unequal,
                    }
                }
                Some(true)
            }
            _ => {
                for (a, b) in self.iter().zip(other.iter()) {
                    match a.ok()?.equals(&b.ok()?) {
                        Some(true) => {}
                        // Lists that expressions make pass over what cannot be compared.
                        None if self.is_built() => {}
                        unequal => return unequal,
                    }
                }
                Some(true)
            }
        }
    }
}

/// Whether two items of a list that is a map have the same keys.
pub(super) fn same_keys(a: &Val<'_>, b: &Val<'_>, keys: &[Box<str>]) -> bool {
    let (Val::Map(a), Val::Map(b)) = (a, b) else { return false };
    let (Some(a), Some(b)) = (a.json(), b.json()) else { return false };
    keys.iter().all(|key| a.get(&**key) == b.get(&**key))
}

impl<'v> Map<'v> {
    fn equals(&self, other: &Map<'v>) -> Option<bool> {
        if self.len() != other.len() {
            return Some(false);
        }
        let Some(json) = self.json() else {
            let entries = self.entries().ok()?;
            return Some(entries.iter().all(|(key, value)| {
                let other = other.find(key).ok().flatten();
                other.is_some_and(|other| value.equals(&other) != Some(false))
            }));
        };
        for (name, value) in json {
            if self.schema_of(name).is_some() {
                // Fields are looked up as an expression would write them, which a name with
                // something to escape is not.
                let a = self.find_text(name).ok()?;
                let b = other.find_text(name).ok()?;
                match (a, b) {
                    (None, None) => {}
                    (Some(a), Some(b)) => match a.equals(&b) {
                        Some(true) => {}
                        unequal => return unequal,
                    },
                    _ => return Some(false),
                }
            } else {
                match other.json()?.get(name) {
                    Some(other) if other != value => return Some(false),
                    _ => {}
                }
            }
        }
        Some(true)
    }
}

/// Whether a value is what stands in the object, with the same type: one is not 1.0, and a time
/// is not its text.
fn is_native(json: &Value, value: &Val<'_>) -> bool {
    match (json, value) {
        (Value::Null, Val::Null) => true,
        (Value::Bool(a), Val::Bool(b)) => a == b,
        (Value::Number(a), Val::Int(b)) => a.as_i64() == Some(*b),
        (Value::Number(a), Val::Double(b)) => !a.is_i64() && a.as_f64() == Some(*b),
        (Value::String(a), Val::String(b)) => **a == **b,
        (json, Val::Preserved(other)) => json == *other,
        (Value::Object(a), Val::Map(b)) => b.json() == Some(a),
        (Value::Array(a), Val::List(List { items: Items::Json { items, .. }, .. })) => a == items,
        _ => false,
    }
}
