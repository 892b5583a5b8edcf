//! What a server creates itself, and keeps.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "own_objects":
    the_system_s_namespaces_are_there [B10],
    the_system_s_priorities_are_there [B10],
    flow_control_starts_with_upstream_s_objects [B10],
    the_fixed_part_of_flow_control_cannot_change [B10],
    answers_name_the_first_flow_schema_that_matches [W12],
    a_flow_schema_says_whether_its_level_exists [B10 W12],
    each_version_has_an_api_service [B10],
    the_service_kubernetes_leads_to_the_server [B10],
    the_use_of_old_tokens_is_tracked_since_a_day [B10],
    the_server_holds_a_lease [B10],
}

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

async fn the_system_s_namespaces_are_there(cx: Context) -> Result<()> {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let namespace = cx.get(&format!("/api/v1/namespaces/{name}")).await?;
        same(
            "labels",
            &namespace["metadata"]["labels"]["kubernetes.io/metadata.name"],
            json!(name),
        )?;
        same("finalizers", &namespace["spec"]["finalizers"], json!(["kubernetes"]))?;
        same("phase", &namespace["status"]["phase"], json!("Active"))?;
    }
    Ok(())
}

async fn the_system_s_priorities_are_there(cx: Context) -> Result<()> {
    let classes = [
        ("system-cluster-critical", 2_000_000_000_i64),
        ("system-node-critical", 2_000_001_000_i64),
    ];
    for (name, value) in classes {
        let class = cx.get(&format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).await?;
        same("value", &class["value"], json!(value))?;
        same("preemption", &class["preemptionPolicy"], json!("PreemptLowerPriority"))?;
    }
    Ok(())
}

async fn flow_control_starts_with_upstream_s_objects(cx: Context) -> Result<()> {
    let levels = [
        ("catch-all", 5),
        ("global-default", 20),
        ("leader-election", 10),
        ("node-high", 40),
        ("system", 30),
        ("workload-high", 40),
        ("workload-low", 100),
    ];
    for (name, shares) in levels {
        let path = format!("{FLOW_CONTROL}/prioritylevelconfigurations/{name}");
        let level = cx.get(&path).await?;
        same("shares", &level["spec"]["limited"]["nominalConcurrencyShares"], json!(shares))?;
    }
    let schemas = [
        ("exempt", "exempt", 1),
        ("probes", "exempt", 2),
        ("system-leader-election", "leader-election", 100),
        ("system-node-high", "node-high", 400),
        ("system-nodes", "system", 500),
        ("kube-controller-manager", "workload-high", 800),
        ("kube-scheduler", "workload-high", 800),
        ("kube-system-service-accounts", "workload-high", 900),
        ("service-accounts", "workload-low", 9000),
        ("global-default", "global-default", 9900),
        ("catch-all", "catch-all", 10_000),
    ];
    for (name, level, precedence) in schemas {
        let schema = cx.get(&format!("{FLOW_CONTROL}/flowschemas/{name}")).await?;
        same("level", &schema["spec"]["priorityLevelConfiguration"]["name"], json!(level))?;
        same("precedence", &schema["spec"]["matchingPrecedence"], json!(precedence))?;
        let annotations = &schema["metadata"]["annotations"];
        same("annotation", &annotations["apf.kubernetes.io/autoupdate-spec"], json!("true"))?;
    }
    Ok(())
}

