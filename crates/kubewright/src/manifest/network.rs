//! Who may connect to an operator.

use serde_json::json;

use super::workload::{METRICS_PORT, PROBES_PORT, WEBHOOKS_PORT, selector};
use super::{Manifest, Package, Part};

/// Lets in what has business there: probes and the API server, which come from addresses that no
/// manifest knows, and whoever reads metrics, from namespaces that are labelled `metrics: enabled`.
/// Where the operator itself connects to is left open: it is the author's to know.
pub(super) fn policy(package: &Package) -> Vec<Manifest> {
    if !package.network_policy {
        return Vec::new();
    }
    let port = |port: u16| json!({"port": port, "protocol": "TCP"});
    let mut open = vec![port(PROBES_PORT)];
    open.extend(package.is_called().then(|| port(WEBHOOKS_PORT)));
    let mut ingress = vec![json!({"ports": open})];
    if package.metrics {
        ingress.push(json!({
            "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
            "ports": [port(METRICS_PORT)],
        }));
    }
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": package.names().with("controller-manager"),
            "namespace": package.namespace,
        },
        "spec": {
            "podSelector": {"matchLabels": selector(package)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    });
    vec![Manifest::new(Part::NetworkPolicy, object)]
}
