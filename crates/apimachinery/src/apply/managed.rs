//! `metadata.managedFields`: who owns what, since when, through which version.

use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::{FieldsError, Set};
use crate::json;

/// All owners of an object's fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Managed {
    pub(super) entries: Vec<Entry>,
}

/// What one owner has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    /// The version whose fields `set` names.
    pub(super) api_version: String,
    /// When the owner last changed something; unknown when all it ever did was to agree.
    pub(super) time: Option<Timestamp>,
    pub(super) set: Set,
}

/// Who owns fields, as conflicts name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub manager: String,
    pub operation: Operation,
    /// Empty for the resource itself.
    pub subresource: String,
}

/// How fields came to be owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By an applied configuration: leaving a field out of the next one gives it up.
    Apply,
    /// By any other write.
    Update,
}

/// `managedFields` that cannot be read. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType {quoted} in managed fields entry {index}")]
    FieldsType { quoted: String, index: usize },
    #[error("error decoding versioned set in managed fields entry {index}")]
    Fields { index: usize, source: FieldsError },
}

/// What a written object says about its managed fields.
pub(super) enum Request<'a> {
    /// `[]` or `[{}]`: forget all owners.
    Reset,
    /// Nothing, or nothing legible.
    Absent,
    Entries(&'a [Value]),
}

/// Upstream keeps at most so many entries of operation Update.
const UPDATE_ENTRIES_MAX: usize = 10;

impl Managed {
    pub(super) fn read(entries: &[Value]) -> Result<Self, ManagedFieldsError> {
        let mut managed = Managed::default();
        for (index, entry) in entries.iter().enumerate() {
            let entry = Entry::read(entry, index)?;
            // A repeated owner is the last one.
            match managed.position(&entry.owner, &entry.api_version) {
                Some(at) => managed.entries[at] = entry,
                None => managed.entries.push(entry),
            }
        }
        Ok(managed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries as an object carries them: appliers before updaters, then by time.
    pub(super) fn write(mut self) -> Vec<Value> {
        self.entries.sort_by(|a, b| {
            let order = (a.owner.operation, a.seconds()).cmp(&(b.owner.operation, b.seconds()));
            let order = order.then_with(|| a.owner.manager.cmp(&b.owner.manager));
            let order = order.then_with(|| a.api_version.cmp(&b.api_version));
            order.then_with(|| a.owner.subresource.cmp(&b.owner.subresource))
        });
        self.entries.into_iter().map(Entry::write).collect()
    }

    /// The entry that a write by `owner` through `api_version` continues. An applier has one
    /// entry, whatever the version; an updater one per version.
    pub(super) fn position(&self, owner: &Owner, api_version: &str) -> Option<usize> {
        self.entries.iter().position(|entry| {
            entry.owner == *owner
                && (owner.operation == Operation::Apply || entry.api_version == api_version)
        })
    }

    pub(super) fn drop_empty(&mut self) {
        self.entries.retain(|entry| !entry.set.is_empty());
    }

    /// Merges the oldest updaters of each version into one entry until few enough are left.
    pub(super) fn cap_updaters(&mut self) {
        let mut updaters: Vec<(i64, String, Owner, String)> = self
            .entries
            .iter()
            .filter(|entry| entry.owner.operation == Operation::Update)
            .map(|entry| {
                let identity = entry.owner.identity(&entry.api_version);
                (entry.seconds(), identity, entry.owner.clone(), entry.api_version.clone())
            })
            .collect();
        let mut excess = updaters.len().saturating_sub(UPDATE_ENTRIES_MAX);
        updaters.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));

        // The first entry of each version, by its owner, turns into the bucket for the others.
        let mut first_of: Vec<(String, Owner)> = Vec::new();
        for (_, _, owner, version) in updaters {
            if excess == 0 {
                return;
            }
            let Some((_, first)) =
                first_of.iter().find(|(first_version, _)| *first_version == version)
            else {
                first_of.push((version, owner));
                continue;
            };
            let bucket = Owner::updater("ancient-changes", "");
            if self.position(&bucket, &version).is_none()
                && let Some(at) = self.position(first, &version)
            {
                self.entries[at].owner = bucket.clone();
            }
            // The bucket itself may come up when it is no older than the first of its version.
            // Upstream then drops it.
            if let Some(at) = self.position(&owner, &version) {
                let merged = self.entries.remove(at);
                if let Some(at) = self.position(&bucket, &version) {
                    let kept = &mut self.entries[at];
                    kept.set = merged.set.union(std::mem::take(&mut kept.set));
                    kept.time = merged.time;
                }
            }
            excess -= 1;
        }
    }
}

