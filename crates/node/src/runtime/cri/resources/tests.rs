use kubewright_apimachinery::yaml;

use super::*;

const GIBIBYTE: u64 = 1 << 30;

/// The limits of the first container of a pod, on a machine with a gibibyte.
fn check(pod: &str, expected: &str) {
    let pod: Pod = serde_json::from_value(yaml::decode(pod).expect("YAML").value).expect("a pod");
    let container = pod.spec.as_ref().expect("a specification");
    let container = container.init_containers.iter().flatten().chain(&container.containers).next();
    let limits = limits(&pod, container.expect("a container"), GIBIBYTE);
    let huge = limits.hugepage_limits.iter().map(|it| format!(" {}={}", it.page_size, it.limit));
    let text = format!(
        "shares={} quota={}/{} memory={} oom={}{}",
        limits.cpu_shares,
        limits.cpu_quota,
        limits.cpu_period,
        limits.memory_limit_in_bytes,
        limits.oom_score_adj,
        huge.collect::<String>()
    );
    assert_eq!(text, expected);
}

#[test]
fn what_asks_for_nothing_goes_first() {
    check(
        "{status: {qosClass: BestEffort}, spec: {containers: [{name: a}]}}",
        "shares=2 quota=0/100000 memory=0 oom=1000",
    );
}

#[test]
fn what_was_promised_all_goes_last() {
    check(
        "{status: {qosClass: Guaranteed}, spec: {containers: [{name: a, resources: {
           requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 500m, memory: 64Mi}}}]}}",
        "shares=512 quota=50000/100000 memory=67108864 oom=-997",
    );
}

#[test]
fn the_more_it_asks_for_the_later_it_goes() {
    check(
        "{status: {qosClass: Burstable}, spec: {containers: [{name: a, resources: {
           requests: {memory: 256Mi}, limits: {cpu: '2'}}}]}}",
        "shares=2048 quota=200000/100000 memory=0 oom=750",
    );
    check(
        "{status: {qosClass: Burstable}, spec: {containers: [{name: a, resources: {
           requests: {cpu: 1m}, limits: {cpu: 5m}}}]}}",
        "shares=2 quota=1000/100000 memory=0 oom=999",
    );
    check(
        "{status: {qosClass: Burstable}, spec: {containers: [{name: a, resources: {
           requests: {memory: 2Gi}}}]}}",
        "shares=2 quota=0/100000 memory=0 oom=3",
    );
}

#[test]
fn a_sidecar_goes_no_sooner_than_those_it_serves() {
    check(
        "{status: {qosClass: Burstable}, spec: {
           initContainers: [{name: proxy, restartPolicy: Always}],
           containers: [{name: a, resources: {requests: {memory: 256Mi}}},
                        {name: b, resources: {requests: {memory: 512Mi}}}]}}",
        "shares=2 quota=0/100000 memory=0 oom=750",
    );
}

#[test]
fn nodes_are_kept_running_first() {
    check(
        "{status: {qosClass: BestEffort}, spec: {priorityClassName: system-node-critical,
           containers: [{name: a}]}}",
        "shares=2 quota=0/100000 memory=0 oom=-997",
    );
}

#[test]
fn huge_pages_are_limited_by_their_size() {
    check(
        "{status: {qosClass: Burstable}, spec: {containers: [{name: a, resources: {
           limits: {hugepages-2Mi: 4Mi, hugepages-1Gi: 1Gi}}}]}}",
        "shares=2 quota=0/100000 memory=0 oom=999 1GB=1073741824 2MB=4194304",
    );
}

#[test]
fn what_a_container_does_not_say_its_pod_says_for_it() {
    check(
        "{status: {qosClass: Burstable}, spec: {
           resources: {requests: {memory: 512Mi}, limits: {cpu: '1', memory: 512Mi,
             hugepages-2Mi: 4Mi}},
           containers: [{name: a}, {name: b}]}}",
        "shares=1024 quota=100000/100000 memory=536870912 oom=750 2MB=4194304",
    );
    check(
        "{status: {qosClass: Burstable}, spec: {
           resources: {requests: {memory: 512Mi}, limits: {cpu: '1', memory: 512Mi}},
           containers: [{name: a, resources: {requests: {memory: 256Mi}, limits: {cpu: 500m,
             memory: 256Mi}}}, {name: b}]}}",
        "shares=512 quota=50000/100000 memory=268435456 oom=625",
    );
}

#[test]
fn memory_that_is_in_use_is_not_taken_away() {
    let of = |bytes| LinuxContainerResources {
        memory_limit_in_bytes: bytes,
        ..LinuxContainerResources::default()
    };
    assert_eq!(smaller_memory(&of(10), &of(5)), Some(5));
    assert_eq!(smaller_memory(&of(0), &of(5)), Some(5));
    assert_eq!(smaller_memory(&of(5), &of(5)), None);
    assert_eq!(smaller_memory(&of(5), &of(0)), None);
    assert_eq!(is_enough("a", 5, Some(4)), Ok(()));
    let why = "cannot decrease memory limits: attempting to set container \"a\" memory limit (5) \
               below current usage (5)";
    assert_eq!(is_enough("a", 5, Some(5)), Err(why.to_owned()));
}
