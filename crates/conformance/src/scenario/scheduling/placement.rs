//! Where pods go that have a choice: what nodes and other pods must be like, and had better be like.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{create, goes_to, labelled, make, node, pinned, placed, pod, remove, told_of, with};
use crate::scenario::{Context, scenarios};

scenarios! { "scheduling":
    a_pod_goes_where_its_affinity_leads [K5],
    a_pod_prefers_what_weighs_most [K5],
    a_pod_goes_where_its_company_is [K5],
    pods_that_bear_no_others_get_a_node_each [K5],
    a_pod_keeps_away_from_one_that_bears_it_not [K5],
    a_pod_prefers_the_company_it_likes [K5],
    pods_are_spread_over_zones [K5],
    a_spread_that_need_not_be_is_preferred [K5],
    pods_of_a_service_are_spread [K5],
    a_pod_goes_where_its_image_is [K5],
    a_pod_bears_some_taints [K5],
    a_port_of_a_node_is_had_by_one_pod [K5],
    what_runs_first_needs_room_too [K5],
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn affinity(pod: Value, affinity: Value) -> Value {
    with(pod, "/spec", json!({ "affinity": affinity }))
}

/// A term about pods of an app.
fn about(app: &str, key: &str) -> Value {
    json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } })
}

async fn a_pod_goes_where_its_affinity_leads(cx: Context) -> Result<()> {
    let sized = |name: &str, size: &str| labelled(node(&cx, name, "4"), json!({ "size": size }));
    make(&cx, &[sized("red", "1"), sized("green", "5"), sized("blue", "9")]).await?;
    let expressions = |list: Value| json!({ "matchExpressions": list });
    // One term is enough, but all of it must be so.
    let either = [
        expressions(json!([
            { "key": "name", "operator": "In", "values": ["green"] },
            { "key": "size", "operator": "Lt", "values": ["3"] },
        ])),
        expressions(json!([{ "key": "name", "operator": "NotIn", "values": ["red", "green"] }])),
    ];
    let between = [expressions(json!([
        { "key": "size", "operator": "Exists" },
        { "key": "colour", "operator": "DoesNotExist" },
        { "key": "size", "operator": "Gt", "values": ["4"] },
        { "key": "size", "operator": "Lt", "values": ["9"] },
    ]))];
    let red = super::full_name(&cx, "red");
    let named = [json!({ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": [red] },
    ] })];
    for (name, terms, node) in
        [("either", &either[..], "blue"), ("between", &between, "green"), ("named", &named, "red")]
    {
        let required = json!({ "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": terms } } });
        goes_to(&cx, affinity(pod(&cx, name, "1"), required), node).await?;
    }
    Ok(())
}

async fn a_pod_prefers_what_weighs_most(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "red", "4"), node(&cx, "green", "2"), node(&cx, "blue", "4")]).await?;
    let term = |weight: u32, name: &str| {
        let is_named = json!({ "key": "name", "operator": "In", "values": [name] });
        json!({ "weight": weight, "preference": { "matchExpressions": [is_named] } })
    };
    let preferred = json!({ "nodeAffinity": { PREFERRED: [term(10, "red"), term(90, "green")] } });
    goes_to(&cx, affinity(pod(&cx, "light", "1"), preferred.clone()), "green").await?;
    // What will not do is not preferred.
    goes_to(&cx, affinity(pod(&cx, "heavy", "3"), preferred), "red").await?;
    Ok(())
}

async fn a_pod_goes_where_its_company_is(cx: Context) -> Result<()> {
    let zoned =
        |name: &str, zone: &str, cpu: &str| labelled(node(&cx, name, cpu), json!({ "zone": zone }));
    make(&cx, &[zoned("a1", "a", "2"), zoned("a2", "a", "3"), zoned("b1", "b", "32")]).await?;
    let team = |name: &str, app: &str, cpu: &str| {
        let pod = labelled(pod(&cx, name, cpu), json!({ "app": app }));
        affinity(pod, json!({ "podAffinity": { REQUIRED: [about("team", "zone")] } }))
    };
    // Nobody is there who does not belong to it.
    create(&cx, pinned(team("stranger", "none", "1"), "a1")).await?;
    told_of(&cx, "stranger", "node(s) didn't match pod affinity rules").await?;
    // The first of a company need not wait for itself.
    goes_to(&cx, pinned(team("first", "team", "1"), "a1"), "a1").await?;
    goes_to(&cx, team("second", "team", "3"), "a2").await?;
    ensure!(placed(&cx, "stranger").await? == "a1");
    Ok(())
}

async fn pods_that_bear_no_others_get_a_node_each(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "a", "4"), node(&cx, "b", "4")]).await?;
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let shy = labelled(pod(&cx, name, "1"), json!({ "app": "shy" }));
        let away = json!({ "podAntiAffinity": { REQUIRED: [about("shy", "name")] } });
        create(&cx, affinity(shy, away)).await?;
        nodes.push(placed(&cx, name).await?);
    }
    nodes.sort();
    ensure!(nodes == ["a", "b"], "{nodes:?}");
    Ok(())
}

