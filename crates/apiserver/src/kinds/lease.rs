//! Leases: who holds what, and for how long.

use k8s_openapi::api::coordination::v1::Lease;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Context, Rules, check, edit, typed};

/// Upstream's coordinated leader election, which is off by default.
const COORDINATED: [&str; 2] = ["strategy", "preferredHolder"];
const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

pub(super) const RULES: Rules = Rules {
    prepare_create,
    prepare_update,
    validate,
    validate_update: |object, _| validate(object),
    unconditional_update: false,
    create_on_update: true,
    ..Rules::PLAIN
};

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    for field in COORDINATED {
        edit::remove(&mut object["spec"], field);
    }
}

/// An object that already uses a field may go on doing so.
fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    for field in COORDINATED.into_iter().filter(|field| old["spec"][*field].is_null()) {
        edit::remove(&mut object["spec"], field);
    }
}

fn validate(object: &Value) -> Vec<Error> {
    let lease: Lease = typed(object);
    let Some(spec) = lease.spec else { return Vec::new() };
    let at = Path::new("spec");
    let mut errors = Vec::new();
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        let at = at.child("leaseDurationSeconds");
        errors.push(Error::invalid(&at, seconds, "must be greater than 0"));
    }
    if let Some(transitions) = spec.lease_transitions.filter(|transitions| *transitions < 0) {
        let at = at.child("leaseTransitions");
        errors.push(Error::invalid(&at, transitions, "must be greater than or equal to 0"));
    }
    let strategy = spec.strategy.as_deref();
    errors.extend(strategy.into_iter().flat_map(|strategy| check_strategy(strategy, &at)));
    let prefers = spec.preferred_holder.is_some_and(|holder| !holder.is_empty());
    if prefers && strategy.unwrap_or_default().is_empty() {
        errors.push(Error::forbidden(
            &at.child("preferredHolder"),
            "may only be specified if `strategy` is defined",
        ));
    }
    errors
}

fn check_strategy(strategy: &str, spec: &Path<'_>) -> Vec<Error> {
    let at = spec.child("strategy");
    // Upstream says the field's name twice.
    let at = at.child("strategy");
    if strategy.contains('/') {
        return check::qualified_name(&at, strategy);
    }
    match STRATEGIES.contains(&strategy) {
        true => Vec::new(),
        false => vec![Error::not_supported(&at, strategy, &STRATEGIES)],
    }
}
