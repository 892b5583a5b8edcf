//! Who owns what after a write.
//!
//! Works on field sets and objects in a known shape; what stands in `managedFields` and what a
//! request may say are decided around it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::conflict::Conflicts;
use super::managed::{Entry, Identity, Managed, Owner};
use super::reset::{ResetFields, ResetFilter};
use super::schema::Schema;
use super::set::Set;
use super::typed::{self, Duplicates};
use super::versions::{ConvertError, Versioned, Versions};

/// The rules for writes through one endpoint.
#[derive(Clone, Copy)]
pub(super) struct Updater<'a> {
    /// The version of the request and of every object given.
    pub(super) api_version: &'a str,
    pub(super) versions: &'a dyn Versions,
    pub(super) reset: &'a ResetFields,
}

/// Why there is no outcome.
#[derive(Debug)]
pub(super) enum Failure {
    Conflicts(Conflicts),
    Other(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Other(text)
    }
}

/// What a write changed, in one version.
struct Delta {
    removed: Set,
    changed: Set,
}

impl Updater<'_> {
    /// Takes from all owners what changed between `live` and `new`, and returns it. Both objects
    /// must have passed validation.
    pub(super) fn update(
        &self,
        live: &Value,
        new: &Value,
        managed: &mut Managed,
    ) -> Result<Set, Failure> {
        let (live, new) = (
            Versioned::borrowed(self.api_version, live),
            Versioned::borrowed(self.api_version, new),
        );
        self.reconcile(&live, managed)?;
        Ok(self.hand_over(&live, &new, managed, None, true)?.changed)
    }

    /// Lays `config` over `live`, removes what `owner` applied before and nobody applies now, and
    /// records the ownership. The object is `None` when it came out as it was. Both objects must
    /// have passed validation.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managed: &mut Managed,
        owner: &Owner,
        force: bool,
    ) -> Result<Option<Value>, Failure> {
        let identity = owner.identity(self.api_version);
        let known_since = managed.entries.get(&identity).and_then(|entry| entry.time);
        self.reconcile(&Versioned::borrowed(self.api_version, live), managed)?;
        let schema = self.schema(self.api_version).map_err(|error| error.to_string())?;

        let merged = typed::merge(schema, live, config);
        let entry = Entry {
            owner: owner.clone(),
            api_version: self.api_version.to_owned(),
            time: known_since,
            set: self.filter(typed::to_set(schema, config)),
        };
        let last = managed.entries.insert(identity.clone(), entry);
        let new = self
            .prune(merged, managed, &identity, last)
            .map_err(|text| format!("failed to prune fields: {text}"))?;
        // Nothing but null may be left of an item, and then it has no name to compare it by.
        typed::validate(schema, &new, Duplicates::Allowed)
            .map_err(|text| format!("failed to compare objects: {text}"))?;
        self.hand_over(
            &Versioned::borrowed(self.api_version, live),
            &Versioned::borrowed(self.api_version, &new),
            managed,
            Some(&identity),
            force,
        )?;
        Ok((!super::value::equal(live, &new)).then_some(new))
    }

    /// Removes from every owner but `own` what `new` changed; without `force` that is refused
    /// where it would take a field away.
    fn hand_over(
        &self,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
        managed: &mut Managed,
        own: Option<&Identity>,
        force: bool,
    ) -> Result<Delta, Failure> {
        let schema = self.schema(self.api_version).map_err(|error| error.to_string())?;
        let delta = self.delta(schema, live, new);
        let mut other_deltas: BTreeMap<String, Option<Delta>> = BTreeMap::new();
        for entry in others(managed, own).filter(|entry| entry.api_version != self.api_version) {
            if !other_deltas.contains_key(&entry.api_version) {
                let other = self.delta_in(&entry.api_version, live, new)?;
                other_deltas.insert(entry.api_version.clone(), other);
            }
        }
        let delta_of = |entry: &Entry| match other_deltas.get(&entry.api_version) {
            Some(other) => other.as_ref(),
            None => Some(&delta),
        };

        if !force {
            let taken = others(managed, own).filter_map(|entry| {
                Some((entry, entry.set.intersection(&delta_of(entry)?.changed)))
            });
            if let Some(conflicts) = Conflicts::new(taken) {
                return Err(Failure::Conflicts(conflicts));
            }
        }
        for (identity, entry) in &mut managed.entries {
            if Some(identity) == own {
                continue;
            }
            let set = std::mem::take(&mut entry.set);
            // An entry of a version that is gone keeps nothing.
            if let Some(delta) = delta_of(entry) {
                entry.set = set.difference(&delta.changed).difference(&delta.removed);
            }
        }
        managed.drop_empty();
        Ok(delta)
    }

    fn delta(&self, schema: &Schema, old: &Versioned<'_>, new: &Versioned<'_>) -> Delta {
        let comparison = typed::compare(schema, &old.object, &new.object);
        let changed = comparison.modified.union(comparison.added);
        match self.reset.of(&old.api_version) {
            None => Delta { removed: comparison.removed, changed },
            Some(filter) => {
                Delta { removed: filter.apply(comparison.removed), changed: filter.apply(changed) }
            }
        }
    }

    /// The delta as `api_version` shows it; `None` when there is no such version.
    fn delta_in(
        &self,
        api_version: &str,
        old: &Versioned<'_>,
        new: &Versioned<'_>,
    ) -> Result<Option<Delta>, String> {
        let converted = |object, which| match self.convert(object, api_version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::Missing(_)) => Ok(None),
            Err(ConvertError::Failed(text)) => {
                Err(format!("failed to convert {which} object: {text}"))
            }
        };
        let (Some(old), Some(new)) = (converted(old, "old")?, converted(new, "new")?) else {
            return Ok(None);
        };
        let Ok(schema) = self.schema(api_version) else { return Ok(None) };
        Ok(Some(self.delta(schema, &old, &new)))
    }

    /// Takes out of `merged` what the last configuration had and this one has not, unless someone
    /// else owns it.
    fn prune(
        &self,
        merged: Value,
        managed: &Managed,
        own: &Identity,
        last: Option<Entry>,
    ) -> Result<Value, String> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let applied = managed.entries.get(own).map(|entry| &entry.set);
        // The usual case of a controller that applies the same fields again. Every item and entry
        // on the way to a field of the configuration is in its set too, so nothing can be lost.
        if last.api_version == self.api_version
            && applied.is_some_and(|applied| last.set.is_subset(applied))
        {
            return Ok(merged);
        }

        let version = last.api_version.as_str();
        let merged = Versioned::owned(self.api_version, merged);
        let converted = match self.convert(&merged, version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing(_)) => return Ok(merged.object.into_owned()),
            Err(ConvertError::Failed(text)) => {
                return Err(format!(
                    "failed to convert merged object to last applied version: {text}"
                ));
            }
        };
        let schema = self.schema(version).map_err(|error| error.to_string())?;
        let last_set = typed::name_fields(schema, last.set);
        let pruned = Versioned::owned(version, typed::remove(schema, &converted.object, &last_set));
        let pruned = self
            .keep_owned(converted.clone(), pruned, version, managed)
            .map_err(|text| format!("failed add back owned items: {text}"))?;
        let pruned = self
            .keep_dangling(schema, &converted, pruned, &last_set)
            .map_err(|text| format!("failed add back dangling items: {text}"))?;
        let pruned = self.convert(&pruned, self.api_version).map_err(|error| error.to_string())?;
        Ok(pruned.object.into_owned())
    }

    /// `merged` without what `pruned` lost, except what any owner has.
    fn keep_owned<'v>(
        &self,
        mut merged: Versioned<'v>,
        mut pruned: Versioned<'v>,
        pruned_version: &str,
        managed: &Managed,
    ) -> Result<Versioned<'v>, String> {
        let mut owned: BTreeMap<&str, Vec<Set>> = BTreeMap::new();
        for entry in managed.entries.values() {
            owned.entry(entry.api_version.as_str()).or_default().push(entry.set.clone());
        }
        // The version of the pruned object comes first: another may need to be converted from
        // fields that this one gives back.
        let first = owned.remove_entry(pruned_version);
        for (version, owned) in first.into_iter().chain(owned) {
            let converted = |object, which| match self.convert(object, version) {
                Ok(object) => Ok(Some(object)),
                Err(ConvertError::Missing(_)) => Ok(None),
                Err(ConvertError::Failed(text)) => {
                    Err(format!("failed to convert {which} object at version {version}: {text}"))
                }
            };
            let Some(merged_here) = converted(&merged, "merged")? else { continue };
            let merged_here = merged_here.into_owned();
            let Some(pruned_here) = converted(&pruned, "pruned")? else { continue };
            let schema = self.schema(version).map_err(|error| error.to_string())?;
            let fields_of =
                |object: &Value| typed::name_fields(schema, typed::to_set(schema, object));
            let owned = typed::name_fields(schema, Set::union_of(owned));
            let kept = fields_of(&pruned_here.object).union(owned);
            let lost = fields_of(&merged_here.object).difference(&kept);
            pruned = Versioned::owned(version, typed::remove(schema, &merged_here.object, &lost));
            merged = merged_here;
        }
        Ok(pruned)
    }

    /// `merged` without what `pruned` lost, except what was not in the last configuration: nobody
    /// asked for that to go.
    fn keep_dangling(
        &self,
        schema: &Schema,
        merged: &Versioned<'_>,
        pruned: Versioned<'_>,
        last: &Set,
    ) -> Result<Versioned<'static>, String> {
        let pruned = match self.convert(&pruned, &merged.api_version) {
            Ok(pruned) => pruned,
            Err(ConvertError::Missing(_)) => return Ok(merged.clone().into_owned()),
            Err(ConvertError::Failed(text)) => {
                return Err(format!(
                    "failed to convert pruned object to last applied version: {text}"
                ));
            }
        };
        let fields_of = |object: &Value| typed::name_fields(schema, typed::to_set(schema, object));
        let lost =
            fields_of(&merged.object).difference(&fields_of(&pruned.object)).intersection(last);
        Ok(Versioned::owned(&merged.api_version, typed::remove(schema, &merged.object, &lost)))
    }

    /// Brings the sets in line with the schemas of today; drops those whose version is gone. An
    /// object that cannot be shown in the version of an owner ends the write.
    fn reconcile(&self, live: &Versioned<'_>, managed: &mut Managed) -> Result<(), String> {
        let mut known: BTreeMap<String, Result<(), ConvertError>> = BTreeMap::new();
        for entry in managed.entries.values() {
            let version = &entry.api_version;
            if !known.contains_key(version) {
                known.insert(version.clone(), self.convert(live, version).map(drop));
            }
        }
        if let Some(text) = known.values().find_map(|known| match known {
            Err(ConvertError::Failed(text)) => Some(text.clone()),
            Ok(()) | Err(ConvertError::Missing(_)) => None,
        }) {
            return Err(text);
        }
        managed.entries.retain(|_, entry| known[&entry.api_version].is_ok());
        for entry in managed.entries.values_mut() {
            if let Ok(schema) = self.schema(&entry.api_version) {
                typed::reconcile(schema, &mut entry.set);
            }
        }
        Ok(())
    }

    fn filter(&self, set: Set) -> Set {
        match self.reset.of(self.api_version) {
            Some(filter) => ResetFilter::apply(filter, set),
            None => set,
        }
    }

    fn schema(&self, api_version: &str) -> Result<&Schema, ConvertError> {
        self.versions.schema(api_version)
    }

    /// An object in another version. What comes out of a conversion may have no duplicates.
    fn convert<'v>(
        &self,
        object: &'v Versioned<'_>,
        api_version: &str,
    ) -> Result<Versioned<'v>, ConvertError> {
        if object.api_version == api_version {
            return Ok(Versioned::borrowed(&object.api_version, &object.object));
        }
        let converted = self.versions.convert(&object.object, api_version)?;
        typed::validate(self.schema(api_version)?, &converted, Duplicates::Refused)
            .map_err(ConvertError::Failed)?;
        Ok(Versioned::owned(api_version, converted))
    }
}

fn others<'a>(managed: &'a Managed, own: Option<&'a Identity>) -> impl Iterator<Item = &'a Entry> {
    managed
        .entries
        .iter()
        .filter(move |(identity, _)| Some(*identity) != own)
        .map(|(_, entry)| entry)
}
