//! What containers and pods ask of resources, and what they may use of them at most.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodResourceClaim, PodSpec, ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::pod::Need;
use kubewright_apimachinery::resources::{self, Amounts, CPU, MEMORY};
use serde_json::json;

use super::Allowed;
use crate::kinds::check::{self, list, text};
use crate::kinds::resource_name;

const POD_LEVEL: &[&str] = &[CPU, resources::HUGE_PAGES_PREFIX, MEMORY];

pub(super) fn of_container(
    requirements: &ResourceRequirements,
    claims: &BTreeSet<&str>,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    validate(requirements, resource_name::validate_of_container, claims, allowed, path)
}

/// What running a pod costs beside its containers.
pub(super) fn of_overhead(
    overhead: &BTreeMap<String, Text>,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let requirements =
        ResourceRequirements { limits: Some(overhead.clone()), ..ResourceRequirements::default() };
    of_container(&requirements, &BTreeSet::new(), allowed, path)
}

/// What a pod asks for as a whole.
pub(super) fn of_pod(
    spec: &PodSpec,
    claims: &BTreeSet<&str>,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let Some(requirements) = &spec.resources else { return Vec::new() };
    let path = path.child("resources");
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return vec![Error::forbidden(&path, "may not be set for a windows pod")];
    }
    let mut errors = Vec::new();
    if requirements.claims.is_some() {
        let problem = "claims may not be set for Resources at pod-level";
        errors.push(Error::forbidden(&path.child("claims"), problem));
    }
    errors.extend(validate(requirements, pod_resource, claims, allowed, &path));
    errors.extend(against_containers(spec, requirements, &path));
    errors
}

/// The claims of a pod for devices, by which its containers refer to them.
pub(super) fn of_claims(
    claims: &[PodResourceClaim],
    is_static: bool,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        if is_static {
            let problem = "static pods do not support resource claims";
            errors.push(Error::forbidden(&Path::new(""), problem));
            continue;
        }
        let path = path.index(index);
        let name_path = path.child("name");
        match claim.name.as_str() {
            "" => errors.push(Error::required(&name_path, "")),
            name if !names.insert(name) => errors.push(Error::duplicate(&name_path, name)),
            name => errors.extend(check::dns_label(&name_path, name)),
        }
        let (object, template) = (&claim.resource_claim_name, &claim.resource_claim_template_name);
        let problem = match (object, template) {
            (Some(_), Some(_)) => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be \
                 specified",
            ),
            (None, None) => {
                Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let shown = json!({
                "Name": claim.name,
                "ResourceClaimName": object,
                "ResourceClaimTemplateName": template,
            });
            errors.push(Error::invalid(&path, shown, problem));
        }
        if let Some(name) = object {
            errors.extend(check::dns_subdomain(&path.child("resourceClaimName"), name));
        }
        if let Some(name) = template {
            errors.extend(check::dns_subdomain(&path.child("resourceClaimTemplateName"), name));
        }
    }
    errors
}

/// Whether the old spec has amounts of huge pages that are no whole number of pages.
pub(super) fn has_broken_pages(requirements: &ResourceRequirements) -> bool {
    let lists = [&requirements.limits, &requirements.requests];
    let mut amounts = lists.into_iter().flatten().flatten();
    amounts.any(|(name, amount)| {
        resources::is_huge_page(name) && !is_whole_pages(name, &check::quantity(amount))
    })
}

fn validate(
    requirements: &ResourceRequirements,
    name_errors: fn(&str, &Path<'_>) -> Vec<Error>,
    claims: &BTreeSet<&str>,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let limits = resource_name::amounts(requirements.limits.as_ref());
    let requests = resource_name::amounts(requirements.requests.as_ref());
    let amount_errors = |name: &str, amount: &Quantity, path: &Path<'_>| {
        let mut errors = name_errors(name, path);
        errors.extend(resource_name::validate_amount(name, amount, path));
        errors
    };
    let page_errors = |name: &str, amount: &Quantity, path: &Path<'_>| {
        let is_broken = resources::is_huge_page(name)
            && !allowed.broken_huge_pages
            && !is_whole_pages(name, amount);
        is_broken.then(|| {
            let problem = format!("{amount} is not positive integer multiple of {name}");
            Error::invalid(path, amount.to_string(), problem)
        })
    };

    let mut errors = Vec::new();
    for (name, limit) in &limits {
        let path = limits_path.key(name);
        errors.extend(amount_errors(name, limit, &path));
        errors.extend(page_errors(name, limit, &path));
    }
    for (name, request) in &requests {
        let path = requests_path.key(name);
        errors.extend(amount_errors(name, request, &path));
        let shown = || request.to_string();
        match limits.get(name) {
            Some(limit) if request != limit && !resources::is_overcommit_allowed(name) => {
                let problem = format!("must be equal to {name} limit of {limit}");
                errors.push(Error::invalid(&requests_path, shown(), problem));
            }
            Some(limit) if request > limit => {
                let problem = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(Error::invalid(&requests_path, shown(), problem));
            }
            None if !resources::is_overcommit_allowed(name) => {
                let problem = "Limit must be set for non overcommitable resources";
                errors.push(Error::required(&limits_path, problem));
            }
            _ => {}
        }
        errors.extend(page_errors(name, request, &path));
    }
    let asks = |wanted: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|n| wanted(n));
    if asks(resources::is_huge_page) && !asks(|name| matches!(name, CPU | MEMORY)) {
        errors.push(Error::forbidden(path, "HugePages require cpu or memory"));
    }
    errors.extend(claim_errors(list(&requirements.claims), claims, &path.child("claims")));
    errors
}

