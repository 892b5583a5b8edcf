use super::*;

/// What a quota counts of an object, as `name=amount`.
#[track_caller]
fn check(group: &str, resource: &str, object: &str, expected: &[&str]) {
    let evaluator = Evaluator::of(group, resource).expect("it is counted");
    let usage = evaluator.measure(&read(object), now()).usage;
    let names = usage.keys().all(|name| evaluator.counts(name));
    assert!(names, "it uses what no quota would ask it for: {usage:?}");
    let usage: Vec<String> =
        usage.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    assert_eq!(usage, expected);
}

/// Whether a quota with these scopes counts a pod.
#[track_caller]
fn check_scope(spec: &str, pod: &str, expected: bool) {
    let footprint = Evaluator::Pods.measure(&read(pod), now());
    assert_eq!(footprint.is_in_scope(&read(spec)), expected, "{spec} {pod}");
}

fn read(yaml: &str) -> Value {
    crate::yaml::decode(yaml).expect("sound YAML").value
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().expect("a time")
}

#[test]
fn a_pod_counts_what_its_containers_ask_for_at_any_one_time() {
    check(
        "",
        "pods",
        "
        spec:
          overhead: {memory: 8Mi}
          initContainers:
          - {name: first, resources: {requests: {cpu: 2}}}
          - {name: lasting, restartPolicy: Always, resources: {requests: {memory: 1Mi}}}
          containers:
          - name: a
            resources:
              requests: {cpu: 500m, memory: 1Gi, example.com/gpu: 1}
              limits: {cpu: 1, example.com/gpu: 1}
          - {name: b, resources: {requests: {cpu: 250m}}}
        ",
        &[
            "count/pods=1",
            "cpu=2",
            "limits.cpu=1",
            "memory=1033Mi",
            "pods=1",
            "requests.cpu=2",
            "requests.example.com/gpu=1",
            "requests.memory=1033Mi",
        ],
    );
}

#[test]
fn a_pod_that_is_over_is_only_an_object() {
    let asks = "spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}";
    for phase in ["Succeeded", "Failed"] {
        check("", "pods", &format!("{asks}\nstatus: {{phase: {phase}}}"), &["count/pods=1"]);
    }
    let stuck = "{deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30}";
    check("", "pods", &format!("{asks}\nmetadata: {stuck}"), &["count/pods=1"]);
    let going = "{deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 60}";
    let all = ["count/pods=1", "cpu=1", "pods=1", "requests.cpu=1"];
    check("", "pods", &format!("{asks}\nmetadata: {going}"), &all);
}

#[test]
fn a_pod_that_is_being_resized_counts_the_larger_size() {
    let pod = |reason: &str| {
        format!(
            "
            spec: {{containers: [{{name: a, resources: {{requests: {{cpu: 1}}}}}}]}}
            status:
              conditions: [{{type: PodResizePending, reason: {reason}}}]
              containerStatuses:
              - {{name: a, resources: {{requests: {{cpu: 500m}}}}}}
            "
        )
    };
    let usage = |cpu: &str| vec!["count/pods=1".to_owned(), format!("cpu={cpu}")];
    for (reason, cpu) in [("Deferred", "1"), ("Infeasible", "500m")] {
        let measured = Evaluator::Pods.measure(&read(&pod(reason)), now()).usage;
        let printed: Vec<String> =
            measured.iter().map(|(name, amount)| format!("{name}={amount}")).take(2).collect();
        assert_eq!(printed, usage(cpu));
    }
}

#[test]
fn a_service_counts_the_ports_and_balancers_it_will_have() {
    let usage = |balancers: u8, ports: u8| {
        let balancers = format!("services.loadbalancers={balancers}");
        ["count/services=1".to_owned(), "services=1".to_owned(), balancers]
            .into_iter()
            .chain([format!("services.nodeports={ports}")])
            .collect::<Vec<_>>()
    };
    let ports = "ports: [{port: 1}, {port: 2, nodePort: 30001}]";
    let cases = [
        ("type: ClusterIP", usage(0, 0)),
        ("type: NodePort", usage(0, 2)),
        ("type: LoadBalancer", usage(1, 2)),
        ("type: LoadBalancer, allocateLoadBalancerNodePorts: false", usage(1, 1)),
    ];
    for (spec, expected) in cases {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check("", "services", &format!("spec: {{{spec}, {ports}}}"), &expected);
    }
}

#[test]
fn a_claim_counts_for_its_class_too() {
    check(
        "",
        "persistentvolumeclaims",
        "
        spec: {storageClassName: gold, resources: {requests: {storage: 1Gi}}}
        status: {allocatedResources: {storage: 2Gi}}
        ",
        &[
            "count/persistentvolumeclaims=1",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1",
            "gold.storageclass.storage.k8s.io/requests.storage=2Gi",
            "persistentvolumeclaims=1",
            "requests.storage=2Gi",
        ],
    );
}

