//! Nodes, namespaces, events, and the small things in them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, Doc, NAME, boolean, integer, of, text};

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("", "Node", NODE, node),
    printer_of("", "Namespace", NAMESPACE, namespace),
    printer_of("", "Event", EVENT, event),
    printer_of("", "ConfigMap", CONFIG_MAP, config_map),
    printer_of("", "Secret", SECRET, secret),
    printer_of("", "ServiceAccount", SERVICE_ACCOUNT, name_and_age),
    printer_of("", "ResourceQuota", QUOTA, quota),
    printer_of("", "ComponentStatus", COMPONENT, component),
    printer_of("coordination.k8s.io", "Lease", LEASE, lease),
    printer_of("coordination.k8s.io", "LeaseCandidate", LEASE_CANDIDATE, lease_candidate),
    printer_of("node.k8s.io", "RuntimeClass", RUNTIME_CLASS, runtime_class),
    printer_of("scheduling.k8s.io", "PriorityClass", PRIORITY_CLASS, priority_class),
    printer_of("apiregistration.k8s.io", "APIService", API_SERVICE, api_service),
    printer_of("internal.apiserver.k8s.io", "StorageVersion", STORAGE_VERSION, storage_version),
    printer_of("storagemigration.k8s.io", "StorageVersionMigration", MIGRATION, migration),
];

const NODE: &[Column] = &[
    NAME,
    text("Status", Text("The status of the node")),
    text("Roles", Text("The roles of the node")),
    AGE,
    text("Version", of("core/v1.NodeSystemInfo", "kubeletVersion")),
    text("Internal-IP", of("core/v1.NodeStatus", "addresses")).wide(),
    text("External-IP", of("core/v1.NodeStatus", "addresses")).wide(),
    text("OS-Image", of("core/v1.NodeSystemInfo", "osImage")).wide(),
    text("Kernel-Version", of("core/v1.NodeSystemInfo", "kernelVersion")).wide(),
    text("Container-Runtime", of("core/v1.NodeSystemInfo", "containerRuntimeVersion")).wide(),
];

fn node(object: Fields<'_>) -> Value {
    // Of several conditions of one type the last counts.
    let ready = object.items("status.conditions").rfind(|c| c.text("type") == "Ready");
    let ready = match ready.map(|condition| condition.text("status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    let scheduling = if object.flag("spec.unschedulable") { ",SchedulingDisabled" } else { "" };
    let info = object.at("status.nodeInfo");
    let kernel = info.text_or("kernelVersion", "<unknown>");
    let kernel = match info.text("architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    json!([
        object.name(),
        format!("{ready}{scheduling}"),
        roles(object),
        object.age(),
        info.text("kubeletVersion"),
        address(object, "InternalIP"),
        address(object, "ExternalIP"),
        info.text_or("osImage", "<unknown>"),
        kernel,
        info.text_or("containerRuntimeVersion", "<unknown>"),
    ])
}

fn roles(node: Fields<'_>) -> String {
    let labels = node.map("metadata.labels");
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => (key == "kubernetes.io/role").then_some(value),
        })
        .filter(|role| !role.is_empty())
        .collect();
    match roles.is_empty() {
        true => "<none>".to_owned(),
        false => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

fn address<'v>(node: Fields<'v>, ty: &str) -> &'v str {
    let found = node.condition("status.addresses", ty);
    found.map_or("<none>", |address| address.text("address"))
}

const NAMESPACE: &[Column] = &[NAME, text("Status", Text("The status of the namespace")), AGE];

fn namespace(object: Fields<'_>) -> Value {
    json!([object.name(), object.text("status.phase"), object.age()])
}

const EVENT: &[Column] = &[
    text("Last Seen", of("core/v1.Event", "lastTimestamp")),
    text("Type", of("core/v1.Event", "type")),
    text("Reason", of("core/v1.Event", "reason")),
    text("Object", of("core/v1.Event", "involvedObject")),
    text("Subobject", of("core/v1.ObjectReference", "fieldPath")).wide(),
    text("Source", of("core/v1.Event", "source")).wide(),
    text("Message", of("core/v1.Event", "message")),
    text("First Seen", of("core/v1.Event", "firstTimestamp")).wide(),
    text("Count", of("core/v1.Event", "count")).wide(),
    text("Name", of("meta/v1.ObjectMeta", "name")).as_name().wide(),
];

fn event(object: Fields<'_>) -> Value {
    let first = match object.has("firstTimestamp") {
        true => object.since("firstTimestamp"),
        false => object.since("eventTime"),
    };
    let (last, count) = match object.has("series") {
        true => (object.since("series.lastObservedTime"), object.number("series.count")),
        false => {
            let last = match object.has("lastTimestamp") {
                true => object.since("lastTimestamp"),
                false => first.clone(),
            };
            // Events of the newer API do not count.
            (last, object.number("count").max(1))
        }
    };
    let involved = object.at("involvedObject");
    let kind = involved.text("kind").to_lowercase();
    let target = match involved.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = object.text_or("source.component", object.text("reportingComponent"));
    let source = match object.text_or("source.host", object.text("reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    json!([
        last,
        object.text("type"),
        object.text("reason"),
        target,
        involved.text("fieldPath"),
        source,
        object.text("message").trim(),
        first,
        count,
        object.name(),
    ])
}

const CONFIG_MAP: &[Column] = &[NAME, text("Data", of("core/v1.ConfigMap", "data")), AGE];

fn config_map(object: Fields<'_>) -> Value {
    json!([object.name(), object.count("data") + object.count("binaryData"), object.age()])
}

