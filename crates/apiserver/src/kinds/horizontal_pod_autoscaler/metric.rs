//! What an autoscaler goes by: a metric of a type, with a target for its value.

use k8s_openapi::api::autoscaling::v2::{MetricIdentifier, MetricSpec, MetricTarget};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;

use super::{ReferenceLeniency, check_reference};
use crate::kinds::{check, resource_name};

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn check(
    metric: &MetricSpec,
    leniency: ReferenceLeniency,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let type_path = path.child("type");
    if metric.type_.is_empty() {
        errors.push(Error::required(&type_path, "must specify a metric source type"));
    }
    let unsupported = || Error::not_supported(&type_path, metric.type_.as_str(), &TYPES);
    if !TYPES.contains(&metric.type_.as_str()) {
        errors.push(unsupported());
    }

    let mut present = present(metric);
    // Of several, upstream looks into the first only.
    if let Some(source) = present.first() {
        errors.extend(check_source(metric, source, leniency, &path.child(source)));
    }
    let expected = match metric.type_.as_str() {
        "Object" => Some("object"),
        "Pods" => Some("pods"),
        "Resource" => Some("resource"),
        "External" => Some("external"),
        "ContainerResource" => Some("containerResource"),
        _ => None,
    };
    match expected {
        Some(expected) if !present.contains(&expected) => errors.push(Error::required(
            &path.child(expected),
            "must populate information for the given metric source",
        )),
        Some(_) => {}
        // It says so once more.
        None => errors.push(unsupported()),
    }
    if present.len() != 1 {
        present.retain(|source| Some(*source) != expected);
        errors.extend(present.into_iter().map(|source| {
            Error::forbidden(&path.child(source), "must populate the given metric source only")
        }));
    }
    errors
}

/// The sources that a metric has, in the order in which upstream looks for them.
fn present(metric: &MetricSpec) -> Vec<&'static str> {
    let sources = [
        ("object", metric.object.is_some()),
        ("external", metric.external.is_some()),
        ("pods", metric.pods.is_some()),
        ("resource", metric.resource.is_some()),
        ("containerResource", metric.container_resource.is_some()),
    ];
    sources.into_iter().filter_map(|(name, is_present)| is_present.then_some(name)).collect()
}

fn check_source(
    metric: &MetricSpec,
    source: &str,
    leniency: ReferenceLeniency,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let target_path = path.child("target");
    let metric_path = path.child("metric");
    let average_path = target_path.child("averageValue");
    if let Some(source) = metric.object.as_ref().filter(|_| source == "object") {
        let described_path = path.child("describedObject");
        errors.extend(check_reference(&source.described_object, leniency, &described_path));
        errors.extend(check_identifier(&source.metric, &metric_path));
        errors.extend(check_target(&source.target, &target_path));
        if source.target.value.is_none() && source.target.average_value.is_none() {
            let detail = "must set either a target value or averageValue";
            errors.push(Error::required(&average_path, detail));
        }
    }
    if let Some(source) = metric.external.as_ref().filter(|_| source == "external") {
        errors.extend(check_identifier(&source.metric, &metric_path));
        errors.extend(check_target(&source.target, &target_path));
        match (&source.target.value, &source.target.average_value) {
            (None, None) => errors.push(Error::required(
                &average_path,
                "must set either a target value for metric or a per-pod target",
            )),
            (Some(_), Some(_)) => errors.push(Error::forbidden(
                &target_path.child("value"),
                "may not set both a target value for metric and a per-pod target",
            )),
            _ => {}
        }
    }
    if let Some(source) = metric.pods.as_ref().filter(|_| source == "pods") {
        errors.extend(check_identifier(&source.metric, &metric_path));
        errors.extend(check_target(&source.target, &target_path));
        if source.target.average_value.is_none() {
            let detail = "must specify a positive target averageValue";
            errors.push(Error::required(&average_path, detail));
        }
    }
    if let Some(source) = metric.resource.as_ref().filter(|_| source == "resource") {
        errors.extend(required_name(&source.name, path));
        errors.extend(check_target(&source.target, &target_path));
        errors.extend(check_utilization(&source.target, &target_path));
    }
    if let Some(source) =
        metric.container_resource.as_ref().filter(|_| source == "containerResource")
    {
        let name_path = path.child("name");
        match required_name(&source.name, path) {
            Some(missing) => errors.push(missing),
            None => errors.extend(resource_name::validate_of_container(&source.name, &name_path)),
        }
        let container_path = path.child("container");
        match source.container.as_str() {
            "" => errors.push(Error::required(&container_path, "must specify a container")),
            container => {
                errors.extend(check::dns_label(&container_path, container));
            }
        }
        errors.extend(check_target(&source.target, &target_path));
        errors.extend(check_utilization(&source.target, &target_path));
    }
    errors
}

fn required_name(resource: &str, path: &Path<'_>) -> Option<Error> {
    resource
        .is_empty()
        .then(|| Error::required(&path.child("name"), "must specify a resource name"))
}

fn check_identifier(metric: &MetricIdentifier, path: &Path<'_>) -> Vec<Error> {
    let path = path.child("name");
    match metric.name.as_str() {
        "" => vec![Error::required(&path, "must specify a metric name")],
        metric => check::invalid(&path, metric, name::path_segment(metric)),
    }
}

fn check_target(target: &MetricTarget, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let type_path = path.child("type");
    if target.type_.is_empty() {
        errors.push(Error::required(&type_path, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&target.type_.as_str()) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(Error::invalid(&type_path, target.type_.as_str(), detail));
    }
    for (name, amount) in [("value", &target.value), ("averageValue", &target.average_value)] {
        let amount = amount.as_ref().map(check::quantity);
        if let Some(amount) = amount.filter(|amount| amount.is_zero() || amount.is_negative()) {
            let path = path.child(name);
            errors.push(Error::invalid(&path, amount.to_string(), "must be positive"));
        }
    }
    if let Some(share) = target.average_utilization.filter(|share| *share < 1) {
        let path = path.child("averageUtilization");
        errors.push(Error::invalid(&path, share, "must be greater than 0"));
    }
    errors
}

/// A resource has either an average, or a share of what was asked for.
fn check_utilization(target: &MetricTarget, path: &Path<'_>) -> Option<Error> {
    match (target.average_utilization, &target.average_value) {
        (None, None) => Some(Error::required(
            &path.child("averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        (Some(_), Some(_)) => Some(Error::forbidden(
            &path.child("averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => None,
    }
}
