//! Containers: those of the pod, those before them, and those that are added to debug them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, ContainerResizePolicy, ContainerRestartRule, EphemeralContainer,
    PodSpec, Probe,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;

use super::probe::{self, Purpose};
use super::volume::Volumes;
use super::{Allowed, env, mount, requirement, security};
use crate::kinds::check::{self, list, text};
use crate::kinds::typed;

const MESSAGE_POLICIES: &[&str] = &["File", "FallbackToLogsOnError"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
const EXIT_CODE_OPERATORS: &[&str] = &["In", "NotIn"];
const RESIZED_RESOURCES: &[&str] = &["cpu", "memory"];
const RESIZE_POLICIES: &[&str] = &["NotRequired", "RestartContainer"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// What containers need to know about their pod.
pub(super) struct Pod<'a> {
    pub spec: &'a PodSpec,
    pub volumes: Volumes<'a>,
    pub claims: BTreeSet<&'a str>,
    pub allowed: &'a Allowed,
}

impl Pod<'_> {
    fn grace(&self) -> Option<i64> {
        self.spec.termination_grace_period_seconds
    }
}

pub(super) fn validate(pod: &Pod<'_>, path: &Path<'_>) -> Vec<Error> {
    let containers = &pod.spec.containers;
    if containers.is_empty() {
        return vec![Error::required(path, "")];
    }
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        errors.extend(validate_common(container, pod, &path));
        if !names.insert(container.name.as_str()) {
            errors.push(Error::duplicate(&path.child("name"), container.name.as_str()));
        }
        errors.extend(validate_life(container, pod, &path));
        errors.extend(validate_restarts(container, &path));
    }
    errors.extend(validate_host_ports(containers.iter().enumerate(), path));
    errors
}

pub(super) fn validate_init(pod: &Pod<'_>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut names: BTreeSet<&str> = pod.spec.containers.iter().map(|c| c.name.as_str()).collect();
    for (index, container) in list(&pod.spec.init_containers).iter().enumerate() {
        let item_path = path.index(index);
        errors.extend(validate_common(container, pod, &item_path));
        let lasts = container.restart_policy.as_deref() == Some("Always");
        errors.extend(validate_init_restarts(container, &item_path));
        if names.contains(container.name.as_str()) {
            errors.push(Error::duplicate(&item_path.child("name"), container.name.as_str()));
        } else if !container.name.is_empty() {
            names.insert(&container.name);
        }
        // Ports of init containers only collide with their own; upstream counts from zero here.
        errors.extend(validate_host_ports([(0, container)], path));
        if lasts {
            errors.extend(validate_life(container, pod, &item_path));
        } else {
            errors.extend(refuse_life(container, &item_path));
        }
        if !lasts && !pod.allowed.restarting_init_containers {
            errors.extend(refuse_restart_on_resize(container, &item_path));
        }
    }
    errors
}

pub(super) fn validate_ephemeral(pod: &Pod<'_>, path: &Path<'_>) -> Vec<Error> {
    const REFUSED: &str = "cannot be set for an Ephemeral Container";
    let others = pod.spec.containers.iter().chain(list(&pod.spec.init_containers));
    let others: BTreeSet<&str> = others.map(|container| container.name.as_str()).collect();
    let mut names = others.clone();
    let mut errors = Vec::new();
    for (index, ephemeral) in list(&pod.spec.ephemeral_containers).iter().enumerate() {
        let path = path.index(index);
        let container = of_ephemeral(ephemeral);
        errors.extend(validate_common(&container, pod, &path));
        errors.extend(validate_image_of_pod(&container, &path));
        if !names.insert(&ephemeral.name) {
            errors.push(Error::duplicate(&path.child("name"), ephemeral.name.as_str()));
        }
        let target = text(&ephemeral.target_container_name);
        if !target.is_empty() && !others.contains(target) {
            errors.push(Error::not_found(&path.child("targetContainerName"), target));
        }
        let resources = container.resources.as_ref();
        let has_resources = resources.is_some_and(|resources| {
            resources.limits.is_some() || resources.requests.is_some() || resources.claims.is_some()
        });
        let fields = [
            ("ports", container.ports.is_some()),
            ("resources", has_resources),
            ("resizePolicy", container.resize_policy.is_some()),
            ("restartPolicy", container.restart_policy.is_some()),
            ("restartPolicyRules", container.restart_policy_rules.is_some()),
            ("livenessProbe", container.liveness_probe.is_some()),
            ("readinessProbe", container.readiness_probe.is_some()),
            ("startupProbe", container.startup_probe.is_some()),
            ("lifecycle", container.lifecycle.is_some()),
        ];
        let set = fields.iter().filter(|(_, is_set)| *is_set);
        errors.extend(set.map(|(name, _)| Error::forbidden(&path.child(name), REFUSED)));
        let mounts_path = path.child("volumeMounts");
        for (index, mount) in list(&container.volume_mounts).iter().enumerate() {
            let path = mounts_path.index(index);
            if !text(&mount.sub_path).is_empty() {
                errors.push(Error::forbidden(&path.child("subPath"), REFUSED));
            }
            if !text(&mount.sub_path_expr).is_empty() {
                errors.push(Error::forbidden(&path.child("subPathExpr"), REFUSED));
            }
        }
    }
    errors
}

