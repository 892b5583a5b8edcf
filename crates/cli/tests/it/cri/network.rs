//! What pods reach, from inside: Services by name and address, each other, and the API server.

use std::process::Command;

use serde_json::Value;

use super::Site;

/// Asks the API server who asks, by what a pod is given.
pub(super) const ASK_SERVER: &str = "kubectl auth whoami";
pub(super) const ANSWER: &str = "system:serviceaccount:default:default";

/// A pod from which things are asked.
pub(super) fn asks(site: &Site) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: asks}}, spec: {{
           terminationGracePeriodSeconds: 0,
           volumes: [{{name: kubectl, hostPath: {{path: '{}', type: File}}}}],
           containers: [{{name: c, image: 'busybox:1', command: [sleep, '100000'],
             volumeMounts: [{{name: kubectl, mountPath: /bin/kubectl}}]}}]}}}}",
        site.kubectl.display()
    )
}

#[test]
fn services_pods_and_the_api_server_are_found_from_inside_pods() {
    let Some(site) = Site::new() else { return };
    site.apply(
        r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: peers}
  spec: {clusterIP: None, selector: {app: peers}, ports: [{name: http, port: 80}]}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: peer}
  spec:
    serviceName: peers
    replicas: 2
    selector: {matchLabels: {app: peers}}
    template:
      metadata: {labels: {app: peers}}
      spec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: "nginxdemos/hello:latest", ports: [{containerPort: 80}]}]
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {selector: {app: peers}, ports: [{port: 8000, targetPort: 80}]}
"#,
    );
    site.apply(&asks(&site));
    site.kubectl(&["rollout", "status", "statefulset/peer", "--timeout=120s"]);
    site.until_ready("asks");

    let service = site.json(&["get", "service", "web"]);
    let address = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    for host in ["web", "web.default", "web.default.svc.cluster.local", address] {
        // The names are known a moment after the pods are ready.
        site.until_says("asks", &format!("wget -q -O - http://{host}:8000/"), "Server name: peer-");
    }
    for peer in ["peer-0", "peer-1"] {
        let ask = format!("wget -q -O - http://{peer}.peers/");
        site.until_says("asks", &ask, &format!("Server name: {peer}"));
    }
    let pods = site.json(&["get", "pods", "--selector", "app=peers"]);
    for pod in pods["items"].as_array().expect("a list") {
        let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
        site.until_says("asks", "nslookup peers.default.svc.cluster.local", ip);
    }
    site.until_says("asks", ASK_SERVER, ANSWER);
}

/// The node has an address that is another machine to pods, and not they themselves: node ports are
/// there, ports of the node at one address are not those at another, and what runs on the node's own
/// network stands behind Services.
#[test]
fn a_node_is_reached_from_inside_pods() {
    let Some(site) = Site::new() else { return };
    let nodes = site.json(&["get", "nodes"]);
    let addresses = nodes["items"][0]["status"]["addresses"].as_array().cloned();
    let addresses = addresses.unwrap_or_default();
    let internal = addresses.iter().find(|it| it["type"] == "InternalIP");
    let node = internal.and_then(|it| it["address"].as_str()).expect("an address").to_owned();
    let web = |name: &str, more: &str, port: &str| {
        format!(
            "- apiVersion: v1
  kind: Pod
  metadata: {{name: {name}, labels: {{app: {name}}}}}
  spec:
    terminationGracePeriodSeconds: 0
    {more}
    containers: [{{name: c, image: 'nginxdemos/hello:latest', ports: [{port}]}}]
"
        )
    };
    let at = |address: &str| format!("{{containerPort: 80, hostPort: 8123, hostIP: {address}}}");
    let pods = [
        web("loopback", "", &at("127.0.0.1")),
        web("outside", "", &at(&node)),
        web("native", "hostNetwork: true", "{containerPort: 80}"),
    ];
    site.apply(&format!("apiVersion: v1\nkind: List\nitems:\n{}", pods.concat()));
    for pod in ["loopback", "outside", "native"] {
        site.until_ready(pod);
    }
    site.apply(&asks(&site));
    site.until_ready("asks");
    site.kubectl(&["expose", "pod", "outside", "--type=NodePort", "--port=80"]);
    site.kubectl(&["expose", "pod", "native", "--port=80"]);

    let native = site.json(&["get", "pod", "native"]);
    assert_eq!(native["status"]["podIP"], Value::from(node.as_str()));
    assert_eq!(native["status"]["hostIP"], Value::from(node.as_str()));
    let service = site.json(&["get", "service", "outside"]);
    let port = &service["spec"]["ports"][0]["nodePort"];
    for (place, expected) in [
        (format!("{node}:{port}"), "Server name: outside"),
        (format!("{node}:8123"), "Server name: outside"),
        ("native".to_owned(), "Server name: "),
    ] {
        site.until_says("asks", &format!("wget -q -O - http://{place}/"), expected);
    }
    // From the machine itself node ports are where they always were.
    let mut answers = Vec::new();
    for place in [format!("127.0.0.1:{port}"), "127.0.0.1:8123".to_owned()] {
        let mut ask = Command::new("busybox");
        ask.args(["wget", "-q", "-O", "-", &format!("http://{place}/")]);
        answers.push(super::text(&ask.output().expect("it runs").stdout));
    }
    assert!(answers[0].contains("Server name: outside"), "{answers:?}");
    assert!(answers[1].contains("Server name: loopback"), "{answers:?}");
}
