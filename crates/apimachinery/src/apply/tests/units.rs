//! What no recording can show, by value.

use serde_json::{Value, json};

use crate::apply::{
    FieldManager, ManagedFieldsError, PathElement, Pattern, ResetFields, ResetFilter,
    SameInAllVersions, Schema, Set, check_managed_fields, extract, keep_times,
    manager_from_user_agent,
};

#[test]
fn a_user_agent_names_its_manager_before_the_slash() {
    #[track_caller]
    fn check(user_agent: &str, expected: &str) {
        assert_eq!(manager_from_user_agent(user_agent), expected);
    }
    check("kubectl/v1.36.4 (linux/amd64)", "kubectl");
    check("", "");
    check("Mozilla", "Mozilla");
    check("tab\tand\u{7f}é/1", "tabandé");
    check(&"x".repeat(200), &"x".repeat(128));
    check(&format!("{}é/1", "x".repeat(127)), &"x".repeat(127));
}

#[test]
fn times_go_back_when_nothing_else_changed() {
    let object = |time: &str, value: &str| json!({"metadata": {"name": "w", "managedFields": [{"manager": "m", "time": time}]}, "spec": value});
    let kept = |mut new: Value| {
        keep_times(&object("old", "a"), &mut new);
        new
    };
    assert_eq!(kept(object("new", "a")), object("old", "a"));
    assert_eq!(kept(object("new", "b")), object("new", "b"));
    let more_owners = json!({"metadata": {"name": "w", "managedFields": [{"manager": "m"}, {"manager": "n"}]}, "spec": "a"});
    assert_eq!(kept(more_owners.clone()), more_owners);
}

#[test]
fn managed_fields_that_cannot_be_read_say_why() {
    #[track_caller]
    fn check(entry: Value, expected: &str) {
        let error = check_managed_fields(&[entry]).expect_err("a bad entry");
        assert_eq!(error.to_string(), expected);
    }
    check(json!({}), "operation must be `Apply` or `Update`");
    check(json!({"operation": "Apply"}), "apiVersion must not be empty");
    check(
        json!({"operation": "Apply", "apiVersion": "v1"}),
        "missing fieldsType in managed fields entry 0",
    );
    check(
        json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "V2"}),
        r#"invalid fieldsType "V2" in managed fields entry 0"#,
    );
    let bad_fields = json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"zz": {}}});
    assert!(matches!(
        check_managed_fields(&[bad_fields]),
        Err(ManagedFieldsError::Fields { index: 0, .. })
    ));
}

#[test]
fn a_pattern_keeps_what_lies_below_its_prefixes() {
    let field = |name| Some(PathElement::field(name));
    let pattern = Pattern::prefixes([
        vec![field("spec"), field("containers"), None, field("resources")],
        vec![field("spec"), field("resize")],
    ]);
    let set = |fields| Set::from_fields_v1(&fields).unwrap();
    let item = r#"k:{"name":"c"}"#;
    let given = set(json!({
        "f:metadata": {"f:labels": {}},
        "f:spec": {".": {}, "f:resize": {"f:x": {}}, "f:other": {}, "f:containers": {
            item: {".": {}, "f:image": {}, "f:resources": {"f:limits": {"f:cpu": {}}}},
        }},
    }));
    let kept = set(json!({
        "f:spec": {".": {}, "f:resize": {"f:x": {}}, "f:containers": {
            item: {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}}},
        }},
    }));
    assert_eq!(ResetFilter::Only(pattern).apply(given), kept);
}

#[test]
fn an_extracted_item_keeps_its_keys() {
    let text = json!({"type": "string"});
    let schema = Schema::structural(&json!({"type": "object", "properties": {"items": {
        "type": "array",
        "items": {"type": "object", "properties": {"name": text, "value": text, "other": text}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }}}));
    let object = json!({
        "apiVersion": "g/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "managedFields": [{
            "manager": "m", "operation": "Apply", "apiVersion": "g/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:items": {"k:{\"name\":\"i\"}": {"f:value": {}}, "k:{\"name\":\"gone\"}": {"f:value": {}}}},
        }]},
        "items": [{"name": "i", "value": "1", "other": "2"}, {"name": "j"}],
    });
    let extracted = json!({
        "apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"},
        "items": [{"name": "i", "value": "1"}],
    });
    assert_eq!(extract(&schema, &object, "m", ""), Some(extracted));
    assert_eq!(extract(&schema, &object, "n", ""), None);
}

/// Each owner of more fields than ten updaters may have; the bucket, too, can be among the oldest.
#[test]
fn the_bucket_of_old_updaters_is_filled_again() {
    let versions = SameInAllVersions::new([("g/v1".to_owned(), Schema::deduced())]);
    let (reset, empty) = (ResetFields::none(), json!({"apiVersion": "g/v1", "kind": "Widget"}));
    let field_manager = FieldManager {
        api_version: "g/v1",
        kind: "Widget",
        subresource: "",
        versions: &versions,
        reset: &reset,
        empty: &empty,
    };
    let object = |n: usize| {
        let data: serde_json::Map<_, _> = (0..n).map(|i| (format!("k{i:02}"), json!(i))).collect();
        json!({"apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}, "data": data})
    };
    let time = |n: usize| jiff::Timestamp::from_second(n as i64).unwrap();
    let mut live = field_manager.update(None, object(1), "m00", time(1));
    for n in 1..14 {
        let mut new = object(n + 1);
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
        live = field_manager.update(Some(&live), new, &format!("m{n:02}"), time(n + 1));
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let managers: Vec<_> = entries.iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    let expected =
        ["ancient-changes", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12", "m13"];
    assert_eq!(managers, expected);
    assert_eq!(entries[0]["time"], "1970-01-01T00:00:05Z");
    let ancient = json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}}});
    assert_eq!(entries[0]["fieldsV1"], ancient);
}
