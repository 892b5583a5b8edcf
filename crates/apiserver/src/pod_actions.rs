//! What can be done to a pod besides changing it: it is bound to a node, or asked to leave one.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupResource};
use kubewright_apimachinery::selector::label::LabelSelector;
use kubewright_apimachinery::status::{Cause, Status};
use serde_json::{Map, Value, json};

use crate::index::{self, Store};
use crate::meta;
use crate::refusal::Refusal;
use crate::write::{Revise, Write};

/// How many pods a budget remembers as leaving.
const DISRUPTED_PODS_MAX: usize = 2000;

/// Puts a pod on a node.
pub(crate) struct Bind<'a> {
    pub(crate) binding: &'a Value,
    pub(crate) now: &'a str,
}

/// What is wrong with a binding.
pub(crate) fn check_binding(binding: &Value) -> Result<(), Refusal> {
    let path = Path::new("target");
    let mut errors = Vec::new();
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(Error::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if binding["target"]["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    match errors.is_empty() {
        true => Ok(()),
        false => {
            let kind = GroupKind::new("", "Binding");
            Err(Box::new(Status::invalid(&kind, meta::text(binding, "name"), &errors)))
        }
    }
}

impl Revise for Bind<'_> {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        let name = meta::text(live, "name");
        let conflict = |why: String| {
            let bindings = GroupResource::new("", "pods/binding");
            Err(Box::new(Status::conflict(&bindings, name, why)))
        };
        if meta::is_deleting(live) {
            return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let node = live["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            return conflict(format!("pod {name} is already assigned to node \"{node}\""));
        }
        if live["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        let mut pod = live.clone();
        pod["spec"]["nodeName"] = self.binding["target"]["name"].clone();
        if let Some(more) = self.binding["metadata"].get("annotations").and_then(Value::as_object) {
            let annotations = meta::of(&mut pod).entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.extend(more.clone());
            }
        }
        let conditions = &mut pod["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": self.now,
        });
        let conditions = conditions.as_array_mut().expect("it was made a list");
        match conditions.iter_mut().find(|condition| condition["type"] == "PodScheduled") {
            Some(old) => *old = scheduled,
            None => conditions.push(scheduled),
        }
        Ok(pod)
    }

    fn expected_uid(&self) -> Option<&str> {
        Some(meta::text(self.binding, "uid")).filter(|uid| !uid.is_empty())
    }
}

/// Counts an eviction against the budget of a pod.
pub(crate) struct Disrupt<'a> {
    pub(crate) pod: &'a str,
    pub(crate) now: &'a str,
}

impl Revise for Disrupt<'_> {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        let number = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        if number("/status/observedGeneration") < number("/metadata/generation") {
            return Err(too_many(format!(
                "The disruption budget {} is still being processed by the server.",
                write.name
            )));
        }
        let allowed = number("/status/disruptionsAllowed");
        let disrupted = live["status"].get("disruptedPods").and_then(Value::as_object);
        if allowed < 0 {
            let budgets = GroupResource::new("policy", "poddisruptionbudget");
            let why = "pdb disruptions allowed is negative";
            return Err(Box::new(Status::forbidden(&budgets, write.name, why)));
        }
        if disrupted.map_or(0, Map::len) > DISRUPTED_PODS_MAX {
            let budgets = GroupResource::new("policy", "poddisruptionbudget");
            let why = "DisruptedPods map too big - too many evictions not confirmed by PDB \
                       controller";
            return Err(Box::new(Status::forbidden(&budgets, write.name, why)));
        }
        if allowed == 0 {
            return Err(too_many(format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                write.name,
                number("/status/desiredHealthy"),
                number("/status/currentHealthy")
            )));
        }
        let mut budget = live.clone();
        budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
        if !budget["status"]["disruptedPods"].is_object() {
            budget["status"]["disruptedPods"] = json!({});
        }
        budget["status"]["disruptedPods"][self.pod] = self.now.into();
        Ok(budget)
    }
}

fn too_many(message: String) -> Refusal {
    let mut status = Status::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        0,
    );
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "DisruptionBudget".to_owned(),
        message,
        field: String::new(),
    });
    Box::new(status)
}

/// Whether a pod may leave without asking a budget: it does not run, or is leaving already.
pub(crate) fn may_leave(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod)
}

/// The names of the budgets that a pod counts against.
pub(crate) fn budgets(store: &Store, namespace: &str, pod: &Value) -> Vec<Value> {
    let none = Map::new();
    let labels = pod["metadata"].get("labels").and_then(Value::as_object).unwrap_or(&none);
    let prefix = format!("/registry/poddisruptionbudgets/{namespace}/");
    let range = store.snapshot().range(&prefix, None, None);
    let budgets = range.iter().map(|rev| index::object(rev));
    budgets.filter(|budget| selects(budget, labels)).collect()
}

fn selects(budget: &Value, labels: &Map<String, Value>) -> bool {
    // Nothing is selected by no selector, and everything by an empty one.
    let Some(selector) = budget["spec"].get("selector") else { return false };
    let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap_or_default();
    selector.to_selector().is_ok_and(|selector| selector.matches(labels))
}

/// Whether a pod that is not ready may leave although its budget allows nothing.
pub(crate) fn is_unhealthy_and_may_leave(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    if ready.any(|condition| condition["status"] == "True") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    match budget["spec"]["unhealthyPodEvictionPolicy"].as_str() {
        Some("AlwaysAllow") => true,
        _ => number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy"),
    }
}
