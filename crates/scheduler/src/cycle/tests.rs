//! Which nodes will do, why others will not, and which are better.

use super::*;
use crate::fixtures::{pod, profile, profile_of, snapshot};
use crate::plugin::Remedy;

const SCOPE: Scope = Scope { start: 0, is_first_enough: false, percentage: None };

/// The nodes that will do, or what the pod is told.
fn outcome(profile: &Profile, objects: &str, new: &str) -> String {
    let (snapshot, pod) = (snapshot(objects), pod(new));
    if snapshot.is_empty() {
        return NO_NODES.to_owned();
    }
    let found = search(profile, &pod, &snapshot, SCOPE).expect("it can be found out");
    if !found.nodes.is_empty() {
        let names: Vec<&str> = found.nodes.iter().map(|node| &*node.name).collect();
        return names.join(" ");
    }
    let mut diagnosis = found.diagnosis;
    let attempt = Attempt {
        pod: &pod,
        snapshot: &snapshot,
        filters: &found.filters,
        diagnosis: &diagnosis,
        offset: 0,
    };
    match remedy(profile, &attempt) {
        Some(Remedy::Nothing(why) | Remedy::NoUse(why)) => diagnosis.remedy = why,
        Some(Remedy::Preempt(_)) => diagnosis.remedy = "(preempts)".to_owned(),
        None => {}
    }
    diagnosis.to_string()
}

#[track_caller]
fn check(objects: &str, new: &str, expected: &str) {
    assert_eq!(outcome(&profile(), objects, new), expected);
}

/// The scores of nodes by one plugin, `name=score`.
#[track_caller]
fn check_scores(plugin: &str, objects: &str, new: &str, expected: &str) {
    let only = format!(
        "{{schedulerName: s, plugins: {{score: {{disabled: [{{name: '*'}}], \
         enabled: [{{name: {plugin}, weight: 1}}]}}}}}}"
    );
    check_scores_of(&profile_of(&only), objects, new, expected);
}

#[track_caller]
fn check_scores_of(profile: &Profile, objects: &str, new: &str, expected: &str) {
    let (snapshot, pod) = (snapshot(objects), pod(new));
    let nodes: Vec<&Node> = (0..snapshot.len()).map(|place| snapshot.nth(place)).collect();
    let scores = score(profile, &pod, &snapshot, &nodes);
    let scores = nodes.iter().zip(scores).map(|(node, score)| format!("{}={score}", node.name));
    assert_eq!(scores.collect::<Vec<_>>().join(" "), expected);
}

const TWO: &str = "
    {kind: Node, metadata: {name: a}}
    {kind: Node, metadata: {name: b}}";

#[test]
fn without_nodes_there_is_nothing_to_say_of_them() {
    check("", "{}", "no nodes available to schedule pods");
}

#[test]
fn a_pod_fits_where_its_requests_are_left() {
    let cluster = "
        {kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1}}}
        {kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 2}}}
        {kind: Pod, metadata: {name: p}, spec: {nodeName: b, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}";
    let wants = |cpu: &str| {
        format!("{{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}")
    };
    check(cluster, &wants("1"), "a b");
    check(cluster, &wants("1500m"), "b");
    check(
        cluster,
        &wants("1600m"),
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, \
         preemption: 0/2 nodes are available: \
         1 No preemption victims found for incoming pod, 1 Preemption is not helpful for \
         scheduling.",
    );
}

#[test]
fn a_pod_that_claims_devices_waits_and_is_told_why() {
    check(
        TWO,
        "{spec: {resourceClaims: [{name: gpu, resourceClaimName: mine}]}}",
        "0/2 nodes are available: this scheduler does not allocate resource claims. \
         no new claims to deallocate, preemption: 0/2 nodes are available: \
         2 Preemption is not helpful for scheduling.",
    );
}

