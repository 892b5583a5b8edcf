//! Pages that only some may see: those whom the API server knows, and its roles allow.

use std::sync::Arc;

use http::{Request, header};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, PostParams};
use kubewright::serve::Access;
use kubewright::serve::metrics::Pages;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::time::Duration;

use crate::Cluster;

async fn token(cluster: &Cluster, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client());
    let new = serde_json::from_value(json!({"metadata": {"name": account}})).expect("an account");
    accounts.create(&PostParams::default(), &new).await.expect("made");
    let wish = TokenRequest { spec: Some(Default::default()), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &wish).await;
    answer.expect("a token").status.and_then(|it| it.token).expect("one")
}

/// Lets an account read `/metrics`.
async fn allow(cluster: &Cluster, account: &str) {
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": "scraper"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }))
    .expect("a role");
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "scraper"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }))
    .expect("a binding");
    let (roles, bindings) = (Api::all(cluster.client()), Api::all(cluster.client()));
    roles.create(&PostParams::default(), &role).await.expect("made");
    bindings.create(&PostParams::default(), &binding).await.expect("made");
}

async fn status(pages: &Pages, authorization: Option<&str>) -> u16 {
    let mut request = Request::get("/metrics").body(()).expect("a request");
    if let Some(value) = authorization {
        request.headers_mut().insert(header::AUTHORIZATION, value.parse().expect("a header"));
    }
    pages.answer(&request).await.status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_those_whom_the_server_allows() {
    let cluster = Cluster::start().await;
    let (good, bad) = (token(&cluster, "prometheus").await, token(&cluster, "nosy").await);
    let (good, bad) = (format!("Bearer {good}"), format!("Bearer {bad}"));
    allow(&cluster, "prometheus").await;
    let pages = Pages::new(Arc::new(Registry::default()), Access::new(cluster.client()));
    assert_eq!(status(&pages, None).await, 401);
    assert_eq!(status(&pages, Some("Bearer nonsense")).await, 401);
    assert_eq!(status(&pages, Some("Basic eDp5")).await, 401);
    assert_eq!(status(&pages, Some(&bad)).await, 403);
    assert_eq!(status(&pages, Some(&good)).await, 200);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_said_holds_for_a_while() {
    let cluster = Cluster::start().await;
    let good = format!("Bearer {}", token(&cluster, "prometheus").await);
    allow(&cluster, "prometheus").await;
    let pages = Pages::new(Arc::new(Registry::default()), Access::new(cluster.client()));
    assert_eq!(status(&pages, Some(&good)).await, 200);
    // A server that is away is not asked within a minute.
    cluster.faults().answer(500, usize::MAX, |request| request.uri.path().contains("review"));
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(status(&pages, Some(&good)).await, 200);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(status(&pages, Some(&good)).await, 500);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_answer_is_asked_again() {
    let cluster = Cluster::start().await;
    let good = format!("Bearer {}", token(&cluster, "prometheus").await);
    allow(&cluster, "prometheus").await;
    let pages = Pages::new(Arc::new(Registry::default()), Access::new(cluster.client()));
    cluster.faults().answer(500, 2, |request| request.uri.path().contains("tokenreviews"));
    cluster.faults().answer(429, 2, |request| request.uri.path().contains("accessreviews"));
    assert_eq!(status(&pages, Some(&good)).await, 200);
    cluster.shutdown().await;
}
