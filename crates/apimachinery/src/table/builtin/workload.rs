//! Controllers of pods, and what scales and protects them.

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::{Fields, with_more};
use crate::table::{AGE, BuiltinPrinter, Column, NAME, age, boolean, integer, of, text};

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("", "ReplicationController", REPLICATION_CONTROLLER, replication_controller),
    printer_of("apps", "ReplicaSet", REPLICA_SET, replica_set),
    printer_of("apps", "Deployment", DEPLOYMENT, deployment),
    printer_of("apps", "StatefulSet", STATEFUL_SET, stateful_set),
    printer_of("apps", "DaemonSet", DAEMON_SET, daemon_set),
    printer_of("apps", "ControllerRevision", CONTROLLER_REVISION, controller_revision),
    printer_of("batch", "Job", JOB, job),
    printer_of("batch", "CronJob", CRON_JOB, cron_job),
    printer_of("autoscaling", "HorizontalPodAutoscaler", AUTOSCALER, autoscaler),
    printer_of("autoscaling", "Scale", SCALE, scale),
    printer_of("policy", "PodDisruptionBudget", DISRUPTION_BUDGET, disruption_budget),
];

const REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    integer("Desired", of("core/v1.ReplicationControllerSpec", "replicas")),
    integer("Current", of("core/v1.ReplicationControllerStatus", "replicas")),
    integer("Ready", of("core/v1.ReplicationControllerStatus", "readyReplicas")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("core/v1.ReplicationControllerSpec", "selector")).wide(),
];

fn replication_controller(object: Fields<'_>) -> Value {
    let (names, images) = object.containers("spec.template.spec.containers");
    json!([
        object.name(),
        object.number("spec.replicas"),
        object.number("status.replicas"),
        object.number("status.readyReplicas"),
        object.age(),
        names,
        images,
        object.labels("spec.selector"),
    ])
}

const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired", of("apps/v1.ReplicaSetSpec", "replicas")),
    integer("Current", of("apps/v1.ReplicaSetStatus", "replicas")),
    integer("Ready", of("apps/v1.ReplicaSetStatus", "readyReplicas")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("apps/v1.ReplicaSetSpec", "selector")).wide(),
];

fn replica_set(object: Fields<'_>) -> Value {
    let (names, images) = object.containers("spec.template.spec.containers");
    json!([
        object.name(),
        object.number("spec.replicas"),
        object.number("status.replicas"),
        object.number("status.readyReplicas"),
        object.age(),
        names,
        images,
        object.label_selector("spec.selector").to_string(),
    ])
}

const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", Text("Number of the pod with ready state")),
    text("Up-to-date", of("apps/v1.DeploymentStatus", "updatedReplicas")),
    text("Available", of("apps/v1.DeploymentStatus", "availableReplicas")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("apps/v1.DeploymentSpec", "selector")).wide(),
];

fn deployment(object: Fields<'_>) -> Value {
    let (names, images) = object.containers("spec.template.spec.containers");
    let selector = object.label_selector("spec.selector").to_selector();
    let selector = selector.map_or_else(|_| "<invalid>".to_owned(), |found| found.to_string());
    json!([
        object.name(),
        ready_of_desired(object),
        object.number("status.updatedReplicas"),
        object.number("status.availableReplicas"),
        object.age(),
        names,
        images,
        selector,
    ])
}

const STATEFUL_SET: &[Column] = &[
    NAME,
    text("Ready", Text("Number of the pod with ready state")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
];

fn stateful_set(object: Fields<'_>) -> Value {
    let (names, images) = object.containers("spec.template.spec.containers");
    json!([object.name(), ready_of_desired(object), object.age(), names, images])
}

fn ready_of_desired(object: Fields<'_>) -> String {
    format!("{}/{}", object.number("status.readyReplicas"), object.number("spec.replicas"))
}

const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired", of("apps/v1.DaemonSetStatus", "desiredNumberScheduled")),
    integer("Current", of("apps/v1.DaemonSetStatus", "currentNumberScheduled")),
    integer("Ready", of("apps/v1.DaemonSetStatus", "numberReady")),
    integer("Up-to-date", of("apps/v1.DaemonSetStatus", "updatedNumberScheduled")),
    integer("Available", of("apps/v1.DaemonSetStatus", "numberAvailable")),
    text("Node Selector", of("core/v1.PodSpec", "nodeSelector")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("apps/v1.DaemonSetSpec", "selector")).wide(),
];

