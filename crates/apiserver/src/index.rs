//! What the server wants to know about stored bytes without reading them again.
//!
//! A value is JSON: the object in its hub version, with `kind` and `apiVersion`, without
//! `resourceVersion`, which is the revision itself and is spliced in when the object is sent. A
//! stock kube-apiserver on the same etcd reads such values, and leaves others behind (protobuf,
//! another order of fields, older versions): `crate::foreign` brings these into our form when they
//! come into memory.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use kubewright_apimachinery::json;
use kubewright_store::{Key, Rev, Revision};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::foreign;

/// The store as the server has it.
pub type Store = kubewright_store::Store<Index>;

/// A stored object.
pub type Stored = Arc<Rev<Index>>;

/// What is known of a value.
#[derive(Debug, Default)]
pub struct Index {
    /// The value in our form, when the stored bytes are not.
    foreign: Option<Bytes>,
    /// Where `kind` and `apiVersion` end and the other fields begin.
    body: u32,
    /// Where `resourceVersion` belongs; zero when the value is no object.
    splice: u32,
    /// The value is as its readers see it: a conversion made it for them.
    is_shown: bool,
    /// In the order of their keys.
    pub labels: Labels,
    /// What field selectors ask for, made the first time one asks.
    fields: OnceLock<Box<[Box<str>]>>,
}

/// The labels of an object, in the order of their keys.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

/// The bytes of an object in our form, and how to send them.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// `{"kind":…,"apiVersion":…,`
    pub type_meta: &'a [u8],
    /// From there to where `"resourceVersion":"…",` belongs.
    pub before: &'a [u8],
    pub after: &'a [u8],
}

/// The fields of `metadata` that are looked at.
#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    uid: &'a RawValue,
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
}

/// Looks at a value as it comes into memory. Whatever is no object of ours is kept as it is.
pub fn extract(_key: &Key, value: &Bytes) -> Index {
    if !foreign::is_outdated(value)
        && let Some(index) = ours(value)
    {
        return index;
    }
    let Some(object) = foreign::read(value) else { return Index::default() };
    let foreign = to_bytes(&object);
    match ours(&foreign) {
        Some(index) => Index { foreign: Some(foreign), ..index },
        None => Index::default(),
    }
}

/// The leading part of a key that names its resource: `/registry/pods/`,
/// `/registry/example.com/widgets/`. Groups with a dot have a part of their own, and so have the
/// two kinds that upstream keeps below `services`.
pub fn resource_of(key: &str) -> &str {
    let Some(rest) = key.strip_prefix(PREFIX) else { return "" };
    let first = rest.find('/').unwrap_or(rest.len());
    let end = match &rest[..first] {
        "services" => second(rest, first),
        group if group.contains('.') => second(rest, first),
        _ => first,
    };
    &key[..(PREFIX.len() + end + 1).min(key.len())]
}

/// Where everything is kept, as upstream has it.
pub const PREFIX: &str = "/registry/";

fn second(rest: &str, first: usize) -> usize {
    match rest.get(first + 1..).and_then(|rest| rest.find('/')) {
        Some(length) => first + 1 + length,
        None => rest.len(),
    }
}

impl Index {
    /// Whether the value could be read as an object.
    pub fn is_object(&self) -> bool {
        self.splice > 0
    }

    /// What is known of a value that is as its readers see it, which nobody stores.
    pub(crate) fn of_shown(value: &Bytes) -> Option<Self> {
        Some(Index { is_shown: true, ..ours(value)? })
    }

    /// Whether the value is as its readers see it, so that it need not be read through a schema.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// The value in our form.
    pub fn json<'a>(&'a self, value: &'a Bytes) -> &'a Bytes {
        self.foreign.as_ref().unwrap_or(value)
    }

    /// What field selectors of a built-in kind may ask for, in the order of its rules.
    pub fn fields(&self, make: impl FnOnce() -> Box<[Box<str>]>) -> &[Box<str>] {
        self.fields.get_or_init(make)
    }

    pub fn parts<'a>(&'a self, value: &'a Bytes) -> Parts<'a> {
        let json = self.json(value);
        let (body, splice) = (self.body as usize, self.splice as usize);
        Parts { type_meta: &json[..body], before: &json[body..splice], after: &json[splice..] }
    }