const SECRET: &[Column] = &[
    NAME,
    text("Type", of("core/v1.Secret", "type")),
    text("Data", of("core/v1.Secret", "data")),
    AGE,
];

fn secret(object: Fields<'_>) -> Value {
    json!([object.name(), object.text("type"), object.count("data"), object.age()])
}

const SERVICE_ACCOUNT: &[Column] = &[NAME, AGE];

fn name_and_age(object: Fields<'_>) -> Value {
    json!([object.name(), object.age()])
}

const QUOTA: &[Column] = &[
    NAME,
    text(
        "Request",
        Text("Request represents a minimum amount of cpu/memory that a container may consume."),
    ),
    text(
        "Limit",
        Text(
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
        ),
    ),
    AGE,
];

fn quota(object: Fields<'_>) -> Value {
    let used = object.map("status.used");
    let lines = |of_limits: bool| {
        let hard = object.map("status.hard");
        let hard = hard.iter().filter(|(name, _)| name.starts_with("limits.") == of_limits);
        let lines: Vec<String> = hard
            .map(|(name, hard)| format!("{name}: {}/{hard}", used.get(name).unwrap_or(&"0")))
            .collect();
        lines.join(", ")
    };
    json!([object.name(), lines(false), lines(true), object.age()])
}

const COMPONENT: &[Column] = &[
    NAME,
    text("Status", Text("Status of the component conditions")),
    text("Message", Text("Message of the component conditions")),
    text("Error", Text("Error of the component conditions")),
];

fn component(object: Fields<'_>) -> Value {
    match object.condition("conditions", "Healthy") {
        None => json!([object.name(), "Unknown", "", ""]),
        Some(condition) => {
            let healthy = condition.text("status") == "True";
            json!([
                object.name(),
                if healthy { "Healthy" } else { "Unhealthy" },
                condition.text("message"),
                condition.text("error"),
            ])
        }
    }
}

const LEASE: &[Column] =
    &[NAME, text("Holder", of("coordination/v1.LeaseSpec", "holderIdentity")), AGE];

fn lease(object: Fields<'_>) -> Value {
    json!([object.name(), object.text("spec.holderIdentity"), object.age()])
}

const LEASE_CANDIDATE: &[Column] = &[
    NAME,
    text("LeaseName", of("coordination/v1alpha2.LeaseCandidateSpec", "leaseName")),
    text("BinaryVersion", Doc::None),
    text("EmulationVersion", Doc::None),
    AGE,
];

fn lease_candidate(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.text("spec.leaseName"),
        object.text("spec.binaryVersion"),
        object.text("spec.emulationVersion"),
        object.age(),
    ])
}

const RUNTIME_CLASS: &[Column] = &[NAME, text("Handler", Doc::None), AGE];

fn runtime_class(object: Fields<'_>) -> Value {
    json!([object.name(), object.text("handler"), object.age()])
}

const PRIORITY_CLASS: &[Column] = &[
    NAME,
    integer("Value", of("scheduling/v1.PriorityClass", "value")),
    boolean("Global-Default", of("scheduling/v1.PriorityClass", "globalDefault")),
    AGE,
    text("PreemptionPolicy", of("scheduling/v1.PriorityClass", "preemptionPolicy")),
];

fn priority_class(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.number("value"),
        object.flag("globalDefault"),
        object.age(),
        object.text("preemptionPolicy"),
    ])
}

const API_SERVICE: &[Column] = &[
    NAME,
    text("Service", Text("The reference to the service that hosts this API endpoint.")),
    text("Available", Text("Whether this service is available.")),
    AGE,
];

fn api_service(object: Fields<'_>) -> Value {
    let service = object.at("spec.service");
    let service = match object.has("spec.service") {
        true => format!("{}/{}", service.text("namespace"), service.text("name")),
        false => "Local".to_owned(),
    };
    let condition = object.condition("status.conditions", "Available");
    let available = condition.map_or("Unknown".to_owned(), |condition| {
        match (condition.text("status"), condition.text("reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        }
    });
    json!([object.name(), service, available, object.age()])
}

const STORAGE_VERSION: &[Column] = &[
    NAME,
    text(
        "CommonEncodingVersion",
        of("apiserverinternal/v1alpha1.StorageVersionStatus", "commonEncodingVersion"),
    ),
    text(
        "StorageVersions",
        of("apiserverinternal/v1alpha1.StorageVersionStatus", "storageVersions"),
    ),
    AGE,
];

fn storage_version(object: Fields<'_>) -> Value {
    let versions: Vec<String> = object
        .items("status.storageVersions")
        .map(|version| {
            format!("{}={}", version.text("apiServerID"), version.text("encodingVersion"))
        })
        .collect();
    let versions = match versions.is_empty() {
        true => "<unset>".to_owned(),
        false => crate::table::fields::with_more(&versions, 3, ","),
    };
    let common = object.text_or("status.commonEncodingVersion", "<unset>");
    json!([object.name(), common, versions, object.age()])
}

const MIGRATION: &[Column] = &[
    text("Name", of("meta/v1.ObjectMeta", "name")),
    text("Resource", Text("GroupResource to migrate")),
    text("Status", Text("Status of the migration")),
];

fn migration(object: Fields<'_>) -> Value {
    let resource = match object.text("spec.resource.group") {
        "" => object.text("spec.resource.resource").to_owned(),
        group => format!("{}.{group}", object.text("spec.resource.resource")),
    };
    let status = object
        .items("status.conditions")
        .filter(|condition| condition.text("status") == "True")
        .map(|condition| condition.text("type"))
        .rfind(|ty| matches!(*ty, "Running" | "Failed" | "Succeeded"));
    json!([object.name(), resource, status.unwrap_or("Unknown")])
}
