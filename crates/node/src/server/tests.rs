use std::time::Duration;

use jiff::Timestamp;

use super::access::subresources;
use super::stats::{Used, metrics, sum};
use crate::runtime::{Id, Usage};

#[test]
fn paths_are_called_as_roles_call_them() {
    for (path, expected) in [
        ("/exec/default/web/main", vec!["proxy"]),
        ("/containerLogs/default/web/main", vec!["proxy"]),
        ("/pods", vec!["pods", "proxy"]),
        ("/stats/summary", vec!["stats"]),
        ("/metrics/resource", vec!["metrics"]),
    ] {
        assert_eq!(subresources(path), expected, "{path}");
    }
}

#[test]
fn what_is_used_is_summed_for_pods_and_the_node() {
    let used = |pod: &str, container: &str, seconds: u64, memory: u64| Used {
        id: Id::new(format!("fake://{pod}/{container}")),
        namespace: "d".to_owned(),
        pod: pod.to_owned(),
        uid: pod.to_owned(),
        container: container.to_owned(),
        since: Timestamp::UNIX_EPOCH,
        usage: Usage { cpu: Duration::from_secs(seconds), memory },
    };
    let all = [used("p", "a", 1, 10), used("p", "b", 2, 20), used("q", "a", 4, 40)];
    let page = metrics(&all, sum(&all), Timestamp::from_second(1).expect("a time"));
    for line in [
        "container_cpu_usage_seconds_total{container=\"b\",namespace=\"d\",pod=\"p\"} 2 1000",
        "pod_cpu_usage_seconds_total{namespace=\"d\",pod=\"p\"} 3 1000",
        "pod_memory_working_set_bytes{namespace=\"d\",pod=\"q\"} 40 1000",
        "node_memory_working_set_bytes 70 1000",
        "node_cpu_usage_seconds_total 7 1000",
    ] {
        assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
    }
}
