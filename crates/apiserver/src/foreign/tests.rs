//! What upstream stores, as we read it.

use serde_json::json;

use super::*;

fn check(stored: &Value, expected: &Value) {
    let read = read(&json::to_vec(stored)).expect("an object");
    assert_eq!(json::to_string(&read), json::to_string(expected));
}

#[test]
fn a_definition_says_for_each_version_what_was_said_for_all() {
    let old = json!({
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "widgets.example.com", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "validation": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}},
            "versions": [
                {"name": "v1", "served": true, "storage": true},
                {"name": "v2", "served": true, "storage": false},
            ],
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}],
            "conversion": {
                "strategy": "Webhook",
                "webhookClientConfig": {"url": "https://example.com"},
                "conversionReviewVersions": ["v1"],
            },
            "preserveUnknownFields": false,
        },
        "status": {
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": ["v1"],
        },
    });
    assert!(is_outdated(&json::to_vec(&old)));
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        })
    };
    check(
        &old,
        &json!({
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": "widgets.example.com", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "scope": "Namespaced",
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": {"url": "https://example.com"},
                        "conversionReviewVersions": ["v1"],
                    },
                },
            },
            "status": {
                "conditions": null,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": ["v1"],
            },
        }),
    );
}

#[test]
fn a_definition_of_one_version_need_not_list_it() {
    let old = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "version": "v1", "names": {"plural": "widgets", "kind": "Widget"}},
    });
    let read = read(&json::to_vec(&old)).expect("an object");
    assert_eq!(read["spec"]["versions"], json!([{"name": "v1", "served": true, "storage": true}]));
    assert_eq!(read["spec"]["preserveUnknownFields"], true);
    assert_eq!(read["spec"]["scope"], "Namespaced");
}

#[test]
fn a_claim_waits_although_nobody_stored_that_it_does() {
    let claim = json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "a"},
        "spec": {"resources": {}}, "status": {},
    });
    assert_eq!(read(&json::to_vec(&claim)).expect("an object")["status"]["phase"], "Pending");
}

#[test]
fn an_autoscaler_of_an_old_version_is_read_in_the_one_we_store() {
    let old = json!({
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "targetCPUUtilizationPercentage": 50},
    });
    let read = read(&json::to_vec(&old)).expect("an object");
    assert_eq!(read["apiVersion"], "autoscaling/v2");
    assert_eq!(read["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
}

#[test]
fn a_version_that_is_stored_and_not_served_differs_in_name_only() {
    let old = json!({
        "kind": "MutatingAdmissionPolicyBinding",
        "apiVersion": "admissionregistration.k8s.io/v1beta1",
        "metadata": {"name": "a"},
        "spec": {"policyName": "p"},
    });
    let read = read(&json::to_vec(&old)).expect("an object");
    assert_eq!(read["apiVersion"], "admissionregistration.k8s.io/v1");
    assert_eq!(read["spec"]["policyName"], "p");
}

#[test]
fn what_fits_no_type_is_no_object() {
    for stored in [
        json!({"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "a"}, "subjects": 5, "roleRef": 7}),
        json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "status": 7}),
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": 7}),
    ] {
        assert_eq!(read(&json::to_vec(&stored)), None, "{stored}");
    }
}
