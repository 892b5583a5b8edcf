use serde_json::{Value, json};

use super::{Difference, hold_to, to_compare};

fn check(before: Value, after: Value, object: Option<Value>, status: Option<Value>) {
    let expected = Difference { object, status };
    assert_eq!(Difference::new(&before, &after), expected);
    let [before, after] = [before, after].map(|object| object.to_string().into_bytes());
    let (before, after) = to_compare(&before, &after).expect("they are objects");
    assert_eq!(Difference::new(&before, &after), expected);
}

#[test]
fn what_is_the_same_is_not_sent() {
    check(json!({"spec": {"a": [1]}}), json!({"spec": {"a": [1]}}), None, None);
    check(json!({"spec": {}}), json!({"spec": {"a": null}}), None, None);
}

#[test]
fn status_and_the_rest_are_sent_apart() {
    check(
        json!({"metadata": {"name": "a"}, "spec": {"x": 1, "y": 2}, "status": {"phase": "New"}}),
        json!({"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"phase": "Done"}}),
        Some(json!({"spec": {"y": null}})),
        Some(json!({"status": {"phase": "Done"}})),
    );
    check(json!({}), json!({"status": {"id": "1"}}), None, Some(json!({"status": {"id": "1"}})));
}

#[test]
fn a_list_is_sent_whole_and_only_to_the_version_that_was_read() {
    let before = json!({"metadata": {"uid": "u", "resourceVersion": "3", "finalizers": ["a"]}});
    let after = json!({"metadata": {"uid": "u", "resourceVersion": "3", "finalizers": ["a", "b"]}});
    let mut patch = Difference::new(&before, &after).object.expect("a patch");
    assert_eq!(patch, json!({"metadata": {"finalizers": ["a", "b"]}}));
    hold_to(&mut patch, &before);
    let held = json!({"finalizers": ["a", "b"], "uid": "u", "resourceVersion": "3"});
    assert_eq!(patch, json!({"metadata": held}));
}

#[test]
fn a_list_that_goes_goes_only_from_the_version_that_was_read() {
    let before = json!({"metadata": {"uid": "u", "resourceVersion": "3", "finalizers": ["a"]}});
    let mut patch = json!({"metadata": {"finalizers": null}});
    hold_to(&mut patch, &before);
    let held = json!({"finalizers": null, "uid": "u", "resourceVersion": "3"});
    assert_eq!(patch, json!({"metadata": held}));
}

#[test]
fn a_patch_without_a_list_holds_for_any_version_of_the_object() {
    let before = json!({"metadata": {"uid": "u", "resourceVersion": "3"}});
    let mut patch = json!({"status": {"phase": "Done"}});
    hold_to(&mut patch, &before);
    assert_eq!(patch, json!({"status": {"phase": "Done"}, "metadata": {"uid": "u"}}));
}
