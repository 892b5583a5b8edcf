//! The roles and bindings that every cluster has from its first start, and how they are brought
//! up to date at every later one.
//!
//! What to change is decided here; whoever starts the server carries it out through the same
//! pipeline as any other write.

#[cfg(test)]
mod tests;

use kubewright_store::Snapshot;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::authz::{self, GROUP, Rule};
use crate::index::{self, Index};

/// Something to be done to the policy in the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Create(Value),
    /// The object with its resource version.
    Update(Value),
    /// To be deleted and created again: what a binding refers to cannot be changed.
    Replace(Value),
}

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const POLICY: &str = include_str!("../data/bootstrap-policy.txt");

/// What the roles of old were split into; their rules move along.
const AGGREGATED: [(&str, &str); 3] = [
    ("admin", "system:aggregate-to-admin"),
    ("edit", "system:aggregate-to-edit"),
    ("view", "system:aggregate-to-view"),
];
/// The binding of old and the one that was split off it; its subjects move along.
const SPLIT: (&str, &str) = ("system:discovery", "system:public-info-viewer");

/// The whole policy, in the order in which it is to be created.
pub fn objects() -> Vec<Value> {
    parse(POLICY)
}

/// The objects that a policy describes; its form is explained where [`objects`] come from.
pub(crate) fn parse(policy: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::with_capacity(160);
    for line in policy.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => objects.push(object(line)),
            Some(part) => add(objects.last_mut().expect("parts follow an object"), part),
        }
    }
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        // A role without rules says so; a binding without subjects does not.
        object.retain(|field, value| field != "subjects" || !value.is_null());
    }
    objects
}

/// What must change for the store to hold the policy. Nothing is ever taken away, and nothing is
/// changed that opted out.
pub fn plan(snapshot: &Snapshot<Index>) -> Vec<Change> {
    let stored = |object: &Value| index::object(snapshot.get(&key(object))?);
    let mut changes = Vec::new();
    for expected in objects() {
        let existing = stored(&expected).or_else(|| {
            let inherited = inherited(&expected, stored)?;
            changes.push(Change::Create(inherited.clone()));
            Some(inherited)
        });
        changes.extend(match existing {
            None => Some(Change::Create(expected)),
            Some(existing) => reconcile(existing, &expected),
        });
    }
    changes
}

/// Where a role or binding is kept.
fn key(object: &Value) -> String {
    let resource = text(object, "kind").to_ascii_lowercase();
    let name = text(&object["metadata"], "name");
    match text(&object["metadata"], "namespace") {
        "" => format!("/registry/{resource}s/{name}"),
        namespace => format!("/registry/{resource}s/{namespace}/{name}"),
    }
}

/// What takes the place of something missing in clusters older than it: a copy of what it was
/// split off.
fn inherited(expected: &Value, stored: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let name = text(&expected["metadata"], "name");
    let named = |name: &str| {
        let mut object = expected.clone();
        object["metadata"]["name"] = name.into();
        stored(&object)
    };
    match text(expected, "kind") {
        "ClusterRole" => {
            let (old, _) = AGGREGATED.iter().find(|(_, new)| *new == name)?;
            let mut role = named(old).filter(|role| role["aggregationRule"].is_null())?;
            role["metadata"] = json!({
                "name": name,
                "labels": role["metadata"]["labels"],
                "annotations": role["metadata"]["annotations"],
            });
            Some(role)
        }
        "ClusterRoleBinding" if name == SPLIT.1 => {
            let old = named(SPLIT.0)?;
            let mut binding = expected.clone();
            binding["subjects"] = old["subjects"].clone();
            for field in ["labels", "annotations"] {
                binding["metadata"][field] = old["metadata"][field].clone();
            }
            Some(binding)
        }
        _ => None,
    }
}

/// How an object that is there becomes what it should be at least.
fn reconcile(existing: Value, expected: &Value) -> Option<Change> {
    let protected = existing["metadata"]["annotations"][AUTO_UPDATE] == "false";
    if protected {
        return None;
    }
    if existing["roleRef"] != expected["roleRef"] {
        return Some(Change::Replace(expected.clone()));
    }
    let mut object = existing.clone();
    for field in ["annotations", "labels"] {
        add_missing_keys(&mut object["metadata"], field, &expected["metadata"][field]);
    }
    match expected.get("roleRef") {
        Some(_) => add_missing(&mut object, "subjects", &expected["subjects"]),
        None => {
            add_missing_rules(&mut object, expected);
            aggregate(&mut object, expected);
        }
    }
    (object != existing).then_some(Change::Update(object))
}

