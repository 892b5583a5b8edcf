//! What is valid in a pod spec, but hardly meant.

mod volume;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeSelectorTerm, PodSpec, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::name;
use kubewright_apimachinery::resources::{EPHEMERAL_STORAGE, MEMORY};

use super::validate::annotation::{
    APP_ARMOR_PREFIX, SECCOMP, SECCOMP_PREFIX, app_armor_deprecation, app_armor_profile,
};
use super::validate::each_container;
use crate::kinds::{check, ip};

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";
const OLD_NODE_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

/// What to tell about a template.
pub(in crate::kinds) fn template_warnings(
    template: &PodTemplateSpec,
    path: &Path<'_>,
) -> Vec<String> {
    let (no_spec, no_metadata) = (PodSpec::default(), ObjectMeta::default());
    let spec = template.spec.as_ref().unwrap_or(&no_spec);
    let metadata = template.metadata.as_ref().unwrap_or(&no_metadata);
    let mut teller = Teller::new(spec, metadata, path);
    teller.is_template = true;
    teller.tell()
}

/// What to tell about a Pod.
pub(in crate::kinds) fn pod_warnings(spec: &PodSpec, metadata: &ObjectMeta) -> Vec<String> {
    Teller::new(spec, metadata, &Path::ROOT).tell()
}

struct Teller<'a> {
    spec: &'a PodSpec,
    metadata: &'a ObjectMeta,
    path: &'a Path<'a>,
    is_template: bool,
    warnings: Vec<String>,
}

impl<'a> Teller<'a> {
    fn new(spec: &'a PodSpec, metadata: &'a ObjectMeta, path: &'a Path<'a>) -> Self {
        Teller { spec, metadata, path, is_template: false, warnings: Vec::new() }
    }

