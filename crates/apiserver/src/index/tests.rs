//! Values as they are stored, and what is read off them.

use kubewright_store::{Config, Durability, Expect, Put};
use serde_json::json;

use super::*;

fn check_resource(key: &str, expected: &str) {
    assert_eq!(resource_of(key), expected, "{key}");
}

#[test]
fn a_key_names_its_resource() {
    check_resource("/registry/pods/default/web", "/registry/pods/");
    check_resource("/registry/pods/default/", "/registry/pods/");
    check_resource("/registry/pods/", "/registry/pods/");
    check_resource("/registry/services/specs/default/web", "/registry/services/specs/");
    check_resource("/registry/services/endpoints/default/", "/registry/services/endpoints/");
    check_resource("/registry/example.com/widgets/a/b", "/registry/example.com/widgets/");
    check_resource("/registry/example.com/widgets/", "/registry/example.com/widgets/");
}

async fn stored(value: &Value) -> Stored {
    let config = Config::new(extract, resource_of, || std::time::Duration::ZERO);
    let store = Store::memory(config);
    let put = Put {
        key: "/registry/configmaps/a/b".into(),
        value: Bytes::from(json::to_vec(value)),
        expect: Expect::Absent,
        ttl: None,
        durability: Durability::Synced,
    };
    store.put(put).await.expect("the store is empty")
}

fn sent(rev: &Stored) -> String {
    let parts = rev.extracted.parts(&rev.value);
    let version = format!("\"resourceVersion\":\"{}\",", rev.revision);
    let pieces = [parts.type_meta, parts.before, version.as_bytes(), parts.after];
    String::from_utf8(pieces.concat()).expect("JSON is UTF-8")
}

#[tokio::test]
async fn the_version_goes_behind_the_uid_in_a_typed_object() {
    let rev = stored(&json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "name": "b", "uid": "u", "creationTimestamp": "t", "labels": {"uid": "x", "a": "b"}}}))
    .await;
    assert_eq!(
        sent(&rev),
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","uid":"u","resourceVersion":"2","creationTimestamp":"t","labels":{"uid":"x","a":"b"}}}"#
    );
    assert_eq!(rev.extracted.labels.get("a"), Some("b"));
    assert!(rev.extracted.foreign.is_none());
}

#[tokio::test]
async fn the_version_goes_before_the_uid_in_a_sorted_object() {
    let rev = stored(&json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {
        "creationTimestamp": "t", "name": "b", "uid": "u"}, "spec": {}}))
    .await;
    assert_eq!(
        sent(&rev),
        r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"creationTimestamp":"t","name":"b","resourceVersion":"2","uid":"u"},"spec":{}}"#
    );
}

#[tokio::test]
async fn what_another_server_stored_is_brought_into_our_form() {
    let rev = stored(&json!({"apiVersion": "v1", "metadata": {
        "name": "b", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}, "kind": "ConfigMap"}))
    .await;
    assert!(rev.extracted.foreign.is_some());
    let object = object(&rev).expect("an object");
    assert_eq!(object["metadata"]["resourceVersion"], "2");
    assert_eq!(object["kind"], "ConfigMap");
}
