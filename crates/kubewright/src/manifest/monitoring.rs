//! What watches an operator: a ServiceMonitor for Prometheus, and dashboards for Grafana.

use serde_json::{Value, json};

use super::workload::selector;
use super::{Certificates, Manifest, Package, Part};

/// How Prometheus' operator is told to read the metrics. Whoever reads them needs the role
/// `…-metrics-reader`.
pub(super) fn service_monitor(package: &Package) -> Vec<Manifest> {
    if !(package.service_monitor && package.metrics) {
        return Vec::new();
    }
    let names = package.names();
    let tls = match package.certificates {
        // Nobody outside knows who made the certificate.
        Certificates::SelfMade => json!({"insecureSkipVerify": true}),
        Certificates::CertManager => {
            let secret = names.metrics_secret();
            let [host, _] = names.metrics_hosts(&package.namespace);
            json!({
                "serverName": host,
                "insecureSkipVerify": false,
                "ca": {"secret": {"name": secret, "key": "ca.crt"}},
            })
        }
    };
    let object = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": names.with("controller-manager-metrics-monitor"),
            "namespace": package.namespace,
            "labels": {"control-plane": "controller-manager"},
        },
        "spec": {
            "endpoints": [{
                "path": "/metrics",
                "port": "https",
                "scheme": "https",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": tls,
            }],
            "selector": {"matchLabels": selector(package)},
        },
    });
    vec![Manifest::new(Part::Monitoring, object)]
}

/// A dashboard in a ConfigMap, where Grafana's sidecar looks for it.
pub(super) fn dashboards(package: &Package) -> Vec<Manifest> {
    if !(package.dashboards && package.metrics) {
        return Vec::new();
    }
    let text = serde_json::to_string_pretty(&dashboard(package)).expect("trees are JSON");
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": package.names().with("dashboard"),
            "namespace": package.namespace,
            "labels": {"grafana_dashboard": "1"},
        },
        "data": {format!("{}.json", package.name): text + "\n"},
    });
    vec![Manifest::new(Part::Dashboards, object)]
}

/// The dashboard of an operator, as Grafana imports it.
pub fn dashboard(package: &Package) -> Value {
    let rows = ROWS.iter().filter(|row| row.is_for(package));
    let (mut panels, mut y) = (Vec::new(), 0);
    for row in rows {
        let id = panels.len() + 1;
        panels.push(json!({
            "id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y},
        }));
        y += 1;
        let width = WIDTH / row.panels.len();
        for (at, panel) in row.panels.iter().enumerate() {
            panels.push(panel.render(panels.len() + 1, width, at * width, y));
        }
        y += HEIGHT;
    }
    json!({
        "title": format!("{} operator", package.name),
        "uid": package.name,
        "tags": ["kubernetes", "operator"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
            {
                "name": "job", "type": "query", "label": "Job", "datasource": data_source(),
                "query": {"query": "label_values(controller_runtime_max_concurrent_reconciles, job)", "refId": "job"},
                "refresh": 2,
                "current": {
                    "text": package.names().metrics_service(),
                    "value": package.names().metrics_service(),
                },
            },
            {
                "name": "controller", "type": "query", "label": "Controller", "datasource": data_source(),
                "query": {"query": "label_values(controller_runtime_max_concurrent_reconciles{job=\"$job\"}, controller)", "refId": "controller"},
                "refresh": 2, "includeAll": true, "multi": true,
                "current": {"text": "All", "value": "$__all"},
            },
        ]},
        "panels": panels,
    })
}

fn data_source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Of Grafana's grid.
const WIDTH: usize = 24;
const HEIGHT: usize = 8;

/// Panels side by side.
struct Row {
    title: &'static str,
    /// Whether it is only for operators that the API server calls.
    is_called: bool,
    panels: &'static [Panel],
}

struct Panel {
    title: &'static str,
    unit: &'static str,
    /// What is asked, and what a line is called.
    queries: &'static [(&'static str, &'static str)],
}

impl Row {
    fn is_for(&self, package: &Package) -> bool {
        !self.is_called || package.is_called()
    }
}

impl Panel {
    fn render(&self, id: usize, width: usize, x: usize, y: usize) -> Value {
        let target = |(at, &(expression, legend)): (usize, &(&str, &str))| {
            let name = char::from(b'A' + u8::try_from(at).expect("a panel has few lines"));
            json!({
                "refId": name.to_string(), "datasource": data_source(),
                "expr": expression, "legendFormat": legend,
            })
        };
        json!({
            "id": id, "type": "timeseries", "title": self.title, "datasource": data_source(),
            "gridPos": {"h": HEIGHT, "w": width, "x": x, "y": y},
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": {
                "legend": {"displayMode": "list", "placement": "bottom"},
                "tooltip": {"mode": "multi", "sort": "desc"},
            },
            "targets": self.queries.iter().enumerate().map(target).collect::<Vec<_>>(),
        })
    }
}