#[test]
fn each_reason_is_counted_over_all_nodes() {
    check(
        "
        {kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1}}}
        {kind: Node, metadata: {name: b}, spec: {taints: [{key: k, effect: NoSchedule}]}}
        {kind: Node, metadata: {name: c}, spec: {taints: [{key: k, effect: NoExecute}]}}
        {kind: Node, metadata: {name: d}, spec: {unschedulable: true}}",
        "{spec: {containers: [{name: c, resources: {requests: {cpu: 2, example.com/gpu: 1}}}]}}",
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/gpu, \
         1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). no new claims to deallocate, \
         preemption: 0/4 nodes \
         are available: 4 Preemption is not helpful for scheduling.",
    );
}

#[test]
fn a_node_takes_no_more_pods_than_it_says() {
    check(
        "
        {kind: Node, metadata: {name: a}, status: {allocatable: {pods: 1}}}
        {kind: Pod, metadata: {name: p}, spec: {nodeName: a}}",
        "{spec: {preemptionPolicy: Never}}",
        "0/1 nodes are available: 1 Too many pods. no new claims to deallocate, \
         preemption: not eligible due to \
         preemptionPolicy=Never.",
    );
}

#[test]
fn init_containers_and_overhead_count_for_their_peak() {
    let cluster = "{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 3}}}";
    let with = |init: &str| {
        format!(
            "{{spec: {{overhead: {{cpu: 500m}}, initContainers: {init}, \
             containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}"
        )
    };
    check(cluster, &with("[{name: i, resources: {requests: {cpu: 2500m}}}]"), "a");
    let too_much = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
    preemption: 0/1 nodes are \
                    available: 1 Preemption is not helpful for scheduling.";
    check(cluster, &with("[{name: i, resources: {requests: {cpu: 2600m}}}]"), too_much);
    let sidecar = "[{name: s, restartPolicy: Always, resources: {requests: {cpu: 1600m}}}]";
    check(cluster, &with(sidecar), too_much);
}

#[test]
fn taints_are_tolerated_by_key_value_and_effect() {
    let cluster = "{kind: Node, metadata: {name: a}, spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}";
    let no = "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, \
    preemption: 0/1 nodes \
              are available: 1 Preemption is not helpful for scheduling.";
    let with = |toleration: &str| format!("{{spec: {{tolerations: [{toleration}]}}}}");
    check(cluster, &with("{key: k, value: v}"), "a");
    check(cluster, &with("{key: k, operator: Exists, effect: NoSchedule}"), "a");
    check(cluster, &with("{operator: Exists}"), "a");
    check(cluster, &with("{key: k, value: w}"), no);
    check(cluster, &with("{key: k, operator: Exists, effect: NoExecute}"), no);
    check(cluster, "{}", no);
}

#[test]
fn node_selectors_and_affinity_both_hold() {
    let cluster = "
        {kind: Node, metadata: {name: a, labels: {disk: ssd, cpus: '8'}}}
        {kind: Node, metadata: {name: b, labels: {disk: ssd, cpus: '2'}}}
        {kind: Node, metadata: {name: c}}";
    check(cluster, "{spec: {nodeSelector: {disk: ssd}}}", "a b");
    let required = |terms: &str| {
        format!(
            "{{spec: {{nodeSelector: {{disk: ssd}}, affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}}}"
        )
    };
    check(
        cluster,
        &required("[{matchExpressions: [{key: cpus, operator: Gt, values: ['4']}]}]"),
        "a",
    );
    check(
        cluster,
        &required("[{matchExpressions: [{key: disk, operator: DoesNotExist}]}]"),
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. \
         no new claims to deallocate, \
         preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    );
    let named = "[{matchFields: [{key: metadata.name, operator: In, values: [b]}]}]";
    check(cluster, &required(named), "b");
}

#[test]
fn other_nodes_than_those_named_are_not_looked_at() {
    check(
        "
        {kind: Node, metadata: {name: a}, spec: {unschedulable: true}}
        {kind: Node, metadata: {name: b}}",
        "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}}}",
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) \
         were unschedulable. no new claims to deallocate, \
         preemption: 0/2 nodes are available: 2 Preemption is not helpful for \
         scheduling.",
    );
}