    fn tell(mut self) -> Vec<String> {
        let path = self.path.child("spec");
        self.of_nodes(&path);
        self.of_spreading(&path);
        self.of_annotations();
        volume::tell(self.spec, &path, &mut self.warnings);
        self.of_references(&path);
        self.of_overhead(&path);
        self.of_seccomp();
        each_container(self.spec, &path, |container, path| {
            self.warnings.extend(of_container(
                container,
                self.spec,
                self.metadata,
                self.path,
                self.is_template,
                path,
            ));
        });
        self.of_ports(&path);
        self.of_port_names(&path);
        if self.spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
            let path = path.child("terminationGracePeriodSeconds");
            self.warnings.push(format!(
                "{path}: must be >= 0; negative values are invalid and will be treated as 1"
            ));
        }
        self.of_affinity(&path);
        self.of_addresses(&path);
        self.warnings
    }

    fn of_nodes(&mut self, path: &Path<'_>) {
        let selector_path = path.child("nodeSelector");
        for key in self.spec.node_selector.iter().flat_map(|selector| selector.keys()) {
            if let Some(message) = old_node_label(key) {
                self.warnings.push(format!("{}: {message}", selector_path.key(key)));
            }
        }
        let affinity = self.spec.affinity.as_ref();
        let Some(nodes) = affinity.and_then(|affinity| affinity.node_affinity.as_ref()) else {
            return;
        };
        let path = path.child("affinity");
        let path = path.child("nodeAffinity");
        if let Some(required) = &nodes.required_during_scheduling_ignored_during_execution {
            let path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
            let path = path.child("nodeSelectorTerms");
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                self.warnings.extend(of_node_term(term, false, &path.index(index)));
            }
        }
        let path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
        let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter();
        for (index, term) in preferred.flatten().enumerate() {
            let path = path.index(index);
            let path = path.child("preference");
            self.warnings.extend(of_node_term(&term.preference, true, &path));
        }
    }

    fn of_spreading(&mut self, path: &Path<'_>) {
        let path = path.child("topologySpreadConstraints");
        let constraints = self.spec.topology_spread_constraints.iter().flatten();
        for (index, constraint) in constraints.enumerate() {
            let path = path.index(index);
            let key = constraint.topology_key.as_str();
            if let Some(message) = old_node_label(key) {
                let path = path.child("topologyKey");
                self.warnings.push(format!("{path}: {key} is {message}"));
            }
            if constraint.label_selector.is_none() {
                self.warnings.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
            }
        }
    }

    fn of_annotations(&mut self) {
        let path = self.path.child("metadata");
        let path = path.child("annotations");
        for (key, message) in OLD_ANNOTATIONS {
            if annotation(self.metadata, key).is_some() {
                self.warnings.push(format!("{}: {message}", path.key(key)));
            }
        }
    }

    fn of_references(&mut self, path: &Path<'_>) {
        let aliases_path = path.child("hostAliases");
        let mut seen = BTreeSet::new();
        for (index, alias) in self.spec.host_aliases.iter().flatten().enumerate() {
            if !seen.insert(&alias.ip) {
                let path = aliases_path.index(index);
                let quoted = go_quote(&alias.ip);
                self.warnings.push(format!("{}: duplicate ip {quoted}", path.child("ip")));
            }
        }
        let secrets_path = path.child("imagePullSecrets");
        let secrets = || self.spec.image_pull_secrets.iter().flatten().enumerate();
        let mut seen = BTreeSet::new();
        for (index, secret) in secrets() {
            if !seen.insert(&secret.name) {
                let path = secrets_path.index(index);
                let quoted = go_quote(&secret.name);
                self.warnings.push(format!("{}: duplicate name {quoted}", path.child("name")));
            }
        }
        for (index, _) in secrets().filter(|(_, secret)| secret.name.is_empty()) {
            let path = secrets_path.index(index);
            self.warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
        }
    }

    fn of_overhead(&mut self, path: &Path<'_>) {
        let path = path.child("overhead");
        for resource in [MEMORY, EPHEMERAL_STORAGE] {
            let overhead = self.spec.overhead.as_ref();
            self.warnings.extend(of_bytes(overhead, resource, &path));
        }
    }

    fn of_seccomp(&mut self) {
        let context = self.spec.security_context.as_ref();
        let has_field = context.is_some_and(|context| context.seccomp_profile.is_some());
        if !has_field && annotation(self.metadata, SECCOMP).is_some() {
            self.warnings.push(old_seccomp(SECCOMP, self.path));
        }
    }

    fn of_ports(&mut self, path: &Path<'_>) {
        let mut all: BTreeMap<(i32, String), Vec<(String, ContainerPort)>> = BTreeMap::new();
        each_container(self.spec, path, |container, path| {
            let path = path.child("ports");
            for (index, port) in container.ports.iter().flatten().enumerate() {
                let path = path.index(index);
                let host_ip = port.host_ip.as_deref().unwrap_or_default();
                if !host_ip.is_empty() && port.host_port.is_none_or(|number| number == 0) {
                    self.warnings.push(format!(
                        "{path}: hostIP set without hostPort: {{Name:{} HostPort:0 \
                         ContainerPort:{} Protocol:{} HostIP:{host_ip}}}",
                        port.name.as_deref().unwrap_or_default(),
                        port.container_port,
                        port.protocol.as_deref().unwrap_or_default(),
                    ));
                }
                let protocol = port.protocol.clone().unwrap_or_default();
                let others = all.entry((port.container_port, protocol)).or_default();
                for (other_path, other) in others.iter() {
                    if let Some(what) = collision(port, other) {
                        self.warnings.push(format!("{path}: {what} with {other_path}"));
                    }
                }
                others.push((path.to_string(), port.clone()));
            }
        });
    }

    fn of_port_names(&mut self, path: &Path<'_>) {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        each_container(self.spec, path, |container, path| {
            let path = path.child("ports");
            for (index, port) in container.ports.iter().flatten().enumerate() {
                let Some(name) = port.name.as_ref().filter(|name| !name.is_empty()) else {
                    continue;
                };
                let path = path.index(index).to_string();
                if let Some(other) = names.get(name) {
                    self.warnings.push(format!(
                        "{path}: duplicate port name {} with {other}, services and probes that \
                         select ports by name will use {other}",
                        go_quote(name)
                    ));
                } else {
                    names.insert(name.clone(), path);
                }
            }
        });
    }

    fn of_affinity(&mut self, path: &Path<'_>) {
        let Some(affinity) = &self.spec.affinity else { return };
        let path = path.child("affinity");
        let near = affinity.pod_affinity.as_ref().map(|pods| {
            (
                "podAffinity",
                &pods.required_during_scheduling_ignored_during_execution,
                &pods.preferred_during_scheduling_ignored_during_execution,
            )
        });
        let far = affinity.pod_anti_affinity.as_ref().map(|pods| {
            (
                "podAntiAffinity",
                &pods.required_during_scheduling_ignored_during_execution,
                &pods.preferred_during_scheduling_ignored_during_execution,
            )
        });
        for (name, required, preferred) in [near, far].into_iter().flatten() {
            let path = path.child(name);
            let required_path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
            for (index, term) in required.iter().flatten().enumerate() {
                if term.label_selector.is_none() {
                    let path = required_path.index(index);
                    let path = path.child("labelSelector");
                    self.warnings.push(format!("{path}: {NO_SELECTOR}"));
                }
            }
            let preferred_path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
            for (index, term) in preferred.iter().flatten().enumerate() {
                if term.pod_affinity_term.label_selector.is_none() {
                    let path = preferred_path.index(index);
                    let path = path.child("podAffinityTerm");
                    let path = path.child("labelSelector");
                    self.warnings.push(format!("{path}: {NO_SELECTOR}"));
                }
            }
        }
    }

    fn of_addresses(&mut self, path: &Path<'_>) {
        let config = self.spec.dns_config.as_ref();
        let servers = config.and_then(|config| config.nameservers.as_ref());
        let servers_path = path.child("dnsConfig");
        let servers_path = servers_path.child("nameservers");
        for (index, address) in servers.into_iter().flatten().enumerate() {
            self.warnings.extend(ip::warnings(&servers_path.index(index), address));
        }
        let aliases_path = path.child("hostAliases");
        for (index, alias) in self.spec.host_aliases.iter().flatten().enumerate() {
            let path = aliases_path.index(index);
            self.warnings.extend(ip::warnings(&path.child("ip"), &alias.ip));
        }
    }
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    metadata.annotations.as_ref()?.get(key)
}

