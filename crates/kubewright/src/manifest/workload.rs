//! The namespace of an operator, the Deployment that runs it, and the Service in front of its
//! metrics.

use serde_json::{Value, json};

use super::{Certificates, Manifest, Package, Part, Watched, certificates};
use crate::coordination::Coordination;

pub(super) const PROBES_PORT: u16 = 8081;
pub(super) const METRICS_PORT: u16 = 8443;
pub(super) const WEBHOOKS_PORT: u16 = 9443;

/// So that a process which was told how long it may take ends by itself.
const EXIT_SECONDS: u64 = 10;

/// The namespace, unless it is one that every cluster has: whoever takes the operator away with its
/// manifests must not take that away.
pub(super) fn namespace(package: &Package) -> Vec<Manifest> {
    let name = &package.namespace;
    if name == "default" || name.starts_with("kube-") {
        return Vec::new();
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"control-plane": "controller-manager"}},
    });
    vec![Manifest::new(Part::Namespace, object)]
}

pub(super) fn metrics_service(package: &Package) -> Vec<Manifest> {
    if !package.metrics {
        return Vec::new();
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": package.names().metrics_service(),
            "namespace": package.namespace,
            "labels": {"control-plane": "controller-manager"},
        },
        "spec": {
            "selector": selector(package),
            "ports": [{
                "name": "https",
                "port": METRICS_PORT,
                "protocol": "TCP",
                "targetPort": METRICS_PORT,
            }],
        },
    });
    vec![Manifest::new(Part::Metrics, object)]
}

/// What the operator's pods are chosen by.
pub(super) fn selector(package: &Package) -> Value {
    json!({"control-plane": "controller-manager", "app.kubernetes.io/name": package.name})
}

pub(super) fn deployment(package: &Package) -> Vec<Manifest> {
    let mut pod = json!({
        "serviceAccountName": package.names().service_account(),
        "terminationGracePeriodSeconds":
            package.graceful_shutdown.as_secs_f64().ceil() as u64 + EXIT_SECONDS,
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(package)],
    });
    let volumes = mounts(package).iter().map(certificates::Mount::volume).collect::<Vec<_>>();
    if !volumes.is_empty() {
        pod["volumes"] = json!(volumes);
    }
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": package.names().deployment(),
            "namespace": package.namespace,
            "labels": {"control-plane": "controller-manager"},
        },
        "spec": {
            "replicas": package.replicas,
            "selector": {"matchLabels": selector(package)},
            "template": {
                "metadata": {
                    "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
                    "labels": selector(package),
                },
                "spec": pod,
            },
        },
    });
    vec![Manifest::new(Part::Manager, object)]
}

fn container(package: &Package) -> Value {
    let probe = |path: &str, delay: u32, period: u32| {
        json!({
            "httpGet": {"path": path, "port": PROBES_PORT},
            "initialDelaySeconds": delay,
            "periodSeconds": period,
        })
    };
    let port =
        |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
    let mut ports = vec![port("health", PROBES_PORT)];
    ports.extend(package.metrics.then(|| port("metrics", METRICS_PORT)));
    ports.extend(package.is_called().then(|| port("webhook-server", WEBHOOKS_PORT)));
    let mut container = json!({
        "name": "manager",
        "image": package.image,
        "args": arguments(package),
        "ports": ports,
        "securityContext": {
            "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        },
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "resources": {
            "limits": {"cpu": "500m", "memory": "128Mi"},
            "requests": {"cpu": "10m", "memory": "64Mi"},
        },
    });
    if !package.command.is_empty() {
        container["command"] = json!(package.command);
    }
    if package.watched == Watched::Home {
        container["env"] = json!([{
            "name": "WATCH_NAMESPACE",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        }]);
    }
    let mounts = mounts(package);
    if !mounts.is_empty() {
        container["volumeMounts"] = mounts.iter().map(certificates::Mount::volume_mount).collect();
    }
    container
}

fn arguments(package: &Package) -> Vec<String> {
    let mut arguments = vec!["run".to_owned()];
    let metrics = if package.metrics { format!(":{METRICS_PORT}") } else { "0".to_owned() };
    arguments.push(format!("--metrics-bind-address={metrics}"));
    match package.coordination {
        Coordination::Leader => arguments.push("--leader-elect".to_owned()),
        Coordination::Shards => arguments.push("--sharded".to_owned()),
        Coordination::None => {}
    }
    arguments.push(format!("--health-probe-bind-address=:{PROBES_PORT}"));
    // Its pod is given little more, whatever a file or a variable say.
    let graceful_shutdown = package.graceful_shutdown.as_secs_f64();
    arguments.push(format!("--graceful-shutdown-timeout={graceful_shutdown}s"));
    if let Watched::Namespaces(namespaces) = &package.watched {
        arguments.push(format!("--namespace={}", namespaces.join(",")));
    }
    arguments.extend(mounts(package).iter().map(certificates::Mount::argument));
    arguments.extend_from_slice(&package.arguments);
    arguments
}

/// Where certificates that others make come from; those of its own the operator reads itself.
fn mounts(package: &Package) -> Vec<certificates::Mount> {
    match package.certificates {
        Certificates::SelfMade => Vec::new(),
        Certificates::CertManager => certificates::mounts(package),
    }
}
