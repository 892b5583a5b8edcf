//! What pods use, for those who gather it: kubectl's `top` and autoscalers, by way of whoever
//! serves `metrics.k8s.io`.

use std::fmt::Write as _;

use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Body, State, json as answer, lock, text};
use crate::runtime::{Id, Usage};

/// What a container uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) id: Id,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) since: Timestamp,
    pub(crate) usage: Usage,
}

/// What every container that runs uses, in the order of their pods, if somebody counts.
pub(crate) async fn all(state: &State) -> Vec<Used> {
    let mut running = Vec::new();
    for life in state.lives() {
        let life = lock(&life);
        let metadata = &life.pod.metadata;
        for member in &life.containers {
            if let Some(up) = member.up() {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                running.push(Used {
                    id: up.started.id.clone(),
                    namespace: text(&metadata.namespace),
                    pod: text(&metadata.name),
                    uid: text(&metadata.uid),
                    container: member.spec.name.clone(),
                    since: up.started.at,
                    usage: Usage::default(),
                });
            }
        }
    }
    let mut all = Vec::new();
    for used in running {
        if let Some(usage) = state.runtime.usage(&used.id).await {
            all.push(Used { usage, ..used });
        }
    }
    all.sort_by(|left, right| {
        let key = |used: &Used| (used.namespace.clone(), used.pod.clone(), used.container.clone());
        key(left).cmp(&key(right))
    });
    all
}

/// As Prometheus reads it, under kubelet's names.
pub(super) async fn resource(state: &State) -> Response<Body> {
    let all = all(state).await;
    let node = state.runtime.machine_usage().unwrap_or_else(|| sum(&all));
    text(StatusCode::OK, metrics(&all, node, state.clock.now()))
}

pub(super) fn metrics(all: &[Used], total: Usage, now: Timestamp) -> String {
    let at = now.as_millisecond();
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, lines: Vec<(String, String)>| {
        let _ = writeln!(page, "# TYPE {name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(page, "{name}{labels} {value} {at}");
        }
    };
    let of_container = |used: &Used| {
        format!(
            "{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}",
            used.container, used.namespace, used.pod
        )
    };
    let seconds = |usage: Usage| format!("{}", usage.cpu.as_secs_f64());
    let lines = |value: &dyn Fn(&Used) -> String| {
        all.iter().map(|used| (of_container(used), value(used))).collect::<Vec<_>>()
    };
    family("container_cpu_usage_seconds_total", "counter", lines(&|used| seconds(used.usage)));
    family(
        "container_memory_working_set_bytes",
        "gauge",
        lines(&|used| used.usage.memory.to_string()),
    );
    family(
        "container_start_time_seconds",
        "gauge",
        lines(&|used| used.since.as_second().to_string()),
    );
    family("node_cpu_usage_seconds_total", "counter", vec![(String::new(), seconds(total))]);
    let memory = total.memory.to_string();
    family("node_memory_working_set_bytes", "gauge", vec![(String::new(), memory)]);
    let pods = || all.chunk_by(|left, right| left.uid == right.uid);
    let of_pod =
        |pod: &[Used]| format!("{{namespace=\"{}\",pod=\"{}\"}}", pod[0].namespace, pod[0].pod);
    let cpu = pods().map(|pod| (of_pod(pod), seconds(sum(pod)))).collect();
    family("pod_cpu_usage_seconds_total", "counter", cpu);
    let memory = pods().map(|pod| (of_pod(pod), sum(pod).memory.to_string())).collect();
    family("pod_memory_working_set_bytes", "gauge", memory);
    page.push_str("# TYPE resource_scrape_error gauge\nresource_scrape_error 0\n");
    page
}

pub(crate) fn sum<'a>(all: impl IntoIterator<Item = &'a Used>) -> Usage {
    all.into_iter().fold(Usage::default(), |sum, used| Usage {
        cpu: sum.cpu + used.usage.cpu,
        memory: sum.memory + used.usage.memory,
    })
}

/// As kubelet summarizes it.
pub(super) async fn summary(state: &State, node: &str) -> Response<Body> {
    let all = all(state).await;
    let now = state.clock.now();
    let usage = |usage: Usage| {
        let time = format!("{now:.0}");
        let nanoseconds = u64::try_from(usage.cpu.as_nanos()).unwrap_or(u64::MAX);
        json!({
            "cpu": {"time": time, "usageCoreNanoSeconds": nanoseconds},
            "memory": {"time": time, "workingSetBytes": usage.memory},
        })
    };
    let with = |mut object: Value, used: Usage| {
        let usage = usage(used);
        object["cpu"] = usage["cpu"].clone();
        object["memory"] = usage["memory"].clone();
        object
    };
    let pods = all.chunk_by(|left, right| left.uid == right.uid).map(|pod| {
        let containers = pod.iter().map(|used| {
            let started = format!("{:.0}", used.since);
            with(json!({"name": used.container, "startTime": started}), used.usage)
        });
        let containers: Vec<Value> = containers.collect();
        let first = &pod[0];
        let object = json!({
            "podRef": {"name": first.pod, "namespace": first.namespace, "uid": first.uid},
            "startTime": format!("{:.0}", first.since),
            "containers": containers,
        });
        with(object, sum(pod))
    });
    let pods: Vec<Value> = pods.collect();
    let used = state.runtime.machine_usage().unwrap_or_else(|| sum(&all));
    let node = with(json!({"nodeName": node}), used);
    answer(&json!({"node": node, "pods": pods}))
}
