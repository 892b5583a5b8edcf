//! Lists.

use std::sync::Arc;

use serde_json::Value;

use super::bucket::{self, Buckets, Key};
use super::equality::same_keys;
use super::{Failure, Outcome, Val, adapt};
use crate::schema::Structural;

#[derive(Clone)]
pub struct List<'v> {
    pub(in crate::cel) items: Items<'v>,
    pub(in crate::cel) kind: ListKind<'v>,
}

#[derive(Clone)]
pub(in crate::cel) enum Items<'v> {
    Json {
        items: &'v [Value],
        schema: &'v Structural,
    },
    /// Of an object that has no schema.
    Plain(&'v [Value]),
    Built(Arc<Vec<Val<'v>>>),
}

/// What the schema says about the items; it matters when lists are compared or joined.
#[derive(Clone, Copy)]
pub(in crate::cel) enum ListKind<'v> {
    /// Made by an expression, or of an object that has no schema.
    Made,
    Atomic,
    Set,
    Map(&'v [Box<str>]),
}

impl<'v> List<'v> {
    pub(in crate::cel) fn built(items: Vec<Val<'v>>) -> Self {
        List { items: Items::Built(Arc::new(items)), kind: ListKind::Made }
    }

    pub(in crate::cel) fn is_built(&self) -> bool {
        matches!(self.kind, ListKind::Made)
    }

    pub(in crate::cel) fn len(&self) -> usize {
        match &self.items {
            Items::Json { items, .. } | Items::Plain(items) => items.len(),
            Items::Built(items) => items.len(),
        }
    }

    /// The item at an index that exists.
    pub(in crate::cel) fn at(&self, index: usize) -> Outcome<'v> {
        match &self.items {
            Items::Json { items, schema } => adapt::value(&items[index], schema),
            Items::Plain(items) => Ok(Val::of_json(&items[index])),
            Items::Built(items) => Ok(items[index].clone()),
        }
    }

    pub(in crate::cel) fn iter(&self) -> impl Iterator<Item = Outcome<'v>> + '_ {
        (0..self.len()).map(|index| self.at(index))
    }

    pub(in crate::cel) fn to_vec(&self) -> Result<Vec<Val<'v>>, Failure> {
        self.iter().collect()
    }

    /// Whether a value is among the items. An item that cannot be compared is an error, unless
    /// another one is equal.
    pub(in crate::cel) fn contains(&self, value: &Val<'v>) -> Result<bool, Failure> {
        let mut incomparable = false;
        for item in self.iter() {
            match item.map(|item| item.equals(value)) {
                Ok(Some(true)) => return Ok(true),
                Ok(Some(false)) => {}
                Ok(None) => incomparable = true,
                Err(failure) => return Err(failure),
            }
        }
        if incomparable { Err(Failure::NO_SUCH_OVERLOAD) } else { Ok(false) }
    }

    /// `+`: sets take what is new to them, maps replace items with the same keys, others append.
    pub(in crate::cel) fn joined(&self, other: &List<'v>) -> Result<List<'v>, Failure> {
        let mut items = self.to_vec()?;
        match self.kind {
            ListKind::Made => {
                items.extend(other.to_vec()?);
                return Ok(List::built(items));
            }
            ListKind::Atomic => items.extend(other.to_vec()?),
            ListKind::Set => {
                let mut buckets = Buckets::new(items.iter().map(Key::of));
                for item in other.to_vec()? {
                    let key = Key::of(&item);
                    let mut places = buckets.places(key.as_ref()).into_iter();
                    if !places.any(|place| items[place].equals(&item) == Some(true)) {
                        buckets.push(key);
                        items.push(item);
                    }
                }
            }
            ListKind::Map(keys) => {
                let mut buckets = Buckets::new(items.iter().map(|item| bucket::item(item, keys)));
                for item in other.to_vec()? {
                    let key = bucket::item(&item, keys);
                    let places = buckets.places(key.as_ref()).into_iter();
                    match places.filter(|place| same_keys(&items[*place], &item, keys)).min() {
                        Some(place) => items[place] = item,
                        None => {
                            buckets.push(key);
                            items.push(item);
                        }
                    }
                }
            }
        }
        Ok(List { items: Items::Built(Arc::new(items)), kind: self.kind })
    }
}
