//! Fields of features that are switched off by default. A client that sets one is not refused, but
//! not heard either, unless the object has it already.

use serde_json::Value;

use crate::kinds::edit::{each, remove, within};

/// As [`drop_disabled_fields`], for a `PodTemplateSpec`.
pub(in crate::kinds) fn drop_disabled_template_fields(template: &mut Value, old: Option<&Value>) {
    let old = old.and_then(|old| old.get("spec"));
    if let Some(spec) = template.get_mut("spec") {
        drop_disabled_fields(spec, old);
    }
}

/// Drops what is switched off from a pod spec.
pub(in crate::kinds) fn drop_disabled_fields(spec: &mut Value, old: Option<&Value>) {
    let uses = |holds: fn(&Value) -> bool| old.is_some_and(holds);
    if !uses(|old| old.get("schedulingGroup").is_some()) {
        remove(spec, "schedulingGroup");
    }
    for (source, in_use) in [
        ("clusterTrustBundle", uses(|old| projects(old, "clusterTrustBundle"))),
        ("podCertificate", uses(|old| projects(old, "podCertificate"))),
    ] {
        if !in_use {
            each(spec, "volumes", |volume| {
                within(volume, "projected", |projected| {
                    each(projected, "sources", |projection| remove(projection, source));
                });
            });
        }
    }
    if !uses(has_stop_signal) {
        for containers in CONTAINERS {
            each(spec, containers, drop_stop_signal);
        }
    }
}

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn items<'a>(holder: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    holder.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn projects(spec: &Value, source: &str) -> bool {
    let projected = items(spec, "volumes").filter_map(|volume| volume.get("projected"));
    projected.flat_map(|projected| items(projected, "sources")).any(|s| s.get(source).is_some())
}

fn has_stop_signal(spec: &Value) -> bool {
    let mut containers = CONTAINERS.into_iter().flat_map(|list| items(spec, list));
    containers.any(|container| container.pointer("/lifecycle/stopSignal").is_some())
}

fn drop_stop_signal(container: &mut Value) {
    let lifecycle = container.get_mut("lifecycle").and_then(Value::as_object_mut);
    if let Some(lifecycle) = lifecycle
        && lifecycle.shift_remove("stopSignal").is_some()
        && lifecycle.is_empty()
    {
        remove(container, "lifecycle");
    }
}