async fn the_fixed_part_of_flow_control_cannot_change(cx: Context) -> Result<()> {
    let path = format!("{FLOW_CONTROL}/prioritylevelconfigurations/catch-all");
    let patch = json!({ "spec": { "limited": { "nominalConcurrencyShares": 6 } } });
    let answer = cx.send(Request::merge_patch(format!("{path}?dryRun=All"), &patch)).await?;
    let message = "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io \"catch-all\" is \
        invalid: spec: Invalid value: {\"Type\":\"Limited\",\"Limited\":{\
        \"NominalConcurrencyShares\":6,\"LimitResponse\":{\"Type\":\"Reject\",\"Queuing\":null},\
        \"LendablePercent\":0,\"BorrowingLimitPercent\":null},\"Exempt\":null}: spec of \
        'catch-all' must equal the fixed value";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

/// A schema for the requests of a user that is called as our namespace.
fn flow_schema(cx: &Context, level: &str) -> Value {
    json!({
        "metadata": { "name": cx.namespace },
        "spec": {
            "matchingPrecedence": 5000,
            "priorityLevelConfiguration": { "name": level },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": cx.namespace } }],
                "resourceRules": [{
                    "verbs": ["list"],
                    "apiGroups": [""],
                    "resources": ["configmaps"],
                    "namespaces": [cx.namespace],
                }],
            }],
        },
    })
}

async fn answers_name_the_first_flow_schema_that_matches(cx: Context) -> Result<()> {
    let schemas = format!("{FLOW_CONTROL}/flowschemas");
    let uid = async |kind: &str, name: &str| -> Result<Value> {
        Ok(cx.get(&format!("{FLOW_CONTROL}/{kind}/{name}")).await?["metadata"]["uid"].clone())
    };
    let named = |answer: &Answer| {
        let names = ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"];
        json!(names.map(|name| answer.header(name)))
    };
    let default = json!([
        uid("flowschemas", "global-default").await?,
        uid("prioritylevelconfigurations", "global-default").await?,
    ]);
    let request = |resource: &str| Request::get(cx.core(resource)).impersonate(&cx.namespace);
    let answer = cx.send(request("configmaps")).await?;
    // They are named to those who may not, too.
    expect(&answer, 403)?;
    same("flow", &named(&answer), default.clone())?;

    let created = cx.create(&schemas, &flow_schema(&cx, "workload-low")).await?;
    let ours = json!([
        created["metadata"]["uid"],
        uid("prioritylevelconfigurations", "workload-low").await?,
    ]);
    let list = request("configmaps");
    let known = cx.endpoint.poll(&list, PATIENCE, |answer| named(answer) == ours).await;
    let other = cx.send(request("secrets")).await;
    expect(&cx.send(Request::delete(format!("{schemas}/{}", cx.namespace))).await?, 200)?;
    known?;
    same("flow of another resource", &named(&other?), default)
}

async fn a_flow_schema_says_whether_its_level_exists(cx: Context) -> Result<()> {
    let schemas = format!("{FLOW_CONTROL}/flowschemas");
    let path = format!("{schemas}/{}", cx.namespace);
    cx.create(&schemas, &flow_schema(&cx, "nowhere")).await?;
    let becomes = async |expected: Value| -> Result<Value> {
        let condition = |answer: &Answer| {
            let schema = answer.json().unwrap_or_default();
            let mut condition = schema["status"]["conditions"][0].clone();
            condition.as_object_mut().map(|fields| fields.remove("lastTransitionTime"));
            condition
        };
        let done = |answer: &Answer| condition(answer) == expected;
        cx.endpoint.poll(&Request::get(path.as_str()), PATIENCE, done).await?.json()
    };
    let outcome = async {
        let message = "This FlowSchema references the PriorityLevelConfiguration object named \
                       \"nowhere\" but there is no such object";
        let schema = becomes(json!({
            "type": "Dangling", "status": "True", "reason": "NotFound", "message": message,
        }));
        let owner = schema.await?["metadata"]["managedFields"][0].clone();
        let manager = "api-priority-and-fairness-config-consumer-v1";
        same("manager", &owner["manager"], json!(manager))?;
        same("operation", &owner["operation"], json!("Apply"))?;

        let patch = json!({ "spec": { "priorityLevelConfiguration": { "name": "system" } } });
        expect(&cx.send(Request::merge_patch(path.as_str(), &patch)).await?, 200)?;
        let message = "This FlowSchema references the PriorityLevelConfiguration object named \
                       \"system\" and it exists";
        becomes(json!({
            "type": "Dangling", "status": "False", "reason": "Found", "message": message,
        }))
        .await
    };
    let outcome = outcome.await;
    expect(&cx.send(Request::delete(path.as_str())).await?, 200)?;
    outcome.map(drop)
}

