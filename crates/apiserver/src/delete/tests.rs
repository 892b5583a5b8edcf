//! Deletes, by the server in memory and step by step.

use super::*;
use crate::sample;
use crate::server::Server;
use crate::server::tests::{ask, inner, server};

const PODS: &str = "/api/v1/namespaces/a/pods";

/// A server with one pod, `p`, which is on a node and has this long to end.
async fn with_pod(grace: i64) -> (Server, Value) {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "n",
        "terminationGracePeriodSeconds": grace,
        "containers": [{"name": "c", "image": "i"}],
    }});
    let mut last = Value::Null;
    for (path, object) in [
        ("/api/v1/namespaces", json!({"metadata": {"name": "a"}})),
        ("/api/v1/namespaces/a/serviceaccounts", json!({"metadata": {"name": "default"}})),
        (PODS, pod),
    ] {
        let (code, created) = ask(&server, &format!("POST {path}"), object).await;
        assert_eq!(code, 201, "{created}");
        last = created;
    }
    (server, last)
}

/// Deletes the pod, which stays, and says when it is to go and what it is given.
async fn marked(server: &Server, query: &str) -> (Value, Value) {
    let (code, pod) = ask(server, &format!("DELETE {PODS}/p{query}"), Value::Null).await;
    assert_eq!(code, 200, "{pod}");
    let metadata = &pod["metadata"];
    (metadata["deletionTimestamp"].clone(), metadata["deletionGracePeriodSeconds"].clone())
}

/// Adding it to the time of day was a panic, and so a 500 for each delete of such a pod.
#[tokio::test]
async fn a_pod_that_has_for_ever_to_end_is_deleted_all_the_same() {
    let (server, _) = with_pod(i64::MAX).await;
    assert_eq!(marked(&server, "").await, (json!("2316-02-24T22:00:36Z"), json!(i64::MAX)));
    // It can become sooner, and is counted from when it was marked.
    let sooner = marked(&server, "?gracePeriodSeconds=30").await;
    assert_eq!(sooner, (json!("2023-11-14T22:13:50Z"), json!(30)));
}

#[tokio::test]
async fn who_deletes_may_give_a_pod_for_ever() {
    for grace in [i64::MAX, i64::MAX - 1, 631_107_417_601] {
        let (server, _) = with_pod(30).await;
        let given = marked(&server, &format!("?gracePeriodSeconds={grace}")).await;
        assert_eq!(given, (json!("2316-02-24T22:00:36Z"), json!(grace)));
    }
}

/// A pod that goes at once is stored as going first, and somebody may remove it and create
/// another one of its name before it is removed.
#[tokio::test]
async fn a_replacement_is_not_removed_for_what_was_marked() {
    let (server, created) = with_pod(30).await;
    let inner = inner(&server);
    let pods = sample::resource("", "v1", "pods");
    let stored = inner.store.get(pods.key(Some("a"), "p").as_str()).expect("it was created");
    let delete = Delete {
        store: &inner.store,
        admission: &inner.admission,
        user: &User::apiserver(),
        resource: &pods,
        namespace: Some("a"),
        options: &DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() },
        now: Timestamp::UNIX_EPOCH,
        warnings: &Warnings::default(),
        whose: Whose::Client,
        deadline: crate::admission::deadline(None),
    };
    match delete.step("p", Some(&stored), Some("of-another")).await {
        Err(refusal) => assert_eq!(refusal.code, 404, "{refusal:?}"),
        Ok(_) => panic!("the replacement is to be removed"),
    }
    let own = delete.step("p", Some(&stored), Some(meta::text(&created, "uid"))).await;
    assert!(matches!(own, Ok((Change::Delete, Next::Removed(_)))));
}