async fn a_pod_keeps_away_from_one_that_bears_it_not(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "2")]).await?;
    let away = json!({ "podAntiAffinity": { REQUIRED: [about("crowd", "name")] } });
    let hermit = affinity(pod(&cx, "hermit", "1"), away);
    goes_to(&cx, pinned(hermit, "large"), "large").await?;
    // It asks for nothing itself.
    goes_to(&cx, pod(&cx, "crowd", "1"), "small").await?;
    create(&cx, labelled(pod(&cx, "more", "2"), json!({ "app": "crowd" }))).await?;
    told_of(&cx, "more", "node(s) didn't satisfy existing pods anti-affinity rules").await?;
    Ok(())
}

async fn a_pod_prefers_the_company_it_likes(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "8")]).await?;
    goes_to(&cx, pinned(pod(&cx, "crowd", "1"), "small"), "small").await?;
    let likes = |kind: &str| {
        let term = json!({ "weight": 100, "podAffinityTerm": about("crowd", "name") });
        json!({ kind: { PREFERRED: [term] } })
    };
    goes_to(&cx, pod(&cx, "neither", "1"), "large").await?;
    goes_to(&cx, affinity(pod(&cx, "friend", "1"), likes("podAffinity")), "small").await?;
    goes_to(&cx, pinned(pod(&cx, "crowd-2", "1"), "large"), "large").await?;
    remove(&cx, "crowd").await?;
    let moved = labelled(pod(&cx, "crowd-3", "1"), json!({ "app": "crowd" }));
    goes_to(&cx, pinned(moved, "large"), "large").await?;
    let shy = affinity(pod(&cx, "shy", "1"), likes("podAntiAffinity"));
    goes_to(&cx, shy, "small").await?;
    Ok(())
}

/// A pod of many, which are spread by a constraint over all of them.
fn one_of_many(cx: &Context, name: &str, constraint: Value) -> Value {
    let selector = json!({ "labelSelector": { "matchLabels": { "app": "many" } } });
    let constraints = json!({ "topologySpreadConstraints": [with(constraint, "", selector)] });
    with(labelled(pod(cx, name, "100m"), json!({ "app": "many" })), "/spec", constraints)
}

async fn pods_are_spread_over_zones(cx: Context) -> Result<()> {
    let zoned =
        |name: &str, zone: &str, cpu: &str| labelled(node(&cx, name, cpu), json!({ "zone": zone }));
    let mut closed = zoned("c1", "c", "32");
    closed["spec"]["taints"][0]["value"] = json!("other");
    let nodes = [zoned("a1", "a", "32"), zoned("a2", "a", "32"), zoned("b1", "b", "2"), closed];
    make(&cx, &nodes).await?;
    let over_zones =
        json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
    let open = with(over_zones.clone(), "", json!({ "nodeTaintsPolicy": "Honor" }));
    let mut in_b = 0;
    for name in ["one", "two", "three", "four"] {
        create(&cx, one_of_many(&cx, name, open.clone())).await?;
        in_b += u32::from(placed(&cx, name).await? == "b1");
    }
    ensure!(in_b == 2, "{in_b} of four are in zone b");
    // A zone that it cannot go to counts, unless it says otherwise.
    create(&cx, one_of_many(&cx, "five", over_zones)).await?;
    told_of(&cx, "five", "node(s) didn't match pod topology spread constraints").await?;
    Ok(())
}

async fn a_spread_that_need_not_be_is_preferred(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "2")]).await?;
    let over_nodes =
        json!({ "maxSkew": 1, "topologyKey": "name", "whenUnsatisfiable": "ScheduleAnyway" });
    let many = |name: &str| one_of_many(&cx, name, over_nodes.clone());
    goes_to(&cx, pinned(many("one"), "large"), "large").await?;
    goes_to(&cx, pinned(many("two"), "large"), "large").await?;
    goes_to(&cx, many("three"), "small").await?;
    let mut heavy = many("four");
    heavy["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("3");
    goes_to(&cx, heavy, "large").await?;
    Ok(())
}

async fn pods_of_a_service_are_spread(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "large", "64"), node(&cx, "small", "2")]).await?;
    for name in ["one", "two"] {
        goes_to(&cx, pod(&cx, name, "100m"), "large").await?;
    }
    let service = json!({
        "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
    });
    cx.create(&cx.core("services"), &service).await?;
    for (name, node) in [("web-1", "large"), ("web-2", "small")] {
        let web = labelled(pod(&cx, name, "100m"), json!({ "app": "web" }));
        goes_to(&cx, web, node).await?;
    }
    Ok(())
}

