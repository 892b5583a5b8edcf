//! What the server decides about a pod before it is looked at.

use k8s_openapi::api::core::v1::PodSpec;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::time::Time;
use serde_json::{Map, Value, json};

use super::qos;
use crate::kinds::edit::{self, each, fill, within};
use crate::kinds::pod_spec;
use crate::kinds::pod_spec::validate::{annotation, security};
use crate::kinds::{Context, typed};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn create(pod: &mut Value, context: &Context<'_>) {
    edit::first_generation(pod);
    let class = match pod.pointer("/status/qosClass") {
        Some(class) => class.clone(),
        None => qos::class(&typed::<PodSpec>(&pod["spec"])).into(),
    };
    pod["status"] = json!({ "phase": "Pending", "qosClass": class });
    pod_spec::drop_disabled_fields(&mut pod["spec"], None);
    if pod["spec"].get("schedulingGates").is_some() {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": Time::from_unix(context.now.as_second()).to_value(),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    let labels = pod["metadata"].get("labels").and_then(Value::as_object).cloned();
    let annotations = pod["metadata"].get("annotations").and_then(Value::as_object).cloned();
    within(pod, "spec", |spec| {
        select_by_labels(spec, &labels.unwrap_or_default());
        take_app_armor_annotations(spec, &annotations.unwrap_or_default(), context);
    });
}

pub(super) fn update(pod: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(pod, old, "status");
    pod_spec::drop_disabled_fields(&mut pod["spec"], old.get("spec"));
    edit::next_generation(pod, old, "spec");
}

/// Where a selector is to be like the pod in some labels, it is made so for good.
fn select_by_labels(spec: &mut Value, labels: &Map<String, Value>) {
    within(spec, "affinity", |affinity| {
        for side in ["podAffinity", "podAntiAffinity"] {
            within(affinity, side, |pods| {
                each(pods, PREFERRED, |preferred| {
                    within(preferred, "podAffinityTerm", |term| add_expressions(term, labels));
                });
                each(pods, REQUIRED, |term| add_expressions(term, labels));
            });
        }
    });
    each(spec, "topologySpreadConstraints", |constraint| add_expressions(constraint, labels));
}

fn add_expressions(term: &mut Value, labels: &Map<String, Value>) {
    let mut expressions = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(keys).and_then(Value::as_array).into_iter().flatten();
        for key in keys.filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                expressions.push(json!({ "key": key, "operator": operator, "values": [value] }));
            }
        }
    }
    // Without a selector nothing is selected, whatever the labels.
    if expressions.is_empty() {
        return;
    }
    within(term, "labelSelector", |selector| {
        fill(selector, "matchExpressions", json!([]));
        if let Some(all) = selector["matchExpressions"].as_array_mut() {
            all.extend(expressions);
        }
    });
}

/// AppArmor profiles were annotations once; nodes of today look at the field.
fn take_app_armor_annotations(
    spec: &mut Value,
    annotations: &Map<String, Value>,
    context: &Context<'_>,
) {
    if spec.get("os").and_then(|os| os.get("name")).and_then(Value::as_str) == Some("windows") {
        return;
    }
    let of_pod = spec.pointer("/securityContext/appArmorProfile").cloned();
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, |container| {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let key = format!("{}{name}", annotation::APP_ARMOR_PREFIX);
            let Some(text) = annotations.get(&key).and_then(Value::as_str) else { return };
            if container.pointer("/securityContext/appArmorProfile").is_some() {
                return;
            }
            let profile = annotation::app_armor_profile(text)
                .filter(|profile| security::app_armor(Some(profile), &Path::ROOT).is_empty())
                .map(|profile| json!(profile));
            let is_as_the_pod_says = profile.is_some() && profile == of_pod;
            if is_as_the_pod_says {
                return;
            }
            if let Some(profile) = profile {
                container["securityContext"]["appArmorProfile"] = profile;
            }
            context.warnings.add(annotation::app_armor_deprecation(&Path::ROOT, &key));
        });
    }
}