const ROWS: &[Row] = &[
    Row {
        title: "Reconciles",
        is_called: false,
        panels: &[
            Panel {
                title: "Reconciles by result",
                unit: "ops",
                queries: &[(
                    "sum by (controller, result) (rate(controller_runtime_reconcile_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                    "{{controller}} {{result}}",
                )],
            },
            Panel {
                title: "Failures",
                unit: "ops",
                queries: &[
                    (
                        "sum by (controller) (rate(controller_runtime_reconcile_errors_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} failed",
                    ),
                    (
                        "sum by (controller) (rate(controller_runtime_terminal_reconcile_errors_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} failed for good",
                    ),
                    (
                        "sum by (controller) (rate(controller_runtime_reconcile_panics_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} panicked",
                    ),
                    (
                        "sum by (controller) (rate(controller_runtime_reconcile_timeouts_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} took too long",
                    ),
                ],
            },
            Panel {
                title: "Duration",
                unit: "s",
                queries: &[
                    (
                        "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\", controller=~\"$controller\"}[$__rate_interval])))",
                        "{{controller}} p50",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\", controller=~\"$controller\"}[$__rate_interval])))",
                        "{{controller}} p99",
                    ),
                ],
            },
            Panel {
                title: "Workers",
                unit: "short",
                queries: &[
                    (
                        "sum by (controller) (controller_runtime_active_workers{job=\"$job\", controller=~\"$controller\"})",
                        "{{controller}} busy",
                    ),
                    (
                        "sum by (controller) (controller_runtime_max_concurrent_reconciles{job=\"$job\", controller=~\"$controller\"})",
                        "{{controller}} at most",
                    ),
                ],
            },
        ],
    },
    Row {
        title: "Queues",
        is_called: false,
        panels: &[
            Panel {
                title: "Depth",
                unit: "short",
                queries: &[(
                    "sum by (controller, priority) (workqueue_depth{job=\"$job\", controller=~\"$controller\"})",
                    "{{controller}} at {{priority}}",
                )],
            },
            Panel {
                title: "Added and retried",
                unit: "ops",
                queries: &[
                    (
                        "sum by (controller) (rate(workqueue_adds_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} added",
                    ),
                    (
                        "sum by (controller) (rate(workqueue_retries_total{job=\"$job\", controller=~\"$controller\"}[$__rate_interval]))",
                        "{{controller}} retried",
                    ),
                ],
            },
            Panel {
                title: "Waiting and working, p99",
                unit: "s",
                queries: &[
                    (
                        "histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\", controller=~\"$controller\"}[$__rate_interval])))",
                        "{{controller}} waits",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_work_duration_seconds_bucket{job=\"$job\", controller=~\"$controller\"}[$__rate_interval])))",
                        "{{controller}} works",
                    ),
                ],
            },
            Panel {
                title: "Work under way",
                unit: "s",
                queries: &[
                    (
                        "max by (controller) (workqueue_longest_running_processor_seconds{job=\"$job\", controller=~\"$controller\"})",
                        "{{controller}} longest",
                    ),
                    (
                        "sum by (controller) (workqueue_unfinished_work_seconds{job=\"$job\", controller=~\"$controller\"})",
                        "{{controller}} all",
                    ),
                ],
            },
        ],
    },
    Row {
        title: "Webhooks",
        is_called: true,
        panels: &[
            Panel {
                title: "Reviews by code",
                unit: "ops",
                queries: &[(
                    "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{job=\"$job\"}[$__rate_interval]))",
                    "{{webhook}} {{code}}",
                )],
            },
            Panel {
                title: "Latency, p99",
                unit: "s",
                queries: &[(
                    "histogram_quantile(0.99, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                    "{{webhook}}",
                )],
            },
            Panel {
                title: "Under way, and panics",
                unit: "short",
                queries: &[
                    (
                        "sum by (webhook) (controller_runtime_webhook_requests_in_flight{job=\"$job\"})",
                        "{{webhook}} under way",
                    ),
                    (
                        "sum(increase(controller_runtime_webhook_panics_total{job=\"$job\"}[$__rate_interval]))",
                        "panics",
                    ),
                ],
            },
        ],
    },
    Row {
        title: "The API server",
        is_called: false,
        panels: &[
            Panel {
                title: "Requests by code",
                unit: "ops",
                queries: &[(
                    "sum by (method, code) (rate(rest_client_requests_total{job=\"$job\"}[$__rate_interval]))",
                    "{{method}} {{code}}",
                )],
            },
            Panel {
                title: "Objects in caches",
                unit: "short",
                queries: &[("sum by (kind) (kubewright_cache_objects{job=\"$job\"})", "{{kind}}")],
            },
            Panel {
                title: "Bytes in caches",
                unit: "bytes",
                queries: &[("sum by (kind) (kubewright_cache_bytes{job=\"$job\"})", "{{kind}}")],
            },
            Panel {
                title: "Watches that are not live",
                unit: "short",
                queries: &[(
                    "sum by (kind, state) (kubewright_cache_watches{job=\"$job\", state!=\"live\"})",
                    "{{kind}} {{state}}",
                )],
            },
        ],
    },
    Row {
        title: "The process",
        is_called: false,
        panels: &[
            Panel {
                title: "Processor",
                unit: "none",
                queries: &[(
                    "sum by (pod) (rate(process_cpu_seconds_total{job=\"$job\"}[$__rate_interval]))",
                    "{{pod}}",
                )],
            },
            Panel {
                title: "Memory",
                unit: "bytes",
                queries: &[(
                    "sum by (pod) (process_resident_memory_bytes{job=\"$job\"})",
                    "{{pod}}",
                )],
            },
            Panel {
                title: "Leader",
                unit: "short",
                queries: &[(
                    "max by (pod, name) (leader_election_master_status{job=\"$job\"})",
                    "{{pod}} {{name}}",
                )],
            },
        ],
    },
];
