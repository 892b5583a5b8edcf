//! HorizontalPodAutoscalers: what `v1` has no fields for travels in annotations.
//!
//! `v1` knows a target of CPU utilization only. All other metrics, their current values, the
//! conditions and the scaling behaviour are JSON in annotations, in shapes of their own.

use serde_json::{Map, Value, json};

use crate::json;
use crate::quantity::Quantity;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All annotations that are not the user's; the last two are only ever dropped.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// What an autoscaler without metrics wants of CPUs, in percent.
const DEFAULT_CPU_UTILIZATION: i64 = 80;

type Members = Map<String, Value>;

pub(super) fn to_v1(mut v2: Members) -> Members {
    let spec = take(&mut v2, "spec");
    let mut status = take(&mut v2, "status");
    let mut annotations = Members::new();

    let metrics = list(spec.get("metrics"));
    let is_cpu = |metric: &&Value| cpu_utilization(metric, "target").is_some();
    let target = metrics.iter().find_map(|metric| cpu_utilization(metric, "target"));
    let others: Vec<Value> = metrics
        .iter()
        .filter(|metric| !is_cpu(metric))
        .map(|metric| metric_to_v1(metric, &SPECS))
        .collect();
    annotate(&mut annotations, METRICS, others);

    let current = list(status.get("currentMetrics"));
    let utilization = current.iter().rev().find_map(|metric| cpu_utilization(metric, "current"));
    let current: Vec<Value> =
        current.iter().map(|metric| metric_to_v1(metric, &STATUSES)).collect();
    annotate(&mut annotations, CURRENT_METRICS, current);

    if let Some(behavior) = spec.get("behavior").filter(|behavior| behavior.is_object()) {
        annotations.insert(BEHAVIOR.to_owned(), json::to_string(&behavior_to_v1(behavior)).into());
    }
    annotate(&mut annotations, CONDITIONS, list(status.get("conditions")).to_vec());

    set_annotations(&mut v2, annotations);
    let spec = keep(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"])
        .with("targetCPUUtilizationPercentage", target);
    v2.insert("spec".to_owned(), spec.0);
    for key in ["currentReplicas", "desiredReplicas"] {
        status.entry(key).or_insert_with(|| 0.into());
    }
    let status = keep(&status, STATUS).with("currentCPUUtilizationPercentage", utilization);
    v2.insert("status".to_owned(), status.0);
    v2
}

pub(super) fn to_v2(mut v1: Members) -> Members {
    let spec = take(&mut v1, "spec");
    let mut status = take(&mut v1, "status");
    let annotations = v1.get("metadata").and_then(|metadata| metadata.get("annotations")).cloned();
    let annotation = |key: &str| -> Option<Value> {
        // What cannot be read is ignored, as if it were not there.
        let text = annotations.as_ref()?.get(key)?.as_str()?;
        json::decode(text.as_bytes()).ok().map(|decoded| decoded.value)
    };

    let metrics_to_v2 = |key: &str, names: &Names| -> Option<Vec<Value>> {
        annotation(key)?.as_array()?.iter().map(|metric| metric_to_v2(metric, names)).collect()
    };
    let mut metrics = metrics_to_v2(METRICS, &SPECS).unwrap_or_default();
    let target = spec.get("targetCPUUtilizationPercentage").and_then(Value::as_i64);
    if target.is_some() || metrics.is_empty() {
        let utilization = target.unwrap_or(DEFAULT_CPU_UTILIZATION);
        let target = json!({"type": "Utilization", "averageUtilization": utilization});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }

    let utilization = status.get("currentCPUUtilizationPercentage").filter(|it| !it.is_null());
    let current = match metrics_to_v2(CURRENT_METRICS, &STATUSES) {
        Some(current) => current.into(),
        None => utilization.map_or(Value::Null, |utilization| {
            let current = json!({"averageUtilization": utilization});
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}])
        }),
    };
    let behavior = annotation(BEHAVIOR).as_ref().and_then(behavior_to_v2);
    let conditions = annotation(CONDITIONS).filter(|it| !list(Some(it)).is_empty());

    set_annotations(&mut v1, Members::new());
    let spec = keep(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"])
        .with("metrics", Some(metrics.into()))
        .with("behavior", behavior);
    v1.insert("spec".to_owned(), spec.0);
    status.entry("desiredReplicas").or_insert_with(|| 0.into());
    if status.get("currentReplicas") == Some(&0.into()) {
        status.shift_remove("currentReplicas");
    }
    let mut status = keep(&status, STATUS);
    status.0["currentMetrics"] = current;
    v1.insert("status".to_owned(), status.with("conditions", conditions).0);
    v1
}

const STATUS: &[&str] =
    &["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"];

/// The names of `v1` for the specs, or for the statuses, of metrics.
struct Names {
    /// Where `v2` keeps the values.
    values: &'static str,
    value: &'static str,
    average_value: &'static str,
    average_utilization: &'static str,
}

