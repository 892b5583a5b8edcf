//! `metadata.managedFields`: who owns what, since when, through which version.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::{FieldsError, Set};
use crate::json;

/// All owners of an object's fields, in the order in which conflicts list them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Managed {
    pub(super) entries: BTreeMap<Identity, Entry>,
}

/// What tells entries apart: an applier has one, whatever the version; an updater one per version.
///
/// This is upstream's text for it, because upstream sorts by that text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(String);

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
            managed.entries.insert(entry.identity(), entry);
        }
        Ok(managed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries as an object carries them: appliers before updaters, then by time.
    pub(super) fn write(self) -> Vec<Value> {
        let mut entries: Vec<Entry> = self.entries.into_values().collect();
        entries.sort_by(|a, b| {
            let order = (a.owner.operation, a.seconds()).cmp(&(b.owner.operation, b.seconds()));
            let order = order.then_with(|| a.owner.manager.cmp(&b.owner.manager));
            let order = order.then_with(|| a.api_version.cmp(&b.api_version));
            order.then_with(|| a.owner.subresource.cmp(&b.owner.subresource))
        });
        entries.into_iter().map(Entry::write).collect()
    }

    pub(super) fn drop_empty(&mut self) {
        self.entries.retain(|_, entry| !entry.set.is_empty());
    }

    /// Merges the oldest updaters of each version into one entry until few enough are left.
    pub(super) fn cap_updaters(&mut self) {
        let is_update = |entry: &Entry| entry.owner.operation == Operation::Update;
        let n_updaters = self.entries.values().filter(|entry| is_update(entry)).count();
        let mut excess = n_updaters.saturating_sub(UPDATE_ENTRIES_MAX);
        if excess == 0 {
            return;
        }
        let updaters = self.entries.iter().filter(|(_, entry)| is_update(entry));
        let mut updaters: Vec<(i64, Identity, String)> = updaters
            .map(|(identity, entry)| (entry.seconds(), identity.clone(), entry.api_version.clone()))
            .collect();
        updaters.sort();

        // Sets are united at the end, all of a bucket at once.
        let mut merged: BTreeMap<Identity, Vec<Set>> = BTreeMap::new();
        // The oldest entry of each version turns into the bucket for the others.
        let mut oldest_of: BTreeMap<String, Identity> = BTreeMap::new();
        for (_, identity, version) in updaters {
            if excess == 0 {
                break;
            }
            let Some(oldest) = oldest_of.get(&version) else {
                oldest_of.insert(version, identity);
                continue;
            };
            excess -= 1;
            let owner = Owner::updater("ancient-changes", "");
            let bucket = owner.identity(&version);
            if !self.entries.contains_key(&bucket)
                && let Some(entry) = self.entries.remove(oldest)
            {
                self.entries.insert(bucket.clone(), Entry { owner, ..entry });
            }
            let Some(entry) = self.entries.remove(&identity) else { continue };
            match self.entries.get_mut(&bucket) {
                Some(kept) => {
                    kept.time = entry.time;
                    merged.entry(bucket).or_default().push(entry.set);
                }
                // The bucket itself comes up when it is no older than the oldest of its version.
                // Upstream then drops it.
                None => drop(merged.remove(&bucket)),
            }
        }
        for (bucket, mut sets) in merged {
            if let Some(kept) = self.entries.get_mut(&bucket) {
                sets.push(std::mem::take(&mut kept.set));
                kept.set = Set::union_of(sets);
            }
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

    pub(super) fn identity(&self) -> Identity {
        self.owner.identity(&self.api_version)
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

    /// The identity of what this owner writes through `api_version`.
    pub(super) fn identity(&self, api_version: &str) -> Identity {
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
        Identity(json::to_string(&Value::Object(entry)))
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
