//! HorizontalPodAutoscalers: how many replicas there are, by what they have to do.
//!
//! Kept in `autoscaling/v2`; `v1` knows only one metric and has the rest in annotations.

mod metric;

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupVersion;
use kubewright_apimachinery::name;
use serde_json::{Map, Value, json};

use super::{Part, Rules, check, edit, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        object["status"] = json!({ "desiredReplicas": 0, "currentMetrics": null });
    },
    prepare_update: edit::keep_status,
    validate,
    validate_update,
    parts: &[("status", Part { validate_update: validate_status_update, ..Part::STATUS })],
    reset: &["status"],
    ..Rules::PLAIN
};

const PERIOD_SECONDS_MAX: i32 = 1800;
const STABILIZATION_WINDOW_SECONDS_MAX: i32 = 3600;

fn default(object: &mut Value) {
    let is_v2 = object["apiVersion"] == "autoscaling/v2";
    edit::fill(&mut object["spec"], "minReplicas", 1);
    // For the other version the conversion does the rest, which takes the annotations to know.
    let Some(spec) = object["spec"].as_object_mut().filter(|_| is_v2) else { return };
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let cpu =
            json!({ "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } });
        spec.insert("metrics".to_owned(), json!([{ "type": "Resource", "resource": cpu }]));
    }
    if let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) {
        let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
        let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
        complete(
            behavior,
            "scaleUp",
            json!({
                "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent],
            }),
        );
        // How long to wait before scaling down is the controller's to say.
        complete(behavior, "scaleDown", json!({ "selectPolicy": "Max", "policies": [percent] }));
    }
}

/// Fills in what rules leave open.
fn complete(behavior: &mut Map<String, Value>, name: &str, mut rules: Value) {
    for (field, value) in behavior.get(name).and_then(Value::as_object).into_iter().flatten() {
        if !value.is_null() {
            rules[field] = value.clone();
        }
    }
    behavior.insert(name.to_owned(), rules);
}

/// What old objects are forgiven.
struct Leniency {
    replicas_min: i32,
    target: ReferenceLeniency,
    metrics: ReferenceLeniency,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReferenceLeniency {
    /// The version must be one.
    None,
    /// Of the core group, too.
    CoreGroup,
    /// Any text will do for a version.
    Anything,
}

impl Leniency {
    fn of(new: &HorizontalPodAutoscalerSpec, old: Option<&HorizontalPodAutoscalerSpec>) -> Self {
        let (target, old_target) = (&new.scale_target_ref, old.map(|old| &old.scale_target_ref));
        let unchanged = old_target
            .is_some_and(|old| old.api_version == target.api_version && old.kind == target.kind);
        let mut old_metrics = old.and_then(|old| old.metrics.as_ref()).into_iter().flatten();
        let had_bad_version = old_metrics.any(|metric| {
            let described = metric.object.as_ref().map(|object| &object.described_object);
            metric.type_ == "Object"
                && described.is_some_and(|described| {
                    version_problem(described, ReferenceLeniency::CoreGroup).is_some()
                })
        });
        Leniency {
            replicas_min: i32::from(old.is_none_or(|old| old.min_replicas != Some(0))),
            target: match unchanged {
                true => ReferenceLeniency::Anything,
                // The one kind of the core group that can be scaled.
                false if target.kind == "ReplicationController" => ReferenceLeniency::CoreGroup,
                false => ReferenceLeniency::None,
            },
            metrics: match had_bad_version {
                true => ReferenceLeniency::Anything,
                false => ReferenceLeniency::CoreGroup,
            },
        }
    }
}

fn validate(object: &Value) -> Vec<Error> {
    let autoscaler: HorizontalPodAutoscaler = typed(object);
    check_spec(&autoscaler.spec, &Leniency::of(&autoscaler.spec, None))
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (HorizontalPodAutoscaler, HorizontalPodAutoscaler) =
        (typed(object), typed(old));
    check_spec(&new.spec, &Leniency::of(&new.spec, Some(&old.spec)))
}

fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
    let autoscaler: HorizontalPodAutoscaler = typed(object);
    let status = autoscaler.status.unwrap_or_default();
    let path = Path::new("status");
    let current = status.current_replicas.unwrap_or_default();
    let mut errors = Vec::new();
    errors.extend(check::non_negative(&path.child("currentReplicas"), current));
    errors.extend(check::non_negative(&path.child("desiredReplicas"), status.desired_replicas));
    errors
}

