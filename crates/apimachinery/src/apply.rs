//! Server-side apply, and the record of who owns which field.
//!
//! Every write of an object goes through [`FieldManager`]: [`FieldManager::update`] for those
//! that bring a whole object, [`FieldManager::apply`] for those that bring a part of one and leave
//! the merging to the server. Both keep `metadata.managedFields`.
//!
//! The rules are those of structured-merge-diff and of the `managedfields` package around it. They
//! decide on sets of fields ([`Set`]), found by walking objects along a [`Schema`]. The time is
//! an argument; conversion between versions is the caller's ([`Versions`]).

mod conflict;
mod last_applied;
mod managed;
mod overlay;
mod path;
mod reset;
mod scale;
mod schema;
mod set;
#[cfg(test)]
mod tests;
mod typed;
mod updater;
mod value;
mod versions;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

pub use self::conflict::Conflicts;
pub use self::managed::{ManagedFieldsError, Operation, Owner};
pub use self::overlay::{OverlayError, overlay};
pub use self::path::{PathElement, PathElementError};
pub use self::reset::{Pattern, ResetFields, ResetFilter};
pub use self::scale::{ReplicasPaths, scale_from_parent, scale_to_parent};
pub use self::schema::Schema;
pub use self::set::{FieldsError, Set};
pub use self::versions::{BuiltinVersions, ConvertError, SameInAllVersions, Versions};

use self::managed::{Entry, Managed, Request};
use self::typed::Duplicates;
use self::updater::{Failure, Updater};
use crate::json;
use crate::status::{Reason, Status};

/// Keeps the managed fields of one kind on writes through one endpoint.
///
/// All objects given are of `api_version`, with `apiVersion` and `kind`, in the form in which the
/// server writes them: known fields only, no zero values that it would leave out.
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    /// As in objects: `v1`, `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// `status`, `scale`; empty for the resource itself.
    pub subresource: &'a str,
    pub versions: &'a dyn Versions,
    pub reset: &'a ResetFields,
    /// An object of this kind in which nothing is set. For a custom resource that is `apiVersion`
    /// and `kind`; decoding these as a built-in kind adds the structs that it always writes.
    pub empty: &'a Value,
}

/// Why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409: leave the fields out, take the values there are, or force.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// 400: the request can never succeed.
    #[error("{0}")]
    BadRequest(String),
    /// 500, as upstream has it: the configuration does not fit the schema, or the object cannot be
    /// converted.
    #[error("{0}")]
    Failed(String),
}

