//! The policy as upstream has it, and how it comes to be in a store.

use serde_json::{Value, json};

use super::*;
use crate::authz::tests::{put, write};
use crate::fixtures;
use crate::sample;

/// What upstream lists, without what it adds to every object.
fn recorded() -> Vec<Value> {
    let mut objects = Vec::new();
    for step in fixtures::load("bootstrap").into_iter().flat_map(|case| case.steps) {
        let list = step.answer.body.expect("a list");
        let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap();
        for mut object in list["items"].as_array().expect("items").clone() {
            object["kind"] = kind.into();
            object["apiVersion"] = list["apiVersion"].clone();
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
            objects.push(object);
        }
    }
    objects
}

#[test]
fn the_policy_is_upstream_s() {
    let by_key = |objects: Vec<Value>| -> std::collections::BTreeMap<String, Value> {
        objects.into_iter().map(|object| (key(&object), object)).collect()
    };
    let (ours, upstream) = (by_key(objects()), by_key(recorded()));
    assert_eq!(ours.keys().collect::<Vec<_>>(), upstream.keys().collect::<Vec<_>>());
    for (key, object) in &ours {
        assert_eq!(object, &upstream[key], "{key}");
    }
}

#[tokio::test]
async fn an_empty_store_gets_everything_and_then_nothing() {
    let store = sample::store();
    let changes = plan(&store.snapshot());
    assert_eq!(changes.len(), objects().len());
    for change in changes {
        let Change::Create(object) = change else { panic!("there is nothing to change") };
        put(&store, object).await;
    }
    assert_eq!(plan(&store.snapshot()), []);
}

/// What becomes of the view role when this much of it is in the store.
async fn check(existing: Value, expected: impl FnOnce(&mut Value) -> Option<&'static str>) {
    let store = sample::store();
    for object in objects() {
        put(&store, object).await;
    }
    put(&store, existing.clone()).await;
    let changes = plan(&store.snapshot());
    let mut wanted = existing;
    match expected(&mut wanted) {
        None => assert_eq!(changes, []),
        Some(how) => {
            let [change] = changes.as_slice() else { panic!("one change, not {changes:?}") };
            let (found, mut object) = match change {
                Change::Create(object) => ("create", object.clone()),
                Change::Update(object) => ("update", object.clone()),
                Change::Replace(object) => ("replace", object.clone()),
            };
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            metadata.retain(|field, _| !matches!(field.as_str(), "uid" | "resourceVersion"));
            assert_eq!((found, object), (how, wanted));
        }
    }
}

fn named(kind: &str, name: &str) -> Value {
    let same = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects().into_iter().find(same).expect("it is in the policy")
}

#[tokio::test]
async fn missing_rules_come_back_and_others_stay() {
    let mut role = named("ClusterRole", "system:basic-user");
    role["rules"] = json!([
        { "verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"] },
        { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] },
    ]);
    check(role, |role| {
        push(role, "rules", json!({ "verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"] }));
        push(role, "rules", json!({ "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"] }));
        Some("update")
    })
    .await;
}

#[tokio::test]
async fn what_opted_out_is_left_alone() {
    let mut role = named("ClusterRole", "system:basic-user");
    role["rules"] = Value::Null;
    role["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
    check(role, |_| None).await;
}

#[tokio::test]
async fn labels_are_added_and_never_changed() {
    let mut role = named("ClusterRole", "view");
    role["metadata"]["labels"] = json!({ "mine": "a", "kubernetes.io/bootstrapping": "other" });
    role["rules"] = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    check(role, |role| {
        role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] = "true".into();
        Some("update")
    })
    .await;
}

#[tokio::test]
async fn a_binding_keeps_its_subjects_and_gets_its_role_back() {
    let mut binding = named("ClusterRoleBinding", "system:basic-user");
    binding["subjects"] = json!([{ "kind": "User", "apiGroup": GROUP, "name": "ann" }]);
    check(binding.clone(), |binding| {
        let everyone =
            json!({ "kind": "Group", "apiGroup": GROUP, "name": "system:authenticated" });
        push(binding, "subjects", everyone);
        Some("update")
    })
    .await;
    binding["roleRef"]["name"] = "view".into();
    check(binding, |binding| {
        *binding = named("ClusterRoleBinding", "system:basic-user");
        Some("replace")
    })
    .await;
}

#[tokio::test]
async fn rules_of_old_roles_move_to_what_is_aggregated() {
    let store = sample::store();
    write(&store, "clusterrole view\n  get example.com widgets").await;
    let changes = plan(&store.snapshot());
    let find = |name: &str| {
        let named = |change: &&Change| match change {
            Change::Create(object) | Change::Update(object) | Change::Replace(object) => {
                object["kind"] == "ClusterRole" && object["metadata"]["name"] == name
            }
        };
        changes.iter().filter(named).collect::<Vec<_>>()
    };
    let [Change::Update(view)] = find("view")[..] else { panic!("the role becomes aggregated") };
    assert!(view["aggregationRule"].is_object());
    let [Change::Create(copy), Change::Update(whole)] = find("system:aggregate-to-view")[..] else {
        panic!("it is copied, then made whole");
    };
    assert_eq!(copy["rules"].as_array().map(Vec::len), Some(1));
    assert_eq!(whole["rules"][0]["apiGroups"], json!(["example.com"]));
    assert!(whole["rules"].as_array().is_some_and(|rules| rules.len() > 10));
}