const SPECS: Names = Names {
    values: "target",
    value: "targetValue",
    average_value: "targetAverageValue",
    average_utilization: "targetAverageUtilization",
};

const STATUSES: Names = Names {
    values: "current",
    value: "currentValue",
    average_value: "currentAverageValue",
    average_utilization: "currentAverageUtilization",
};

impl Names {
    fn are_of_statuses(&self) -> bool {
        self.values == "current"
    }
}

fn metric_to_v1(metric: &Value, names: &Names) -> Value {
    let mut converted = Built(json!({"type": metric.get("type").cloned().unwrap_or_default()}));
    for source in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(from) = metric.get(source).filter(|from| !from.is_null()) else { continue };
        let values = |key: &str| from.get(names.values).and_then(|values| values.get(key)).cloned();
        let identifier = |key: &str| from.get("metric").and_then(|it| it.get(key)).cloned();
        let name = identifier("name").unwrap_or_default();
        let selector = identifier("selector").map(sorted);
        let zero = || Value::from("0");
        let to = match source {
            "object" => Built(json!({}))
                .with("target", from.get("describedObject").map(reference))
                .with("metricName", Some(name))
                .with(names.value, Some(values("value").unwrap_or_else(zero)))
                .with("selector", selector)
                .with("averageValue", values("averageValue")),
            "pods" => Built(json!({}))
                .with("metricName", Some(name))
                .with(names.average_value, Some(values("averageValue").unwrap_or_else(zero)))
                .with("selector", selector),
            "external" => {
                let value = values("value");
                Built(json!({}))
                    .with("metricName", Some(name))
                    .with("metricSelector", selector)
                    .with(
                        names.value,
                        match names.are_of_statuses() {
                            true => Some(value.unwrap_or_else(zero)),
                            false => value,
                        },
                    )
                    .with(names.average_value, values("averageValue"))
            }
            _ => {
                let average = values("averageValue");
                Built(json!({}))
                    .with("name", from.get("name").cloned())
                    .with(names.average_utilization, values("averageUtilization"))
                    .with(
                        names.average_value,
                        match names.are_of_statuses() {
                            true => Some(average.unwrap_or_else(zero)),
                            false => average,
                        },
                    )
                    .with("container", from.get("container").cloned())
            }
        };
        converted = converted.with(source, Some(to.0));
    }
    converted.0
}

/// `None` when a quantity is none.
fn metric_to_v2(metric: &Value, names: &Names) -> Option<Value> {
    let mut converted = Built(json!({"type": metric.get("type").cloned().unwrap_or_default()}));
    for source in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(from) = metric.get(source).filter(|from| !from.is_null()) else { continue };
        let get = |key: &str| from.get(key).filter(|value| !value.is_null()).cloned();
        let selector = get(if source == "external" { "metricSelector" } else { "selector" });
        let identifier = Built(json!({"name": get("metricName").unwrap_or_else(|| "".into())}))
            .with("selector", selector)
            .0;
        let zero = || Some(Value::from("0"));
        let (value, average) = match source {
            // A value of zero beside an average only means that there is none.
            "object" => {
                let average = get("averageValue");
                let value = get(names.value).or_else(zero);
                let is_real = average.is_none()
                    || names.are_of_statuses()
                    || !value.as_ref().is_some_and(is_zero_quantity);
                (value.filter(|_| is_real), average)
            }
            "pods" => (None, get(names.average_value).or_else(zero)),
            "external" if names.are_of_statuses() => {
                (get(names.value).or_else(zero), get(names.average_value))
            }
            "external" => (get(names.value), get(names.average_value)),
            _ if names.are_of_statuses() => (None, get(names.average_value).or_else(zero)),
            _ => (None, get(names.average_value)),
        };
        let utilization = match source {
            "resource" | "containerResource" => get(names.average_utilization),
            _ => None,
        };
        let ty = match source {
            _ if names.are_of_statuses() => None,
            "object" if get("averageValue").is_none() => Some("Value"),
            "external" if value.is_some() => Some("Value"),
            "resource" | "containerResource" if utilization.is_some() => Some("Utilization"),
            _ => Some("AverageValue"),
        };
        let values = Built(json!({}))
            .with("type", ty.map(Value::from))
            .with("value", canonical(value)?)
            .with("averageValue", canonical(average)?)
            .with("averageUtilization", utilization)
            .0;
        let described = get("target").as_ref().map(reference);
        let to = match (source, names.are_of_statuses()) {
            ("object", false) => Built(json!({}))
                .with("describedObject", described)
                .with("target", Some(values))
                .with("metric", Some(identifier)),
            ("object", true) => Built(json!({}))
                .with("metric", Some(identifier))
                .with("current", Some(values))
                .with("describedObject", described),
            ("resource" | "containerResource", _) => Built(json!({}))
                .with("name", get("name"))
                .with(names.values, Some(values))
                .with("container", get("container")),
            _ => Built(json!({})).with("metric", Some(identifier)).with(names.values, Some(values)),
        };
        converted = converted.with(source, Some(to.0));
    }
    Some(converted.0)
}

