use serde_json::json;

use super::*;

#[test]
fn a_definition_that_is_not_served_is_told_with_its_conditions() {
    let check = |status: Value, expected: &str| {
        let definition = json!({
            "metadata": {"name": "pets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Pet", "plural": "pets"},
                "scope": "Namespaced",
                "versions": [],
            },
            "status": status,
        });
        let definition = serde_json::from_value(definition).expect("a definition");
        assert_eq!(state(Some(&definition)), expected);
    };
    check(
        json!({"conditions": [
            {
                "type": "NamesAccepted", "status": "False", "reason": "PluralConflict",
                "message": "\"pets\" is already in use",
            },
            {"type": "Established", "status": "False"},
        ]}),
        "NamesAccepted=False (PluralConflict: \"pets\" is already in use), \
         Established=False (no reason: no message)",
    );
    let alone = "nobody has looked at it: is the controller for definitions at work?";
    check(json!({}), alone);
    check(json!(null), alone);
    assert_eq!(state(None), "somebody has deleted it");
}

#[tokio::test]
async fn only_what_takes_long_is_told_of() {
    for (took, expected) in [(Duration::ZERO, false), (UNTOLD_MAX * 2, true)] {
        let mut is_told = false;
        told_of(tokio::time::sleep(took), || is_told = true).await;
        assert_eq!(is_told, expected, "{took:?}");
    }
}

#[test]
fn a_trial_tells_what_would_change_field_by_field() {
    let before = json!({
        "metadata": {"name": "it", "resourceVersion": "1", "labels": {"a": "1"}},
        "spec": {"replicas": 1, "items": [{"image": "a:1"}], "args": ["x"]},
        "status": {"replicas": 1},
    });
    let after = json!({
        "metadata": {"name": "it", "resourceVersion": "2"},
        "spec": {"replicas": 1, "items": [{"image": "a:2"}], "args": ["x", "y"]},
    });
    let mut lines = Vec::new();
    differences("", &before, &after, &mut lines);
    let expected = [
        r#"metadata.labels: {"a":"1"} -> null"#,
        r#"spec.args: ["x"] -> ["x","y"]"#,
        r#"spec.items[0].image: "a:1" -> "a:2""#,
    ];
    assert_eq!(lines, expected);
}
