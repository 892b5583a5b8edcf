//! Discovery a group and a version at a time.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::Legacy;
use super::served::{self, Resource, Source, Version};
use crate::document::{self, kind_of};
use crate::negotiate::Encoding;

/// Every document, by its path.
pub(super) fn documents(versions: &[Version<'_>], address: &str) -> HashMap<String, Legacy> {
    let mut documents = HashMap::new();
    let mut insert = |path: String, kind: &'static str, routed: bool, value: Value| {
        let json = document::encode(kind_of("", "v1", kind), &value, Encoding::Json);
        documents.insert(path, Legacy { kind, routed, json });
    };
    insert("/api".to_owned(), "APIVersions", true, api_versions(address));
    let groups = groups(versions);
    let list = json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups.iter().map(|versions| group(versions)).collect::<Vec<_>>(),
    });
    insert("/apis".to_owned(), "APIGroupList", false, list);
    for versions in &groups {
        let mut value = json!({"kind": "APIGroup", "apiVersion": "v1"});
        if let (Value::Object(value), Value::Object(group)) = (&mut value, group(versions)) {
            value.extend(group);
        }
        let group = versions[0].group;
        // The group that other servers register themselves in is older than the list of groups.
        insert(format!("/apis/{group}"), "APIGroup", group == REGISTRATION, value);
    }
    for version in versions {
        let (routed, resources) = match &version.source {
            Source::Builtin(resources) => (true, resources),
            Source::Custom(resources) => (false, resources),
            // Whoever asks is passed on.
            Source::Remote(_) => continue,
        };
        insert(version.path(), "APIResourceList", routed, resource_list(version, resources));
    }
    documents
}

const REGISTRATION: &str = "apiregistration.k8s.io";

fn api_versions(address: &str) -> Value {
    // Older than versioned kinds, so it says none.
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// The versions of each named group, best first. Groups of equal rank are in the order of their
/// APIServices' names, which begin with the version.
fn groups<'a, 'v>(versions: &'v [Version<'a>]) -> Vec<Vec<&'v Version<'a>>> {
    let mut named: Vec<&Version<'_>> =
        versions.iter().filter(|version| !version.group.is_empty()).collect();
    named.sort_by_key(|version| {
        (Reverse(version.listed.group), format!("{}.{}", version.version, version.group))
    });
    let mut groups: Vec<Vec<&Version<'_>>> = Vec::new();
    for version in named {
        match groups.iter_mut().find(|group| group[0].group == version.group) {
            Some(group) => group.push(version),
            None => groups.push(vec![version]),
        }
    }
    for group in &mut groups {
        served::sort_by_preference(group, |version| version.listed);
    }
    groups
}

fn group(versions: &[&Version<'_>]) -> Value {
    let versions: Vec<Value> = versions.iter().map(|version| group_version(version)).collect();
    let preferred = versions[0].clone();
    json!({"name": group_name(&preferred), "versions": versions, "preferredVersion": preferred})
}

fn group_name(version: &Value) -> &str {
    let text = version["groupVersion"].as_str().unwrap_or_default();
    text.split_once('/').map_or(text, |(group, _)| group)
}

fn group_version(version: &Version<'_>) -> Value {
    json!({
        "groupVersion": format!("{}/{}", version.group, version.version),
        "version": version.version,
    })
}

fn resource_list(version: &Version<'_>, resources: &[Resource<'_>]) -> Value {
    let mut list = Map::new();
    list.insert("kind".to_owned(), "APIResourceList".into());
    // Clients that are older than named groups know this kind without a version.
    let name = match version.group {
        "" => version.version.to_owned(),
        group => {
            list.insert("apiVersion".to_owned(), "v1".into());
            format!("{group}/{}", version.version)
        }
    };
    list.insert("groupVersion".to_owned(), name.into());
    list.insert("resources".to_owned(), resources.iter().flat_map(rows).collect());
    Value::Object(list)
}

/// A resource and its parts, each a row of its own.
fn rows(resource: &Resource<'_>) -> Vec<Value> {
    let mut row = json!({
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        row["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        row["categories"] = json!(resource.categories);
    }
    if !resource.storage_hash.is_empty() {
        row["storageVersionHash"] = json!(resource.storage_hash);
    }
    let mut rows = vec![row];
    rows.extend(resource.subresources.iter().map(|subresource| {
        let mut row = Map::new();
        let name = format!("{}/{}", resource.name, subresource.name);
        row.insert("name".to_owned(), name.into());
        row.insert("singularName".to_owned(), "".into());
        row.insert("namespaced".to_owned(), resource.namespaced.into());
        if let Some((group, version)) = subresource.elsewhere {
            row.insert("group".to_owned(), group.into());
            row.insert("version".to_owned(), version.into());
        }
        row.insert("kind".to_owned(), subresource.kind.into());
        row.insert("verbs".to_owned(), json!(subresource.verbs));
        Value::Object(row)
    }));
    rows
}
