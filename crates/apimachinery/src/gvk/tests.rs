use std::cmp::Ordering;

use serde_json::json;

use super::*;

#[test]
fn an_api_version_reads_and_prints() {
    for text in ["v1", "apps/v1", "", "/v1"] {
        let parsed = GroupVersion::parse(text).unwrap();
        assert_eq!(parsed.to_string(), text.trim_start_matches('/'));
    }
    assert_eq!(GroupVersion::parse("/").unwrap(), GroupVersion::default());
    assert_eq!(
        GroupVersion::parse("a/b/c").unwrap_err().to_string(),
        "unexpected GroupVersion string: a/b/c"
    );
}

#[test]
fn names_print_as_upstream_prints_them() {
    let kind = GroupVersionKind::new("apps", "v1", "Deployment");
    assert_eq!(kind.to_string(), "apps/v1, Kind=Deployment");
    assert_eq!(kind.group_kind().to_string(), "Deployment.apps");
    assert_eq!(kind.api_version(), "apps/v1");
    let resource = GroupVersionResource::parse("deployments.v1.apps").unwrap();
    assert_eq!(resource.to_string(), "apps/v1, Resource=deployments");
    assert_eq!(resource.group_resource().to_string(), "deployments.apps");
    assert_eq!(GroupResource::parse("pods").to_string(), "pods");
    assert_eq!(GroupKind::parse("Gateway.gateway.networking.k8s.io").kind, "Gateway");
    assert_eq!(GroupVersionResource::parse("deployments.apps"), None);
}

#[test]
fn versions_stand_steadiest_first() {
    let expected = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ];
    let mut versions = expected;
    versions.sort();
    versions.sort_by(|a, b| compare_versions(b, a));
    assert_eq!(versions, expected);
    assert_eq!(compare_versions("v1", "v1"), Ordering::Equal);
    assert_eq!(compare_versions("v", "v1alpha1"), Ordering::Less);
    assert_eq!(compare_versions("v1alpha", "v1alpha1"), Ordering::Less);
    assert_eq!(compare_versions("v99999999999999999999", "v1alpha1"), Ordering::Less);
    assert_eq!(compare_versions("v1gamma1", "v1alpha1"), Ordering::Less);
}

#[test]
fn an_object_says_what_it_is() {
    let check = |object, expected: &str| {
        let found = match GroupVersionKind::interpret(&object) {
            Ok(kind) => kind.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    };
    check(json!({"apiVersion": "apps/v1", "kind": "Deployment"}), "apps/v1, Kind=Deployment");
    check(json!({"apiversion": "v1", "KIND": "Pod"}), "/v1, Kind=Pod");
    check(json!({"kind": null}), "/, Kind=");
    check(json!(null), "/, Kind=");
    check(json!({"apiVersion": "a/b/c"}), "unexpected GroupVersion string: a/b/c");
    check(
        json!({"kind": 1}),
        "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go \
         struct field .kind of type string",
    );
}