/// Templates may have images with space around them, since they once could.
pub(in crate::kinds) fn validate_image_of_pod(
    container: &Container,
    path: &Path<'_>,
) -> Option<Error> {
    let image = text(&container.image);
    let problem = "must not have leading or trailing whitespace";
    (image.trim() != image).then(|| Error::invalid(&path.child("image"), image, problem))
}

/// All that an ephemeral container has in common with others, which is all but what it targets.
pub(in crate::kinds) fn of_ephemeral(ephemeral: &EphemeralContainer) -> Container {
    typed(&check::shown(ephemeral))
}

pub(super) fn pull_policy(policy: &str, path: &Path<'_>) -> Option<Error> {
    check::required_one_of(path, policy, PULL_POLICIES)
}

fn validate_common(container: &Container, pod: &Pod<'_>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let name_path = path.child("name");
    match container.name.as_str() {
        "" => errors.push(Error::required(&name_path, "")),
        name => errors.extend(check::dns_label(&name_path, name)),
    }
    errors.extend(check::required(&path.child("image"), text(&container.image)));
    errors.extend(check::required_one_of(
        &path.child("terminationMessagePolicy"),
        text(&container.termination_message_policy),
        MESSAGE_POLICIES,
    ));
    errors.extend(validate_ports(list(&container.ports), &path.child("ports")));
    errors.extend(env::validate(list(&container.env), &path.child("env")));
    errors.extend(env::validate_from(list(&container.env_from), &path.child("envFrom")));
    errors.extend(mount::validate(container, &pod.volumes, path));
    errors.extend(pull_policy(text(&container.image_pull_policy), &path.child("imagePullPolicy")));
    if let Some(resources) = &container.resources {
        let path = path.child("resources");
        errors.extend(requirement::of_container(resources, &pod.claims, pod.allowed, &path));
    }
    let policy = text(&pod.spec.restart_policy);
    errors.extend(validate_resizing(
        list(&container.resize_policy),
        policy,
        &path.child("resizePolicy"),
    ));
    if let Some(context) = &container.security_context {
        let path = path.child("securityContext");
        errors.extend(security::of_container(context, pod.spec.host_users, &path));
    }
    errors
}

fn validate_ports(ports: &[ContainerPort], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(&port.name);
        if !name.is_empty() {
            let problems = name::port_name(name);
            if problems.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
            errors.extend(check::invalid(&path.child("name"), name, problems));
        }
        let number_path = path.child("containerPort");
        match port.container_port {
            0 => errors.push(Error::required(&number_path, "")),
            number => errors.extend(check::port(&number_path, number)),
        }
        if let Some(number) = port.host_port.filter(|number| *number != 0) {
            errors.extend(check::port(&path.child("hostPort"), number));
        }
        let protocol = text(&port.protocol);
        errors.extend(check::required_one_of(&path.child("protocol"), protocol, &check::PROTOCOLS));
    }
    errors
}

/// No two containers can listen on the same port of the host.
fn validate_host_ports<'a>(
    containers: impl IntoIterator<Item = (usize, &'a Container)>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut taken = BTreeSet::new();
    for (container_index, container) in containers {
        for (index, port) in list(&container.ports).iter().enumerate() {
            let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
            let place = format!("{}/{}/{number}", text(&port.protocol), text(&port.host_ip));
            if taken.contains(&place) {
                let path = path.index(container_index);
                let path = path.child("ports");
                let path = path.index(index);
                errors.push(Error::duplicate(&path.child("hostPort"), place));
            } else {
                taken.insert(place);
            }
        }
    }
    errors
}

