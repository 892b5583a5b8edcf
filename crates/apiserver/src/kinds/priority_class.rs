//! PriorityClasses: what a pod's priority is called.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Context, Rules, check, edit, typed};

/// What starts like this is the system's.
const SYSTEM_PREFIX: &str = "system-";
/// The highest priority that a user may give.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;
const SYSTEM_CLASSES: [(&str, i32); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) const RULES: Rules =
    Rules { default, prepare_create, prepare_update, validate, validate_update, ..Rules::PLAIN };

fn default(object: &mut Value) {
    edit::fill(object, "preemptionPolicy", "PreemptLowerPriority");
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    edit::first_generation(object);
}

/// Nothing that may change makes another generation.
fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::count_generation(object, old, false);
}

fn validate(object: &Value) -> Vec<Error> {
    let class: PriorityClass = typed(object);
    let mut errors = Vec::new();
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if name.starts_with(SYSTEM_PREFIX) {
        if let Some(problem) = unlike_the_system_s(&class, name) {
            errors.push(Error::forbidden(
                &Path::new("metadata").child("name"),
                format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system \
                     use only. error: {problem}"
                ),
            ));
        }
    } else if class.value > Some(USER_PRIORITY_MAX) {
        errors.push(Error::forbidden(
            &Path::new("value"),
            format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"),
        ));
    }
    let path = Path::new("preemptionPolicy");
    let policies = ["PreemptLowerPriority", "Never"];
    match class.preemption_policy.as_deref() {
        Some("") => errors.push(Error::required(&path, "")),
        Some(policy) if !policies.contains(&policy) => {
            errors.push(Error::not_supported(&path, policy, &policies));
        }
        _ => {}
    }
    errors
}

/// How a class of a reserved name differs from the one that it must be.
fn unlike_the_system_s(class: &PriorityClass, name: &str) -> Option<String> {
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.value != Some(*value) {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    (class.global_default == Some(true))
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (PriorityClass, PriorityClass) = (typed(object), typed(old));
    let mut errors = Vec::new();
    if new.value != old.value {
        errors.push(Error::forbidden(&Path::new("value"), "may not be changed in an update."));
    }
    errors.extend(check::immutable(
        &Path::new("preemptionPolicy"),
        &new.preemption_policy,
        &old.preemption_policy,
    ));
    errors
}

#[cfg(test)]
mod tests;