async fn each_version_has_an_api_service(cx: Context) -> Result<()> {
    let groups = cx.get("/apis").await?;
    let groups = groups["groups"].as_array().cloned().unwrap_or_default();
    ensure!(!groups.is_empty(), "no groups");
    let served = groups.iter().filter(|group| {
        let name = text(group, "/name");
        name.ends_with(".k8s.io") || !name.contains('.')
    });
    let versions =
        served.flat_map(|group| group["versions"].as_array().cloned().unwrap_or_default());
    let names = versions.filter_map(|version| {
        let (group, version) = text(&version, "/groupVersion").split_once('/')?;
        // The group of APIServices has none itself.
        (group != "apiregistration.k8s.io").then(|| format!("{version}.{group}"))
    });
    for name in names.chain(["v1.".to_owned()]) {
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
        let service = cx.get(&path).await?;
        same("service", &service["spec"]["service"], Value::Null)?;
        let condition = &service["status"]["conditions"][0];
        same("condition", &condition["type"], json!("Available"))?;
        same("reason", &condition["reason"], json!("Local"))?;
        same("status", &condition["status"], json!("True"))?;
    }
    Ok(())
}

async fn the_service_kubernetes_leads_to_the_server(cx: Context) -> Result<()> {
    let service = cx.get("/api/v1/namespaces/default/services/kubernetes").await?;
    let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
    same("labels", &service["metadata"]["labels"], labels)?;
    let port = &service["spec"]["ports"][0];
    same("port", &port["port"], json!(443))?;
    let endpoints = cx.get("/api/v1/namespaces/default/endpoints/kubernetes").await?;
    same("target", &endpoints["subsets"][0]["ports"][0]["port"], port["targetPort"].clone())?;
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let slice = cx.get(path).await?;
    same("target", &slice["ports"][0]["port"], port["targetPort"].clone())?;
    let address = endpoints["subsets"][0]["addresses"][0]["ip"].clone();
    same("address", &slice["endpoints"][0]["addresses"][0], address)?;
    let range = cx.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await?;
    same("range", &range["status"]["conditions"][0]["type"], json!("Ready"))?;
    let answer = cx
        .send(Request::get(format!(
            "/apis/networking.k8s.io/v1/ipaddresses/{}",
            text(&service, "/spec/clusterIP")
        )))
        .await?;
    let address = expect(&answer, 200)?;
    same("parent", &address["spec"]["parentRef"]["name"], json!("kubernetes"))
}

async fn the_use_of_old_tokens_is_tracked_since_a_day(cx: Context) -> Result<()> {
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    let name = "kube-apiserver-legacy-service-account-token-tracking";
    let tracking = cx.get(&format!("{maps}/{name}")).await?;
    let since = text(&tracking, "/data/since");
    ensure!(since.len() == "2006-01-02".len(), "since {since:?}");
    Ok(())
}

async fn the_server_holds_a_lease(cx: Context) -> Result<()> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let query = "labelSelector=apiserver.kubernetes.io/identity=kube-apiserver";
    let leases = cx.get(&format!("{path}?{query}")).await?;
    let lease = &leases["items"][0];
    let name = text(lease, "/metadata/name");
    ensure!(name.starts_with("apiserver-"), "lease {name:?}");
    let holder = text(lease, "/spec/holderIdentity");
    ensure!(holder.starts_with(&format!("{name}_")), "holder {holder:?}");
    same("duration", &lease["spec"]["leaseDurationSeconds"], json!(3600))
}