fn probes(container: &Container) -> [(Purpose, Option<&Probe>); 3] {
    Purpose::ALL.map(|purpose| {
        let probe = match purpose {
            Purpose::Liveness => container.liveness_probe.as_ref(),
            Purpose::Readiness => container.readiness_probe.as_ref(),
            Purpose::Startup => container.startup_probe.as_ref(),
        };
        (purpose, probe)
    })
}

fn validate_life(container: &Container, pod: &Pod<'_>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(lifecycle) = &container.lifecycle {
        let path = path.child("lifecycle");
        errors.extend(probe::validate_lifecycle(lifecycle, pod.grace(), &path));
    }
    for (purpose, probe) in probes(container) {
        if let Some(probe) = probe {
            let path = path.child(purpose.field());
            errors.extend(probe::validate(probe, purpose, pod.grace(), &path));
        }
    }
    errors
}

/// What runs to its end has no life to be asked about.
fn refuse_life(container: &Container, path: &Path<'_>) -> Vec<Error> {
    let lifecycle = container.lifecycle.as_ref().map(|_| "lifecycle");
    let probes = probes(container).into_iter().filter_map(|(p, probe)| probe.map(|_| p.field()));
    let fields = lifecycle.into_iter().chain(probes);
    fields
        .map(|field| {
            let problem = "may not be set for init containers without restartPolicy=Always";
            Error::forbidden(&path.child(field), problem)
        })
        .collect()
}

fn refuse_restart_on_resize(container: &Container, path: &Path<'_>) -> Vec<Error> {
    let path = path.child("resizePolicy");
    let policies = list(&container.resize_policy).iter().enumerate();
    policies
        .filter(|(_, policy)| policy.restart_policy == "RestartContainer")
        .map(|(index, policy)| {
            Error::invalid(
                &path.index(index).child("restartPolicy"),
                policy.restart_policy.as_str(),
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            )
        })
        .collect()
}

fn validate_restarts(container: &Container, path: &Path<'_>) -> Vec<Error> {
    let rules = list(&container.restart_policy_rules);
    let policy_path = path.child("restartPolicy");
    let mut errors = Vec::new();
    match &container.restart_policy {
        Some(policy) => errors.extend(check::one_of(&policy_path, policy, RESTART_POLICIES)),
        None if rules.is_empty() => {}
        None => {
            let problem = "must specify restartPolicy when restart rules are used";
            errors.push(Error::required(&policy_path, problem));
        }
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > RESTART_RULES_MAX {
        errors.push(Error::too_many(&path, rules.len(), RESTART_RULES_MAX));
    }
    for (index, ContainerRestartRule { action, exit_codes }) in rules.iter().enumerate() {
        let path = path.index(index);
        errors.extend(check::one_of(&path.child("action"), action, RESTART_ACTIONS));
        let path = path.child("exitCodes");
        let Some(codes) = exit_codes else {
            errors.push(Error::required(&path, "must be specified"));
            continue;
        };
        let operator = codes.operator.as_str();
        errors.extend(check::one_of(&path.child("operator"), operator, EXIT_CODE_OPERATORS));
        let count = list(&codes.values).len();
        if count > EXIT_CODES_MAX {
            errors.push(Error::too_many(&path.child("values"), count, EXIT_CODES_MAX));
        }
    }
    errors
}

/// As [`validate_restarts`], which without a policy stops at that.
fn validate_init_restarts(container: &Container, path: &Path<'_>) -> Vec<Error> {
    let mut errors = validate_restarts(container, path);
    if container.restart_policy.is_none() {
        errors.truncate(1);
    }
    errors
}

fn validate_resizing(
    policies: &[ContainerResizePolicy],
    restart_policy: &str,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        let (resource, restart) = (policy.resource_name.as_str(), policy.restart_policy.as_str());
        if !seen.insert(resource) {
            errors.push(Error::duplicate(&path.index(index), resource));
        }
        errors.extend(check::required_one_of(path, resource, RESIZED_RESOURCES));
        errors.extend(check::required_one_of(path, restart, RESIZE_POLICIES));
        if restart_policy == "Never" && restart != "NotRequired" {
            let problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(Error::invalid(path, restart, problem));
        }
    }
    errors
}
