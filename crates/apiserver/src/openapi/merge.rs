//! OpenAPI v2 of several servers in one document.

use std::collections::BTreeSet;

use kubewright_apimachinery::json;
use serde_json::{Map, Value};

/// What a section of a document is called, and what references into it begin with.
const DEFINITIONS: (&str, &str) = ("definitions", "#/definitions/");
const PARAMETERS: (&str, &str) = ("parameters", "#/parameters/");
/// Where a schema says which kinds it is of.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// As much of a document as concerns paths that begin so. Definitions that nothing else needs go
/// with their paths; those that nothing needed stay.
pub(crate) fn below(mut document: Value, prefix: &str) -> Value {
    retain(&mut document, |path| path.starts_with(prefix));
    document
}

fn retain(document: &mut Value, is_kept: impl Fn(&str) -> bool) {
    let before = used(document);
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        paths.retain(|path, _| is_kept(path));
    }
    let after = used(document);
    if let Some(Value::Object(definitions)) = document.get_mut(DEFINITIONS.0) {
        definitions.retain(|name, _| after.contains(name) || !before.contains(name));
    }
}

/// The definitions that paths lead to, directly or not.
fn used(document: &Value) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut rest = vec![&document["paths"]];
    while let Some(value) = rest.pop() {
        visit(value, &mut |reference| {
            let inside = |(section, prefix): (&str, &str)| {
                Some((section.to_owned(), reference.strip_prefix(prefix)?.to_owned()))
            };
            let Some((section, name)) = inside(DEFINITIONS).or_else(|| inside(PARAMETERS)) else {
                return;
            };
            let found = &document[section.as_str()][name.as_str()];
            // Parameters lead to few definitions, and nowhere in circles.
            if section == PARAMETERS.0 || used.insert(name) {
                rest.push(found);
            }
        });
    }
    used
}

fn visit<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if name == "$ref" => see(reference),
                    value => visit(value, see),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        _ => {}
    }
}

/// Adds another server's document. Paths that are known stay as they are; whatever else has a
/// known name and means something else gets another name.
pub(super) fn merge(document: &mut Value, other: &Value) {
    let mut other = other.clone();
    let known: BTreeSet<String> = keys(&document["paths"]);
    if keys(&other["paths"]).iter().all(|path| known.contains(path)) {
        return;
    }
    if keys(&other["paths"]).iter().any(|path| known.contains(path)) {
        retain(&mut other, |path| !known.contains(path));
    }
    rename(document, &mut other, DEFINITIONS, is_same_schema);
    rename(document, &mut other, PARAMETERS, |a, b| a == b);
    for section in ["paths", DEFINITIONS.0, PARAMETERS.0] {
        let Some(Value::Object(added)) = other.get_mut(section).map(Value::take) else { continue };
        let Some(Value::Object(known)) = document.get_mut(section) else { continue };
        for (name, value) in added {
            match known.get_mut(&name) {
                None => drop(known.insert(name, value)),
                Some(known) if section == DEFINITIONS.0 => merge_kinds(known, &value),
                Some(_) => {}
            }
        }
        known.sort_keys();
    }
}

fn keys(section: &Value) -> BTreeSet<String> {
    section.as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

/// Gives other names to what has a known name and means something else.
fn rename(
    document: &Value,
    other: &mut Value,
    (section, prefix): (&str, &str),
    is_same: impl Fn(&Value, &Value) -> bool,
) {
    let known = &document[section];
    let mut taken = keys(known);
    let own = keys(&other[section]);
    let mut renames: Vec<(String, String)> = Vec::new();
    for name in &own {
        let meant = &other[section][name.as_str()];
        if known.get(name).is_none_or(|known| is_same(known, meant)) {
            continue;
        }
        let mut number = 1;
        let new = loop {
            number += 1;
            let new = format!("{name}_v{number}");
            match known.get(&new) {
                Some(known) if is_same(known, meant) => break new,
                _ if taken.contains(&new) || own.contains(&new) => {}
                _ => break new,
            }
        };
        taken.insert(new.clone());
        renames.push((name.clone(), new));
    }
    if renames.is_empty() {
        return;
    }
    if let Some(Value::Object(found)) = other.get_mut(section) {
        for (old, new) in &renames {
            if let Some(value) = found.shift_remove(old) {
                found.insert(new.clone(), value);
            }
        }
    }
    refer(other, &|reference| {
        let old = reference.strip_prefix(prefix)?;
        let (_, new) = renames.iter().find(|(name, _)| name == old)?;
        Some(format!("{prefix}{new}"))
    });
}

/// Replaces references.
fn refer(value: &mut Value, replace: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::String(reference) if name == "$ref" => {
                        if let Some(new) = replace(reference) {
                            *reference = new;
                        }
                    }
                    value => refer(value, replace),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, replace)),
        _ => {}
    }
}