fn daemon_set(object: Fields<'_>) -> Value {
    let (names, images) = object.containers("spec.template.spec.containers");
    json!([
        object.name(),
        object.number("status.desiredNumberScheduled"),
        object.number("status.currentNumberScheduled"),
        object.number("status.numberReady"),
        object.number("status.updatedNumberScheduled"),
        object.number("status.numberAvailable"),
        object.labels("spec.template.spec.nodeSelector"),
        object.age(),
        names,
        images,
        object.label_selector("spec.selector").to_string(),
    ])
}

const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    text("Controller", Text("Controller of the object")),
    text("Revision", of("apps/v1.ControllerRevision", "revision")),
    AGE,
];

fn controller_revision(object: Fields<'_>) -> Value {
    let controller =
        object.items("metadata.ownerReferences").find(|owner| owner.flag("controller"));
    let controller = controller.map_or("<none>".to_owned(), |owner| {
        let kind = match owner.text("apiVersion").split_once('/') {
            Some((group, _)) => format!("{}.{group}", owner.text("kind")),
            None => owner.text("kind").to_owned(),
        };
        format!("{}/{}", kind.to_lowercase(), owner.text("name"))
    });
    json!([object.name(), controller, object.number("revision"), object.age()])
}

const JOB: &[Column] = &[
    NAME,
    text("Status", Text("Status of the job.")),
    text("Completions", of("batch/v1.JobStatus", "succeeded")),
    text("Duration", Text("Time required to complete the job.")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("batch/v1.JobSpec", "selector")).wide(),
];

fn job(object: Fields<'_>) -> Value {
    let succeeded = object.number("status.succeeded");
    let completions = match object.number("spec.parallelism") {
        _ if object.has("spec.completions") => {
            format!("{succeeded}/{}", object.number("spec.completions"))
        }
        parallelism @ 2.. => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    };
    let started = object.timestamp("status.startTime");
    let ended = object.timestamp("status.completionTime").unwrap_or(object.now);
    let duration = started.map(|started| age::human(age::between(started, ended)));
    let holds = |ty: &str| {
        let condition = object.condition("status.conditions", ty);
        condition.is_some_and(|condition| condition.text("status") == "True")
    };
    let status = match () {
        _ if holds("Complete") => "Complete",
        _ if holds("Failed") => "Failed",
        _ if object.has("metadata.deletionTimestamp") => "Terminating",
        _ if holds("Suspended") => "Suspended",
        _ if holds("FailureTarget") => "FailureTarget",
        _ if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        _ => "Running",
    };
    let (names, images) = object.containers("spec.template.spec.containers");
    json!([
        object.name(),
        status,
        completions,
        duration.unwrap_or_default(),
        object.age(),
        names,
        images,
        object.label_selector("spec.selector").to_string(),
    ])
}

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", of("batch/v1.CronJobSpec", "schedule")),
    text("Timezone", of("batch/v1.CronJobSpec", "timeZone")),
    boolean("Suspend", of("batch/v1.CronJobSpec", "suspend")),
    integer("Active", of("batch/v1.CronJobStatus", "active")),
    text("Last Schedule", of("batch/v1.CronJobStatus", "lastScheduleTime")),
    AGE,
    text("Containers", Text("Names of each container in the template.")).wide(),
    text("Images", Text("Images referenced by each container in the template.")).wide(),
    text("Selector", of("batch/v1.JobSpec", "selector")).wide(),
];

