//! Whether a container that ended is started again.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// What the end of a container leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequel {
    /// It has done what it was for.
    Nothing,
    Itself,
    /// All containers of the pod are ended, and begin anew with the first.
    All,
}

/// Whether a container is started again after this exit code, alone or with all others.
pub(super) fn is_restarted(spec: &PodSpec, container: &Container, code: i32) -> bool {
    sequel(spec, container, code) != Sequel::Nothing
}

/// Whether an init container is started again: one that has succeeded is only with all others.
pub(super) fn is_init_restarted(spec: &PodSpec, container: &Container, code: i32) -> bool {
    match sequel(spec, container, code) {
        Sequel::Nothing => false,
        Sequel::Itself => code != 0,
        Sequel::All => true,
    }
}

/// Whether this exit code of a container has all others begin anew with it.
pub(super) fn are_all_restarted(spec: &PodSpec, container: &Container, code: i32) -> bool {
    sequel(spec, container, code) == Sequel::All
}

/// Whether there is an exit code that does.
pub(super) fn could_all_restart(container: &Container) -> bool {
    let mut rules = container.restart_policy_rules.iter().flatten();
    rules.any(|rule| rule.action == "RestartAllContainers")
}

fn sequel(spec: &PodSpec, container: &Container, code: i32) -> Sequel {
    let mut rules = container.restart_policy_rules.iter().flatten().filter(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            let listed = codes.values.iter().flatten().any(|listed| *listed == code);
            if codes.operator == "In" { listed } else { !listed }
        })
    });
    // Rules need a policy of the container's own.
    let rule = container.restart_policy.as_ref().and_then(|_| rules.next());
    match rule.map(|rule| rule.action.as_str()) {
        Some("Restart") => return Sequel::Itself,
        Some("RestartAllContainers") => return Sequel::All,
        _ => {}
    }
    let policy = container.restart_policy.as_deref().or(spec.restart_policy.as_deref());
    match policy {
        Some("Never") => Sequel::Nothing,
        Some("OnFailure") if code == 0 => Sequel::Nothing,
        _ => Sequel::Itself,
    }
}