#[test]
fn a_port_of_a_node_is_had_once() {
    let cluster = "
        {kind: Node, metadata: {name: a}}
        {kind: Pod, metadata: {name: p}, spec: {nodeName: a, containers: [{name: c, ports: [{hostPort: 80, containerPort: 80, hostIP: 127.0.0.1}]}]}}";
    let wants = |port: &str| format!("{{spec: {{containers: [{{name: c, ports: [{port}]}}]}}}}");
    let no = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod \
              ports. no new claims to deallocate, \
              preemption: 0/1 nodes are available: 1 No preemption victims found for \
              incoming pod.";
    check(cluster, &wants("{hostPort: 80, containerPort: 80}"), no);
    check(cluster, &wants("{hostPort: 80, containerPort: 80, hostIP: 127.0.0.2}"), "a");
    check(cluster, &wants("{hostPort: 80, containerPort: 80, protocol: UDP}"), "a");
    check(cluster, &wants("{hostPort: 81, containerPort: 80}"), "a");
}

const ZONES: &str = "
    {kind: Node, metadata: {name: a, labels: {zone: w, kubernetes.io/hostname: a}}}
    {kind: Node, metadata: {name: b, labels: {zone: w, kubernetes.io/hostname: b}}}
    {kind: Node, metadata: {name: c, labels: {zone: z, kubernetes.io/hostname: c}}}";

fn near(kind: &str, labels: &str, app: &str) -> String {
    format!(
        "{{metadata: {{labels: {labels}}}, spec: {{affinity: {{{kind}: \
         {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, \
         labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}}}}}"
    )
}

#[test]
fn pods_are_near_those_they_must_be_near() {
    let cluster = format!(
        "{ZONES}\n{{kind: Pod, metadata: {{name: p, labels: {{app: db}}}}, spec: {{nodeName: a}}}}"
    );
    check(&cluster, &near("podAffinity", "{}", "db"), "a b");
    check(&cluster, &near("podAntiAffinity", "{}", "db"), "c");
    check(
        &cluster,
        &near("podAffinity", "{}", "web"),
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. no new claims to deallocate, \
         preemption: 0/3 \
         nodes are available: 3 Preemption is not helpful for scheduling.",
    );
    // The first of those that want each other begins anywhere.
    check(&cluster, &near("podAffinity", "{app: web}", "web"), "a b c");
}

#[test]
fn pods_that_bear_nobody_near_are_left_alone() {
    let cluster = format!(
        "{ZONES}\n{{kind: Pod, {}",
        near("podAntiAffinity", "{app: db}, name: p", "web")
            .replacen("{metadata", "metadata", 1)
            .replacen("spec: {", "spec: {nodeName: c, ", 1)
    );
    check(&cluster, "{metadata: {labels: {app: web}}}", "a b");
    check(&cluster, "{metadata: {labels: {app: other}}}", "a b c");
    check(&cluster, "{metadata: {namespace: elsewhere, labels: {app: web}}}", "a b c");
}

#[test]
fn pods_are_spread_no_more_unevenly_than_they_say() {
    let cluster = format!(
        "{ZONES}
        {{kind: Pod, metadata: {{name: p, labels: {{app: web}}}}, spec: {{nodeName: a}}}}"
    );
    let spread = |more: &str| {
        format!(
            "{{metadata: {{labels: {{app: web}}}}, spec: {{topologySpreadConstraints: [{{maxSkew: 1, \
             topologyKey: zone, whenUnsatisfiable: DoNotSchedule, \
             labelSelector: {{matchLabels: {{app: web}}}}{more}}}]}}}}"
        )
    };
    check(&cluster, &spread(""), "c");
    let no = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
              2 node(s) didn't match pod topology spread constraints. no new claims to deallocate, \
              preemption: 0/3 nodes are \
              available: 1 Preemption is not helpful for scheduling, 2 No preemption victims \
              found for incoming pod.";
    let selecting = |pod: String| pod.replacen("spec: {", "spec: {nodeSelector: {zone: w}, ", 1);
    // Where the pod cannot go, nothing is missing, unless it says so.
    check(&cluster, &selecting(spread("")), "a b");
    check(&cluster, &selecting(spread(", nodeAffinityPolicy: Ignore")), no);
    check(&cluster, &spread(", minDomains: 3"), "c");
    check(
        "{kind: Node, metadata: {name: a}}",
        &spread(""),
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing \
         required label). no new claims to deallocate, \
         preemption: 0/1 nodes are available: 1 Preemption is not helpful for \
         scheduling.",
    );
}

