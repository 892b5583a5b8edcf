//! `status`: what the node tells about a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodExtendedResourceClaimStatus, PodResourceClaim,
    PodResourceClaimStatus, PodSpec, PodStatus,
};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::update;
use crate::kinds::{Context, Part, check, edit, ip, typed};

pub(super) const PART: Part = Part {
    prepare_update,
    validate_update,
    warnings,
    reset: &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
};

const ID_MAX: i64 = i32::MAX as i64;
const HEALTH_MESSAGE_BYTES_MAX: usize = 1024;
const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
const SYSTEM_CONDITIONS: &[&str] = &["PodScheduled", "Ready", "Initialized"];
const STATUSES: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

fn prepare_update(pod: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(pod, old, "spec");
    edit::restore_meta(pod, old, &["deletionTimestamp", "ownerReferences"]);
    edit::count_generation(pod, old, false);
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    let (status, old) = (&mut pod["status"], &old["status"]);
    // Clients of old do not know these, and do not mean to clear them.
    for member in ["qosClass", "observedGeneration"] {
        if status.get(member).is_none() {
            edit::restore(status, old, member);
        }
    }
    keep_observed_generations(status, old);
    drop_disabled(status, old);
}

/// Conditions keep the generation that they are about, one after the other of each type.
fn keep_observed_generations(status: &mut Value, old: &Value) {
    let mut generations: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for condition in old["conditions"].as_array().into_iter().flatten().rev() {
        let kind = condition["type"].as_str().unwrap_or_default();
        generations.entry(kind).or_default().push(&condition["observedGeneration"]);
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        let generation = generations.get_mut(kind).and_then(Vec::pop);
        if let Some(generation) = generation.filter(|generation| !generation.is_null())
            && condition.get("observedGeneration").is_none()
        {
            condition["observedGeneration"] = generation.clone();
        }
    }
}

/// What is switched off by default is not heard.
fn drop_disabled(status: &mut Value, old: &Value) {
    const CLAIMS: &str = "nodeAllocatableResourceClaimStatuses";
    if old.get(CLAIMS).is_none() {
        edit::remove(status, CLAIMS);
    }
    let mounts = |status: &Value| -> Vec<Value> {
        let statuses = STATUSES.iter().filter_map(|list| status[*list].as_array()).flatten();
        statuses.filter_map(|status| status["volumeMounts"].as_array().cloned()).flatten().collect()
    };
    if mounts(old).iter().any(|mount| mount.get("volumeStatus").is_some()) {
        return;
    }
    for list in STATUSES {
        let statuses = status.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let mounts = statuses.filter_map(|status| status.get_mut("volumeMounts"));
        for mount in mounts.filter_map(Value::as_array_mut).flatten() {
            edit::remove(mount, "volumeStatus");
        }
    }
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (pod, old): (Pod, Pod) = (typed(object), typed(old));
    let (no_spec, no_status) = (PodSpec::default(), PodStatus::default());
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    let status = pod.status.as_ref().unwrap_or(&no_status);
    let old_status = old.status.as_ref().unwrap_or(&no_status);
    let path = Path::new("status");

    let mut errors = update::annotation_changes(&pod, &old);
    errors.extend(conditions(status, &path.child("conditions")));
    errors.extend(nominated_node(status, old_status, spec, &path.child("nominatedNodeName")));
    if let Some(generation) = status.observed_generation.filter(|generation| *generation < 0) {
        let problem = "must be a non-negative integer";
        errors.push(Error::invalid(&path.child("observedGeneration"), generation, problem));
    }
    if status.qos_class != old_status.qos_class {
        let class = status.qos_class.clone().unwrap_or_default();
        errors.push(Error::invalid(&path.child("qosClass"), class, "field is immutable"));
    }
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    let lists = [
        (STATUSES[0], &status.container_statuses, &old_status.container_statuses),
        (STATUSES[1], &status.init_container_statuses, &old_status.init_container_statuses),
        (
            STATUSES[2],
            &status.ephemeral_container_statuses,
            &old_status.ephemeral_container_statuses,
        ),
    ];
    let containers = [Some(spec.containers.as_slice()), Some(init_containers), None];
    for ((name, new, old), containers) in lists.iter().zip(containers) {
        errors.extend(revivals(new, old, spec, containers, &path.child(name)));
    }
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    let statuses = status.resource_claim_statuses.as_deref().unwrap_or_default();
    errors.extend(claim_statuses(statuses, claims, &path.child("resourceClaimStatuses")));
    if let Some(claim) = &status.extended_resource_claim_status {
        let path = path.child("extendedResourceClaimStatus");
        errors.extend(extended_claim(claim, spec, &path));
    }
    errors.extend(addresses(status, old_status, &path));
    let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    for (name, new, _) in &lists {
        errors.extend(users(new, is_windows, &path.child(name)));
    }
    for ((name, new, _), containers) in lists.iter().zip(containers) {
        errors.extend(health(new, containers, &path.child(name)));
    }
    errors
}

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let Pod { status, .. } = typed(object);
    let status = status.unwrap_or_default();
    let path = Path::new("status");
    let (pod_path, host_path) = (path.child("podIPs"), path.child("hostIPs"));
    let mut warnings = Vec::new();
    for (index, address) in status.pod_ips.iter().flatten().enumerate() {
        warnings.extend(ip::warnings(&pod_path.index(index).child("ip"), &address.ip));
    }
    for (index, address) in status.host_ips.iter().flatten().enumerate() {
        warnings.extend(ip::warnings(&host_path.index(index).child("ip"), &address.ip));
    }
    warnings
}

