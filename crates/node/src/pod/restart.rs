//! Whether a container that ended is started again.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// Whether a container is started again after this exit code.
pub(super) fn is_restarted(spec: &PodSpec, container: &Container, code: i32) -> bool {
    if let Some(policy) = container.restart_policy.as_deref() {
        let rules = container.restart_policy_rules.iter().flatten();
        let mut rules = rules.filter(|rule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let listed = codes.values.iter().flatten().any(|listed| *listed == code);
                if codes.operator == "In" { listed } else { !listed }
            })
        });
        if rules.next().is_some_and(|rule| rule.action == "Restart") {
            return true;
        }
        return by_policy(policy, code);
    }
    by_policy(spec.restart_policy.as_deref().unwrap_or("Always"), code)
}

/// Whether an init container is started again: one that has succeeded never is.
pub(super) fn is_init_restarted(spec: &PodSpec, container: &Container, code: i32) -> bool {
    code != 0 && is_restarted(spec, container, code)
}

fn by_policy(policy: &str, code: i32) -> bool {
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}
