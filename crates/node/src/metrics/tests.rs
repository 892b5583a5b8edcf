use std::time::Duration;

use super::*;
use crate::runtime::{Id, Usage};
use crate::server::stats::Used;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn used(id: &str, since: i64, millis: u64) -> Used {
    Used {
        id: Id::new(id),
        namespace: "d".to_owned(),
        pod: id.to_owned(),
        uid: id.to_owned(),
        container: "main".to_owned(),
        since: at(since),
        usage: Usage { cpu: Duration::from_millis(millis), memory: 4096 },
    }
}

#[test]
fn a_rate_is_what_was_used_between_two_moments_or_since_the_start() {
    let machine = |seconds| Some(Usage { cpu: Duration::from_secs(seconds), memory: 7 });
    let earlier =
        Sample { at: at(100), used: vec![used("old", 0, 50_000)], machine: machine(1_000) };
    let latest = Sample {
        at: at(110),
        used: vec![used("old", 0, 52_500), used("new", 106, 2_000), used("newest", 110, 0)],
        machine: machine(1_015),
    };
    let measured = rates(&earlier, &latest);
    let of = |it: &sample::Measured| format!("{} {}", it.used.pod, it.rate.nanocores);
    let found: Vec<String> = measured.rates.iter().map(of).collect();
    assert_eq!(found, ["old 250000000", "new 500000000"]);
    assert_eq!(measured.machine, Some(Rate { nanocores: 1_500_000_000, memory: 7 }));
    assert_eq!(measured.window, SignedDuration::from_secs(10));
}

#[test]
fn amounts_are_written_as_metrics_server_writes_them() {
    let rate = Rate { nanocores: 1_500_000, memory: 4097 };
    assert_eq!(usage(rate), json!({"cpu": "1500000n", "memory": "5Ki"}));
}

#[test]
fn paths_are_those_of_the_group_and_no_others() {
    let check = |path: &str, expected: Option<Asked<'_>>| assert_eq!(Asked::of(path), expected);
    let pods = |namespace, name| Some(Asked::Pods { namespace, name });
    check("/apis/metrics.k8s.io/v1beta1", Some(Asked::Resources));
    check("/apis/metrics.k8s.io/v1beta1/nodes", Some(Asked::Nodes { name: None }));
    check("/apis/metrics.k8s.io/v1beta1/pods", pods(None, None));
    check("/apis/metrics.k8s.io/v1beta1/namespaces/d/pods/web", pods(Some("d"), Some("web")));
    check("/apis/metrics.k8s.io/v1beta1/namespaces/d/nodes", None);
    check("/apis/metrics.k8s.io/v1", None);
    check("/openapi/v2", None);
}

#[test]
fn objects_are_selected_by_labels_and_names() {
    let selection = Selection::parse("labelSelector=app%3Dweb&fieldSelector=metadata.name%3Da");
    let selection = selection.expect("both can be read");
    let labels = |app: &str| BTreeMap::from([("app".to_owned(), app.to_owned())]);
    assert!(selection.labels.matches(&labels("web")) && !selection.labels.matches(&labels("db")));
    assert!(selection.takes_fields("d", "a") && !selection.takes_fields("d", "b"));
    assert!(Selection::parse("fieldSelector=spec.nodeName%3Da").is_err());
    assert!(Selection::parse("labelSelector=%21").is_err());
}
