//! Pods, whose status is a summary of their containers'.

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, NAME, age, of, text};
use crate::time::MicroTime;

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    BuiltinPrinter { conditions, ..printer_of("", "Pod", POD, pod) },
    printer_of("", "PodTemplate", POD_TEMPLATE, pod_template),
];

const POD: &[Column] = &[
    NAME,
    text("Ready", Text("The aggregate readiness state of this pod for accepting traffic.")),
    text("Status", Text("The aggregate status of the containers in this pod.")),
    text(
        "Restarts",
        Text(
            "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
        ),
    ),
    AGE,
    text("IP", of("core/v1.PodStatus", "podIP")).wide(),
    text("Node", of("core/v1.PodSpec", "nodeName")).wide(),
    text("Nominated Node", of("core/v1.PodStatus", "nominatedNodeName")).wide(),
    text("Readiness Gates", of("core/v1.PodSpec", "readinessGates")).wide(),
];

fn pod(pod: Fields<'_>) -> Value {
    let summary = Summary::of(pod);
    json!([
        pod.name(),
        format!("{}/{}", summary.ready, summary.total),
        summary.reason,
        summary.restarts.to_text(pod),
        pod.age(),
        pod.items("status.podIPs").next().map_or("<none>", |ip| ip.text_or("ip", "<none>")),
        pod.text_or("spec.nodeName", "<none>"),
        pod.text_or("status.nominatedNodeName", "<none>"),
        readiness_gates(pod),
    ])
}

const POD_TEMPLATE: &[Column] = &[
    NAME,
    text("Containers", Text("Names of each container in the template.")),
    text("Images", Text("Images referenced by each container in the template.")),
    text("Pod Labels", Text("The labels for the pod template.")),
];

fn pod_template(template: Fields<'_>) -> Value {
    let (names, images) = template.containers("template.spec.containers");
    json!([template.name(), names, images, template.labels("template.metadata.labels")])
}

/// Tells printers of tables that a pod has ended.
fn conditions(pod: Fields<'_>) -> Vec<Value> {
    let (reason, message) = match pod.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    let condition =
        json!({"type": "Completed", "status": "True", "reason": reason, "message": message});
    vec![condition]
}

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

/// How often containers were restarted, and when the last of them ended before that.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<MicroTime>,
}

impl Restarts {
    fn add(&mut self, container: Fields<'_>) {
        self.count += container.number("restartCount");
        self.last = self.last.max(container.timestamp("lastState.terminated.finishedAt"));
    }

    fn to_text(self, pod: Fields<'_>) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                let ago = age::since(Some(last), pod.now);
                format!("{} ({ago} ago)", self.count)
            }
            _ => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(pod: Fields<'_>) -> Summary {
        let phase = pod.text("status.phase");
        let sidecars: Vec<&str> = pod
            .items("spec.initContainers")
            .filter(|container| container.text("restartPolicy") == "Always")
            .map(|container| container.text("name"))
            .collect();
        let mut summary = Summary {
            ready: 0,
            total: pod.count("spec.containers") + sidecars.len(),
            reason: pod.text_or("status.reason", phase).to_owned(),
            restarts: Restarts::default(),
        };
        let gated = pod.items("status.conditions").any(|condition| {
            condition.text("type") == "PodScheduled"
                && condition.text("reason") == "SchedulingGated"
        });
        if gated {
            summary.reason = "SchedulingGated".to_owned();
        }

        let initializing = summary.initialize(pod, &sidecars);
        let initialized = pod
            .condition("status.conditions", "Initialized")
            .is_some_and(|condition| condition.text("status") == "True");
        if !initializing || initialized {
            summary.run(pod, &sidecars);
        }

        if pod.has("metadata.deletionTimestamp") {
            if pod.text("status.reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if phase != "Succeeded" && phase != "Failed" {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Looks at init containers up to the first that is not done; that one is the pod's status.
    /// Says whether there is one.
    fn initialize(&mut self, pod: Fields<'_>, sidecars: &[&str]) -> bool {
        let statuses = pod.items("status.initContainerStatuses");
        for (index, container) in statuses.enumerate() {
            self.restarts.add(container);
            let is_sidecar = sidecars.contains(&container.text("name"));
            let terminated = container.at("state.terminated");
            let waiting = container.text("state.waiting.reason");
            if container.has("state.terminated") && terminated.number("exitCode") == 0 {
                continue;
            }
            if is_sidecar && container.flag("started") {
                self.ready += usize::from(container.flag("ready"));
                continue;
            }
            self.reason = if container.has("state.terminated") {
                format!("Init:{}", ending(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", pod.count("spec.initContainers"))
            };
            return true;
        }
        false
    }

    /// Looks at the containers themselves; of several with something to say, the first is heard.
    fn run(&mut self, pod: Fields<'_>, sidecars: &[&str]) {
        self.restarts = Restarts::default();
        // Init containers behind the one that is not done have not been looked at.
        for container in self.seen_init_containers(pod, sidecars) {
            if sidecars.contains(&container.text("name")) {
                self.restarts.add(container);
            }
        }
        let mut has_running = false;
        let mut error = None;
        for container in pod.items("status.containerStatuses").rev() {
            self.restarts.add(container);
            let waiting = container.text("state.waiting.reason");
            let terminated = container.at("state.terminated");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if container.has("state.terminated") {
                self.reason = ending(terminated);
                if terminated.number("exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if container.flag("ready") && container.has("state.running") {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            let is_ready = pod.items("status.conditions").any(|condition| {
                condition.text("type") == "Ready" && condition.text("status") == "True"
            });
            if has_running && is_ready {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }

    fn seen_init_containers<'v>(&self, pod: Fields<'v>, sidecars: &[&str]) -> Vec<Fields<'v>> {
        let mut seen = Vec::new();
        for container in pod.items("status.initContainerStatuses") {
            seen.push(container);
            let done = container.has("state.terminated")
                && container.number("state.terminated.exitCode") == 0;
            let up = sidecars.contains(&container.text("name")) && container.flag("started");
            if !done && !up {
                break;
            }
        }
        seen
    }
}

/// Why a container ended.
fn ending(terminated: Fields<'_>) -> String {
    match (terminated.text("reason"), terminated.number("signal")) {
        ("", 0) => format!("ExitCode:{}", terminated.number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(pod: Fields<'_>) -> String {
    let gates = pod.items("spec.readinessGates");
    let passed = gates.clone().filter(|gate| {
        pod.condition("status.conditions", gate.text("conditionType"))
            .is_some_and(|condition| condition.text("status") == "True")
    });
    match gates.clone().count() {
        0 => "<none>".to_owned(),
        total => format!("{}/{total}", passed.count()),
    }
}
