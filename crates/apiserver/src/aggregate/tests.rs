//! Registrations by value.

use std::collections::BTreeSet;

use serde_json::json;

use super::registration::{Change, plan};
use super::*;

/// An APIService: name, what label it has, and what else its spec says.
fn registration(name: &str, label: &str, spec: serde_json::Value) -> Arc<Registration> {
    let (version, group) = name.split_once('.').expect("a name of an APIService");
    let mut object = json!({
        "metadata": {"name": name, "uid": "1", "labels": {(UPKEEP_LABEL): label}},
        "spec": {
            "group": group, "version": version,
            "groupPriorityMinimum": 1000, "versionPriority": 100,
        },
        "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]},
    });
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field.as_str()] = value.clone();
    }
    Arc::new(Registration::read(&object).expect("an APIService"))
}

fn roster(registrations: &[Arc<Registration>]) -> Roster {
    Roster::new(registrations.iter().map(|found| Entry {
        registration: Arc::clone(found),
        line: None,
        lesson: None,
    }))
}

#[track_caller]
fn check_plan(defined: &[(&str, &str)], registered: &[Arc<Registration>], expected: &[Change]) {
    let defined: BTreeSet<_> = defined.iter().copied().collect();
    assert_eq!(plan(defined, &roster(registered)), expected);
}

#[test]
fn versions_of_definitions_are_registered() {
    let (group, version) = ("example.com".to_owned(), "v1".to_owned());
    check_plan(&[("example.com", "v1")], &[], &[Change::Create { group, version }]);
    let known = registration("v1.example.com", "true", json!({}));
    check_plan(&[("example.com", "v1")], &[known], &[]);
}

#[test]
fn what_the_server_looks_after_is_put_right_and_goes_with_its_definition() {
    let name = || "v1.example.com".to_owned();
    let changed = registration("v1.example.com", "true", json!({"versionPriority": 5}));
    check_plan(
        &[("example.com", "v1")],
        &[Arc::clone(&changed)],
        &[Change::Correct { name: name() }],
    );
    check_plan(&[], &[changed], &[Change::Delete { name: name(), uid: "1".to_owned() }]);
}

#[test]
fn what_users_look_after_is_theirs() {
    let service = json!({"service": {"namespace": "a", "name": "b"}});
    let theirs = registration("v1.example.com", "", service);
    check_plan(&[("example.com", "v1")], &[Arc::clone(&theirs)], &[]);
    check_plan(&[], &[theirs], &[]);
}

#[track_caller]
fn check_behind(path: &str, expected: Option<&str>) {
    let service = || json!({"service": {"namespace": "a", "name": "b"}});
    let roster = roster(&[
        registration("v1.example.com", "", service()),
        registration("v2.example.com", "", json!({})),
        registration("v1.example.com.extra", "", service()),
    ]);
    assert_eq!(roster.behind(path).map(|found| found.name.as_str()), expected, "{path}");
}

#[test]
fn a_server_answers_for_all_that_is_below_its_version() {
    check_behind("/apis/example.com/v1", Some("v1.example.com"));
    check_behind("/apis/example.com/v1/", Some("v1.example.com"));
    check_behind("/apis/example.com/v1/namespaces/a/things", Some("v1.example.com"));
    check_behind("/apis/example.com.extra/v1/a", Some("v1.example.com.extra"));
    check_behind("/apis/example.com/v2/things", None);
    check_behind("/apis/example.com/v10", None);
    check_behind("/apis/example.com", None);
    check_behind("/apis/example.com/", None);
    check_behind("/apis", None);
    check_behind("/api/v1/pods", None);
    check_behind("/example.com/v1", None);
    check_behind("//apis/example.com/v1", None);
}

#[test]
fn the_core_group_can_be_answered_for_as_a_whole() {
    let service = json!({"group": "", "service": {"namespace": "a", "name": "b"}});
    let roster = roster(&[registration("v1.", "", service)]);
    assert!(roster.behind("/api").is_some());
    assert!(roster.behind("/api/v1/pods").is_some());
    assert!(roster.behind("/apis/v1").is_none());
}

#[test]
fn what_a_server_tells_at_once_is_kept_as_it_is() {
    // The kinds of answers are named where they are not, in upstream's order of fields; what is
    // not there does not come of it.
    let told = br#"{
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2beta1",
        "metadata": {}, "items": [{"metadata": {"name": "example.com"}, "versions": [{
            "version": "v1", "resources": [
                {"resource": "a", "scope": "Cluster", "singularResource": "", "verbs": ["get"]},
                {
                    "verbs": ["get"], "resource": "b", "scope": "Namespaced",
                    "singularResource": "", "subresources": [{"subresource": "c", "verbs": []}],
                    "responseKind": {"group": "", "version": "", "kind": "B"}
                }
            ]
        }]}]
    }"#;
    let groups = inquiry::read_groups(told).expect("groups");
    let own = registration("v1.example.com", "", json!({}));
    let nothing = json!({"group": "", "version": "", "kind": ""});
    assert_eq!(
        inquiry::version_of(&groups, &own),
        [
            json!({
                "resource": "a", "responseKind": nothing, "scope": "Cluster",
                "singularResource": "", "verbs": ["get"],
            }),
            json!({
                "resource": "b", "responseKind": {"group": "", "version": "", "kind": "B"},
                "scope": "Namespaced", "singularResource": "", "verbs": ["get"],
                "subresources": [{"subresource": "c", "responseKind": nothing, "verbs": []}],
            }),
        ]
    );
    let other = registration("v2.example.com", "", json!({}));
    assert!(inquiry::version_of(&groups, &other).is_empty());
    for nonsense in ["", "[]", "{\"items\": [{\"versions\": [{\"resources\": [1]}]}]}"] {
        assert!(inquiry::read_groups(nonsense.as_bytes()).is_err(), "{nonsense}");
    }
}

#[test]
fn rows_of_parts_become_parts_of_their_resources() {
    let row = |name: &str, namespaced: bool| {
        json!({
            "name": name, "singularName": "", "namespaced": namespaced, "kind": "Thing",
            "verbs": ["get"],
        })
    };
    let converted = inquiry::convert(&[row("things/status", true), row("things", true)]);
    let kind = json!({"group": "", "version": "", "kind": "Thing"});
    assert_eq!(
        converted.expect("resources"),
        [json!({
            "resource": "things", "responseKind": kind, "scope": "Namespaced",
            "singularResource": "", "verbs": ["get"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get"]}],
        })]
    );
    assert!(inquiry::convert(&[row("things", true), row("things/status", false)]).is_err());
}