fn cron_job(object: Fields<'_>) -> Value {
    let suspend = match object.has("spec.suspend").then(|| object.flag("spec.suspend")) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    let last_schedule = match object.has("status.lastScheduleTime") {
        true => object.since("status.lastScheduleTime"),
        false => "<none>".to_owned(),
    };
    let template = object.at("spec.jobTemplate.spec");
    let (names, images) = template.containers("template.spec.containers");
    json!([
        object.name(),
        object.text("spec.schedule"),
        object.text_or("spec.timeZone", "<none>"),
        suspend,
        object.count("status.active"),
        last_schedule,
        object.age(),
        names,
        images,
        template.label_selector("selector").to_string(),
    ])
}

const AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", of("autoscaling/v2.HorizontalPodAutoscalerSpec", "scaleTargetRef")),
    text("Targets", of("autoscaling/v2.HorizontalPodAutoscalerSpec", "metrics")),
    text("MinPods", of("autoscaling/v2.HorizontalPodAutoscalerSpec", "minReplicas")),
    text("MaxPods", of("autoscaling/v2.HorizontalPodAutoscalerSpec", "maxReplicas")),
    text("Replicas", of("autoscaling/v2.HorizontalPodAutoscalerStatus", "currentReplicas")),
    AGE,
];

fn autoscaler(object: Fields<'_>) -> Value {
    let target = object.at("spec.scaleTargetRef");
    json!([
        object.name(),
        format!("{}/{}", target.text("kind"), target.text("name")),
        metrics(object),
        object.scalar("spec.minReplicas", "<unset>"),
        object.number("spec.maxReplicas"),
        object.number("status.currentReplicas"),
        object.age(),
    ])
}

/// Each metric as it is and as it should be. Statuses belong to specs by their position.
fn metrics(object: Fields<'_>) -> String {
    let statuses: Vec<_> = object.items("status.currentMetrics").collect();
    let metrics: Vec<String> = object
        .items("spec.metrics")
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).copied()))
        .collect();
    match metrics.is_empty() {
        true => "<none>".to_owned(),
        false => with_more(&metrics, 2, ", "),
    }
}

fn metric(spec: Fields<'_>, status: Option<Fields<'_>>) -> String {
    let source = match spec.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = spec.at(source).at("target");
    let current = status.filter(|status| status.has(source)).map(|status| {
        let current = status.at(source).at("current");
        move |field: &str, missing: &str| current.scalar(field, missing)
    });
    let current = |field: &str, missing: &str| match &current {
        Some(current) => current(field, missing),
        None => "<unknown>".to_owned(),
    };
    let is_average = target.has("averageValue");
    let wanted = target.scalar("averageValue", "<nil>");
    match source {
        "pods" => format!("{}/{wanted}", current("averageValue", "<nil>")),
        "external" | "object" if is_average => {
            format!("{}/{wanted} (avg)", current("averageValue", "<unknown>"))
        }
        "external" | "object" => {
            format!("{}/{}", current("value", "<nil>"), target.scalar("value", "<nil>"))
        }
        _ => {
            let name = spec.at(source).text("name");
            if is_average {
                return format!("{name}: {}/{wanted}", current("averageValue", "<nil>"));
            }
            let percent = |value: String| match value.as_str() {
                "<unknown>" | "<auto>" => value,
                _ => format!("{value}%"),
            };
            let current = percent(current("averageUtilization", "<unknown>"));
            format!("{name}: {current}/{}", percent(target.scalar("averageUtilization", "<auto>")))
        }
    }
}

const SCALE: &[Column] = &[
    text("Name", of("meta/v1.ObjectMeta", "name")),
    integer("Desired", of("autoscaling/v1.ScaleSpec", "replicas")),
    integer("Available", of("autoscaling/v1.ScaleStatus", "replicas")),
    AGE,
];

fn scale(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.number("spec.replicas"),
        object.number("status.replicas"),
        object.age(),
    ])
}

const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available", Text("The minimum number of pods that must be available.")),
    text("Max Unavailable", Text("The maximum number of pods that may be unavailable.")),
    integer(
        "Allowed Disruptions",
        Text("Calculated number of pods that may be disrupted at this time."),
    ),
    AGE,
];

fn disruption_budget(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.scalar("spec.minAvailable", "N/A"),
        object.scalar("spec.maxUnavailable", "N/A"),
        object.number("status.disruptionsAllowed"),
        object.age(),
    ])
}
