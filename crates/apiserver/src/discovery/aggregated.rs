//! Discovery of everything at once, `apidiscovery.k8s.io/v2`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::served::{self, Resource, Source, Subresource, Version};
use crate::aggregate::{Freshness, Lesson};

/// The groups of these versions, by rank, then by name.
pub(super) fn items<'v, 'a: 'v>(versions: impl Iterator<Item = &'v Version<'a>>) -> Value {
    let mut by_name: BTreeMap<&str, Vec<&Version<'_>>> = BTreeMap::new();
    let is_known = |version: &&Version<'_>| !matches!(version.source, Source::Remote(None));
    for version in versions.filter(is_known) {
        by_name.entry(version.group).or_default().push(version);
    }
    let mut groups: Vec<(&str, Vec<&Version<'_>>)> = by_name.into_iter().collect();
    groups.sort_by_key(|(_, versions)| {
        Reverse(versions.iter().map(|version| version.rank.group).max())
    });
    groups
        .into_iter()
        .map(|(name, mut versions)| {
            served::sort_by_preference(&mut versions, |version| version.rank);
            let metadata = match name {
                "" => json!({}),
                name => json!({"name": name}),
            };
            json!({
                "metadata": metadata,
                "versions": versions.into_iter().filter_map(version).collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// None of a server that was not asked yet.
fn version(version: &Version<'_>) -> Option<Value> {
    // Built-in kinds leave out the version that they are listed under; custom ones say it.
    let (own, resources) = match &version.source {
        Source::Builtin(resources) => (("", ""), resources),
        Source::Custom(resources) => ((version.group, version.version), resources),
        Source::Remote(lesson) => return lesson.map(|lesson| told(version.version, lesson)),
    };
    let resources: Vec<Value> =
        resources.iter().map(|resource| self::resource(resource, own)).collect();
    Some(json!({"version": version.version, "resources": resources, "freshness": "Current"}))
}

/// What another server has told of a version.
fn told(version: &str, lesson: &Lesson) -> Value {
    let mut row = json!({"version": version});
    if !lesson.resources.is_empty() {
        row["resources"] = json!(lesson.resources);
    }
    row["freshness"] = match lesson.freshness {
        Freshness::Current => "Current".into(),
        Freshness::Stale => "Stale".into(),
    };
    row
}

fn resource(resource: &Resource<'_>, own: (&str, &str)) -> Value {
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let mut row = json!({
        "resource": resource.name,
        "responseKind": response_kind(own, resource.kind),
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        row["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        row["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let parts = resource.subresources.iter().map(|part| subresource(part, own));
        row["subresources"] = parts.collect();
    }
    row
}

fn subresource(subresource: &Subresource<'_>, own: (&str, &str)) -> Value {
    json!({
        "subresource": subresource.name,
        "responseKind": response_kind(subresource.elsewhere.unwrap_or(own), subresource.kind),
        "verbs": subresource.verbs,
    })
}

fn response_kind((group, version): (&str, &str), kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}
