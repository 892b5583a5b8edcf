//! What `/metrics` counts, under names that rules and dashboards ask for.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, expect, scenarios};
use crate::endpoint::Request;

scenarios! { "metrics":
    what_rules_ask_for_is_counted [B1 W2],
}

/// Each family with its type, the labels of its samples, and the bounds of its buckets.
const FAMILIES: [(&str, &str, &str, &str); 24] = [
    ("aggregator_unavailable_apiservice", "gauge", "name", ""),
    (
        "apiserver_admission_step_admission_duration_seconds",
        "histogram",
        "operation rejected type",
        "0.005 0.025 0.1 0.5 1 2.5 +Inf",
    ),
    ("apiserver_audit_event_total", "counter", "", ""),
    ("apiserver_cache_list_fetched_objects_total", "counter", "group index resource", ""),
    ("apiserver_cache_list_returned_objects_total", "counter", "group resource", ""),
    ("apiserver_cache_list_total", "counter", "group index resource", ""),
    (
        "apiserver_client_certificate_expiration_seconds",
        "histogram",
        "",
        "0 1800 3600 7200 21600 43200 86400 172800 345600 604800 2.592e+06 7.776e+06 1.5552e+07 \
         3.1104e+07 +Inf",
    ),
    ("apiserver_current_inflight_requests", "gauge", "request_kind", ""),
    ("apiserver_current_inqueue_requests", "gauge", "request_kind", ""),
    ("apiserver_flowcontrol_current_executing_requests", "gauge", "flow_schema priority_level", ""),
    (
        "apiserver_flowcontrol_dispatched_requests_total",
        "counter",
        "flow_schema priority_level",
        "",
    ),
    (
        "apiserver_flowcontrol_request_execution_seconds",
        "histogram",
        "flow_schema priority_level type",
        "0 0.005 0.02 0.05 0.1 0.2 0.5 1 2 5 10 15 30 +Inf",
    ),
    (
        "apiserver_longrunning_requests",
        "gauge",
        "component group resource scope subresource verb version",
        "",
    ),
    (
        "apiserver_request_duration_seconds",
        "histogram",
        "component dry_run group resource scope subresource verb version",
        "0.005 0.025 0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf",
    ),
    (
        "apiserver_request_sli_duration_seconds",
        "histogram",
        "component group resource scope subresource verb version",
        "0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf",
    ),
    (
        "apiserver_request_total",
        "counter",
        "code component dry_run group resource scope subresource verb version",
        "",
    ),
    (
        "apiserver_requested_deprecated_apis",
        "gauge",
        "group removed_release resource subresource version",
        "",
    ),
    ("apiserver_resource_objects", "gauge", "group resource", ""),
    (
        "apiserver_response_sizes",
        "histogram",
        "component group resource scope subresource verb version",
        "1000 10000 100000 1e+06 1e+07 1e+08 1e+09 +Inf",
    ),
    ("apiserver_storage_objects", "gauge", "resource", ""),
    ("apiserver_watch_cache_events_received_total", "counter", "group resource", ""),
    ("apiserver_watch_cache_resource_version", "gauge", "group resource", ""),
    ("apiserver_watch_events_total", "counter", "group resource version", ""),
    ("authentication_attempts", "counter", "result", ""),
];

async fn what_rules_ask_for_is_counted(cx: Context) -> Result<()> {
    // Something of everything: a write, a list, a watch with an event, something deprecated.
    cx.config_map("a").await?;
    cx.get(&cx.core("configmaps")).await?;
    cx.get(&cx.core("configmaps?resourceVersion=0")).await?;
    cx.get(&cx.core("endpoints")).await?;
    cx.watch(cx.core("configmaps?watch=1")).await?.next().await?.context("no event")?;

    let answer = cx.send(Request::get("/metrics")).await?;
    ensure!(answer.status == 200, "{answer}");
    let page = String::from_utf8_lossy(&answer.bytes).into_owned();
    let types: BTreeMap<&str, &str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    for (name, kind, labels, bounds) in FAMILIES {
        ensure!(types.get(name) == Some(&kind), "{name} is {:?}, not a {kind}", types.get(name));
        let first = if kind == "histogram" { format!("{name}_count") } else { name.to_owned() };
        let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(&first);
        let sample = page.lines().find(of_name).with_context(|| format!("no sample of {name}"))?;
        let found = labels_of(sample).join(" ");
        ensure!(found == labels, "{name} has labels {found}, not {labels}");
        if !bounds.is_empty() {
            let found = bounds_of(&page, name).join(" ");
            ensure!(found == bounds, "{name} has bounds {found}, not {bounds}");
        }
    }
    let request =
        json!({ "spec": { "nonResourceAttributes": { "path": "/metrics", "verb": "get" } } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = expect(&cx.send(Request::post(path, &request).impersonate("nobody")).await?, 201)?;
    ensure!(review["status"]["allowed"] != Value::Bool(true), "anybody may read it");
    Ok(())
}

fn labels_of(sample: &str) -> Vec<&str> {
    let inside = sample.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    let Some((inside, _)) = inside else { return Vec::new() };
    inside.split("\",").filter_map(|label| Some(label.split_once('=')?.0)).collect()
}

/// The bounds of the first histogram of a name.
fn bounds_of<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begins = format!("{name}_bucket{{");
    let mut bounds = Vec::new();
    for line in page.lines().filter(|line| line.starts_with(&begins)) {
        let bound = line.rsplit_once("le=\"").and_then(|(_, rest)| rest.split_once('"'));
        let Some((bound, _)) = bound else { continue };
        bounds.push(bound);
        if bound == "+Inf" {
            break;
        }
    }
    bounds
}