fn pod_resource(name: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = resource_name::validate(name, path);
    if errors.is_empty() && !resources::is_pod_level(name) {
        errors.push(Error::not_supported(path, name, POD_LEVEL));
    }
    errors
}

/// The size of a page is part of the resource's name.
fn is_whole_pages(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix(resources::HUGE_PAGES_PREFIX).unwrap_or_default();
    let Ok(size) = Quantity::parse(size) else { return false };
    let is_sound = !size.is_zero() && !size.is_negative() && size.milli_value() % 1000 == 0;
    is_sound && amount.value() % size.value() == 0
}

/// The whole must be enough for the parts, and no part may use more than the whole.
fn against_containers(
    spec: &PodSpec,
    requirements: &ResourceRequirements,
    path: &Path<'_>,
) -> Vec<Error> {
    let limits = resource_name::amounts(requirements.limits.as_ref());
    let requests = resource_name::amounts(requirements.requests.as_ref());
    let mut errors = Vec::new();
    let mut compare = |list: &str, whole: &Amounts, parts: &Amounts| {
        for (name, parts) in parts {
            let Some(whole) = whole.get(name).filter(|whole| parts > whole) else { continue };
            let problem =
                format!("must be greater than or equal to aggregate container {list} of {parts}");
            let path = path.child(list);
            errors.push(Error::invalid(&path.key(name), whole.to_string(), problem));
        }
    };
    compare("requests", &requests, &total(spec, |resources| resources.requests.as_ref()));
    let mut pages = total(spec, |resources| resources.limits.as_ref());
    pages.retain(|name, _| resources::is_huge_page(name));
    compare("limits", &limits, &pages);

    let containers_path = path.child("containers");
    for (index, container) in spec.containers.iter().enumerate() {
        let of_container = container.resources.as_ref().and_then(|r| r.limits.as_ref());
        for (name, limit) in resource_name::amounts(of_container) {
            let Some(whole) = limits.get(&name).filter(|whole| limit > **whole) else { continue };
            let path = containers_path.index(index);
            let path = path.key(&name);
            let problem = format!("must be less than or equal to pod limits of {whole}");
            errors.push(Error::invalid(&path.child("limits"), limit.to_string(), problem));
        }
    }
    errors
}

fn total(
    spec: &PodSpec,
    amounts: fn(&ResourceRequirements) -> Option<&BTreeMap<String, Text>>,
) -> Amounts {
    let amounts = |resources: &Option<ResourceRequirements>| {
        resource_name::amounts(resources.as_ref().and_then(amounts))
    };
    let lasting = spec.containers.iter().map(|c| Need::Always(amounts(&c.resources)));
    let first = list(&spec.init_containers).iter().map(|container| {
        match container.restart_policy.as_deref() {
            Some("Always") => Need::FromThenOn(amounts(&container.resources)),
            _ => Need::AtFirst(amounts(&container.resources)),
        }
    });
    resources::pod::total(lasting.chain(first))
}

/// A container may refer to each claim of its pod once: as a whole, or to each request of it.
fn claim_errors(claims: &[ResourceClaim], of_pod: &BTreeSet<&str>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (claim.name.as_str(), text(&claim.request));
        if name.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        if seen.contains(&(name, "")) {
            errors.push(Error::duplicate(&path, name));
        } else {
            if !request.is_empty() {
                errors.extend(check::dns_label(&path.child("request"), request));
            }
            if seen.contains(&(name, request)) {
                errors.push(Error::duplicate(&path, format!("{name}/{request}")));
            } else if request.is_empty() {
                let parts = seen.iter().filter(|(other, _)| *other == name);
                errors.extend(parts.map(|_| Error::duplicate(&path, name)));
            }
            seen.insert((name, request));
        }
        if !of_pod.contains(name) {
            let names: Vec<&str> = of_pod.iter().copied().collect();
            let mut error = Error::not_found(&path, name);
            error.detail = match names.as_slice() {
                [] => {
                    "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
                }
                names => {
                    let names = names.join(", ");
                    format!("must be one of the names in pod.spec.resourceClaims: {names}")
                }
            };
            errors.push(error);
        }
    }
    errors
}