fn check_spec(spec: &HorizontalPodAutoscalerSpec, leniency: &Leniency) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    let max_path = path.child("maxReplicas");
    if let Some(min) = spec.min_replicas.filter(|min| *min < leniency.replicas_min) {
        let detail = format!("must be greater than or equal to {}", leniency.replicas_min);
        errors.push(Error::invalid(&path.child("minReplicas"), min, detail));
    }
    match spec.max_replicas {
        0 => errors.push(Error::required(&max_path, "must be set and greater than 0")),
        max if max < 0 => {
            errors.push(Error::invalid(&max_path, max, "must be greater than or equal to 1"));
        }
        _ => {}
    }
    if spec.min_replicas.is_some_and(|min| spec.max_replicas < min) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(Error::invalid(&max_path, spec.max_replicas, detail));
    }
    let target_path = path.child("scaleTargetRef");
    errors.extend(check_reference(&spec.scale_target_ref, leniency.target, &target_path));
    let metrics = spec.metrics.as_deref().unwrap_or_default();
    let metrics_path = path.child("metrics");
    for (index, metric) in metrics.iter().enumerate() {
        errors.extend(metric::check(metric, leniency.metrics, &metrics_path.index(index)));
    }
    let has_outside = metrics.iter().any(|m| ["Object", "External"].contains(&m.type_.as_str()));
    if spec.min_replicas == Some(0) && !has_outside {
        errors.push(Error::forbidden(
            &metrics_path,
            "must specify at least one Object or External metric to support scaling to zero \
             replicas",
        ));
    }
    if let Some(behavior) = &spec.behavior {
        let path = path.child("behavior");
        for (name, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)]
        {
            if let Some(rules) = rules {
                errors.extend(check_rules(rules, &path.child(name)));
            }
        }
    }
    errors
}

fn check_reference(
    reference: &CrossVersionObjectReference,
    leniency: ReferenceLeniency,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (field, text) in [("kind", &reference.kind), ("name", &reference.name)] {
        let path = path.child(field);
        match text.as_str() {
            "" => errors.push(Error::required(&path, "")),
            text => errors.extend(check::invalid(&path, text, name::path_segment(text))),
        }
    }
    if let Some(problem) = version_problem(reference, leniency) {
        let version = reference.api_version.as_deref().unwrap_or_default();
        errors.push(Error::invalid(&path.child("apiVersion"), version, problem));
    }
    errors
}

fn version_problem(
    reference: &CrossVersionObjectReference,
    leniency: ReferenceLeniency,
) -> Option<String> {
    if leniency == ReferenceLeniency::Anything {
        return None;
    }
    let version = reference.api_version.as_deref().unwrap_or_default();
    match GroupVersion::parse(version) {
        Err(error) => Some(error.to_string()),
        Ok(version) if version.group.is_empty() && leniency == ReferenceLeniency::None => {
            Some("apiVersion must specify API group".to_owned())
        }
        Ok(_) => None,
    }
}

fn check_rules(rules: &HPAScalingRules, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let window_path = path.child("stabilizationWindowSeconds");
    match rules.stabilization_window_seconds {
        Some(window) if window < 0 => {
            let detail = "must be greater than or equal to zero";
            errors.push(Error::invalid(&window_path, window, detail));
        }
        Some(window) if window > STABILIZATION_WINDOW_SECONDS_MAX => {
            let detail =
                format!("must be less than or equal to {STABILIZATION_WINDOW_SECONDS_MAX}");
            errors.push(Error::invalid(&window_path, window, detail));
        }
        _ => {}
    }
    let selects = ["Disabled", "Max", "Min"];
    if let Some(select) = rules.select_policy.as_deref().filter(|s| !selects.contains(s)) {
        errors.push(Error::not_supported(&path.child("selectPolicy"), select, &selects));
    }
    let policies_path = path.child("policies");
    let policies = rules.policies.as_deref().unwrap_or_default();
    if policies.is_empty() {
        errors.push(Error::required(&policies_path, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        errors.extend(check_policy(policy, &policies_path.index(index)));
    }
    if let Some(tolerance) = &rules.tolerance {
        let tolerance = check::quantity(tolerance);
        errors.extend(tolerance.validate_non_negative(&path.child("tolerance")));
    }
    errors
}

fn check_policy(policy: &HPAScalingPolicy, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let types = ["Percent", "Pods"];
    if !types.contains(&policy.type_.as_str()) {
        errors.push(Error::not_supported(&path.child("type"), policy.type_.as_str(), &types));
    }
    for (name, number) in [("value", policy.value), ("periodSeconds", policy.period_seconds)] {
        if number <= 0 {
            errors.push(Error::invalid(&path.child(name), number, "must be greater than zero"));
        }
    }
    if policy.period_seconds > PERIOD_SECONDS_MAX {
        let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        errors.push(Error::invalid(&path.child("periodSeconds"), policy.period_seconds, detail));
    }
    errors
}
