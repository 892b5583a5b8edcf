//! When a pod spec makes sense.
//!
//! The order of the errors is upstream's, and so are their words and the fields that they name,
//! even where those are not quite the right ones.

pub(in crate::kinds) mod annotation;
pub(in crate::kinds) mod container;
mod env;
mod file;
mod mount;
mod network;
mod probe;
mod requirement;
pub(in crate::kinds) mod schedule;
pub(in crate::kinds) mod security;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name::object_meta;
use serde_json::{Map, Value, json};

use crate::kinds::check::{self, list, text};
use annotation::Annotations;
pub(in crate::kinds) use volume::validate_claim_metadata;

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PREEMPTION_POLICIES: &[&str] = &["PreemptLowerPriority", "Never"];

/// What is wrong with a template. What was wrong with the `old` one already may stay.
pub(in crate::kinds) fn validate_template(
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
    path: &Path<'_>,
) -> Vec<Error> {
    let nothing = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&nothing);
    let no_annotations = Annotations::new();
    let metadata = template.metadata.as_ref();
    let annotations = metadata.and_then(|m| m.annotations.as_ref()).unwrap_or(&no_annotations);
    let labels = metadata.and_then(|metadata| metadata.labels.as_ref());
    let old_annotations =
        old.and_then(|old| old.metadata.as_ref()).and_then(|m| m.annotations.as_ref());
    let allowed = Allowed::by(old.and_then(|old| old.spec.as_ref()));
    let any_deletion_cost = old_annotations.is_some_and(annotation::has_unsound_deletion_cost);

    let spec_path = path.child("spec");
    let annotations_path = path.child("annotations");
    let mut errors = check::labels(&path.child("labels"), labels.into_iter().flatten());
    errors.extend(object_meta::validate_annotations(&tree(annotations), &annotations_path));
    errors.extend(annotation::validate(annotations, spec, any_deletion_cost, &annotations_path));
    errors.extend(validate_spec(spec, None, &allowed, &spec_path));
    errors.extend(annotation::validate_agreement(annotations, spec, &spec_path));
    if !list(&spec.ephemeral_containers).is_empty() {
        let problem = "ephemeral containers not allowed in pod template";
        errors.push(Error::forbidden(&spec_path.child("ephemeralContainers"), problem));
    }
    errors
}

/// What is wrong with the spec of a Pod. What was wrong with the `old` one already may stay.
pub(in crate::kinds) fn validate_pod_spec(
    spec: &PodSpec,
    old: Option<&PodSpec>,
    metadata: &ObjectMeta,
    path: &Path<'_>,
) -> Vec<Error> {
    let allowed = Allowed { is_pod: true, ..Allowed::by(old) };
    validate_spec(spec, Some(metadata), &allowed, path)
}

/// Calls `f` with each container, whichever list it is in.
/// What is wrong with what it costs to run a pod beside its containers.
pub(in crate::kinds) fn validate_overhead(
    overhead: &BTreeMap<String, Quantity>,
    path: &Path<'_>,
) -> Vec<Error> {
    requirement::of_overhead(overhead, &Allowed::default(), path)
}