#[test]
fn room_that_is_made_for_others_is_theirs() {
    let cluster = "
        {kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1}}}
        {kind: Pod, metadata: {name: p}, spec: {priority: 10, containers: [{name: c, resources: {requests: {cpu: 1}}}]}, status: {nominatedNodeName: a}}";
    let wants = |priority: i32| {
        format!(
            "{{spec: {{priority: {priority}, preemptionPolicy: Never, \
             containers: [{{name: c, resources: {{requests: {{cpu: 500m}}}}}}]}}}}"
        )
    };
    let no = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
    preemption: not eligible due to \
              preemptionPolicy=Never.";
    check(cluster, &wants(10), no);
    check(cluster, &wants(11), "a");
}

#[test]
fn claims_lead_pods_to_their_volumes() {
    let storage = "
        {kind: Node, metadata: {name: a, labels: {host: a}}}
        {kind: Node, metadata: {name: b, labels: {host: b}}}
        {kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
        {kind: StorageClass, metadata: {name: made}, provisioner: example.com/disk, volumeBindingMode: WaitForFirstConsumer}
        {kind: StorageClass, metadata: {name: now}, provisioner: example.com/disk, volumeBindingMode: Immediate}
        {kind: PersistentVolume, metadata: {name: v1}, spec: {storageClassName: local, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: host, operator: In, values: [b]}]}]}}}, status: {phase: Available}}
        {kind: PersistentVolume, metadata: {name: v2}, spec: {claimRef: {name: bound, namespace: default}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: host, operator: In, values: [a]}]}]}}}, status: {phase: Bound}}
        {kind: PersistentVolumeClaim, metadata: {name: local, namespace: default}, spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
        {kind: PersistentVolumeClaim, metadata: {name: big, namespace: default}, spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}
        {kind: PersistentVolumeClaim, metadata: {name: made, namespace: default}, spec: {storageClassName: made, resources: {requests: {storage: 1Gi}}}}
        {kind: PersistentVolumeClaim, metadata: {name: chosen, namespace: default, annotations: {volume.kubernetes.io/selected-node: b}}, spec: {storageClassName: made, resources: {requests: {storage: 1Gi}}}}
        {kind: PersistentVolumeClaim, metadata: {name: now, namespace: default}, spec: {storageClassName: now}}
        {kind: PersistentVolumeClaim, metadata: {name: bound, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v2}}";
    let uses = |claim: &str| {
        format!(
            "{{spec: {{volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]}}}}"
        )
    };
    let hopeless = "no new claims to deallocate, \
         preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    check(storage, &uses("local"), "b");
    check(storage, &uses("made"), "a b");
    check(storage, &uses("chosen"), "b");
    check(storage, &uses("bound"), "a");
    check(
        storage,
        &uses("big"),
        &format!(
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. \
             {hopeless}"
        ),
    );
    check(
        storage,
        &uses("now"),
        &format!(
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. {hopeless}"
        ),
    );
    check(
        storage,
        &uses("missing"),
        &format!(
            "0/2 nodes are available: persistentvolumeclaim \"missing\" not found. {hopeless}"
        ),
    );
}