/// Whether schemas differ in nothing but the kinds that they are of.
fn is_same_schema(a: &Value, b: &Value) -> bool {
    let bare = |schema: &Value| {
        let mut schema = schema.clone();
        if let Some(fields) = schema.as_object_mut() {
            fields.shift_remove(KINDS);
        }
        schema
    };
    bare(a) == bare(b)
}

/// A schema is of the kinds that either server says.
fn merge_kinds(known: &mut Value, other: &Value) {
    let Some(added) = other[KINDS].as_array() else { return };
    let mut kinds = known[KINDS].as_array().cloned().unwrap_or_default();
    let new = added.iter().filter(|kind| !kinds.contains(kind)).cloned().collect::<Vec<_>>();
    if new.is_empty() {
        return;
    }
    kinds.extend(new);
    kinds.sort_by_cached_key(|kind| {
        let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}.{}", text("group"), text("version"), text("kind"))
    });
    known[KINDS] = kinds.into();
    json::sort_keys(known);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(model: &str) -> Value {
        json!({"get": {"responses": {"200": {"schema": {"$ref": format!("#/definitions/{model}")}}}}})
    }

    #[test]
    fn a_version_takes_along_what_it_needs() {
        let document = json!({
            "paths": {"/apis/a/v1/": path("A"), "/apis/a/v2/": path("B"), "/apis/": path("C")},
            "definitions": {
                "A": {"properties": {"x": {"$ref": "#/definitions/D"}}},
                "B": {}, "C": {}, "D": {}, "unused": {},
            },
        });
        assert_eq!(
            below(document, "/apis/a/v1/"),
            json!({
                "paths": {"/apis/a/v1/": path("A")},
                "definitions": {
                    "A": {"properties": {"x": {"$ref": "#/definitions/D"}}},
                    "D": {}, "unused": {},
                },
            })
        );
    }

    #[test]
    fn what_means_something_else_gets_another_name() {
        let mut document = json!({
            "paths": {"/a": path("A"), "/both": path("A")},
            "definitions": {
                "A": {"type": "string"},
                "B": {"type": "string", (KINDS): [{"group": "", "version": "v1", "kind": "B"}]},
            },
            "parameters": {"p": {"name": "p"}},
        });
        let other = json!({
            "paths": {"/b": path("A"), "/both": path("B")},
            "definitions": {
                "A": {"type": "integer"},
                "B": {"type": "string", (KINDS): [{"group": "b", "version": "v1", "kind": "B"}]},
                "C": {"$ref": "#/definitions/A"},
            },
            "parameters": {"p": {"name": "other"}, "q": {"name": "q"}},
        });
        merge(&mut document, &other);
        assert_eq!(
            document,
            json!({
                "paths": {"/a": path("A"), "/b": path("A_v2"), "/both": path("A")},
                "definitions": {
                    "A": {"type": "string"},
                    "A_v2": {"type": "integer"},
                    "B": {"type": "string", (KINDS): [{"group": "", "version": "v1", "kind": "B"}]},
                    "C": {"$ref": "#/definitions/A_v2"},
                },
                "parameters": {"p": {"name": "p"}, "p_v2": {"name": "other"}, "q": {"name": "q"}},
            })
        );
    }

    #[test]
    fn a_schema_is_of_the_kinds_of_both() {
        let kind = |group: &str| json!({"group": group, "version": "v1", "kind": "B"});
        let document = |path: &str, group: &str| {
            json!({
                "paths": {path: self::path("B")},
                "definitions": {"B": {(KINDS): [kind(group)]}},
            })
        };
        let mut merged = document("/b", "b");
        merge(&mut merged, &document("/a", "a"));
        assert_eq!(merged["definitions"], json!({"B": {(KINDS): [kind("a"), kind("b")]}}));
    }
}
