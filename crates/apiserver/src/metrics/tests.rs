//! The page as a scraper gets it, from a server in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::*;
use crate::server::Server;
use crate::server::tests::{ask, server};
use crate::user::User;

async fn get(server: &Server, path: &str, user: User) -> (StatusCode, http::HeaderMap, String) {
    let request =
        Request::builder().uri(path).extension(Arc::new(user)).body(Full::new(Bytes::new()));
    let response = server.call(request.expect("it is well-formed")).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a body ends").to_bytes();
    (parts.status, parts.headers, String::from_utf8_lossy(&body).into_owned())
}

async fn page(server: &Server) -> String {
    let (code, _, text) = get(server, PATH, User::apiserver()).await;
    assert_eq!(code, 200, "{text}");
    text
}

/// The samples of one name, without those of resources that nobody asked for.
fn samples<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let is_name = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    page.lines().filter(is_name).collect()
}

#[tokio::test]
async fn requests_are_counted_by_what_they_are_about() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let map = json!({"metadata": {"name": "m"}});
    let maps = "/api/v1/namespaces/a/configmaps";
    ask(&server, &format!("POST {maps}?dryRun=All"), map.clone()).await;
    ask(&server, &format!("POST {maps}?dryRun=None"), map.clone()).await;
    ask(&server, &format!("POST {maps}"), map).await;
    ask(&server, &format!("GET {maps}/m"), Value::Null).await;
    ask(&server, &format!("GET {maps}/none"), Value::Null).await;
    ask(&server, &format!("GET {maps}"), Value::Null).await;
    ask(&server, "GET /api/v1/configmaps", Value::Null).await;
    ask(&server, &format!("GET {maps}?fieldSelector=metadata.name%3Dm"), Value::Null).await;
    ask(&server, &format!("DELETE {maps}"), Value::Null).await;
    ask(&server, "GET /livez", Value::Null).await;
    ask(&server, "GET /apis", Value::Null).await;
    // These are not served, so clients could ask for ever new ones.
    ask(&server, "GET /apis/made.up/v1/things", Value::Null).await;
    ask(&server, &format!("GET {maps}/m/made-up"), Value::Null).await;
    ask(&server, "GET /made-up", Value::Null).await;

    let page = page(&server).await;
    let line = |code: &str, dry_run: &str, what: &str, scope: &str, verb: &str, count: u8| {
        format!(
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",\
             group=\"\",resource=\"{what}\",scope=\"{scope}\",subresource=\"\",verb=\"{verb}\",\
             version=\"v1\"}} {count}"
        )
    };
    let expected = [
        line("200", "", "configmaps", "cluster", "LIST", 1),
        line("200", "", "configmaps", "namespace", "DELETE", 1),
        line("200", "", "configmaps", "namespace", "LIST", 2),
        line("200", "", "configmaps", "resource", "GET", 1),
        line("201", "", "configmaps", "resource", "POST", 1),
        line("201", "", "namespaces", "resource", "POST", 1),
        line("201", "All", "configmaps", "resource", "POST", 1),
        line("404", "", "configmaps", "resource", "GET", 1),
    ];
    let found = samples(&page, "apiserver_request_total");
    let of_v1: Vec<&str> =
        found.iter().filter(|line| line.contains("version=\"v1\"")).copied().collect();
    let refused = line("422", "invalid", "configmaps", "resource", "POST", 1);
    let expected: Vec<&str> = expected.iter().chain([&refused]).map(String::as_str).collect();
    assert_eq!(of_v1, expected);
    let documents: Vec<&str> =
        found.iter().filter(|line| line.contains("version=\"\"")).copied().collect();
    assert_eq!(
        documents,
        [
            "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",\
             resource=\"\",scope=\"\",subresource=\"apis\",verb=\"GET\",version=\"\"} 1",
            "apiserver_request_total{code=\"500\",component=\"\",dry_run=\"\",group=\"\",\
             resource=\"\",scope=\"\",subresource=\"/livez\",verb=\"GET\",version=\"\"} 1",
        ]
    );
    assert!(!page.contains("made"), "{page}");
}

