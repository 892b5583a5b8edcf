//! What a Pod says when its author does not, besides what all pod specs share.

use kubewright_apimachinery::resources::pod::Need;
use kubewright_apimachinery::resources::{self, Amounts};
use serde_json::{Map, Value, json};

use crate::kinds::edit::{each, fill, within};
use crate::kinds::pod_spec::{self, round_up_resources};
use crate::kinds::resource_name::round_amounts;

pub(super) fn default(pod: &mut Value) {
    within(pod, "spec", |spec| {
        for containers in ["containers", "initContainers"] {
            each(spec, containers, request_what_is_limited);
        }
        limit_huge_pages(spec);
        request_for_pod(spec);
        fill(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            for containers in ["containers", "initContainers"] {
                each(spec, containers, |container| each(container, "ports", open_on_host));
            }
        }
    });
    within(pod, "spec", pod_spec::default_pod_spec);
    // Only of Pods: a template keeps what it says.
    within(pod, "spec", |spec| {
        let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
        if grace.is_some_and(|seconds| seconds < 0) {
            spec["terminationGracePeriodSeconds"] = 1.into();
        }
    });
    within(pod, "metadata", pod_spec::drop_init_container_annotations);
    within(pod, "status", default_status);
}

fn request_what_is_limited(container: &mut Value) {
    within(container, "resources", |resources| {
        let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
            return;
        };
        fill(resources, "requests", json!({}));
        within(resources, "requests", |requests| {
            for (name, limit) in limits {
                fill(requests, &name, limit);
            }
        });
    });
}

/// With host networking, a container's port is the host's.
fn open_on_host(port: &mut Value) {
    if let Some(number) = port.get("containerPort").filter(|number| **number != 0).cloned() {
        fill(port, "hostPort", number);
    }
}

/// A pod that limits or requests anything as a whole also limits the huge pages that its
/// containers may use, unless it requests them itself.
fn limit_huge_pages(spec: &mut Value) {
    let limits = total(spec, "limits");
    within(spec, "resources", |resources| {
        if is_empty(resources, "limits") && is_empty(resources, "requests") {
            return;
        }
        let requests = resources.get("requests").cloned().unwrap_or_default();
        let pages: Vec<_> = limits
            .iter()
            .filter(|(name, _)| resources::is_huge_page(name) && requests.get(name).is_none())
            .collect();
        if !pages.is_empty() {
            fill(resources, "limits", json!({}));
        }
        within(resources, "limits", |limits| {
            for (name, amount) in pages {
                fill(limits, name, amount.to_string());
            }
        });
    });
}

/// A pod that limits anything as a whole requests what its containers do, and else what it limits.
fn request_for_pod(spec: &mut Value) {
    let requests = total(spec, "requests");
    within(spec, "resources", |resources| {
        let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
            return;
        };
        let of_containers = requests
            .iter()
            .filter(|(name, _)| resources::is_overcommit_allowed(name))
            .map(|(name, amount)| (name.clone(), Value::from(amount.to_string())));
        let made: Vec<_> =
            of_containers.chain(limits).filter(|(name, _)| resources::is_pod_level(name)).collect();
        if !made.is_empty() {
            fill(resources, "requests", json!({}));
        }
        within(resources, "requests", |requests| {
            for (name, amount) in made {
                fill(requests, &name, amount);
            }
        });
    });
}

fn is_empty(parent: &Value, name: &str) -> bool {
    parent.get(name).and_then(Value::as_object).is_none_or(Map::is_empty)
}

/// What the containers need of resources, by `limits` or `requests`.
fn total(spec: &Value, list: &str) -> Amounts {
    let containers = |name: &str| spec.get(name).and_then(Value::as_array).into_iter().flatten();
    let amounts = |container: &Value| resources::amounts(container["resources"].get(list));
    let lasting = containers("containers").map(|container| Need::Always(amounts(container)));
    let first = containers("initContainers").map(|container| {
        match container.get("restartPolicy").and_then(Value::as_str) {
            Some("Always") => Need::FromThenOn(amounts(container)),
            _ => Need::AtFirst(amounts(container)),
        }
    });
    resources::pod::total(lasting.chain(first))
}

fn default_status(status: &mut Value) {
    for containers in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        each(status, containers, |container| {
            round_amounts(container.get_mut("allocatedResources"));
            within(container, "resources", round_up_resources);
        });
    }
    round_amounts(status.get_mut("allocatedResources"));
    within(status, "resources", round_up_resources);
    mirror_pod_ip(status);
}

/// `podIP` is the first of `podIPs`; where they differ, clients that know only the one mean it.
fn mirror_pod_ip(status: &mut Value) {
    let first = status.get("podIPs").and_then(|ips| ips.get(0)).and_then(|ip| ip.get("ip"));
    match (status.get("podIP").cloned(), first.cloned()) {
        (Some(ip), first) if first.as_ref() != Some(&ip) => {
            status["podIPs"] = json!([{ "ip": ip }]);
        }
        (None, Some(first)) => {
            status["podIP"] = first;
        }
        _ => {}
    }
}