#[test]
fn of_alternatives_the_largest_counts() {
    check(
        "resource.k8s.io",
        "resourceclaims",
        "
        spec:
          devices:
            requests:
            - name: a
              firstAvailable:
              - {deviceClassName: gpu, allocationMode: ExactCount, count: 2}
              - {deviceClassName: gpu, allocationMode: ExactCount, count: 3}
            - {name: b, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}
            - {name: c, exactly: {deviceClassName: nic, allocationMode: All}}
        ",
        &[
            "count/resourceclaims.resource.k8s.io=1",
            "gpu.deviceclass.resource.k8s.io/devices=4",
            "nic.deviceclass.resource.k8s.io/devices=32",
        ],
    );
}

#[test]
fn objects_of_other_kinds_are_counted_by_number() {
    check("", "secrets", "{}", &["count/secrets=1", "secrets=1"]);
    check("", "endpoints", "{}", &["count/endpoints=1"]);
    check("example.com", "widgets", "{}", &["count/widgets.example.com=1"]);
    assert_eq!(Evaluator::of("", "events"), None);
    assert_eq!(Evaluator::of("authorization.k8s.io", "localsubjectaccessreviews"), None);
}

#[test]
fn the_names_that_are_about_pods() {
    let names = [
        ("requests.example.com/gpu", true),
        ("example.com/gpu", false),
        ("hugepages-2Mi", true),
        ("requests.hugepages-2Mi", true),
        ("limits.ephemeral-storage", true),
        ("limits.hugepages-2Mi", false),
        ("requests.storage", false),
        ("requests.deviceclass.resource.kubernetes.io/gpu", true),
        ("services", false),
    ];
    for (name, expected) in names {
        assert_eq!(Evaluator::Pods.counts(name), expected, "{name}");
    }
}

#[test]
fn a_scope_counts_some_pods() {
    let short = "spec: {activeDeadlineSeconds: 0}";
    check_scope("{}", short, true);
    check_scope("scopes: [Terminating]", short, true);
    check_scope("scopes: [NotTerminating]", short, false);
    check_scope("scopes: [NotTerminating]", "{}", true);
    let idle = "status: {qosClass: BestEffort}";
    check_scope("scopes: [BestEffort, NotTerminating]", idle, true);
    check_scope("scopes: [BestEffort, Terminating]", idle, false);
    check_scope("scopes: [NotBestEffort]", idle, false);
    check_scope("scopes: [PriorityClass]", "{}", false);
    check_scope("scopes: [VolumeAttributesClass]", "{}", false);
    let near = "spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
                [{podAffinityTerm: {namespaces: [b]}}]}}}";
    check_scope("scopes: [CrossNamespacePodAffinity]", near, true);
    check_scope("scopes: [CrossNamespacePodAffinity]", "{}", false);
}

#[test]
fn a_scope_can_select_classes() {
    let selector = |operator: &str, values: &str| {
        let expression =
            format!("scopeName: PriorityClass, operator: {operator}, values: {values}");
        format!("scopeSelector: {{matchExpressions: [{{{expression}}}]}}")
    };
    let high = "spec: {priorityClassName: high}";
    let cases = [
        ("In", "[high]", true, false),
        ("In", "[low]", false, false),
        ("NotIn", "[high]", false, true),
        ("NotIn", "[low]", true, true),
        ("Exists", "[]", true, false),
        ("DoesNotExist", "[]", false, true),
    ];
    for (operator, values, of_high, of_none) in cases {
        check_scope(&selector(operator, values), high, of_high);
        check_scope(&selector(operator, values), "{}", of_none);
    }
}

#[test]
fn scopes_of_pods_leave_other_objects_out() {
    let service = Evaluator::Services.measure(&Value::Null, now());
    assert!(!service.is_in_scope(&read("scopes: [NotTerminating]")));
    let not_in = "scopeSelector: {matchExpressions: \
                  [{scopeName: PriorityClass, operator: NotIn, values: [a]}]}";
    assert!(!service.is_in_scope(&read(not_in)));
    assert!(service.is_in_scope(&Value::Null));
}

#[test]
fn a_claim_is_of_all_classes_it_has_or_will_have() {
    let claim = read(
        "
        spec: {volumeAttributesClassName: new}
        status: {currentVolumeAttributesClassName: old}
        ",
    );
    let footprint = Evaluator::Claims.measure(&claim, now());
    for (values, expected) in [("[old]", true), ("[new]", true), ("[other]", false)] {
        let spec = format!(
            "scopeSelector: {{matchExpressions: \
             [{{scopeName: VolumeAttributesClass, operator: In, values: {values}}}]}}"
        );
        assert_eq!(footprint.is_in_scope(&read(&spec)), expected, "{values}");
    }
}

#[test]
fn a_pod_must_say_what_a_quota_restricts() {
    let pod = read(
        "
        spec:
          containers:
          - {name: b, resources: {requests: {cpu: 1}}}
          - {name: a}
        ",
    );
    let check = |restricted: &[&str]| Evaluator::Pods.check(restricted, &pod);
    assert_eq!(check(&["pods", "requests.storage"]), Ok(()));
    let missing = "must specify limits.cpu for: a,b; requests.cpu for: a";
    assert_eq!(check(&["requests.cpu", "limits.cpu"]), Err(missing.to_owned()));
}