fn conditions(status: &PodStatus, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, condition) in status.conditions.iter().flatten().enumerate() {
        let path = path.index(index);
        if let Some(generation) = condition.observed_generation.filter(|n| *n < 0) {
            let problem = "must be a non-negative integer";
            errors.push(Error::invalid(&path.child("observedGeneration"), generation, problem));
        }
        if !SYSTEM_CONDITIONS.contains(&condition.type_.as_str()) {
            errors.extend(check::qualified_name(&path.child("Type"), &condition.type_));
        }
    }
    errors
}

fn nominated_node(
    status: &PodStatus,
    old: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if status.nominated_node_name != old.nominated_node_name
        && let Some(node) = &status.nominated_node_name
    {
        errors.extend(check::dns_subdomain(path, node));
        if spec.node_name.is_some() {
            let problem = "may not be set on pods that are already bound to a node";
            errors.push(Error::forbidden(path, problem));
        }
    }
    errors
}

/// A container that has ended for good does not run again.
fn revivals(
    new: &Option<Vec<ContainerStatus>>,
    old: &Option<Vec<ContainerStatus>>,
    spec: &PodSpec,
    containers: Option<&[Container]>,
    path: &Path<'_>,
) -> Vec<Error> {
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut rules = all.flat_map(|container| container.restart_policy_rules.iter().flatten());
    if containers.is_some() && rules.any(|rule| rule.action == "RestartAllContainers") {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (index, old) in old.iter().flatten().enumerate() {
        let terminated = old.state.as_ref().and_then(|state| state.terminated.as_ref());
        let Some(terminated) = terminated else { continue };
        let is_revived = |new: &&ContainerStatus| {
            new.name == old.name && new.state.as_ref().is_none_or(|s| s.terminated.is_none())
        };
        let revived = new.iter().flatten().filter(is_revived).count();
        let container =
            containers.and_then(|all| all.iter().find(|container| container.name == old.name));
        if container.is_some_and(|container| restarts(container, spec, terminated.exit_code)) {
            continue;
        }
        let count = if containers.is_some() { revived.min(1) } else { revived };
        let problem = "may not be transitioned to non-terminated state";
        let path = path.index(index);
        errors.extend((0..count).map(|_| Error::forbidden(&path.child("state"), problem)));
    }
    errors
}

/// Whether a container runs again after it ended with a code.
fn restarts(container: &Container, spec: &PodSpec, code: i32) -> bool {
    if let Some(policy) = &container.restart_policy {
        let matches = |rule: &&k8s_openapi::api::core::v1::ContainerRestartRule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let is_listed = codes.values.iter().flatten().any(|value| *value == code);
                is_listed == (codes.operator == "In")
            })
        };
        if container.restart_policy_rules.iter().flatten().any(|rule| matches(&rule)) {
            return true;
        }
        match policy.as_str() {
            "Always" => return true,
            "OnFailure" => return code != 0,
            "Never" => return false,
            _ => {}
        }
    }
    match spec.restart_policy.as_deref() {
        Some("OnFailure") => code != 0,
        Some("Never") => false,
        _ => true,
    }
}