#[tokio::test]
async fn what_is_stored_and_written_is_counted() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    ask(&server, "DELETE /api/v1/namespaces/a", Value::Null).await;
    let page = page(&server).await;
    let namespaces = |name: &str| {
        let all = samples(&page, name).into_iter();
        all.filter(|line| line.contains("namespaces")).collect::<Vec<_>>()
    };
    assert_eq!(
        namespaces("apiserver_resource_objects"),
        ["apiserver_resource_objects{group=\"\",resource=\"namespaces\"} 1"]
    );
    assert_eq!(
        namespaces("apiserver_storage_objects"),
        ["apiserver_storage_objects{resource=\"namespaces\"} 1"]
    );
    assert_eq!(
        namespaces("etcd_requests_total"),
        [
            "etcd_requests_total{group=\"\",operation=\"create\",resource=\"namespaces\"} 1",
            "etcd_requests_total{group=\"\",operation=\"update\",resource=\"namespaces\"} 1",
        ]
    );
    let infinite = "etcd_request_duration_seconds_bucket{group=\"\",operation=\"create\",\
                    resource=\"namespaces\",le=\"+Inf\"} 1";
    assert!(page.lines().any(|line| line == infinite), "{page}");
}

#[tokio::test]
async fn a_watch_is_open_until_its_body_is_dropped() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let request = Request::get("/api/v1/namespaces?watch=1&resourceVersion=0")
        .extension(Arc::new(User::apiserver()))
        .body(Full::new(Bytes::new()))
        .expect("it is well-formed");
    let mut watch = server.call(request).await.into_body();
    watch.frame().await.expect("there is a namespace").expect("and it is shown");

    let open = "apiserver_longrunning_requests{component=\"apiserver\",group=\"\",\
                resource=\"namespaces\",scope=\"cluster\",subresource=\"\",verb=\"WATCH\",\
                version=\"v1\"}";
    let events =
        "apiserver_watch_events_total{group=\"\",resource=\"namespaces\",version=\"v1\"} 1";
    let during = page(&server).await;
    assert_eq!(samples(&during, "apiserver_longrunning_requests"), [format!("{open} 1")]);
    assert_eq!(samples(&during, "apiserver_watch_events_total"), [events]);
    assert!(!during.contains("verb=\"WATCH\",version=\"v1\",le="), "it has not ended: {during}");
    drop(watch);
    let after = page(&server).await;
    assert_eq!(samples(&after, "apiserver_longrunning_requests"), [format!("{open} 0")]);
    assert!(after.contains("verb=\"WATCH\",version=\"v1\",le="), "{after}");
}

#[tokio::test]
async fn a_request_that_is_given_up_is_a_termination() {
    let server = server();
    let stalled = futures::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>();
    let request = Request::post("/api/v1/namespaces")
        .header("content-type", "application/json")
        .extension(Arc::new(User::apiserver()))
        .body(http_body_util::StreamBody::new(stalled))
        .expect("it is well-formed");
    let call = server.call(request);
    assert!(futures::FutureExt::now_or_never(call).is_none(), "its body never comes");
    let page = page(&server).await;
    let labels = "code=\"504\",component=\"apiserver\",group=\"\",resource=\"namespaces\",\
                  scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"";
    assert_eq!(
        samples(&page, "apiserver_request_terminations_total"),
        [format!("apiserver_request_terminations_total{{{labels}}} 1")]
    );
    let in_flight = samples(&page, "apiserver_current_inflight_requests");
    assert_eq!(
        in_flight,
        [
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0",
            "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1",
        ]
    );
}

