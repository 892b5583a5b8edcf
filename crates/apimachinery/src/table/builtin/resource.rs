//! Devices, claims to them, and groups of pods.

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, NAME, integer, of, text};

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("resource.k8s.io", "DeviceClass", DEVICE_CLASS, name_and_age),
    printer_of("resource.k8s.io", "ResourceClaim", CLAIM, claim),
    printer_of("resource.k8s.io", "ResourceClaimTemplate", CLAIM_TEMPLATE, name_and_age),
    printer_of("resource.k8s.io", "ResourceSlice", SLICE, slice),
    printer_of("resource.k8s.io", "ResourcePoolStatusRequest", POOL_STATUS, pool_status),
    printer_of("resource.k8s.io", "DeviceTaintRule", TAINT_RULE, taint_rule),
    printer_of("scheduling.k8s.io", "Workload", WORKLOAD, name_and_age),
    printer_of("scheduling.k8s.io", "PodGroup", POD_GROUP, pod_group),
];

const DEVICE_CLASS: &[Column] = &[NAME, AGE];

const CLAIM_TEMPLATE: &[Column] = &[NAME, AGE];

const WORKLOAD: &[Column] = &[NAME, AGE];

fn name_and_age(object: Fields<'_>) -> Value {
    json!([object.name(), object.age()])
}

const CLAIM: &[Column] = &[
    NAME,
    text("State", Text("A summary of the current state (allocated, pending, reserved, etc.).")),
    AGE,
];

fn claim(object: Fields<'_>) -> Value {
    let deleted = object.has("metadata.deletionTimestamp");
    let allocated = object.has("status.allocation");
    let states = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (allocated && object.count("status.reservedFor") > 0, "reserved"),
    ];
    let states: Vec<_> =
        states.into_iter().filter(|(holds, _)| *holds).map(|(_, state)| state).collect();
    json!([object.name(), states.join(","), object.age()])
}

const SLICE: &[Column] = &[
    NAME,
    text("Node", of("resource/v1.ResourceSliceSpec", "nodeName")),
    text("Driver", of("resource/v1.ResourceSliceSpec", "driver")),
    text("Pool", of("resource/v1.ResourcePool", "name")),
    AGE,
];

fn slice(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.text("spec.nodeName"),
        object.text("spec.driver"),
        object.text("spec.pool.name"),
        object.age(),
    ])
}

const POOL_STATUS: &[Column] = &[
    NAME,
    text("Driver", Text("The driver to query pools for.")),
    text("Total", Text("Total number of devices across all pools.")),
    text("Available", Text("Number of available devices across all pools.")),
    text("Allocated", Text("Number of allocated devices across all pools.")),
    text("Unavailable", Text("Number of unavailable devices across all pools.")),
    text("Errors", Text("Number of pools with validation errors.")),
    integer("Pools", Text("Total number of matching pools.")),
    text("Status", Text("Processing status.")),
    text("Completed", Text("Time since the observation completed.")),
];

fn pool_status(object: Fields<'_>) -> Value {
    let pool_count = object.number("status.poolCount");
    let shown = object.count("status.pools");
    let outcome = object.items("status.conditions").find(|condition| {
        condition.text("status") == "True"
            && matches!(condition.text("type"), "Complete" | "Failed")
    });
    let (status, completed) = match outcome {
        None => ("Pending".to_owned(), "<none>".to_owned()),
        Some(outcome) if outcome.text("type") == "Failed" => {
            ("Failed".to_owned(), "<none>".to_owned())
        }
        Some(outcome) => {
            let status = match pool_count > shown as i64 {
                true => format!("Complete ({shown}/{pool_count} pools)"),
                false => "Complete".to_owned(),
            };
            (status, outcome.since("lastTransitionTime"))
        }
    };
    let counted = object.has("status") && status != "Failed";
    let count = |of_pool: &dyn Fn(Fields<'_>) -> i64| match counted {
        true => object.items("status.pools").map(of_pool).sum::<i64>().to_string(),
        false => "-".to_owned(),
    };
    json!([
        object.name(),
        object.text("spec.driver"),
        count(&|pool| pool.number("totalDevices")),
        count(&|pool| pool.number("availableDevices")),
        count(&|pool| pool.number("allocatedDevices")),
        count(&|pool| pool.number("unavailableDevices")),
        count(&|pool| pool.has("validationError").into()),
        pool_count,
        status,
        completed,
    ])
}

const TAINT_RULE: &[Column] = &[
    NAME,
    text("Key", of("resource/v1.DeviceTaint", "key")),
    text("Value", of("resource/v1.DeviceTaint", "value")),
    text("Effect", of("resource/v1.DeviceTaint", "effect")),
    text("TimeAdded", of("resource/v1.DeviceTaint", "timeAdded")),
    AGE,
];

fn taint_rule(object: Fields<'_>) -> Value {
    let taint = object.at("spec.taint");
    let added = match taint.has("timeAdded") {
        true => taint.since("timeAdded"),
        false => String::new(),
    };
    json!([
        object.name(),
        taint.text("key"),
        taint.text("value"),
        taint.text("effect"),
        added,
        object.age(),
    ])
}

const POD_GROUP: &[Column] = &[
    NAME,
    text("Policy", of("scheduling/v1alpha2.PodGroupSpec", "schedulingPolicy")),
    text("Workload", Text("Name of the referenced Workload object")),
    text("Status", Text("Status of the PodGroup")),
    AGE,
];

fn pod_group(object: Fields<'_>) -> Value {
    let last = |ty: &str| {
        object.items("status.conditions").rfind(|condition| condition.text("type") == ty)
    };
    let status = match (last("DisruptionTarget"), last("PodGroupScheduled")) {
        (Some(target), _) => target.text("reason"),
        (None, Some(scheduled)) if scheduled.text("status") == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    };
    let workload = match object.has("spec.podGroupTemplateRef") {
        true => object.text("spec.podGroupTemplateRef.workload.workloadName"),
        false => "<none>",
    };
    json!([
        object.name(),
        if object.has("spec.schedulingPolicy.gang") { "Gang" } else { "Basic" },
        workload,
        status,
        object.age(),
    ])
}