fn claim_statuses(
    statuses: &[PodResourceClaimStatus],
    claims: &[PodResourceClaim],
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        if !claims.iter().any(|claim| claim.name == status.name) {
            let problem = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(Error::invalid(&name_path, status.name.as_str(), problem));
        }
        if !names.insert(&status.name) {
            errors.push(Error::duplicate(&name_path, status.name.as_str()));
        }
        if let Some(claim) = &status.resource_claim_name {
            errors.extend(check::dns_subdomain(&path.child("resourceClaimName"), claim));
        }
    }
    errors
}

fn extended_claim(
    status: &PodExtendedResourceClaimStatus,
    spec: &PodSpec,
    path: &Path<'_>,
) -> Vec<Error> {
    let containers: BTreeMap<&str, &Container> = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
        .map(|container| (container.name.as_str(), container))
        .collect();
    let mappings_path = path.child("requestMappings");
    let mut errors = Vec::new();
    if status.request_mappings.is_empty() {
        let problem = "at least one request mapping is required";
        errors.push(Error::required(&mappings_path, problem));
    }
    let mut seen = BTreeSet::new();
    for (index, mapping) in status.request_mappings.iter().enumerate() {
        let item_path = mappings_path.index(index);
        let container = mapping.container_name.as_str();
        let (resource, request) = (mapping.resource_name.as_str(), mapping.request_name.as_str());
        let resources = containers.get(container).map(|container| container.resources.as_ref());
        match resources {
            None => errors.push(Error::invalid(
                &item_path.child("containerName"),
                container,
                "must match the name of an entry in spec.initContainers.name or \
                 spec.containers.name",
            )),
            Some(resources) => {
                let requests = resources.and_then(|resources| resources.requests.as_ref());
                if requests.is_none_or(|requests| !requests.contains_key(resource)) {
                    errors.push(Error::invalid(
                        &item_path.child("resourceName"),
                        resource,
                        "must match the extended resource name of an entry in \
                         spec.initContainers.resources.requests or \
                         spec.containers.resources.requests",
                    ));
                }
            }
        }
        errors.extend(check::dns_label(&path.child("requestName"), request));
        if !seen.insert((container, resource, request)) {
            errors.push(Error::duplicate(&item_path.child("containerName"), container));
            errors.push(Error::duplicate(&item_path.child("resourceName"), resource));
            errors.push(Error::duplicate(&item_path.child("requestName"), request));
        }
    }
    let name_path = path.child("resourceClaimName");
    match status.resource_claim_name.as_str() {
        "" => errors.push(Error::required(&name_path, "")),
        name => errors.extend(check::dns_subdomain(&name_path, name)),
    }
    errors
}

fn addresses(status: &PodStatus, old: &PodStatus, path: &Path<'_>) -> Vec<Error> {
    let of_pod = |status: &PodStatus| -> Vec<String> {
        status.pod_ips.iter().flatten().map(|address| address.ip.clone()).collect()
    };
    let of_host = |status: &PodStatus| -> Vec<String> {
        status.host_ips.iter().flatten().map(|address| address.ip.clone()).collect()
    };
    let mut errors = families(&of_pod(status), &of_pod(old), &path.child("podIPs"));
    let hosts = of_host(status);
    let hosts_path = path.child("hostIPs");
    if let Some(first) = hosts.first()
        && status.host_ip.as_deref().unwrap_or_default() != first
    {
        let path = hosts_path.index(0);
        let problem = "must be equal to `hostIP`";
        errors.push(Error::invalid(&path.child("ip"), first.as_str(), problem));
    }
    errors.extend(families(&hosts, &of_host(old), &hosts_path));
    errors
}

