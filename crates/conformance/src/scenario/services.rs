//! What a server gives to services: addresses and ports, each once.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, refused, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "services":
    a_service_gets_an_address_of_its_own [B4],
    an_address_is_given_once [B4],
    a_service_may_go_without_an_address [B4],
    a_port_of_the_nodes_is_given_once [B4],
    a_balanced_service_may_have_a_port_for_its_health [B4],
    a_service_speaks_the_families_there_are [B4],
    a_service_reports_conditions [B1],
}

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({ "metadata": { "name": name }, "spec": spec });
    if service["spec"]["ports"].is_null() && service["spec"]["type"] != "ExternalName" {
        service["spec"]["ports"] = json!([{ "port": 80 }]);
    }
    service
}

async fn create(cx: &Context, name: &str, spec: Value) -> Result<Value> {
    cx.create(&cx.core("services"), &service(name, spec)).await
}

async fn invalid(cx: &Context, spec: Value, why: &str) -> Result<()> {
    let answer = cx.send(Request::post(cx.core("services"), &service("two", spec))).await?;
    let message = format!("Service \"two\" is invalid: {why}");
    refused(&answer, 422, "Invalid", &message)?;
    Ok(())
}

fn address_path(service: &Value) -> String {
    let address = text(service, "/spec/clusterIP");
    format!("/apis/networking.k8s.io/v1/ipaddresses/{address}")
}

