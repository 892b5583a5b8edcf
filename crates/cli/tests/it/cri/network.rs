//! What pods reach, from inside: Services by name and address, each other, and the API server.

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
