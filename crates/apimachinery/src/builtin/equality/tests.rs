use serde_json::{Value, json};

use super::equal;
use crate::builtin;

fn check(a: Value, b: Value, expected: bool) {
    let ty = builtin::kind("", "v1", "Pod").unwrap().ty();
    let ty = match ty.field("spec").unwrap().ty {
        builtin::Ty::Struct(id) => id.get(),
        ref other => panic!("a spec is a struct, not {other:?}"),
    };
    assert_eq!(equal(ty, &a, &b), expected, "{a} and {b}");
    assert_eq!(equal(ty, &b, &a), expected, "{b} and {a}");
}

#[test]
fn empty_lists_and_maps_are_no_lists_and_maps() {
    check(json!({"containers": null}), json!({"containers": []}), true);
    check(json!({"nodeSelector": {}}), json!({}), true);
    check(json!({"nodeSelector": {"a": ""}}), json!({}), false);
}

#[test]
fn pointers_to_nothing_in_particular_are_something() {
    check(json!({"affinity": {}}), json!({}), false);
    check(json!({"terminationGracePeriodSeconds": 0}), json!({}), false);
    check(json!({"hostNetwork": false}), json!({}), true);
    check(json!({"hostNetwork": true}), json!({}), false);
}

#[test]
fn quantities_are_compared_by_amount() {
    let limited = |cpu: &str| json!({"containers": [{"resources": {"limits": {"cpu": cpu}}}]});
    check(limited("1"), limited("1000m"), true);
    check(limited("1"), limited("1001m"), false);
    check(limited("1"), json!({"containers": [{"resources": {"limits": {}}}]}), false);
}