async fn a_service_gets_an_address_of_its_own(cx: Context) -> Result<()> {
    let one = create(&cx, "one", json!({})).await?;
    let address = text(&one, "/spec/clusterIP");
    let spec = json!({
        "clusterIP": address,
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    });
    same("spec", &one["spec"], spec)?;
    let record = cx.get(&address_path(&one)).await?;
    let parent = json!({ "resource": "services", "namespace": cx.namespace, "name": "one" });
    same("parent", &record["spec"]["parentRef"], parent)?;
    // The server itself has the first address of the range.
    let range = cx.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await?;
    let range = range["spec"]["cidrs"][0].as_str().unwrap_or_default().to_owned();
    let kubernetes = cx.get("/api/v1/namespaces/default/services/kubernetes").await?;
    let first = text(&kubernetes, "/spec/clusterIP");
    let network = range.split('/').next().unwrap_or_default();
    ensure!(first.strip_suffix('1') == network.strip_suffix('0'), "{first} in {range}");
    ensure!(address != first, "{address} is given twice");
    expect(&cx.send(Request::delete(cx.core("services/one"))).await?, 200)?;
    let gone = Request::get(address_path(&one));
    cx.endpoint.poll(&gone, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

async fn an_address_is_given_once(cx: Context) -> Result<()> {
    let one = create(&cx, "one", json!({})).await?;
    let address = text(&one, "/spec/clusterIP");
    let why = format!(
        "spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: provided \
         IP is already allocated"
    );
    invalid(&cx, json!({ "clusterIP": address }), &why).await?;
    let patch = json!({ "spec": { "clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77"] } });
    let answer = cx.send(Request::merge_patch(cx.core("services/one"), &patch)).await?;
    let message = "Service \"one\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.0.0.77\"]: \
                   may not change once set";
    refused(&answer, 422, "Invalid", message)?;
    let why = "spec.clusterIPs[0]: Invalid value: \"nonsense\": must be a valid IP address, (e.g. \
               10.9.8.7 or 2001:db8::ffff)";
    invalid(&cx, json!({ "clusterIP": "nonsense" }), why).await?;
    // What is given back can be given again.
    expect(&cx.send(Request::delete(cx.core("services/one"))).await?, 200)?;
    let two = service("two", json!({ "clusterIP": address }));
    let again = Request::post(cx.core("services"), &two);
    let answer = cx.endpoint.poll(&again, PATIENCE, |answer| answer.status == 201).await?;
    same("address", &answer.json()?["spec"]["clusterIP"], json!(address))
}

async fn a_service_may_go_without_an_address(cx: Context) -> Result<()> {
    let headless = create(&cx, "headless", json!({ "clusterIP": "None" })).await?;
    same("addresses", &headless["spec"]["clusterIPs"], json!(["None"]))?;
    let elsewhere = json!({ "type": "ExternalName", "externalName": "example.com" });
    let elsewhere = create(&cx, "elsewhere", elsewhere).await?;
    let spec = json!({
        "externalName": "example.com", "sessionAffinity": "None", "type": "ExternalName",
    });
    same("spec", &elsewhere["spec"], spec)?;
    // An address comes and goes with the need for it.
    let patch = json!({ "spec": { "type": "ClusterIP", "ports": [{ "port": 80 }] } });
    let path = cx.core("services/elsewhere");
    let inside = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
    cx.get(&address_path(&inside)).await?;
    let patch = json!({ "spec": { "type": "ExternalName" } });
    let outside = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
    same("address", &outside["spec"]["clusterIP"], Value::Null)?;
    same("policy", &outside["spec"]["internalTrafficPolicy"], Value::Null)?;
    let gone = Request::get(address_path(&inside));
    cx.endpoint.poll(&gone, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

async fn a_port_of_the_nodes_is_given_once(cx: Context) -> Result<()> {
    let one = create(&cx, "one", json!({ "type": "NodePort" })).await?;
    let port = one["spec"]["ports"][0]["nodePort"].as_u64().unwrap_or_default();
    ensure!((30000..=32767).contains(&port), "port {port}");
    same("policy", &one["spec"]["externalTrafficPolicy"], json!("Cluster"))?;
    let asking =
        |port: u64| json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": port }] });
    let why = format!(
        "spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated"
    );
    invalid(&cx, asking(port), &why).await?;
    let why = "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. \
               The range of valid ports is 30000-32767";
    invalid(&cx, asking(80), why).await?;
    // One number serves two protocols.
    let both = json!({ "type": "NodePort", "ports": [
        { "name": "a", "port": 53, "protocol": "TCP" },
        { "name": "b", "port": 53, "protocol": "UDP" },
    ] });
    let both = create(&cx, "both", both).await?;
    same(
        "port",
        &both["spec"]["ports"][1]["nodePort"],
        both["spec"]["ports"][0]["nodePort"].clone(),
    )?;
    let plain = json!({ "spec": { "type": "ClusterIP" } });
    let plain = Request::merge_patch(cx.core("services/one"), &plain);
    let plain = expect(&cx.send(plain).await?, 200)?;
    same("port", &plain["spec"]["ports"][0]["nodePort"], Value::Null)?;
    let again = Request::post(cx.core("services"), &service("two", asking(port)));
    cx.endpoint.poll(&again, PATIENCE, |answer| answer.status == 201).await?;
    Ok(())
}

async fn a_balanced_service_may_have_a_port_for_its_health(cx: Context) -> Result<()> {
    let local = json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" });
    let one = create(&cx, "one", local).await?;
    same("ports", &one["spec"]["allocateLoadBalancerNodePorts"], json!(true))?;
    let health = one["spec"]["healthCheckNodePort"].as_u64().unwrap_or_default();
    ensure!((30000..=32767).contains(&health), "port {health}");
    ensure!(one["spec"]["ports"][0]["nodePort"] != health, "{one}");
    let patch = json!({ "spec": { "externalTrafficPolicy": "Cluster" } });
    let path = cx.core("services/one");
    let everywhere = expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    same("port", &everywhere["spec"]["healthCheckNodePort"], Value::Null)?;
    let direct = json!({ "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false });
    let direct = create(&cx, "direct", direct).await?;
    same("port", &direct["spec"]["ports"][0]["nodePort"], Value::Null)
}

async fn a_service_speaks_the_families_there_are(cx: Context) -> Result<()> {
    let both = create(&cx, "both", json!({ "ipFamilyPolicy": "PreferDualStack" })).await?;
    same("families", &both["spec"]["ipFamilies"], json!(["IPv4"]))?;
    same("policy", &both["spec"]["ipFamilyPolicy"], json!("PreferDualStack"))?;
    let why = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
               configured for dual-stack services";
    invalid(&cx, json!({ "ipFamilyPolicy": "RequireDualStack" }), why).await?;
    let why = "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster";
    invalid(&cx, json!({ "ipFamilies": ["IPv6"] }), why).await
}

async fn a_service_reports_conditions(cx: Context) -> Result<()> {
    create(&cx, "one", json!({})).await?;
    // Nobody asks since when.
    let condition = json!({ "type": "Fine", "status": "True" });
    let patch = json!({ "status": { "conditions": [condition] } });
    let path = cx.core("services/one/status");
    let reported = expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    let condition = json!({
        "type": "Fine", "status": "True", "lastTransitionTime": null, "reason": "", "message": "",
    });
    same("condition", &reported["status"]["conditions"], json!([condition]))?;
    // And it goes on as before.
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    expect(&cx.send(Request::merge_patch(cx.core("services/one"), &patch)).await?, 200)?;
    let balanced = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } } });
    let path = cx.core("services/one/status");
    let answer = cx.send(Request::merge_patch(path, &balanced)).await?;
    let message = "Service \"one\" is invalid: status.loadBalancer.ingress: Forbidden: may only be \
                   used when `spec.type` is 'LoadBalancer'";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}