#[test]
fn a_claim_of_one_pod_is_not_shared() {
    check(
        "
        {kind: Node, metadata: {name: a}}
        {kind: PersistentVolume, metadata: {name: v}, spec: {claimRef: {name: c, namespace: default}}}
        {kind: PersistentVolumeClaim, metadata: {name: c, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v, accessModes: [ReadWriteOncePod]}}
        {kind: Pod, metadata: {name: p}, spec: {nodeName: a, volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}",
        "{spec: {preemptionPolicy: Never, volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}",
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with \
         ReadWriteOncePod access mode already in-use by another pod. no new claims to deallocate, \
         preemption: not eligible due \
         to preemptionPolicy=Never.",
    );
}

#[test]
fn a_driver_attaches_no_more_volumes_than_it_can() {
    check(
        "
        {kind: Node, metadata: {name: a}}
        {kind: CSINode, metadata: {name: a}, spec: {drivers: [{name: d, nodeID: a, allocatable: {count: 1}}]}}
        {kind: PersistentVolume, metadata: {name: v1}, spec: {csi: {driver: d, volumeHandle: h1}}}
        {kind: PersistentVolume, metadata: {name: v2}, spec: {csi: {driver: d, volumeHandle: h2}}}
        {kind: PersistentVolumeClaim, metadata: {name: c1, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v1}}
        {kind: PersistentVolumeClaim, metadata: {name: c2, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v2}}
        {kind: Pod, metadata: {name: p}, spec: {nodeName: a, volumes: [{name: v, persistentVolumeClaim: {claimName: c1}}]}}",
        "{spec: {preemptionPolicy: Never, volumes: [{name: v, persistentVolumeClaim: {claimName: c2}}]}}",
        "0/1 nodes are available: 1 node(s) exceed max volume count. no new claims to deallocate, \
         preemption: not eligible due \
         to preemptionPolicy=Never.",
    );
}

#[test]
fn enough_nodes_are_compared_and_the_next_search_begins_elsewhere() {
    let nodes: Vec<String> =
        (0..500).map(|n| format!("{{kind: Node, metadata: {{name: n{n}}}}}")).collect();
    let (snapshot, pod, profile) = (snapshot(&nodes.join("\n")), pod("{}"), profile());
    let found = search(&profile, &pod, &snapshot, SCOPE).expect("found");
    // 50 of a hundred, less four for five hundred.
    assert_eq!((found.nodes.len(), found.visited), (230, 230));
    let scope = Scope { start: 230, percentage: Some(30), ..SCOPE };
    let found = search(&profile, &pod, &snapshot, scope).expect("found");
    assert_eq!((&*found.nodes[0].name, found.nodes.len()), ("n230", 150));
    assert_eq!(feasible_max(50, None), 50);
    assert_eq!(feasible_max(150, Some(10)), 100);
    assert_eq!(feasible_max(6000, None), 300);
}

#[test]
fn nodes_are_tried_zone_by_zone_in_turn() {
    let zone = |name: &str, zone: &str| {
        let label = format!("{{topology.kubernetes.io/zone: {zone}}}");
        format!("{{kind: Node, metadata: {{name: {name}, labels: {label}}}}}\n")
    };
    let cluster: String =
        [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")].map(|(n, z)| zone(n, z)).concat();
    check(&cluster, "{}", "a1 b1 a2 a3");
}

#[test]
fn the_best_node_is_chosen_and_ties_are_drawn() {
    assert_eq!(choose(&[1, 3, 2], |_| unreachable!("there is no tie")), Some(1));
    assert_eq!(choose(&[3, 1, 3], |count| count - 1), Some(2));
    assert_eq!(choose(&[], |_| 0), None);
}

#[test]
fn the_emptier_node_is_better() {
    let cluster = format!(
        "{TWO}\n{{kind: Pod, metadata: {{name: p}}, spec: {{nodeName: a, containers: [{{name: c, \
         resources: {{requests: {{cpu: 2, memory: 4Gi}}}}}}]}}}}"
    );
    let new = "{spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 2Gi}}}]}}";
    check_scores("NodeResourcesFit", &cluster, new, "a=25 b=75");
    // What asks for nothing is taken to need a little.
    check_scores("NodeResourcesFit", &cluster, "{}", "a=47 b=97");
    let with = |strategy: &str| {
        profile_of(&format!(
            "{{schedulerName: s, plugins: {{score: {{disabled: [{{name: '*'}}], enabled: \
             [{{name: NodeResourcesFit}}]}}}}, pluginConfig: [{{name: NodeResourcesFit, \
             args: {{scoringStrategy: {strategy}}}}}]}}"
        ))
    };
    check_scores_of(&with("{type: MostAllocated}"), &cluster, new, "a=75 b=25");
    let ratio = "{type: RequestedToCapacityRatio, requestedToCapacityRatio: \
                 {shape: [{utilization: 0, score: 0}, {utilization: 50, score: 10}, \
                 {utilization: 100, score: 0}]}}";
    check_scores_of(&with(ratio), &cluster, new, "a=50 b=50");
}

#[test]
fn an_evenly_used_node_is_better() {
    let cluster = format!(
        "{TWO}\n{{kind: Pod, metadata: {{name: p}}, spec: {{nodeName: a, containers: [{{name: c, \
         resources: {{requests: {{cpu: 2}}}}}}]}}}}"
    );
    let new = "{spec: {containers: [{name: c, resources: {requests: {memory: 4Gi}}}]}}";
    // On the first it evens out what there is, on the second it does the contrary.
    check_scores("NodeResourcesBalancedAllocation", &cluster, new, "a=87 b=62");
    check_scores("NodeResourcesBalancedAllocation", &cluster, "{}", "a=0 b=0");
}

#[test]
fn a_node_that_has_the_images_is_better() {
    let cluster = "
        {kind: Node, metadata: {name: a}, status: {images: [{names: ['app:latest'], sizeBytes: 1048576000}]}}
        {kind: Node, metadata: {name: b}}";
    check_scores("ImageLocality", cluster, "{}", "a=48 b=0");
    let other = "{spec: {containers: [{name: c, image: 'host:5000/app'}]}}";
    check_scores("ImageLocality", cluster, other, "a=0 b=0");
}

#[test]
fn preferred_affinity_and_taints_are_weighed() {
    let cluster = "
        {kind: Node, metadata: {name: a, labels: {disk: ssd}}}
        {kind: Node, metadata: {name: b}, spec: {taints: [{key: k, effect: PreferNoSchedule}]}}";
    let new = "{spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
               [{weight: 5, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}}}";
    check_scores("NodeAffinity", cluster, new, "a=100 b=0");
    check_scores("TaintToleration", cluster, new, "a=100 b=0");
}

#[test]
fn wishes_about_neighbours_go_both_ways() {
    let wish = |kind: &str, app: &str| {
        format!(
            "affinity: {{{kind}: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 10, \
             podAffinityTerm: {{topologyKey: zone, labelSelector: {{matchLabels: {{app: {app}}}}}}}}}]}}}}"
        )
    };
    let cluster = format!(
        "{ZONES}\n{{kind: Pod, metadata: {{name: p, labels: {{app: db}}}}, spec: {{nodeName: c, {}}}}}",
        wish("podAntiAffinity", "web")
    );
    let wants = |kind, app| format!("{{spec: {{{}}}}}", wish(kind, app));
    check_scores("InterPodAffinity", &cluster, &wants("podAffinity", "db"), "a=0 b=0 c=100");
    check_scores("InterPodAffinity", &cluster, &wants("podAntiAffinity", "db"), "a=100 b=100 c=0");
    check_scores(
        "InterPodAffinity",
        &cluster,
        "{metadata: {labels: {app: web}}}",
        "a=100 b=100 c=0",
    );
    check_scores("InterPodAffinity", &cluster, "{}", "a=0 b=0 c=0");
}

#[test]
fn pods_of_a_service_are_spread_by_default() {
    let cluster = "
        {kind: Node, metadata: {name: a, labels: {kubernetes.io/hostname: a}}}
        {kind: Node, metadata: {name: b, labels: {kubernetes.io/hostname: b}}}
        {kind: Service, metadata: {name: web, namespace: default}, spec: {selector: {app: web}}}
        {kind: Pod, metadata: {name: p, labels: {app: web}}, spec: {nodeName: a}}";
    check_scores("PodTopologySpread", cluster, "{metadata: {labels: {app: web}}}", "a=66 b=100");
    check_scores("PodTopologySpread", cluster, "{metadata: {labels: {app: other}}}", "a=0 b=0");
}

#[test]
fn a_zone_without_a_name_is_that_of_nodes_without_a_zone() {
    let pod = |name: &str| {
        format!(
            "{{kind: Pod, metadata: {{name: {name}, labels: {{app: web}}}}, spec: {{nodeName: b}}}}"
        )
    };
    let cluster = format!(
        "{{kind: Node, metadata: {{name: a, labels: \
           {{kubernetes.io/hostname: a, topology.kubernetes.io/zone: ''}}}}}}
        {{kind: Node, metadata: {{name: b, labels: {{kubernetes.io/hostname: b}}}}}}
        {{kind: Service, metadata: {{name: web, namespace: default}}, spec: {{selector: {{app: web}}}}}}
        {}\n{}\n{}",
        pod("p"),
        pod("q"),
        pod("r")
    );
    check_scores("PodTopologySpread", &cluster, "{metadata: {labels: {app: web}}}", "a=66 b=100");
}

#[test]
fn labels_of_the_legacy_policy_must_be_there_or_not() {
    let cluster = "
        {kind: Node, metadata: {name: a, labels: {selectable: 'yes', device: gpu}}}
        {kind: Node, metadata: {name: b, labels: {device: gpu}}}
        {kind: Node, metadata: {name: c, labels: {selectable: 'yes'}}}";
    let terminator = "{metadata: {name: terminator}, spec: {nodeSelector: {device: gpu}}}";
    let with = |presence: bool| {
        let policy = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Policy\", \"predicates\": [\
             {{\"name\": \"PodMatchNodeSelector\"}}, {{\"name\": \"Labels\", \"argument\": \
             {{\"labelsPresence\": {{\"labels\": [\"selectable\"], \"presence\": {presence}}}}}}}]}}"
        );
        let config = crate::Config::from_policy(&policy).expect("a policy");
        let registry = crate::Registry::builtin();
        Profile::new(&config.profiles[0], &registry, &crate::Around::default()).expect("a profile")
    };
    assert_eq!(outcome(&with(true), cluster, terminator), "a");
    assert_eq!(outcome(&with(false), cluster, terminator), "b");
    assert_eq!(
        outcome(
            &with(true),
            "{kind: Node, metadata: {name: b, labels: {device: gpu}}}",
            terminator
        ),
        "0/1 nodes are available: 1 node(s) didn't have the requested labels. preemption: 0/1 \
         nodes are available: 1 Preemption is not helpful for scheduling."
    );
}

#[test]
fn a_pod_that_needs_what_not_all_nodes_can_do_goes_to_one_that_says_it_can() {
    let rule = "{action: RestartAllContainers, exitCodes: {operator: In, values: [7]}}";
    let pod = format!(
        "spec: {{containers: [{{name: a, restartPolicy: Never, restartPolicyRules: [{rule}]}}]}}"
    );
    let old = "{kind: Node, metadata: {name: old}}";
    let new = "{kind: Node, metadata: {name: new}, status: {declaredFeatures: \
               [RestartAllContainersOnContainerExits]}}";
    check(&format!("{old}\n{new}"), &pod, "new");
    check(&format!("{old}\n{new}"), "spec: {}", "old new");
    check(
        old,
        &pod,
        "0/1 nodes are available: 1 node(s) didn't match Pod's required features. no new claims \
         to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for \
         scheduling.",
    );
}