pub(in crate::kinds) fn each_container(
    spec: &PodSpec,
    path: &Path<'_>,
    mut f: impl FnMut(&Container, &Path<'_>),
) {
    let init_path = path.child("initContainers");
    for (index, container) in list(&spec.init_containers).iter().enumerate() {
        f(container, &init_path.index(index));
    }
    let containers_path = path.child("containers");
    for (index, container) in spec.containers.iter().enumerate() {
        f(container, &containers_path.index(index));
    }
    let ephemeral_path = path.child("ephemeralContainers");
    for (index, ephemeral) in list(&spec.ephemeral_containers).iter().enumerate() {
        f(&container::of_ephemeral(ephemeral), &ephemeral_path.index(index));
    }
}

/// What a new spec is refused but may stay as it was, so that old objects can still be changed.
#[derive(Debug, Default)]
struct Allowed {
    /// The spec is that of a Pod. Templates are forgiven some things that they always were.
    is_pod: bool,
    /// Amounts of huge pages that are no whole number of pages.
    broken_huge_pages: bool,
    /// Block devices of a pod in a user namespace of its own.
    devices_in_user_namespace: bool,
    /// Kernel parameters of a namespace that is shared with the host.
    host_sysctls: bool,
    /// Init containers that are restarted when they get other resources.
    restarting_init_containers: bool,
    /// Ways to relabel volumes besides the first.
    se_linux_policies: bool,
    /// Token files outside of their volume.
    stray_tokens: bool,
    /// Keys of labels by which pods are spread, though the selector has them, too.
    unmerged_keys: bool,
    /// Values of node labels that no label has.
    unsound_node_values: bool,
    /// Selectors of other pods by values that no label has.
    unsound_selectors: bool,
    /// Spreading by selectors that make no sense.
    unsound_spreading: bool,
}

impl Allowed {
    fn by(old: Option<&PodSpec>) -> Self {
        let Some(old) = old else { return Allowed::default() };
        let affinity = old.affinity.as_ref();
        let constraints = list(&old.topology_spread_constraints);
        let (mut broken_huge_pages, mut has_devices) = (false, false);
        each_container(old, &Path::ROOT, |container, _| {
            let resources = container.resources.as_ref();
            broken_huge_pages |= resources.is_some_and(requirement::has_broken_pages);
            has_devices |= !list(&container.volume_devices).is_empty();
        });
        Allowed {
            is_pod: false,
            broken_huge_pages,
            devices_in_user_namespace: old.host_users == Some(false) && has_devices,
            host_sysctls: security::has_host_sysctls(old),
            restarting_init_containers: list(&old.init_containers).iter().any(|container| {
                container.restart_policy.as_deref() != Some("Always")
                    && list(&container.resize_policy)
                        .iter()
                        .any(|policy| policy.restart_policy == "RestartContainer")
            }),
            se_linux_policies: old
                .security_context
                .as_ref()
                .is_some_and(|context| context.se_linux_change_policy.is_some()),
            stray_tokens: volume::has_stray_tokens(list(&old.volumes)),
            unmerged_keys: schedule::has_unmerged_keys(constraints),
            unsound_node_values: affinity.is_some_and(schedule::has_unsound_node_values),
            unsound_selectors: affinity.is_some_and(schedule::has_unsound_selectors),
            unsound_spreading: schedule::has_unsound_spreading(constraints),
        }
    }
}

fn validate_spec(
    spec: &PodSpec,
    metadata: Option<&ObjectMeta>,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if spec.termination_grace_period_seconds.is_none() {
        errors.push(Error::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let pod_name = metadata.and_then(|metadata| metadata.name.as_deref());
    let (volumes, volume_errors) = volume::validate(
        list(&spec.volumes),
        pod_name.filter(|name| !name.is_empty()),
        &path.child("volumes"),
        allowed,
    );
    errors.extend(volume_errors);
    let claims: BTreeSet<&str> =
        list(&spec.resource_claims).iter().map(|claim| claim.name.as_str()).collect();
    let claims: BTreeSet<&str> = claims.into_iter().filter(|name| !name.is_empty()).collect();
    let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
    let is_static = annotations.is_some_and(|all| all.contains_key(annotation::MIRROR));
    let claims_path = path.child("resourceClaims");
    errors.extend(requirement::of_claims(list(&spec.resource_claims), is_static, &claims_path));

    let pod = container::Pod { spec, volumes, claims, allowed };
    errors.extend(container::validate(&pod, &path.child("containers")));
    errors.extend(container::validate_init(&pod, &path.child("initContainers")));
    errors.extend(container::validate_ephemeral(&pod, &path.child("ephemeralContainers")));
    errors.extend(requirement::of_pod(spec, &pod.claims, allowed, path));
    errors.extend(network::host_ports(spec, allowed, path));
    errors.extend(check::required_one_of(
        &path.child("restartPolicy"),
        text(&spec.restart_policy),
        RESTART_POLICIES,
    ));
    let dns_policy = text(&spec.dns_policy);
    errors.extend(check::required_one_of(&path.child("dnsPolicy"), dns_policy, DNS_POLICIES));
    let node_labels = spec.node_selector.iter().flatten();
    errors.extend(check::labels(&path.child("nodeSelector"), node_labels));
    errors.extend(security::of_pod(spec, allowed, &path.child("securityContext")));
    if let Some(affinity) = &spec.affinity {
        errors.extend(schedule::affinity(affinity, allowed, &path.child("affinity")));
    }
    let dns_config = spec.dns_config.as_ref();
    errors.extend(network::dns_config(dns_config, dns_policy, &path.child("dnsConfig")));
    errors.extend(validate_gates(spec, path));
    let constraints = list(&spec.topology_spread_constraints);
    let constraints_path = path.child("topologySpreadConstraints");
    errors.extend(schedule::spreading(constraints, allowed, &constraints_path));
    errors.extend(security::of_host_processes(spec, path));
    errors.extend(security::of_user_namespace(spec, allowed, path));
    errors.extend(network::hostname_override(spec, path));
    errors.extend(validate_names(spec, path));
    errors.extend(schedule::tolerations(list(&spec.tolerations), &path.child("tolerations")));
    errors.extend(network::host_aliases(list(&spec.host_aliases), &path.child("hostAliases")));
    errors.extend(validate_classes(spec, path));
    if let Some(overhead) = &spec.overhead {
        errors.extend(requirement::of_overhead(overhead, allowed, &path.child("overhead")));
    }
    errors.extend(security::of_system(spec, path));
    let all_volumes = list(&spec.volumes).iter().map(|volume| (volume.name.as_str(), volume));
    let all_volumes = all_volumes.collect();
    each_container(spec, path, |container, path| {
        errors.extend(env::validate_files(list(&container.env), &all_volumes, &path.child("env")));
    });
    errors
}

fn validate_gates(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let readiness_path = path.child("readinessGates");
    for (index, gate) in list(&spec.readiness_gates).iter().enumerate() {
        let path = readiness_path.index(index);
        errors.extend(check::qualified_name(&path.child("conditionType"), &gate.condition_type));
    }
    let scheduling_path = path.child("schedulingGates");
    let mut names = BTreeSet::new();
    for (index, gate) in list(&spec.scheduling_gates).iter().enumerate() {
        let path = scheduling_path.index(index);
        errors.extend(check::qualified_name(&path, &gate.name));
        if !names.insert(&gate.name) {
            errors.push(Error::duplicate(&path, gate.name.as_str()));
        }
    }
    errors
}

fn validate_names(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (field, name) in [
        ("serviceAccountName", text(&spec.service_account_name)),
        ("nodeName", text(&spec.node_name)),
    ] {
        if !name.is_empty() {
            errors.extend(check::dns_subdomain(&path.child(field), name));
        }
    }
    if let Some(seconds) = spec.active_deadline_seconds {
        let path = path.child("activeDeadlineSeconds");
        errors.extend(check::in_range(&path, seconds, 1, i32::MAX.into()));
    }
    for (field, name) in [("hostname", text(&spec.hostname)), ("subdomain", text(&spec.subdomain))]
    {
        if !name.is_empty() {
            errors.extend(check::dns_label(&path.child(field), name));
        }
    }
    errors
}

fn validate_classes(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let priority = text(&spec.priority_class_name);
    if !priority.is_empty() {
        errors.extend(check::dns_subdomain(&path.child("priorityClassName"), priority));
    }
    if let Some(class) = &spec.runtime_class_name {
        errors.extend(check::dns_subdomain(&path.child("runtimeClassName"), class));
    }
    if let Some(policy) = &spec.preemption_policy {
        let path = path.child("preemptionPolicy");
        errors.extend(check::required_one_of(&path, policy, PREEMPTION_POLICIES));
    }
    errors
}

fn tree(annotations: &Annotations) -> Map<String, Value> {
    annotations.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
}
