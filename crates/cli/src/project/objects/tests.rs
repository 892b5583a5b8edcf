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
