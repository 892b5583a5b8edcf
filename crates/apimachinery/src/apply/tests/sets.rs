//! Field sets: their text, their order, and what the operations do to parents and children.

use serde_json::{Value, json};

use crate::apply::{FieldsError, PathElement, PathElementError, Set};

/// A set by its managed-fields tree.
fn set(fields: Value) -> Set {
    Set::from_fields_v1(&fields).expect("a tree of path elements")
}

#[test]
fn a_tree_is_written_in_the_order_of_path_elements() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let fields: Value = serde_json::from_str(text).unwrap();
        assert_eq!(set(fields).to_fields_v1().to_string(), expected);
    }
    // Fields, then keys, then values, then positions; numbers by value.
    check(
        r#"{"i:1":{},"i:0":{},"v:\"b\"":{},"v:10":{},"v:9":{},"v:true":{},"k:{\"b\":1}":{},"k:{\"a\":2}":{},"f:b":{},"f:a":{}}"#,
        r#"{"f:a":{},"f:b":{},"k:{\"a\":2}":{},"k:{\"b\":1}":{},"v:9":{},"v:10":{},"v:\"b\"":{},"v:true":{},"i:0":{},"i:1":{}}"#,
    );
    // A parent that is a member itself says so first.
    check(r#"{"f:a":{"f:b":{},".":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#);
    // The same element in other spellings is one.
    check(
        r#"{"k:{\"p\":1.0,\"n\":\"x\"}":{"f:a":{}},"k:{\"n\":\"x\",\"p\":1}":{}}"#,
        r#"{"k:{\"n\":\"x\",\"p\":1}":{".":{},"f:a":{}}}"#,
    );
    // Unknown kinds of elements are skipped, and leave their parent a member.
    check(r#"{"f:a":{"z:1":{}},"q:2":{"f:b":{}}}"#, r#"{"f:a":{}}"#);
    check(r#"{"f:a":null,"f:b":{".":null}}"#, r#"{"f:a":{},"f:b":{}}"#);
}

#[test]
fn values_in_elements_are_written_as_upstream_writes_them() {
    #[track_caller]
    fn check(text: &str, encoded: &str, printed: &str) {
        let element = PathElement::parse(text).unwrap();
        assert_eq!((element.encode().as_str(), element.to_string().as_str()), (encoded, printed));
    }
    check(r#"k:{"b":"x","a":80}"#, r#"k:{"a":80,"b":"x"}"#, r#"[a=80,b="x"]"#);
    check(r#"v:"a<b>&\u2028""#, r#"v:"a\u003cb\u003e\u0026\u2028""#, "[=\"a<b>&\\u2028\"]");
    check(r#"v:"\b\n""#, r#"v:"\u0008\n""#, r#"[="\b\n"]"#);
    check("v:1000000", "v:1000000", "[=1e+06]");
    check("v:1e21", "v:1e+21", "[=1e+21]");
    check("v:0.0000001", "v:1e-07", "[=1e-07]");
    check("v:9007199254740993", "v:9007199254740992", "[=9.007199254740992e+15]");
    check("v:null trailing", "v:null", "[=null]");
    check("f:a.b/c", "f:a.b/c", ".a.b/c");
    check("i:-3", "i:-3", "[-3]");
    check(r#"k:{"a<":1}"#, r#"k:{"a<":1}"#, "[a<=1]");
}

#[test]
fn text_that_is_no_path_element_is_refused() {
    for text in ["", "f", "fx", "k:1", "k:{", "v:", "v:x", "i:", "i:1.5"] {
        let refused = Err(PathElementError::Malformed(text.to_owned()));
        assert_eq!(PathElement::parse(text), refused);
    }
    assert_eq!(PathElement::parse("z:1"), Err(PathElementError::UnknownType));
    let below = json!({"f:a": {"f:b": 1}});
    assert_eq!(Set::from_fields_v1(&below), Err(FieldsError::NotAnObject("f:b".to_owned())));
}

#[test]
fn operations_tell_a_parent_from_its_children() {
    let parent = || set(json!({"f:a": {}}));
    let child = || set(json!({"f:a": {"f:b": {}}}));
    let both = || set(json!({"f:a": {".": {}, "f:b": {}}}));

    assert_eq!(parent().union(child()), both());
    assert_eq!(parent().intersection(&child()), Set::new());
    assert_eq!(both().intersection(&child()), child());
    assert_eq!(both().difference(&parent()), child());
    assert_eq!(child().difference(&parent()), child());
    assert_eq!(parent().difference(&child()), parent());
    assert_eq!(both().recursive_difference(&parent()), Set::new());
    assert_eq!(both().recursive_difference(&child()), parent());
    assert_eq!(both().leaves(), child());
    assert!(
        parent().is_subset(&both()) && child().is_subset(&both()) && !parent().is_subset(&child())
    );
}

#[test]
fn members_of_a_level_are_visited_before_what_lies_below() {
    let mut paths = Vec::new();
    set(json!({"f:a": {"f:x": {}}, "f:b": {}, "f:c": {".": {}, "f:y": {}}})).for_each(|path| {
        paths.push(path.iter().map(PathElement::to_string).collect::<String>());
    });
    assert_eq!(paths, [".b", ".c", ".a.x", ".c.y"]);
}