impl FieldManager<'_> {
    /// Records that `manager` turned `live` into `new`, and returns `new` with the managed fields
    /// it is to be stored with. `live` is `None` on create.
    ///
    /// `new` carries the managed fields of the request, by which a client may edit them: `[]` or
    /// `[{}]` forgets all owners, absent or illegible entries mean those of `live`. Through a
    /// subresource they are ignored. An object that was not tracked is not tracked after an update
    /// either; only its creation or an apply starts that.
    ///
    /// Never fails: an object that does not fit its schema is stored without managed fields.
    pub fn update(&self, live: Option<&Value>, new: Value, manager: &str, now: Timestamp) -> Value {
        let mut new = new;
        let managed = self.managed_for_update(live, &new);
        managed::clear(&mut new);
        let exists = live.is_some_and(|live| {
            live["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty())
        });
        if managed.is_empty() && exists {
            return new;
        }
        if let Ok(managed) = self.track(live.unwrap_or(self.empty), &new, managed, manager, now) {
            managed::store(&mut new, managed);
        }
        new
    }

    /// Applies `config`, a part of an object, on behalf of `manager`, and returns the object that
    /// came of it with its managed fields. `live` is `None` when there is no object yet. Defaults
    /// of fields that the configuration gave up are the caller's to fill in again.
    ///
    /// With `force`, fields that others own change hands.
    ///
    /// # Errors
    /// See [`ApplyError`].
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<Value, ApplyError> {
        let entries = live.map_or(&[][..], |live| Request::of(live).entries());
        let managed = Managed::read(entries).map_err(|error| {
            ApplyError::Failed(format!("failed to decode managed fields: {error}"))
        })?;
        self.check_config(config)?;
        let live = live.unwrap_or(self.empty);

        let (mut object, managed) = if manager == KUBECTL {
            let (mut object, managed) =
                self.merge_or_take_over(live, config, managed, force, now)?;
            last_applied::refresh(&mut object, config);
            (object, managed)
        } else {
            self.merge(live, config, managed, manager, force, now)?
        };
        managed::store(&mut object, managed);
        Ok(object)
    }

    /// Merges what kubectl applies. It needs no force to take what the annotation of its
    /// client-side past proves to be its own.
    fn merge_or_take_over(
        &self,
        live: &Value,
        config: &Value,
        managed: Managed,
        force: bool,
        now: Timestamp,
    ) -> Result<(Value, Managed), Failure> {
        let outcome = self.merge(live, config, managed.clone(), KUBECTL, force, now);
        let Err(Failure::Conflicts(conflicts)) = outcome else { return outcome };
        let Some(proven) = last_applied::proven_fields(self.schema()?, self.api_version, live)
        else {
            return Err(Failure::Conflicts(conflicts));
        };
        match conflicts.except(&proven) {
            Some(left) => Err(Failure::Conflicts(left)),
            None => self.merge(live, config, managed, KUBECTL, true, now),
        }
    }

    fn check_config(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| config[name].as_str().unwrap_or_default();
        if (text("apiVersion"), text("kind")) != (self.api_version, self.kind) {
            let kind = group_version_kind(text("apiVersion"), text("kind"));
            return Err(ApplyError::BadRequest(format!("invalid object type: {kind}")));
        }
        match Request::of(config) {
            Request::Absent => Ok(()),
            Request::Reset | Request::Entries(_) => {
                Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()))
            }
        }
    }

    /// The owners before an update.
    fn managed_for_update(&self, live: Option<&Value>, new: &Value) -> Managed {
        let of_live = || {
            live.map_or_else(Managed::default, |live| {
                Managed::read(Request::of(live).entries()).unwrap_or_default()
            })
        };
        if !self.subresource.is_empty() {
            return of_live();
        }
        match Request::of(new) {
            Request::Reset => Managed::default(),
            Request::Absent => of_live(),
            // Clients that do not understand managed fields must not be able to break them.
            Request::Entries(entries) => Managed::read(entries)
                .ok()
                .filter(|managed| !managed.is_empty())
                .unwrap_or_else(of_live),
        }
    }

    /// Gives `manager` what changed between two objects.
    fn track(
        &self,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        manager: &str,
        now: Timestamp,
    ) -> Result<Managed, Failure> {
        let schema = self.schema()?;
        typed::validate(schema, new, Duplicates::Allowed).map_err(|text| {
            format!("failed to convert new object ({}) to smd typed: {text}", identity(new))
        })?;
        typed::validate(schema, live, Duplicates::Allowed).map_err(|text| {
            format!("failed to convert live object ({}) to smd typed: {text}", identity(live))
        })?;

        let changed = self.updater().update(live, new, &mut managed)?.difference(&UNTRACKED);
        if !changed.is_empty() {
            let owner = Owner::updater(name_or_unknown(manager), self.subresource);
            let entry =
                managed.entries.entry(owner.identity(self.api_version)).or_insert_with(|| Entry {
                    owner,
                    api_version: self.api_version.to_owned(),
                    time: None,
                    set: Set::new(),
                });
            entry.set = changed.union(std::mem::take(&mut entry.set));
            entry.time = Some(now);
        }
        managed.cap_updaters();
        Ok(managed)
    }

    /// Merges a configuration whose kind is right. The object is without managed fields.
    fn merge(
        &self,
        live: &Value,
        config: &Value,
        mut managed: Managed,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<(Value, Managed), Failure> {
        if managed.is_empty() {
            // What is there already belongs to nobody known; without an owner it would fall to the
            // first applier that mentions it, and vanish with it.
            managed = self.track(self.empty, live, managed, "before-first-apply", now).map_err(
                |failure| {
                    let Failure::Other(text) = failure else { return failure };
                    Failure::Other(format!("failed to create manager for existing fields: {text}"))
                },
            )?;
        }
        let schema = self.schema()?;
        typed::validate(schema, config, Duplicates::Refused).map_err(|text| {
            format!("failed to create typed patch object ({}): {text}", identity(config))
        })?;
        typed::validate(schema, live, Duplicates::Allowed).map_err(|text| {
            format!("failed to create typed live object ({}): {text}", identity(live))
        })?;

        let owner = Owner {
            manager: name_or_unknown(manager).to_owned(),
            operation: Operation::Apply,
            subresource: self.subresource.to_owned(),
        };
        let object = self.updater().apply(live, config, &mut managed, &owner, force)?;
        if let Some(entry) = managed.entries.get_mut(&owner.identity(self.api_version)) {
            entry.set = std::mem::take(&mut entry.set).difference(&UNTRACKED);
            // Who only repeats what is there has changed nothing, and the time says so.
            if object.is_some() {
                entry.time = Some(now);
            }
            managed.drop_empty();
        }
        Ok((object.unwrap_or_else(|| live.clone()), managed))
    }

    fn updater(&self) -> Updater<'_> {
        Updater { api_version: self.api_version, versions: self.versions, reset: self.reset }
    }

    fn schema(&self) -> Result<&Schema, Failure> {
        self.versions.schema(self.api_version).map_err(|error| Failure::Other(error.to_string()))
    }
}