#[tokio::test]
async fn who_asks_and_whether_they_may_is_counted() {
    let server = server();
    let bob = || User::new("bob@example.com", []);
    let (code, _, text) = get(&server, PATH, bob()).await;
    assert_eq!(code, 403, "{text}");
    let page = page(&server).await;
    assert_eq!(
        samples(&page, "authenticated_user_requests"),
        [
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authenticated_user_requests{username=\"other\"} 1",
        ]
    );
    assert_eq!(
        samples(&page, "authentication_attempts"),
        ["authentication_attempts{result=\"success\"} 2"]
    );
    assert_eq!(
        samples(&page, "authorization_attempts_total"),
        [
            "authorization_attempts_total{result=\"allowed\"} 1",
            "authorization_attempts_total{result=\"no-opinion\"} 1",
        ]
    );
}

#[tokio::test]
async fn lists_and_what_is_deprecated_are_counted() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "b"}})).await;
    ask(&server, "GET /api/v1/namespaces?labelSelector=kubernetes.io/metadata.name=a", Value::Null)
        .await;
    ask(&server, "GET /api/v1/namespaces/a/endpoints", Value::Null).await;
    let page = page(&server).await;
    let labels = "group=\"\",index=\"\",resource=\"namespaces\"";
    let fetched = samples(&page, "apiserver_cache_list_fetched_objects_total");
    assert!(
        fetched.contains(&&*format!("apiserver_cache_list_fetched_objects_total{{{labels}}} 2"))
    );
    let returned = samples(&page, "apiserver_cache_list_returned_objects_total");
    assert!(returned.contains(
        &"apiserver_cache_list_returned_objects_total{group=\"\",resource=\"namespaces\"} 1"
    ));
    assert_eq!(
        samples(&page, "apiserver_requested_deprecated_apis"),
        ["apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",\
          resource=\"endpoints\",subresource=\"\",version=\"v1\"} 1"]
    );
    // Two namespaces were written, and everything is as new as the store.
    let received = samples(&page, "apiserver_watch_cache_events_received_total");
    assert!(received.contains(
        &"apiserver_watch_cache_events_received_total{group=\"\",resource=\"namespaces\"} 2"
    ));
}

#[tokio::test]
async fn flows_and_steps_of_admission_are_counted() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let map = json!({"metadata": {"name": "m"}});
    let (code, _) = ask(&server, "POST /api/v1/namespaces/none/configmaps", map).await;
    assert_eq!(code, 404);
    let page = page(&server).await;
    let exempt = "flow_schema=\"exempt\",priority_level=\"exempt\"";
    let dispatched = "apiserver_flowcontrol_dispatched_requests_total";
    assert_eq!(samples(&page, dispatched), [format!("{dispatched}{{{exempt}}} 3")]);
    let executing = "apiserver_flowcontrol_current_executing_requests";
    assert_eq!(samples(&page, executing), [format!("{executing}{{{exempt}}} 1")], "the scrape");
    let name = "apiserver_admission_step_admission_duration_seconds_count";
    assert_eq!(
        samples(&page, name),
        [
            format!("{name}{{operation=\"CREATE\",rejected=\"false\",type=\"admit\"}} 1"),
            format!("{name}{{operation=\"CREATE\",rejected=\"false\",type=\"validate\"}} 1"),
            format!("{name}{{operation=\"CREATE\",rejected=\"true\",type=\"admit\"}} 1"),
        ]
    );
}

#[tokio::test]
async fn the_page_is_in_order_and_in_prometheus_own_form() {
    let server = server();
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let (_, headers, text) = get(&server, PATH, User::apiserver()).await;
    assert_eq!(
        headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    );
    let families: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(families.is_sorted(), "{families:?}");
    assert_eq!(families.len(), families.iter().collect::<BTreeSet<_>>().len());
    let of_family = |name: &str| {
        let suffixes = ["", "_bucket", "_sum", "_count"];
        suffixes.iter().any(|suffix| {
            name.strip_suffix(suffix).is_some_and(|family| families.contains(&family))
        })
    };
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (sample, value) = line.rsplit_once(' ').expect("a sample and its value");
        assert!(seen.insert(sample), "twice: {sample}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(of_family(sample.split('{').next().unwrap_or_default()), "{line}");
    }
}

#[test]
fn values_counted_together_count_as_one_by_one() {
    let (single, together) = (Histogram::new(&EVENT_BYTES), Histogram::new(&EVENT_BYTES));
    let values = [10, 2000, 2001, 5, 1 << 20];
    for value in values {
        single.observe(value as u64);
    }
    together.observe_all(&values);
    assert_eq!(together.read().cumulative, single.read().cumulative);
    assert_eq!(together.read().sum, single.read().sum);
}
