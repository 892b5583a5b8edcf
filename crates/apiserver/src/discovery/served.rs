//! The versions that are served, with their resources: those of the table, those of definitions,
//! and those of other servers. Both forms of discovery are made of these.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_apimachinery::builtin::{self, Priority};
use kubewright_apimachinery::gvk::compare_versions;
use kubewright_apimachinery::schema::crd::{Definition, Names, Version as DefinedVersion};

use super::storage_version_hash;
use crate::aggregate::{CUSTOM, Lesson, Roster};

/// A version of a group.
#[derive(Debug)]
pub(super) struct Version<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// How it ranks where everything is told at once.
    pub(super) rank: Priority,
    /// How its APIService ranks it, which counts where groups are told one by one.
    pub(super) listed: Priority,
    pub(super) source: Source<'a>,
}

/// Who answers for a version.
#[derive(Debug)]
pub(super) enum Source<'a> {
    Builtin(Vec<Resource<'a>>),
    Custom(Vec<Resource<'a>>),
    /// Another server, which has told this.
    Remote(Option<&'a Lesson>),
}

#[derive(Debug)]
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    pub(super) singular: &'a str,
    pub(super) kind: &'a str,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<&'a str>,
    pub(super) short_names: Vec<&'a str>,
    pub(super) categories: Vec<&'a str>,
    pub(super) storage_hash: String,
    pub(super) subresources: Vec<Subresource<'a>>,
}

#[derive(Debug)]
pub(super) struct Subresource<'a> {
    pub(super) name: &'a str,
    /// The group and version of its kind, when they are not those of the resource.
    pub(super) elsewhere: Option<(&'a str, &'a str)>,
    pub(super) kind: &'a str,
    pub(super) verbs: Vec<&'a str>,
}

/// The group that registers all others has no rank; it comes first.
const FIRST: Priority = Priority { group: u32::MAX, version: u32::MAX };

pub(super) fn is_builtin(group: &str) -> bool {
    builtin::versions().iter().any(|version| version.group == group)
}

/// Every served version, without any order among groups.
pub(super) fn versions<'a>(
    definitions: &'a [Arc<Definition>],
    roster: &'a Roster,
) -> Vec<Version<'a>> {
    let mut versions: Vec<Version<'_>> = builtin::versions().iter().map(of_table).collect();
    let mut custom: BTreeMap<(&str, &str), Vec<Resource<'_>>> = BTreeMap::new();
    for definition in definitions.iter().filter(|definition| definition.status.established) {
        for version in definition.versions().iter().filter(|version| version.served) {
            custom
                .entry((&definition.spec.group, &version.name))
                .or_default()
                .push(of_definition(definition, version));
        }
    }
    versions.extend(custom.into_iter().map(|((group, version), mut resources)| {
        resources.sort_by_key(|resource| resource.name);
        let source = Source::Custom(resources);
        Version { group, version, rank: CUSTOM, listed: CUSTOM, source }
    }));
    for registration in roster.iter() {
        let (group, version) = (registration.group.as_str(), registration.version.as_str());
        let known = versions.iter_mut().find(|one| (one.group, one.version) == (group, version));
        let lesson = roster.lesson(&registration.name).map(|lesson| &**lesson);
        let (rank, is_remote) = (registration.rank, registration.remote.is_some());
        match known {
            Some(known) if is_remote => {
                *known = Version { rank, listed: rank, source: Source::Remote(lesson), ..*known };
            }
            Some(known) => known.listed = rank,
            None if is_remote => {
                let source = Source::Remote(lesson);
                versions.push(Version { group, version, rank, listed: rank, source });
            }
            // Nobody answers for it, so there is nothing to tell.
            None => {}
        }
    }
    versions
}

impl Version<'_> {
    /// Where it is asked for.
    pub(super) fn path(&self) -> String {
        match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

/// By which of its ranks a version is preferred.
pub(super) type Ranking = fn(&Version<'_>) -> Priority;

/// Puts versions of one group in the order of preference.
pub(super) fn sort_by_preference(versions: &mut [&Version<'_>], ranking: Ranking) {
    versions.sort_by(|a, b| {
        let steadier = || compare_versions(b.version, a.version);
        Reverse(ranking(a).version).cmp(&Reverse(ranking(b).version)).then_with(steadier)
    });
}

fn of_table(version: &'static builtin::Version) -> Version<'static> {
    let rank = version.priority.unwrap_or(FIRST);
    Version {
        group: version.group,
        version: version.version,
        rank,
        listed: rank,
        source: Source::Builtin(version.resources.iter().map(of_builtin).collect()),
    }
}

fn of_builtin(resource: &'static builtin::Resource) -> Resource<'static> {
    let own = (resource.group, resource.version);
    Resource {
        name: resource.name,
        singular: resource.singular,
        kind: resource.kind,
        namespaced: resource.namespaced,
        verbs: resource.verbs.clone(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        storage_hash: resource.storage.as_ref().map_or("", |storage| storage.hash).to_owned(),
        subresources: resource
            .subresources
            .iter()
            .map(|subresource| Subresource {
                name: subresource.name,
                elsewhere: Some((subresource.group, subresource.version))
                    .filter(|elsewhere| *elsewhere != own),
                kind: subresource.kind,
                verbs: subresource.verbs.clone(),
            })
            .collect(),
    }
}

fn of_definition<'a>(definition: &'a Definition, version: &'a DefinedVersion) -> Resource<'a> {
    let Names { plural, singular, short_names, kind, categories, .. } =
        &definition.status.accepted_names;
    // Objects of a definition that is going can only be read and removed.
    let verbs = match definition.metadata.contains_key("deletionTimestamp") {
        true => vec!["delete", "deletecollection", "get", "list", "watch"],
        false => {
            vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
        }
    };
    let stored = definition.storage_version().filter(|version| version.served);
    let mut subresources = Vec::new();
    if version.has_status() {
        subresources.push(of_custom_subresource("status", None, kind));
    }
    if version.subresources.as_ref().is_some_and(|subresources| subresources.scale.is_some()) {
        subresources.push(of_custom_subresource("scale", Some(("autoscaling", "v1")), "Scale"));
    }
    Resource {
        name: plural,
        singular,
        kind,
        namespaced: definition.spec.scope == "Namespaced",
        verbs,
        short_names: short_names.iter().map(String::as_str).collect(),
        categories: categories.iter().map(String::as_str).collect(),
        storage_hash: stored.map_or_else(String::new, |version| {
            storage_version_hash(&definition.spec.group, &version.name, &definition.spec.names.kind)
        }),
        subresources,
    }
}

fn of_custom_subresource<'a>(
    name: &'a str,
    elsewhere: Option<(&'a str, &'a str)>,
    kind: &'a str,
) -> Subresource<'a> {
    Subresource { name, elsewhere, kind, verbs: vec!["get", "patch", "update"] }
}
