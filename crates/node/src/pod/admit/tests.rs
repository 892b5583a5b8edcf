use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::*;

const NODE: &str = "
metadata: {name: here, labels: {zone: a}}
spec: {taints: [{key: away, effect: NoExecute}, {key: full, effect: NoSchedule}]}
status:
  allocatable: {cpu: '2', memory: 1Gi, pods: '3', example.com/gpu: '1'}
  nodeInfo: {operatingSystem: linux, architecture: '', bootID: '', containerRuntimeVersion: '',
    kernelVersion: '', kubeProxyVersion: '', kubeletVersion: '', machineID: '', osImage: '',
    systemUUID: ''}
";
const TOLERANT: &str = "tolerations: [{key: away, operator: Exists}]";

fn read<T: DeserializeOwned>(text: &str) -> T {
    let value = yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    serde_json::from_value(value).expect("an object")
}

/// What is said of a pod with this specification, beside others.
fn check(spec: &str, others: &[&str], expected: &str) {
    let pod = |spec: &str| -> Pod { read(&format!("spec: {{{spec}}}")) };
    let others: Vec<Needs> = others.iter().map(|other| Needs::of(&pod(other))).collect();
    let others: Vec<&Needs> = others.iter().collect();
    let (pod, node) = (pod(spec), read(NODE));
    let told = match admit(&pod, &Needs::of(&pod), &others, &node) {
        Verdict::Admitted => "admitted".to_owned(),
        Verdict::Refused(Rejection { reason, message }) => format!("{reason}: {message}"),
        Verdict::Doubted(Rejection { reason, message }) => format!("doubt: {reason}: {message}"),
    };
    assert_eq!(told, expected);
}

/// A pod that asks for this, and for nothing else that matters.
fn asking(requests: &str) -> String {
    format!("{TOLERANT}, containers: [{{name: a, resources: {{requests: {{{requests}}}}}}}]")
}

/// What is asked for by now, and what is still in use.
#[test]
fn a_container_has_what_it_had_until_it_is_given_less() {
    let pod = |cpu: &str, given: &str| -> Pod {
        read(&format!(
            "spec: {{containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}
status: {{containerStatuses: [{{name: a, image: '', imageID: '', ready: true, restartCount: 0,
  resources: {{requests: {{cpu: {given}}}}}}}]}}"
        ))
    };
    assert_eq!(Needs::held(&pod("500m", "1500m")).request(CPU), 1500);
    assert_eq!(Needs::held(&pod("1500m", "500m")).request(CPU), 1500);
    assert_eq!(Needs::of(&pod("500m", "1500m")).request(CPU), 500);
    assert!(Needs::held(&pod("500m", "500m")).is_less(&Needs::held(&pod("500m", "1500m"))));
}

#[test]
fn a_pod_needs_room() {
    check(&asking("cpu: '2', memory: 1Gi"), &[], "admitted");
    check(
        &asking("cpu: 500m"),
        &[&asking("cpu: '1'"), &asking("cpu: 600m")],
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 500, used: 1600, capacity: 2000",
    );
    check(
        &asking("memory: 1025Mi"),
        &[],
        "OutOfmemory: Node didn't have enough resource: memory, requested: 1074790400, used: 0, \
         capacity: 1073741824",
    );
    let other = asking("");
    check(
        &other,
        &[&other, &other, &other],
        "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    );
}

#[test]
fn what_no_node_has_is_counted_by_others() {
    check(&asking("example.com/unknown: '1'"), &[], "admitted");
    check(
        &asking("example.com/gpu: '1'"),
        &[&asking("example.com/gpu: '1'")],
        "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 1, \
         used: 1, capacity: 1",
    );
}

#[test]
fn a_pod_is_for_the_node_that_it_asks_for() {
    let selected =
        |zone: &str| format!("{TOLERANT}, containers: [], nodeSelector: {{zone: {zone}}}");
    let refused = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node \
                   affinity/selector";
    check(&selected("a"), &[], "admitted");
    check(&selected("b"), &[], &format!("doubt: {refused}"));
    let affine = |term: &str| {
        format!(
            "{TOLERANT}, containers: [], affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}}}"
        )
    };
    check(
        &affine("{matchFields: [{key: metadata.name, operator: In, values: [here]}]}"),
        &[],
        "admitted",
    );
    let other = affine("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}");
    check(&other, &[], &format!("doubt: {refused}"));
    check(&affine("{}"), &[], &format!("doubt: {refused}"));
}

#[test]
fn only_taints_that_end_pods_keep_them_away() {
    check(
        "containers: []",
        &[],
        "doubt: TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod \
         didn't tolerate",
    );
    check(&format!("{TOLERANT}, containers: []"), &[], "admitted");
}

#[test]
fn a_port_of_the_node_is_given_once() {
    let listening = |port: &str| format!("{TOLERANT}, containers: [{{name: a, ports: [{port}]}}]");
    let taken = listening("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}");
    let refused = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the \
                   requested pod ports";
    check(&listening("{containerPort: 80, hostPort: 80}"), &[&taken], refused);
    let elsewhere = "{containerPort: 80, hostPort: 80, hostIP: 10.0.0.2}";
    check(&listening(elsewhere), &[&taken], "admitted");
    check(&listening("{containerPort: 80, hostPort: 80, protocol: UDP}"), &[&taken], "admitted");
    check(&listening("{containerPort: 80}"), &[&taken], "admitted");
}

#[test]
fn a_pod_of_another_system_is_refused() {
    check(
        &format!("{TOLERANT}, containers: [], os: {{name: windows}}"),
        &[],
        "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    );
}

/// It was run as if it had not asked.
#[test]
fn a_pod_that_is_to_be_isolated_otherwise_than_it_can_be_is_refused() {
    let with =
        |context: &str| format!("{TOLERANT}, containers: [], securityContext: {{{context}}}");
    check(
        &with("sysctls: [{name: kernel.msgmax, value: '1'}], supplementalGroupsPolicy: Strict"),
        &[],
        "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted",
    );
    check(
        &with("supplementalGroupsPolicy: Strict"),
        &[],
        "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in \
         this node",
    );
    check(&with("supplementalGroupsPolicy: Merge"), &[], "admitted");
}