impl Entry {
    fn read(entry: &Value, index: usize) -> Result<Self, ManagedFieldsError> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedFieldsError::Operation),
        };
        if text("apiVersion").is_empty() {
            return Err(ManagedFieldsError::ApiVersion);
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(ManagedFieldsError::NoFieldsType(index)),
            other => {
                return Err(ManagedFieldsError::FieldsType {
                    quoted: json::go_quote(other),
                    index,
                });
            }
        }
        let set = Set::from_fields_v1(&entry["fieldsV1"]);
        Ok(Entry {
            owner: Owner {
                manager: text("manager").to_owned(),
                operation,
                subresource: text("subresource").to_owned(),
            },
            api_version: text("apiVersion").to_owned(),
            time: Timestamp::from_str(text("time")).ok(),
            set: set.map_err(|source| ManagedFieldsError::Fields { index, source })?,
        })
    }

    fn write(self) -> Value {
        let Owner { manager, operation, subresource } = self.owner;
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        if !manager.is_empty() {
            put("manager", manager.into());
        }
        put("operation", operation.as_str().into());
        put("apiVersion", self.api_version.into());
        if let Some(time) = self.time {
            put("time", whole_seconds(time).into());
        }
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", self.set.to_fields_v1());
        if !subresource.is_empty() {
            put("subresource", subresource.into());
        }
        Value::Object(entry)
    }

    fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }
}

impl Owner {
    pub(super) fn updater(manager: &str, subresource: &str) -> Self {
        Owner {
            manager: manager.to_owned(),
            operation: Operation::Update,
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which upstream tells entries apart, and by which it sorts them.
    pub(super) fn identity(&self, api_version: &str) -> String {
        let mut entry = Map::new();
        let version = if self.operation == Operation::Apply { "" } else { api_version };
        let fields = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", version),
            ("subresource", &self.subresource),
        ];
        for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(name.to_owned(), text.into());
        }
        json::to_string(&Value::Object(entry))
    }
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl<'a> Request<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        match object["metadata"]["managedFields"].as_array().map(Vec::as_slice) {
            Some([]) => Request::Reset,
            Some([only]) if is_blank(only) => Request::Reset,
            Some(entries) if entries.iter().all(is_legible) => Request::Entries(entries),
            _ => Request::Absent,
        }
    }

    pub(super) fn entries(self) -> &'a [Value] {
        match self {
            Request::Entries(entries) => entries,
            Request::Reset | Request::Absent => &[],
        }
    }
}

/// Puts the entries into `object`, in place of those it had.
pub(super) fn store(object: &mut Value, managed: Managed) {
    let entries = managed.write();
    if entries.is_empty() {
        clear(object);
        return;
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    } else if let Some(object) = object.as_object_mut() {
        let metadata = Map::from_iter([("managedFields".to_owned(), Value::Array(entries))]);
        object.insert("metadata".to_owned(), Value::Object(metadata));
    }
}

pub(super) fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
}

/// An entry with nothing in it.
fn is_blank(entry: &Value) -> bool {
    let nothing = |value: &Value| value.is_null() || value.as_str() == Some("");
    entry.as_object().is_some_and(|entry| entry.values().all(nothing))
}

/// Whether the fields of an entry have their types.
fn is_legible(entry: &Value) -> bool {
    let Some(entry) = entry.as_object() else { return false };
    entry.iter().all(|(name, value)| match name.as_str() {
        "manager" | "operation" | "apiVersion" | "fieldsType" | "subresource" => {
            value.is_string() || value.is_null()
        }
        "time" => {
            value.is_null() || value.as_str().is_some_and(|time| Timestamp::from_str(time).is_ok())
        }
        _ => true,
    })
}

fn whole_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
