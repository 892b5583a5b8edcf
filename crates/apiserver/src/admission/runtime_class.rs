//! RuntimeClass: a pod that wants another runtime pays for it, and goes where there is one.

use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::resources::amounts;
use serde_json::{Value, json};

use super::{Attributes, Scene, items, text};
use crate::refusal::Refusal;

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    if !attributes.creates() {
        return Ok(());
    }
    let Some(class) = class(scene, attributes, pod)? else { return Ok(()) };
    if class["overhead"].is_object() {
        let fixed = class["overhead"].get("podFixed");
        let said = amounts(pod["spec"].get("overhead"));
        if !said.is_empty() && said != amounts(fixed) {
            return Err(attributes.forbid(Some(pod), MISMATCH));
        }
        if let Some(fixed) = fixed {
            pod["spec"]["overhead"] = fixed.clone();
        }
    }
    if class["scheduling"].is_object() {
        schedule(pod, &class["scheduling"]).map_err(|why| attributes.forbid(Some(pod), why))?;
    }
    Ok(())
}

pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Refusal> {
    if !attributes.creates() {
        return Ok(());
    }
    let class = class(scene, attributes, pod)?.unwrap_or_default();
    let said = pod["spec"].get("overhead");
    let why = match class["overhead"].is_object() {
        true if amounts(class["overhead"].get("podFixed")) != amounts(said) => MISMATCH,
        false if said.is_some_and(Value::is_object) => {
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        }
        _ => return Ok(()),
    };
    Err(attributes.forbid(Some(pod), why))
}

/// The class that a pod names.
fn class(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<Option<Value>, Refusal> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    match scene.get(&format!("/registry/runtimeclasses/{name}")) {
        Some(class) => Ok(Some(class)),
        None => {
            let why = format!("pod rejected: RuntimeClass {} not found", go_quote(name));
            Err(attributes.forbid(Some(pod), why))
        }
    }
}

/// Sends a pod to the nodes of its class.
fn schedule(pod: &mut Value, scheduling: &Value) -> Result<(), String> {
    let spec = &mut pod["spec"];
    for (key, wanted) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        match spec["nodeSelector"].get(key) {
            Some(said) if said != wanted => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                     pod.spec.nodeSelector[{key}] = {}",
                    text(wanted),
                    text(said)
                ));
            }
            _ => spec["nodeSelector"][key] = wanted.clone(),
        }
    }
    if let Some(selector) = spec.get_mut("nodeSelector").and_then(Value::as_object_mut) {
        selector.sort_keys();
    }
    let tolerations = merge(&spec["tolerations"], &scheduling["tolerations"]);
    if !tolerations.is_empty() {
        spec["tolerations"] = json!(tolerations);
    }
    Ok(())
}

/// Both lists, without what another one tolerates too.
fn merge<'a>(first: &'a Value, second: &'a Value) -> Vec<&'a Value> {
    let all: Vec<&Value> = items(first).iter().chain(items(second)).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let is_kept = merged.iter().any(|kept| covers(kept, one));
        let comes = all[at + 1..].iter().any(|later| later != one && covers(later, one));
        if !is_kept && !comes {
            merged.push(one);
        }
    }
    merged
}

/// Whether `wide` tolerates all that `narrow` does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let field = |toleration: &'_ Value, name: &str| text(&toleration[name]).to_owned();
    let operator = field(wide, "operator");
    let (key, effect) = (field(wide, "key"), field(wide, "effect"));
    let any_key = key.is_empty() && operator == "Exists";
    if field(narrow, "key") != key && !any_key {
        return false;
    }
    if field(narrow, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if effect == "NoExecute"
        && let Some(longest) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > longest)
    {
        return false;
    }
    match operator.as_str() {
        "Equal" | "" => {
            field(narrow, "operator") == "Equal" && field(narrow, "value") == field(wide, "value")
        }
        "Exists" => true,
        _ => false,
    }
}
