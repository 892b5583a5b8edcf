//! `resize`: a pod that runs gets more or less of what it may use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::resources::{CPU, MEMORY};
use serde_json::Value;

use super::ephemeral_containers::METADATA;
use super::qos;
use crate::kinds::pod_spec::validate::annotation;
use crate::kinds::{Context, Part, check, edit, pod_spec, typed};

pub(super) const PART: Part = Part {
    prepare_update,
    validate_update,
    // Of the containers only some fields are for this, which these paths cannot say.
    reset: &["metadata", "status"],
    ..Part::PLAIN
};

const LISTS: [&str; 2] = ["containers", "initContainers"];

fn prepare_update(pod: &mut Value, old: &Value, _: &Context<'_>) {
    // Containers that came, went or moved are for the validation to refuse.
    let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
    if LISTS.iter().all(|list| count(pod, list) == count(old, list)) {
        let resources = pod["spec"].get("resources").cloned();
        let lists = LISTS.map(|list| (list, merged(&pod["spec"][list], &old["spec"][list])));
        edit::restore(pod, old, "spec");
        edit::restore(pod, old, "status");
        edit::restore_meta(pod, old, METADATA);
        match resources {
            Some(resources) => pod["spec"]["resources"] = resources,
            None => edit::remove(&mut pod["spec"], "resources"),
        }
        for (list, containers) in lists {
            if let Some(containers) = containers {
                pod["spec"][list] = containers;
            }
        }
    }
    pod_spec::drop_disabled_fields(&mut pod["spec"], old.get("spec"));
    edit::next_generation(pod, old, "spec");
}

/// The old containers with what the new ones say about resources; the new ones where they are
/// others.
fn merged(new: &Value, old: &Value) -> Option<Value> {
    let (new, old) = (new.as_array()?, old.as_array()?);
    if new.iter().zip(old).any(|(new, old)| new["name"] != old["name"]) {
        return Some(Value::Array(new.clone()));
    }
    let merged = new.iter().zip(old).map(|(new, old)| {
        let mut container = old.clone();
        edit::restore(&mut container, new, "resources");
        edit::restore(&mut container, new, "resizePolicy");
        container
    });
    Some(merged.collect())
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (pod, old): (Pod, Pod) = (typed(object), typed(old));
    let nothing = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&nothing);
    let old_spec = old.spec.as_ref().unwrap_or(&nothing);
    let annotations = old.metadata.annotations.as_ref();
    let refuse = |problem: &str| vec![Error::forbidden(&Path::new(""), problem)];
    if annotations.is_some_and(|all| all.contains_key(annotation::MIRROR)) {
        return refuse("static pods cannot be resized");
    }
    if old_spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return refuse("windows pods cannot be resized");
    }

    let path = Path::new("spec");
    let mut errors = super::check(&pod.metadata, spec, Some(&old));
    let class = |pod: &Pod| pod.status.as_ref().and_then(|status| status.qos_class.clone());
    let old_class = class(&old).unwrap_or_else(|| qos::class(old_spec).to_owned());
    if old_class != qos::class(spec) {
        let problem = "Pod QOS Class may not change as a result of resizing";
        errors.push(Error::invalid(&path, class(&pod).unwrap_or_default(), problem));
    }
    if !can_be_resized(&old) {
        let problem = "Pod running on node without support for resize";
        errors.push(Error::forbidden(&path, problem));
    }
    let mut munged = spec.clone();
    if has_resources(old_spec) || has_resources(spec) {
        errors.extend(whole_changes(spec, old_spec, &mut munged, &path));
    }
    let order = order_errors(spec, old_spec, &path);
    if !order.is_empty() {
        errors.extend(order);
        return errors;
    }
    errors.extend(removals(spec, old_spec, &path));
    errors.extend(container_changes(&mut munged, old_spec, &path));
    if errors.is_empty() && munged != *old_spec {
        errors.push(Error::forbidden(&path, "only cpu and memory resources are mutable"));
    }
    errors
}

fn has_resources(spec: &PodSpec) -> bool {
    spec.resources.as_ref().is_some_and(|resources| {
        let is_given = |list: &Option<BTreeMap<String, Quantity>>| {
            list.as_ref().is_some_and(|list| !list.is_empty())
        };
        is_given(&resources.requests) || is_given(&resources.limits)
    })
}

/// A node that can resize tells what running containers have.
fn can_be_resized(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let is_running = |status: &&k8s_openapi::api::core::v1::ContainerStatus| {
        status.state.as_ref().is_some_and(|state| state.running.is_some())
    };
    statuses.into_iter().find(is_running).is_none_or(|status| status.resources.is_some())
}

fn order_errors(spec: &PodSpec, old: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let none = Vec::new();
    let lists = [
        ("containers", &spec.containers, &old.containers),
        (
            "initContainers",
            spec.init_containers.as_ref().unwrap_or(&none),
            old.init_containers.as_ref().unwrap_or(&none),
        ),
    ];
    let mut errors = Vec::new();
    for (list, new, old) in lists {
        let path = path.child(list);
        if new.len() != old.len() {
            let problem = format!("{list} may not be added or removed on resize");
            errors.push(Error::forbidden(&path, problem));
            continue;
        }
        for (index, _) in new.iter().zip(old).enumerate().filter(|(_, (a, b))| a.name != b.name) {
            let problem = format!("{list} may not be renamed or reordered on resize");
            errors.push(Error::forbidden(&path.index(index).child("name"), problem));
        }
    }
    errors
}