impl From<Failure> for ApplyError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            Failure::Other(text) => ApplyError::Failed(text),
        }
    }
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => {
                Status::apply_conflict(conflicts.causes(), conflicts.to_string())
            }
            ApplyError::BadRequest(text) => Status::bad_request(text),
            ApplyError::Failed(text) => Status::failure(500, Reason::Unknown, text),
        }
    }
}

/// Puts the old times back where a write changed nothing else, so that it is no write at all.
pub fn keep_times(live: &Value, new: &mut Value) {
    fn entries_of(object: &Value) -> Option<&Vec<Value>> {
        object["metadata"]["managedFields"].as_array()
    }
    let (Some(old_entries), Some(new_entries)) = (entries_of(live), entries_of(new)) else {
        return;
    };
    let same_entries = old_entries.len() == new_entries.len()
        && !new_entries.is_empty()
        && old_entries.iter().zip(new_entries).all(|(old, new)| equal_except(old, new, "time"));
    if !same_entries || old_entries == new_entries {
        return;
    }
    let metadata = (&live["metadata"], &new["metadata"]);
    if equal_except(metadata.0, metadata.1, "managedFields") && equal_except(live, new, "metadata")
    {
        new["metadata"]["managedFields"] = Value::Array(old_entries.clone());
    }
}

/// Of `object`, what `manager` applied last, as a configuration to change and apply again: its
/// fields, and the key fields of the list items they are in. `None` when it applied nothing.
pub fn extract(schema: &Schema, object: &Value, manager: &str, subresource: &str) -> Option<Value> {
    let managed = Managed::read(Request::of(object).entries()).ok()?;
    let owner = Owner {
        manager: manager.to_owned(),
        operation: Operation::Apply,
        subresource: subresource.to_owned(),
    };
    let entry = managed.entries.into_values().find(|entry| entry.owner == owner)?;
    let fields = entry.set.leaves();
    let present = fields.intersection(&typed::to_set(schema, object));
    let mut config = typed::extract(schema, object, &fields.union(present.key_fields()));
    if config.is_null() {
        config = Value::Object(serde_json::Map::new());
    }
    for name in ["apiVersion", "kind"] {
        config[name] = object[name].clone();
    }
    for name in ["name", "namespace"] {
        if let Some(value) = object["metadata"].get(name) {
            config["metadata"][name] = value.clone();
        }
    }
    Some(config)
}

/// Whether managed fields can be read. Admission must not leave any that cannot.
///
/// # Errors
/// What is wrong with the first bad entry.
pub fn check_managed_fields(entries: &[Value]) -> Result<(), ManagedFieldsError> {
    Managed::read(entries).map(drop)
}

/// The manager of a write that names none: what its user agent says before the first slash.
pub fn manager_from_user_agent(user_agent: &str) -> String {
    const BYTES_MAX: usize = 128;
    let mut manager = String::new();
    for c in
        user_agent.split('/').next().unwrap_or_default().chars().filter(|c| json::is_printable(*c))
    {
        if manager.len() + c.len_utf8() > BYTES_MAX {
            break;
        }
        manager.push(c);
    }
    manager
}

/// The manager whose applies continue those of the client-side `kubectl apply`.
const KUBECTL: &str = "kubectl";

/// Fields that say which object it is, or that the server sets: nobody owns them.
static UNTRACKED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields([
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

fn name_or_unknown(manager: &str) -> &str {
    if manager.is_empty() { "unknown" } else { manager }
}

/// Namespace, name and kind, as upstream's errors name an object.
fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (namespace, name) =
        (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    format!(
        "{namespace}/{name}; {}",
        group_version_kind(&text(&object["apiVersion"]), &text(&object["kind"]))
    )
}

fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

/// Whether two maps are equal but for one key.
fn equal_except(a: &Value, b: &Value, key: &str) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let others =
        |map: &serde_json::Map<String, Value>| map.keys().filter(|name| *name != key).count();
    others(a) == others(b)
        && a.iter().filter(|(name, _)| *name != key).all(|(name, value)| b.get(name) == Some(value))
}