    /// The metadata alone, which says nothing of its type.
    ///
    /// # Errors
    /// When the value is no object; see [`Index::is_object`].
    pub fn metadata<'a>(&'a self, value: &'a Bytes) -> Result<Parts<'a>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }

        let json = self.json(value);
        let object: Object<'_> = serde_json::from_slice(json)?;
        let metadata = object.metadata.get().as_bytes();
        let start = metadata.as_ptr() as usize - json.as_ptr() as usize;
        let (before, after) = metadata.split_at((self.splice as usize).saturating_sub(start));
        Ok(Parts { type_meta: b"", before, after })
    }
}

/// The object as a tree, with `resourceVersion`, in its hub version; `None` when the value is none,
/// which nobody but another program can have stored.
pub fn object(rev: &Rev<Index>) -> Option<Value> {
    object_at(rev, rev.revision)
}

/// The object as it was last, at the revision of its deletion.
pub fn object_at(rev: &Rev<Index>, revision: Revision) -> Option<Value> {
    if !rev.extracted.is_object() {
        return None;
    }
    let json = rev.extracted.json(&rev.value);
    let mut object: Value = serde_json::from_slice(json).ok()?;
    set_resource_version(&mut object, revision);
    Some(object)
}

/// The time, as the store has it, to the second.
pub(crate) fn now(store: &Store) -> Timestamp {
    let now = store.config().clock.now();
    Timestamp::from_second(now.as_secs().cast_signed()).unwrap_or(Timestamp::MAX)
}

/// Writes the revision into an object where upstream has it, behind `uid`.
pub fn set_resource_version(object: &mut Value, revision: Revision) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let version = Value::String(revision.to_string());
    if let Some(slot) = metadata.get_mut("resourceVersion") {
        *slot = version;
        return;
    }
    let behind_uid = metadata.keys().position(|key| key == "uid").map(|at| at + 1);
    let at = behind_uid.unwrap_or(metadata.len());
    metadata.shift_insert(at, "resourceVersion".to_owned(), version);
}

/// The bytes to store: `kind` and `apiVersion` first, then everything but `resourceVersion`.
pub fn to_bytes(object: &Value) -> Bytes {
    let mut out = String::with_capacity(1024);
    for (name, opening) in [("kind", "{\"kind\":"), ("apiVersion", ",\"apiVersion\":")] {
        out.push_str(opening);
        json::append_text(&mut out, object.get(name).and_then(Value::as_str).unwrap_or_default());
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        if matches!(key.as_str(), "kind" | "apiVersion") {
            continue;
        }
        out.push(',');
        json::append_text(&mut out, key);
        out.push(':');
        match value {
            Value::Object(metadata) if key == "metadata" => {
                out.push('{');
                let kept = metadata.iter().filter(|(key, _)| *key != "resourceVersion");
                for (n, (key, value)) in kept.enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    json::append_text(&mut out, key);
                    out.push(':');
                    json::append(&mut out, value);
                }
                out.push('}');
            }
            value => json::append(&mut out, value),
        }
    }
    out.push('}');
    // It stays for long, and would keep the room that it did not need.
    out.into_boxed_str().into_boxed_bytes().into()
}

/// Reads a value that is in our form already.
fn ours(value: &Bytes) -> Option<Index> {
    let body = type_meta_end(value)?;
    let text = std::str::from_utf8(value).ok()?;
    let object: Object<'_> = serde_json::from_str(text).ok()?;
    let uid = object.metadata.uid.get();
    let start = uid.as_ptr() as usize - text.as_ptr() as usize;
    // Upstream prints `resourceVersion` behind `uid` where fields have the order of their type,
    // and before it where they are sorted; something follows or precedes it accordingly.
    let splice = match text.as_bytes().get(start + uid.len()) {
        Some(b',') => start + uid.len() + 1,
        _ => start.checked_sub("\"uid\":".len())?,
    };
    let labels = object.metadata.labels.unwrap_or_default();
    let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    Some(Index {
        foreign: None,
        body: u32::try_from(body).ok()?,
        splice: u32::try_from(splice).ok()?,
        is_shown: false,
        labels: Labels(labels),
        fields: OnceLock::new(),
    })
}

/// Where the fields after `{"kind":"…","apiVersion":"…",` begin. Neither has a quote inside.
fn type_meta_end(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    for start in [&b"{\"kind\":\""[..], &b",\"apiVersion\":\""[..]] {
        let rest = value.get(at..)?.strip_prefix(start)?;
        at += start.len() + rest.iter().position(|byte| *byte == b'"')? + 1;
    }
    (value.get(at) == Some(&b',')).then_some(at + 1)
}

impl Labels {
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&self.0[found].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl kubewright_apimachinery::selector::label::Labels for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}