async fn a_pod_goes_where_its_image_is(cx: Context) -> Result<()> {
    let mut stocked = node(&cx, "stocked", "4");
    // Large enough to count however many nodes there are without it.
    let size: u64 = 1 << 40;
    stocked["status"]["images"] =
        json!([{ "names": ["example.com/large:latest"], "sizeBytes": size }]);
    make(&cx, &[node(&cx, "empty", "4"), stocked]).await?;
    for name in ["one", "two"] {
        let mut large = pod(&cx, name, "100m");
        large["spec"]["containers"][0]["image"] = json!("example.com/large");
        goes_to(&cx, large, "stocked").await?;
    }
    Ok(())
}

async fn a_pod_bears_some_taints(cx: Context) -> Result<()> {
    let tainted = |name: &str, effect: &str| {
        let mut node = node(&cx, name, "4");
        let taint = json!({ "key": "example.com/mood", "value": name, "effect": effect });
        if let Some(taints) = node["spec"]["taints"].as_array_mut() {
            taints.push(taint);
        }
        node
    };
    let off = with(node(&cx, "off", "4"), "/spec", json!({ "unschedulable": true }));
    make(
        &cx,
        &[
            node(&cx, "open", "4"),
            tainted("soft", "PreferNoSchedule"),
            tainted("hard", "NoSchedule"),
            tainted("evil", "NoExecute"),
            off,
        ],
    )
    .await?;
    goes_to(&cx, pod(&cx, "plain", "3"), "open").await?;
    goes_to(&cx, pod(&cx, "late", "3"), "soft").await?;
    create(&cx, pod(&cx, "last", "3")).await?;
    told_of(&cx, "last", "2 Insufficient cpu").await?;
    let bearing = |name: &str, toleration: Value| {
        let mut pod = pod(&cx, name, "1");
        if let Some(tolerations) = pod["spec"]["tolerations"].as_array_mut() {
            tolerations.push(toleration);
        }
        pod
    };
    let mood = |value: &str| json!({ "key": "example.com/mood", "value": value });
    goes_to(&cx, pinned(bearing("equal", mood("hard")), "hard"), "hard").await?;
    goes_to(&cx, pinned(bearing("any", json!({ "operator": "Exists" })), "evil"), "evil").await?;
    let cordoned = json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" });
    goes_to(&cx, pinned(bearing("stubborn", cordoned), "off"), "off").await?;
    create(&cx, pinned(bearing("other", mood("soft")), "hard")).await?;
    told_of(&cx, "other", "node(s) had untolerated taint(s)").await?;
    Ok(())
}

async fn a_port_of_a_node_is_had_by_one_pod(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "a", "4"), node(&cx, "b", "4")]).await?;
    let listening = |name: &str, port: Value| {
        let ports = json!({ "ports": [with(json!({ "containerPort": 80 }), "", port)] });
        with(pod(&cx, name, "100m"), "/spec/containers/0", ports)
    };
    create(&cx, listening("one", json!({ "hostPort": 8080 }))).await?;
    create(&cx, listening("two", json!({ "hostPort": 8080 }))).await?;
    let (one, two) = (placed(&cx, "one").await?, placed(&cx, "two").await?);
    ensure!(one != two, "both are on {one}");
    create(&cx, listening("three", json!({ "hostPort": 8080 }))).await?;
    told_of(&cx, "three", "node(s) didn't have free ports for the requested pod ports").await?;
    // Another protocol is another port, and so is another address, but for that of all.
    let udp = listening("udp", json!({ "hostPort": 8080, "protocol": "UDP" }));
    goes_to(&cx, pinned(udp, "a"), "a").await?;
    for (name, address) in [("here", "127.0.0.1"), ("there", "127.0.0.2")] {
        let at = listening(name, json!({ "hostPort": 9090, "hostIP": address }));
        goes_to(&cx, pinned(at, "a"), "a").await?;
    }
    goes_to(&cx, listening("everywhere", json!({ "hostPort": 9090 })), "b").await?;
    remove(&cx, "one").await?;
    ensure!(placed(&cx, "three").await? == one);
    Ok(())
}

async fn what_runs_first_needs_room_too(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "4")]).await?;
    let first = |name: &str, cpu: &str, restart: Value| {
        let container = json!({
            "name": "first", "image": "example.com/nobody-runs-it",
            "resources": { "requests": { "cpu": cpu } },
        });
        let init = json!({ "initContainers": [with(container, "", restart)] });
        with(pod(&cx, name, "1"), "/spec", init)
    };
    // At most three at a time, and then four for good.
    goes_to(&cx, first("stage", "3", json!({})), "only").await?;
    create(&cx, pod(&cx, "waits", "1500m")).await?;
    told_of(&cx, "waits", "1 Insufficient cpu").await?;
    remove(&cx, "stage").await?;
    ensure!(placed(&cx, "waits").await? == "only");
    create(&cx, first("beside", "2", json!({ "restartPolicy": "Always" }))).await?;
    told_of(&cx, "beside", "1 Insufficient cpu").await?;
    goes_to(&cx, first("after", "2", json!({})), "only").await?;
    Ok(())
}
