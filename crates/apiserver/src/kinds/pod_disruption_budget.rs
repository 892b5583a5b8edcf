//! PodDisruptionBudgets: how many pods of a set may be evicted at once.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, condition, edit, typed};

pub(super) const RULES: Rules = Rules {
    name: name::Rule::PathSegment,
    prepare_create,
    prepare_update: edit::keep_status,
    validate,
    validate_update,
    parts: &[("status", Part { validate_update: validate_status_update, ..Part::STATUS })],
    reset: &["status"],
    unconditional_update: false,
    ..Rules::PLAIN
};

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({
        "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
    });
    edit::first_generation(object);
}

fn validate(object: &Value) -> Vec<Error> {
    let budget: PodDisruptionBudget = typed(object);
    check_spec(&budget.spec.unwrap_or_default(), Leniency::default())
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (PodDisruptionBudget, PodDisruptionBudget) = (typed(object), typed(old));
    let old_selector = old.spec.and_then(|spec| spec.selector).unwrap_or_default();
    let problems = check::label_selector(&old_selector).validate(Leniency::default(), &Path::ROOT);
    let leniency = Leniency { invalid_values: !problems.is_empty(), ..Leniency::default() };
    check_spec(&new.spec.unwrap_or_default(), leniency)
}

fn check_spec(spec: &PodDisruptionBudgetSpec, leniency: Leniency) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        let shown = json!({
            "MinAvailable": spec.min_available,
            "Selector": spec.selector.as_ref().map(check::label_selector),
            "MaxUnavailable": spec.max_unavailable,
            "UnhealthyPodEvictionPolicy": spec.unhealthy_pod_eviction_policy,
        });
        errors.push(Error::invalid(
            &path,
            shown,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    let bounds = [("minAvailable", &spec.min_available), ("maxUnavailable", &spec.max_unavailable)];
    for (name, bound) in bounds {
        if let Some(bound) = bound {
            let path = path.child(name);
            errors.extend(check::int_or_percent(&path, bound));
            errors.extend(check::at_most_100_percent(&path, bound));
        }
    }
    if let Some(selector) = &spec.selector {
        let selector = check::label_selector(selector);
        errors.extend(selector.validate(leniency, &path.child("selector")));
    }
    if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        if !policies.contains(&policy.as_str()) {
            let path = path.child("unhealthyPodEvictionPolicy");
            errors.push(Error::not_supported(&path, policy.as_str(), &policies));
        }
    }
    errors
}

fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
    let path = Path::new("status");
    let status = &object["status"];
    let mut errors = condition::check(&path.child("conditions"), &status["conditions"]);
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        let count = status[name].as_i64().unwrap_or_default();
        errors.extend(check::non_negative(&path.child(name), count));
    }
    errors
}
