//! Policies, as a client sees them. What upstream does is in `conformance`.

use serde_json::{Value, json};

use crate::server::Server;
use crate::server::tests::{ask, server};

const API: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/a/configmaps";

async fn create(server: &Server, path: &str, object: Value) -> Value {
    let (code, created) = ask(server, &format!("POST {path}"), object).await;
    assert_eq!(code, 201, "{created}");
    created
}

/// A server with a namespace `a`, and a policy about config maps that is bound.
async fn with_policy(kind: &str, spec: Value, binding: Value) -> Server {
    let server = server();
    create(&server, "/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let mut policy = json!({"metadata": {"name": "p"}, "spec": spec});
    policy["spec"]["matchConstraints"] = json!({"resourceRules": [{
        "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }]});
    create(&server, &format!("{API}/{kind}admissionpolicies"), policy).await;
    let mut bound = json!({"metadata": {"name": "b"}, "spec": binding});
    bound["spec"]["policyName"] = "p".into();
    create(&server, &format!("{API}/{kind}admissionpolicybindings"), bound).await;
    server
}

async fn with_validations(spec: Value) -> Server {
    with_policy("validating", spec, json!({"validationActions": ["Deny"]})).await
}

fn map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

async fn refuse(server: &Server, object: Value, code: u16, expected: &str) {
    let (found, refused) = ask(server, &format!("POST {MAPS}"), object).await;
    assert_eq!((found.as_u16(), refused["message"].as_str()), (code, Some(expected)), "{refused}");
}

#[tokio::test]
async fn a_policy_denies_what_does_not_hold() {
    let server = with_validations(json!({
        "variables": [{"name": "keys", "expression": "object.data.size()"}],
        "validations": [
            {"expression": "variables.keys < 3", "reason": "Forbidden",
                "messageExpression": "'too many: ' + string(variables.keys)"},
            {"expression": "!('x' in object.data)"},
        ],
    }))
    .await;
    create(&server, MAPS, map("m", json!({"a": "1"}))).await;
    let denied = "configmaps \"n\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
                  denied request: ";
    let many = json!({"a": "1", "b": "2", "c": "3"});
    refuse(&server, map("n", many), 403, &format!("{denied}too many: 3")).await;
    let message = format!("{denied}failed expression: !('x' in object.data)");
    refuse(&server, map("n", json!({"x": "1"})), 422, &message).await;
    let message = format!(
        "{denied}expression 'variables.keys < 3' resulted in error: composited variable \"keys\" \
         fails to evaluate: no such key: data"
    );
    refuse(&server, json!({"metadata": {"name": "n"}}), 422, &message).await;
}

#[tokio::test]
async fn parameters_come_from_where_the_binding_says() {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.metadata.name == params.metadata.name || object.data.k == params.data.k"}],
    });
    let binding = json!({"validationActions": ["Deny"],
        "paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    let server = with_policy("validating", spec, binding).await;
    let denied = "configmaps \"n\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
                  denied request: ";
    let none = format!(
        "{denied}failed to configure binding: no params found for policy binding with `Deny` \
         parameterNotFoundAction"
    );
    refuse(&server, map("n", json!({"k": "1"})), 422, &none).await;
    let (code, _) =
        ask(&server, &format!("DELETE {API}/validatingadmissionpolicybindings/b"), Value::Null)
            .await;
    assert_eq!(code, 200);
    create(&server, MAPS, map("limits", json!({"k": "1"}))).await;
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p",
        "validationActions": ["Deny"],
        "paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}});
    create(&server, &format!("{API}/validatingadmissionpolicybindings"), binding).await;
    create(&server, MAPS, map("m", json!({"k": "1"}))).await;
    let message = format!(
        "{denied}failed expression: object.metadata.name == params.metadata.name || object.data.k \
         == params.data.k"
    );
    refuse(&server, map("n", json!({"k": "2"})), 422, &message).await;
}

#[tokio::test]
async fn a_policy_changes_what_it_is_shown() {
    let server = with_policy(
        "mutating",
        json!({
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
            "matchConditions": [{"name": "c", "expression": "!has(object.data.skip)"}],
            "variables": [{"name": "v", "expression": "object.metadata.name + '!'"}],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                    "Object{metadata: Object.metadata{labels: {'a': 'b'}}, data: {'v': variables.v}}"}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression":
                    "[JSONPatch{op: 'test', path: '/metadata/labels/a', value: 'b'}, \
                     JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y'), value: 'z'}]"}},
            ],
        }),
        json!({}),
    )
    .await;
    let created = create(&server, MAPS, map("m", json!({"k": "1"}))).await;
    assert_eq!(created["data"], json!({"k": "1", "v": "m!"}));
    assert_eq!(created["metadata"]["labels"], json!({"a": "b", "x/y": "z"}));
    let created = create(&server, MAPS, map("n", json!({"skip": "1"}))).await;
    assert_eq!(created["data"], json!({"skip": "1"}));
}

#[tokio::test]
async fn a_change_that_fails_is_told() {
    let server = with_policy(
        "mutating",
        json!({
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                "Object{metadata: Object.metadata{finalizers: ['a/b']}, spec: Object.data{}}"}}],
        }),
        json!({}),
    )
    .await;
    refuse(
        &server,
        map("n", json!({})),
        403,
        "policy 'p' with binding 'b' denied request: type mismatch: unexpected type name \
         \"Object.data\", expected \"Object.spec\", which matches field name path from root Object \
         type",
    )
    .await;
}
