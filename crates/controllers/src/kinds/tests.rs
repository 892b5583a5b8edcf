use serde_json::json;

use super::*;

fn kinds() -> Kinds {
    let groups = json!([{
        "metadata": { "name": "example.com" },
        "versions": [
            { "version": "v2", "freshness": "Current", "resources": [{
                "resource": "widgets", "scope": "Namespaced", "verbs": ["delete", "list"],
                "responseKind": { "group": "", "version": "", "kind": "Widget" },
                "subresources": [{ "subresource": "status", "verbs": ["get"] }],
            }] },
            { "version": "v1", "freshness": "Stale", "resources": [{
                "resource": "widgets", "scope": "Namespaced", "verbs": ["list"],
                "responseKind": { "group": "", "version": "", "kind": "Widget" },
            }, {
                "resource": "gadgets", "scope": "Cluster", "verbs": ["list"],
                "responseKind": { "group": "", "version": "", "kind": "Gadget" },
            }] },
        ],
    }]);
    Kinds::of_groups(groups)
}

#[test]
fn a_resource_is_preferred_in_the_first_version_that_has_it() {
    let kinds = kinds();
    let preferred: Vec<String> = kinds.preferred.iter().map(|kind| kind.to_string()).collect();
    assert_eq!(preferred, ["example.com/v2, Resource=widgets", "example.com/v1, Resource=gadgets"]);
}

#[test]
fn a_reference_finds_the_version_it_names() {
    let kinds = kinds();
    let old = kinds.get("example.com/v1", "Widget").expect("it is served");
    assert_eq!((old.version.as_str(), old.namespaced), ("v1", true));
    assert_eq!(kinds.get("example.com/v3", "Widget"), None);
    assert!(kinds.defines("widgets.example.com") && !kinds.defines("widgets.example.org"));
}

#[test]
fn a_version_without_a_server_is_told() {
    assert_eq!(kinds().stale, ["example.com/v1"]);
}

#[test]
fn a_resource_without_a_group_may_be_of_any() {
    let kinds = kinds();
    let meant = |group: &str, version: &str, resource: &str| {
        let meant = kinds.meant(group, version, resource).into_iter();
        meant.map(|kind| kind.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(meant("example.com", "v2", "widgets"), ["example.com/v2, Resource=widgets"]);
    assert_eq!(meant("", "v1", "Gadget"), ["example.com/v1, Resource=gadgets"]);
    assert!(meant("example.org", "v2", "widgets").is_empty());
}