fn removals(spec: &PodSpec, old: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let lists = [
        ("initContainers", spec.init_containers.iter().flatten().collect::<Vec<_>>(), {
            old.init_containers.iter().flatten().collect::<Vec<_>>()
        }),
        ("containers", spec.containers.iter().collect(), old.containers.iter().collect()),
    ];
    let mut errors = Vec::new();
    for (list, new, old) in lists {
        let path = path.child(list);
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            let none = ResourceRequirements::default();
            let new = new.resources.as_ref().unwrap_or(&none);
            let old = old.resources.as_ref().unwrap_or(&none);
            let path = path.index(index);
            let path = path.child("resources");
            if is_removed(&new.requests, &old.requests) {
                let problem = "resource requests cannot be removed";
                errors.push(Error::forbidden(&path.child("requests"), problem));
            }
            if is_removed(&new.limits, &old.limits) {
                let problem = "resource limits cannot be removed";
                errors.push(Error::forbidden(&path.child("limits"), problem));
            }
        }
    }
    errors
}

type Amounts = Option<BTreeMap<String, Quantity>>;

fn is_removed(new: &Amounts, old: &Amounts) -> bool {
    let mut names = old.iter().flatten().map(|(name, _)| name);
    names.any(|name| new.as_ref().is_none_or(|new| !new.contains_key(name)))
}

fn whole_changes(
    spec: &PodSpec,
    old: &PodSpec,
    munged: &mut PodSpec,
    path: &Path<'_>,
) -> Vec<Error> {
    let resources_path = path.child("resources");
    let mut errors = Vec::new();
    if let Some(old) = &old.resources {
        let Some(new) = &spec.resources else {
            let problem = "pod-level resources cannot be removed";
            return vec![Error::forbidden(&resources_path, problem)];
        };
        if is_removed(&new.requests, &old.requests) {
            let problem = "pod-level resource requests cannot be removed";
            errors.push(Error::forbidden(&resources_path.child("requests"), problem));
        }
        if is_removed(&new.limits, &old.limits) {
            let problem = "pod-level resource limits cannot be removed";
            errors.push(Error::forbidden(&resources_path.child("limits"), problem));
        }
    }
    let nothing = ResourceRequirements::default();
    let old_resources = old.resources.as_ref().unwrap_or(&nothing);
    if let Some(resources) = &mut munged.resources {
        put_back(resources, old_resources);
    }
    if munged.resources.as_ref().unwrap_or(&nothing) != old_resources {
        let problem = "only cpu and memory resources are mutable at pod-level";
        errors.push(Error::forbidden(path, problem));
    }
    munged.resources.clone_from(&old.resources);
    errors
}

/// The old amounts of what may change, so that what remains can be compared.
fn put_back(resources: &mut ResourceRequirements, old: &ResourceRequirements) {
    let put_back = |new: &mut Amounts, old: &Amounts| {
        let mut list = new.take().unwrap_or_default();
        for name in [CPU, MEMORY] {
            list.remove(name);
            if let Some(amount) = old.as_ref().and_then(|old| old.get(name)) {
                list.insert(name.to_owned(), amount.clone());
            }
        }
        // The same amount may be written in another way.
        for (name, amount) in &mut list {
            if let Some(old) = old.as_ref().and_then(|old| old.get(name))
                && check::quantity(amount) == check::quantity(old)
            {
                amount.clone_from(old);
            }
        }
        *new = Some(list).filter(|list| !list.is_empty());
    };
    put_back(&mut resources.limits, &old.limits);
    put_back(&mut resources.requests, &old.requests);
}

fn container_changes(munged: &mut PodSpec, old: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (container, old) in munged.containers.iter_mut().zip(&old.containers) {
        if !is_only_resized(container, old) {
            let problem = "only cpu and memory resources are mutable";
            errors.push(Error::forbidden(path, problem));
        }
    }
    let path = path.child("initContainers");
    let pairs =
        munged.init_containers.iter_mut().flatten().zip(old.init_containers.iter().flatten());
    for (index, (container, old)) in pairs.enumerate() {
        let path = path.index(index);
        let was_modified = container != old;
        if !is_only_resized(container, old) {
            let problem =
                "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(Error::forbidden(&path, problem));
        }
        if was_modified && container.restart_policy.as_deref() != Some("Always") {
            let policies = container.resize_policy.iter().flatten();
            let restarting = policies.filter(|p| p.restart_policy == "RestartContainer").count();
            let problem = "non-sidecar init containers with a resize policy of RestartContainer \
                           cannot be resized";
            errors.extend((0..restarting).map(|_| Error::forbidden(&path, problem)));
        }
    }
    errors
}

/// Puts back what may change, and tells whether that was all.
fn is_only_resized(container: &mut Container, old: &Container) -> bool {
    let nothing = ResourceRequirements::default();
    let old_resources = old.resources.as_ref().unwrap_or(&nothing);
    let mut resources = container.resources.take().unwrap_or_default();
    // Claims are lost on upstream's way here, so a container that has any cannot be resized.
    resources.claims = None;
    put_back(&mut resources, old_resources);
    let is_same = resources == *old_resources;
    container.resources.clone_from(&old.resources);
    is_same && container == old
}