fn is_zero_quantity(value: &Value) -> bool {
    Quantity::from_value(value).is_ok_and(|quantity| quantity.is_zero())
}

/// A quantity as the API writes it. The outer `None` says that it is none.
fn canonical(quantity: Option<Value>) -> Option<Option<Value>> {
    match quantity {
        None => Some(None),
        Some(value) => Quantity::from_value(&value).ok().map(|it| Some(it.to_string().into())),
    }
}

/// The CPU utilization that a metric is about, if it is about that.
fn cpu_utilization(metric: &Value, values: &str) -> Option<Value> {
    let resource =
        metric.get("resource").filter(|_| metric.get("type") == Some(&"Resource".into()))?;
    let is_cpu = resource.get("name") == Some(&"cpu".into());
    resource.get(values)?.get("averageUtilization").filter(|it| is_cpu && !it.is_null()).cloned()
}

fn reference(from: &Value) -> Value {
    keep(from.as_object().unwrap_or(&Members::new()), &["kind", "name", "apiVersion"]).0
}

/// The members of scaling rules in `v2`, and in the annotation, where they have the names of
/// Go's fields and all of them are always there.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] =
    [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];

fn behavior_to_v1(behavior: &Value) -> Value {
    let policy = |policy: &Value| -> Value {
        POLICY.iter().map(|(from, to)| ((*to).to_owned(), policy[*from].clone())).collect()
    };
    let rules = |rules: &Value| -> Value {
        if rules.is_null() {
            return Value::Null;
        }
        let member = |from: &str| match &rules[from] {
            Value::Array(policies) => policies.iter().map(policy).collect(),
            other => other.clone(),
        };
        RULES.iter().map(|(from, to)| ((*to).to_owned(), member(from))).collect()
    };
    json!({"ScaleUp": rules(&behavior["scaleUp"]), "ScaleDown": rules(&behavior["scaleDown"])})
}

/// `None` when there are no rules at all. Go's decoder does not mind the case of names.
fn behavior_to_v2(behavior: &Value) -> Option<Value> {
    let get = |value: &Value, name: &str| -> Option<Value> {
        let mut members = value.as_object()?.iter();
        let found = members.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_null())
    };
    let policy = |policy: &Value| -> Value {
        let members = POLICY.iter();
        members
            .map(|(to, from)| ((*to).to_owned(), get(policy, from).unwrap_or_default()))
            .collect()
    };
    let rules = |name: &str| {
        let rules = get(behavior, name)?;
        let members = RULES.iter().filter_map(|(to, from)| {
            let value = match get(&rules, from)? {
                Value::Array(policies) => policies.iter().map(policy).collect(),
                other => other,
            };
            Some(((*to).to_owned(), value))
        });
        Some(members.collect::<Value>())
    };
    let (up, down) = (rules("ScaleUp"), rules("ScaleDown"));
    (up.is_some() || down.is_some())
        .then(|| Built(json!({})).with("scaleUp", up).with("scaleDown", down).0)
}

/// An object that is written member by member.
struct Built(Value);

impl Built {
    fn with(mut self, key: &str, value: Option<Value>) -> Self {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0[key] = value;
        }
        self
    }
}

fn keep(from: &Members, keys: &[&str]) -> Built {
    keys.iter().fold(Built(json!({})), |built, key| built.with(key, from.get(*key).cloned()))
}

fn take(from: &mut Members, key: &str) -> Members {
    match from.get_mut(key).map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Members::new(),
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn sorted(mut value: Value) -> Value {
    // Go writes the labels of a selector in order.
    json::sort_keys(&mut value);
    match value {
        Value::Object(members) => {
            let (labels, rest): (Members, Members) =
                members.into_iter().partition(|(key, _)| key == "matchLabels");
            labels.into_iter().chain(rest).collect()
        }
        other => other,
    }
}

fn annotate(annotations: &mut Members, key: &str, values: Vec<Value>) {
    if !values.is_empty() {
        annotations.insert(key.to_owned(), json::to_string(&Value::Array(values)).into());
    }
}

/// Puts annotations in the place of those that a conversion may have left before.
fn set_annotations(object: &mut Members, ours: Members) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let mut annotations = take(metadata, "annotations");
    annotations.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
    annotations.extend(ours);
    annotations.sort_keys();
    metadata.shift_remove("annotations");
    if !annotations.is_empty() {
        let later = ["ownerReferences", "finalizers", "managedFields"];
        let place = metadata.keys().position(|key| later.contains(&key.as_str()));
        let place = place.unwrap_or(metadata.len());
        metadata.shift_insert(place, "annotations".to_owned(), Value::Object(annotations));
    }
}