fn add_missing_keys(metadata: &mut Value, field: &str, expected: &Value) {
    let Some(expected) = expected.as_object() else { return };
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    let existing = metadata[field].as_object_mut().expect("it was made one");
    for (key, value) in expected {
        existing.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

/// Appends the items of a list that are not in it.
fn add_missing(object: &mut Value, field: &str, expected: &Value) {
    for item in expected.as_array().into_iter().flatten() {
        if !object[field].as_array().is_some_and(|items| items.contains(item)) {
            push(object, field, item.clone());
        }
    }
}

fn add_missing_rules(role: &mut Value, expected: &Value) {
    let rules = |role: &Value| -> Vec<Rule> {
        Option::deserialize(&role["rules"]).ok().flatten().unwrap_or_default()
    };
    for rule in authz::missing(&rules(role), &rules(expected)) {
        let rule = serde_json::to_value(rule).expect("a rule is plain data");
        push(role, "rules", rule);
    }
}

/// A role that is not to be aggregated any more keeps what it gathered.
fn aggregate(role: &mut Value, expected: &Value) {
    const RULE: &str = "aggregationRule";
    let Some(expected) = expected.get(RULE) else {
        if let Some(fields) = role.as_object_mut() {
            fields.shift_remove(RULE);
        }
        return;
    };
    if !role[RULE].is_object() {
        role[RULE] = Value::Object(Map::new());
    }
    add_missing(&mut role[RULE], "clusterRoleSelectors", &expected["clusterRoleSelectors"]);
}

/// The object that a line of the policy begins.
fn object(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let (kind, namespace, name, role) = match *words.as_slice() {
        ["clusterrole", name] => ("ClusterRole", None, name, None),
        ["role", namespace, name] => ("Role", Some(namespace), name, None),
        ["clusterrolebinding", name, role] => {
            ("ClusterRoleBinding", None, name, Some(("ClusterRole", role)))
        }
        ["rolebinding", namespace, name, role] => {
            ("RoleBinding", Some(namespace), name, Some(("Role", role)))
        }
        _ => unreachable!("the policy is ours: {line}"),
    };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata.insert("labels".to_owned(), json!({ "kubernetes.io/bootstrapping": "rbac-defaults" }));
    metadata.insert("annotations".to_owned(), json!({ AUTO_UPDATE: "true" }));
    let mut object = Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), format!("{GROUP}/v1").into());
    object.insert("metadata".to_owned(), metadata.into());
    match role {
        None => object.insert("rules".to_owned(), Value::Null),
        Some((kind, role)) => {
            let role = if role == "-" { name } else { role };
            object.insert("subjects".to_owned(), Value::Null);
            let role = json!({ "apiGroup": GROUP, "kind": kind, "name": role });
            object.insert("roleRef".to_owned(), role)
        }
    };
    object.into()
}

/// Adds what an indented line says to the object before it.
fn add(object: &mut Value, part: &str) {
    let words: Vec<&str> = part.split(' ').collect();
    match *words.as_slice() {
        ["user", name] => push(object, "subjects", subject("User", name)),
        ["group", name] => push(object, "subjects", subject("Group", name)),
        ["serviceaccount", namespace, name] => {
            let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace });
            push(object, "subjects", subject);
        }
        ["label", label] => {
            object["metadata"]["labels"][format!("{GROUP}/{label}")] = "true".into();
        }
        ["aggregate", label] => {
            let selector = json!({ "matchLabels": { format!("{GROUP}/{label}"): "true" } });
            object["aggregationRule"] = json!({ "clusterRoleSelectors": [selector] });
        }
        [verbs, paths] => {
            let rule = json!({ "verbs": list(verbs), "nonResourceURLs": list(paths) });
            push(object, "rules", rule);
        }
        [verbs, groups, resources, ref names @ ..] => {
            let mut rule = json!({
                "verbs": list(verbs),
                "apiGroups": list(groups),
                "resources": list(resources),
            });
            if let [names] = names {
                rule["resourceNames"] = list(names);
            }
            push(object, "rules", rule);
        }
        _ => unreachable!("the policy is ours: {part}"),
    }
}

fn subject(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "apiGroup": GROUP, "name": name })
}

fn list(text: &str) -> Value {
    text.split(',').map(|item| if item == "\"\"" { "" } else { item }).collect()
}

fn push(object: &mut Value, field: &str, item: Value) {
    match object[field].as_array_mut() {
        Some(items) => items.push(item),
        None => object[field] = vec![item].into(),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}