/// At most one address of each family.
fn families(addresses: &[String], old: &[String], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        errors.extend(ip::check_legacy(&path.index(index), address, old));
    }
    if addresses.len() < 2 {
        return errors;
    }
    let parsed: Vec<Option<IpAddr>> = addresses.iter().map(|address| ip::parse(address)).collect();
    if let Some(index) = parsed.iter().position(Option::is_none) {
        let address = &addresses[index];
        let problem =
            format!("failed to check for dual stack with error:invalid IP[{index}]: {address}");
        errors.push(Error::internal(path, problem));
    }
    let both = parsed.iter().flatten().any(IpAddr::is_ipv4)
        && parsed.iter().flatten().any(IpAddr::is_ipv6);
    if !both || addresses.len() > 2 || parsed.contains(&None) {
        let shown: Value = addresses.iter().map(|address| json!({ "IP": address })).collect();
        let problem = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(path, shown, problem));
    }
    errors
}

fn users(statuses: &Option<Vec<ContainerStatus>>, is_windows: bool, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, status) in statuses.iter().flatten().enumerate() {
        let Some(user) = status.user.as_ref().and_then(|user| user.linux.as_ref()) else {
            continue;
        };
        let path = path.index(index);
        let path = path.child("user");
        let path = path.child("linux");
        if is_windows {
            errors.push(Error::forbidden(&path, "cannot be set for a windows pod"));
            continue;
        }
        let id = |id: i64, path: &Path<'_>| {
            let problem = format!("must be between 0 and {ID_MAX}, inclusive");
            (!(0..=ID_MAX).contains(&id)).then(|| Error::invalid(path, id, problem))
        };
        errors.extend(id(user.uid, &path.child("uid")));
        errors.extend(id(user.gid, &path.child("gid")));
        let groups_path = path.child("supplementalGroups");
        for (index, group) in user.supplemental_groups.iter().flatten().enumerate() {
            errors.extend(id(*group, &groups_path.index(index)));
        }
    }
    errors
}

/// How the devices of containers are; those that are there to debug have none.
fn health(
    statuses: &Option<Vec<ContainerStatus>>,
    containers: Option<&[Container]>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, status) in statuses.iter().flatten().enumerate() {
        let path = path.index(index);
        let path = path.child("allocatedResourcesStatus");
        let Some(resources) = &status.allocated_resources_status else { continue };
        let Some(containers) = containers else {
            errors.push(Error::forbidden(&path, "must not be specified in container status"));
            continue;
        };
        let container = containers.iter().find(|container| container.name == status.name);
        for (index, resource) in resources.iter().enumerate() {
            let path = path.index(index);
            if let Some(problem) = container.and_then(|c| unasked(c, &resource.name)) {
                errors.push(Error::invalid(&path.child("name"), resource.name.as_str(), problem));
            }
            let path = path.child("resources");
            let mut ids = BTreeSet::new();
            for (index, device) in resource.resources.iter().flatten().enumerate() {
                let path = path.index(index);
                let health = device.health.as_deref().unwrap_or_default();
                errors.extend(check::one_of(&path.child("health"), health, HEALTH));
                match device.message.as_deref() {
                    Some("") => {
                        let problem = "must be non-empty if specified";
                        errors.push(Error::required(&path.child("message"), problem));
                    }
                    Some(message) if message.len() > HEALTH_MESSAGE_BYTES_MAX => {
                        let path = path.child("message");
                        errors.push(Error::too_long(&path, HEALTH_MESSAGE_BYTES_MAX));
                    }
                    _ => {}
                }
                if !ids.insert(&device.resource_id) {
                    let path = path.child("resourceID");
                    errors.push(Error::duplicate(&path, device.resource_id.as_str()));
                }
            }
        }
    }
    errors
}

/// Why a container cannot have been given a resource.
fn unasked(container: &Container, resource: &str) -> Option<&'static str> {
    let resources = container.resources.as_ref();
    if resource.starts_with("claim:") {
        let mut claims = resources.into_iter().flat_map(|r| r.claims.iter().flatten());
        let is_asked = claims.any(|claim| match claim.request.as_deref() {
            None | Some("") => resource == format!("claim:{}", claim.name),
            Some(request) => resource == format!("claim:{}/{request}", claim.name),
        });
        return (!is_asked).then_some(
            "must match one of the container's resource claims in a format \
             'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
        );
    }
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let is_asked = requests.is_some_and(|requests| requests.contains_key(resource));
    (!is_asked).then_some("must match one of the container's resource requests")
}
