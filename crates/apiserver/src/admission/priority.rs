//! Priority: a pod's class gives it its number, and at most one class is the default.

use serde_json::Value;

use super::{Attributes, Operation, Scene, text};
use crate::meta;
use crate::refusal::Refusal;

const CLASSES: &str = "/registry/priorityclasses/";
const PREEMPT: &str = "PreemptLowerPriority";

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    match (attributes.operation, attributes.part) {
        (Operation::Create, None) => {}
        (Operation::Update, None) => {
            keep(pod, attributes.old);
            return Ok(());
        }
        _ => return Ok(()),
    }
    let class = match text(&pod["spec"]["priorityClassName"]) {
        "" => default(scene),
        name => {
            let Some(class) = scene.get(&format!("{CLASSES}{name}")) else {
                let why = format!("no PriorityClass with name {name} was found");
                return Err(attributes.forbid(Some(pod), why));
            };
            Some(class)
        }
    };
    let (priority, policy) = match &class {
        Some(class) => (class["value"].as_i64().unwrap_or_default(), class.get("preemptionPolicy")),
        None => (0, None),
    };
    let policy = match &class {
        Some(_) => policy.and_then(Value::as_str),
        None => Some(PREEMPT),
    };
    let said = pod["spec"]["priority"].as_i64();
    if let Some(said) = said.filter(|said| *said != priority) {
        let why = format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(attributes.forbid(Some(pod), why));
    }
    if let Some(policy) = policy {
        let said = pod["spec"]["preemptionPolicy"].as_str();
        if let Some(said) = said.filter(|said| *said != policy) {
            let why = format!(
                "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; \
                 priority admission controller computed {policy} from the given PriorityClass name"
            );
            return Err(attributes.forbid(Some(pod), why));
        }
        pod["spec"]["preemptionPolicy"] = policy.into();
    }
    if let Some(class) = &class {
        pod["spec"]["priorityClassName"] = meta::text(class, "name").into();
    }
    pod["spec"]["priority"] = priority.into();
    Ok(())
}

/// An update need not repeat what it did not say when it created the pod.
fn keep(pod: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    for field in ["priority", "preemptionPolicy"] {
        if pod["spec"].get(field).is_none_or(Value::is_null)
            && let Some(value) = old["spec"].get(field)
        {
            pod["spec"][field] = value.clone();
        }
    }
}

/// Judges a class.
pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    class: &Value,
) -> Result<(), Refusal> {
    if attributes.part.is_some() || class["globalDefault"] != true {
        return Ok(());
    }
    let Some(default) = default(scene) else { return Ok(()) };
    let name = meta::text(&default, "name");
    if attributes.operation == Operation::Update && name == meta::text(class, "name") {
        return Ok(());
    }
    let why =
        format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(attributes.forbid(Some(class), why))
}

/// The class of pods that name none; the least, should there be several.
fn default(scene: &Scene<'_>) -> Option<Value> {
    let classes = scene.list(CLASSES).into_iter().filter(|class| class["globalDefault"] == true);
    classes.min_by_key(|class| class["value"].as_i64())
}