fn old_node_label(key: &str) -> Option<&'static str> {
    OLD_NODE_LABELS.iter().find(|(label, _)| *label == key).map(|(_, message)| *message)
}

fn old_seccomp(key: &str, path: &Path<'_>) -> String {
    let path = path.child("metadata");
    let path = path.child("annotations");
    format!(
        r#"{}: non-functional in v1.27+; use the "seccompProfile" field instead"#,
        path.key(key)
    )
}

fn of_node_term(term: &NodeSelectorTerm, values_too: bool, path: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = path.child("matchExpressions");
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        let path = path.index(index);
        if let Some(message) = old_node_label(&expression.key) {
            let key_path = path.child("key");
            warnings.push(format!("{key_path}: {} is {message}", expression.key));
        }
        if values_too {
            let path = path.child("values");
            for (index, value) in expression.values.iter().flatten().enumerate() {
                for problem in name::label_value(value) {
                    let path = path.index(index);
                    warnings.push(format!("{path}: {value} is invalid, {problem}"));
                }
            }
        }
    }
    warnings
}

fn of_container(
    container: &Container,
    spec: &PodSpec,
    metadata: &ObjectMeta,
    root: &Path<'_>,
    is_template: bool,
    path: &Path<'_>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let context = container.security_context.as_ref();
    let key = format!("{SECCOMP_PREFIX}{}", container.name);
    let has_seccomp = context.is_some_and(|context| context.seccomp_profile.is_some());
    if !has_seccomp && annotation(metadata, &key).is_some() {
        warnings.push(old_seccomp(&key, root));
    }
    let key = format!("{APP_ARMOR_PREFIX}{}", container.name);
    let has_app_armor = context.is_some_and(|context| context.app_armor_profile.is_some());
    if let Some(profile) = annotation(metadata, &key)
        && is_template
        && !has_app_armor
    {
        let of_pod = spec.security_context.as_ref().and_then(|c| c.app_armor_profile.as_ref());
        if of_pod.is_none() || of_pod != app_armor_profile(profile).as_ref() {
            warnings.push(app_armor_deprecation(root, &key));
        }
    }
    if let Some(resources) = &container.resources {
        let path = path.child("resources");
        let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
        for resource in [MEMORY, EPHEMERAL_STORAGE] {
            warnings.extend(of_bytes(resources.limits.as_ref(), resource, &limits_path));
            warnings.extend(of_bytes(resources.requests.as_ref(), resource, &requests_path));
        }
    }
    let path = path.child("env");
    let mut seen = BTreeSet::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        let value = variable.value.as_deref().unwrap_or_default();
        let reference = format!("$({})", variable.name);
        let extends =
            variable.value_from.is_none() && value != reference && value.contains(&reference);
        if !seen.insert(&variable.name) && !extends {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                path.index(index),
                go_quote(&variable.name)
            ));
        }
    }
    warnings
}

/// There are no halves of bytes.
fn of_bytes(
    amounts: Option<&BTreeMap<String, Quantity>>,
    resource: &str,
    path: &Path<'_>,
) -> Option<String> {
    let amount = check::quantity(amounts?.get(resource)?);
    (amount.milli_value() % 1000 != 0).then(|| {
        let quoted = go_quote(&amount.to_string());
        let path = path.key(resource);
        format!("{path}: fractional byte value {quoted} is invalid, must be an integer")
    })
}

/// How two definitions of one container port get into each other's way.
fn collision(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let ip = |port: &ContainerPort| port.host_ip.clone().unwrap_or_default();
    let number = |port: &ContainerPort| port.host_port.unwrap_or_default();
    let (same_ip, same_number) = (ip(port) == ip(other), number(port) == number(other));
    if same_ip && same_number {
        Some("duplicate port definition")
    } else if number(port) == 0 || number(other) == 0 {
        Some("overlapping port definition")
    } else if same_number && ip(port).is_empty() != ip(other).is_empty() {
        Some("dangerously ambiguous port definition")
    } else {
        None
    }
}
