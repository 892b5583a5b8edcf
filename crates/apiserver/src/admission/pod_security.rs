//! PodSecurity: pods do no more than the labels of their namespace allow.
//!
//! A pod that does is refused. Workloads are not, since only pods can do anything; but who makes
//! one hears of what will become of its pods. Nobody is exempt, as upstream has it unless told
//! otherwise.

mod check;
mod policy;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use kubewright_apimachinery::field::Error;
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use self::check::Violation;
use self::policy::{Level, Policy, Standard};
use super::{Attributes, Operation, Scene, items, text};
use crate::authz::aggregate;
use crate::meta;
use crate::refusal::Refusal;

/// Endpoints below a pod that do not change what it does.
const HARMLESS: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
/// How many pods of a namespace are looked at when it asks more of them.
const PODS_MAX: usize = 3000;

/// Judges a pod.
pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Refusal> {
    if attributes.part.is_some_and(|part| HARMLESS.contains(&part)) {
        return Ok(());
    }
    let name = attributes.namespace.unwrap_or_default();
    let Some(namespace) = namespace(scene, name) else {
        let why = format!("failed to lookup namespace {}", go_quote(name));
        return Err(Box::new(Status::internal_error(why)));
    };
    let (policy, errors) = policy::of_namespace(&namespace);
    let is_update = attributes.operation == Operation::Update;
    let is_same = is_update && attributes.old.is_some_and(|old| !is_significant(pod, old));
    if is_same && !(errors.is_empty() && policy.is_privileged()) {
        return Ok(());
    }
    let standard = || policy.enforce.to_string();
    attributes.warnings.note("pod-security.kubernetes.io/enforce-policy", standard);
    if is_same {
        return Ok(());
    }
    note(attributes, pod, &policy, &errors);
    let violations = check::violations(pod, policy.enforce);
    if !violations.is_empty() {
        let (standard, detail) = (go_quote(&policy.enforce.to_string()), detail(&violations));
        let why = format!("violates PodSecurity {standard}: {detail}");
        return Err(attributes.forbid(Some(pod), why));
    }
    warn(attributes, pod, policy.warn);
    Ok(())
}

/// Warns about the template of a workload.
pub(super) fn judge_template(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<(), Refusal> {
    if attributes.part.is_some() {
        return Ok(());
    }
    let template = match attributes.resource.gvr.resource.as_str() {
        "podtemplates" => object.pointer("/template"),
        "cronjobs" => object.pointer("/spec/jobTemplate/spec/template"),
        _ => object.pointer("/spec/template"),
    };
    let namespace = namespace(scene, attributes.namespace.unwrap_or_default());
    if let (Some(template), Some(namespace)) = (template, namespace) {
        let (policy, errors) = policy::of_namespace(&namespace);
        note(attributes, template, &policy, &errors);
        warn(attributes, template, policy.warn);
    }
    Ok(())
}

/// Judges the labels of a namespace, and warns about pods that it would not let in again.
pub(super) fn judge_namespace(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    namespace: &Value,
) -> Result<(), Refusal> {
    if attributes.part.is_some() {
        return Ok(());
    }
    let (policy, errors) = policy::of_namespace(namespace);
    let old = attributes.old.filter(|_| attributes.operation == Operation::Update);
    let old = old.map(policy::of_namespace);
    // Labels that were wrong before may stay.
    if !errors.is_empty() && old.as_ref().is_none_or(|(_, old_errors)| errors != *old_errors) {
        let kind = GroupKind::new("", "Namespace");
        return Err(Box::new(Status::invalid(&kind, attributes.name, &errors)));
    }
    let Some((old, _)) = old else { return Ok(()) };
    let is_stricter =
        policy.enforce.version != old.enforce.version || policy.enforce.level > old.enforce.level;
    if is_stricter && policy.enforce.level != Level::Privileged {
        let name = meta::text(namespace, "name");
        let pods = scene.list(&format!("/registry/pods/{name}/"));
        attributes.warnings.extend(warnings_about(&pods, name, policy.enforce));
    }
    Ok(())
}

fn namespace(scene: &Scene<'_>, name: &str) -> Option<Value> {
    scene.get(&format!("/registry/namespaces/{name}"))
}

/// Tells the audit log what it should know.
fn note(attributes: &Attributes<'_>, pod: &Value, policy: &Policy, errors: &[Error]) {
    if !attributes.warnings.is_annotated() {
        return;
    }
    if !errors.is_empty() {
        attributes.warnings.note("pod-security.kubernetes.io/error", || {
            let errors = errors.iter().map(ToString::to_string).collect::<Vec<_>>();
            format!("Failed to parse policy: {}", aggregate(errors.iter()))
        });
    }
    let violations = check::violations(pod, policy.audit);
    if !violations.is_empty() {
        attributes.warnings.note("pod-security.kubernetes.io/audit-violations", || {
            would(policy.audit, &violations)
        });
    }
}

fn would(standard: Standard, violations: &[Violation]) -> String {
    let (standard, detail) = (go_quote(&standard.to_string()), detail(violations));
    format!("would violate PodSecurity {standard}: {detail}")
}

fn warn(attributes: &Attributes<'_>, pod: &Value, standard: Standard) {
    let violations = check::violations(pod, standard);
    if !violations.is_empty() {
        attributes.warnings.add(would(standard, &violations));
    }
}

fn detail(violations: &[Violation]) -> String {
    let details = violations.iter().map(|Violation { reason, detail }| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    });
    details.collect::<Vec<_>>().join(", ")
}

/// Of what may change in a pod, only its images matter, and debugging containers that are added.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let containers = |pod: &'_ Value, list: &str| -> Vec<Value> {
        items(&pod["spec"][list]).iter().map(|container| container["image"].clone()).collect()
    };
    let has_changed = ["containers", "initContainers"]
        .iter()
        .any(|list| containers(pod, list) != containers(old, list));
    let old = items(&old["spec"]["ephemeralContainers"]);
    has_changed
        || items(&pod["spec"]["ephemeralContainers"]).iter().any(|container| {
            let before = old.iter().find(|before| before["name"] == container["name"]);
            before.is_none_or(|before| before["image"] != container["image"])
        })
}

/// What to tell about pods that are there already: for each reason one of them.
fn warnings_about(pods: &[Value], namespace: &str, standard: Standard) -> Vec<String> {
    // One pod of each controller is looked at before the others, which are likely to be the same.
    let mut controllers = BTreeSet::new();
    let (mut pods, alike): (Vec<&Value>, Vec<&Value>) =
        pods.iter().partition(|pod| controller(pod).is_none_or(|uid| controllers.insert(uid)));
    pods.extend(alike);

    let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods.iter().take(PODS_MAX) {
        let violations = check::violations(pod, standard);
        if !violations.is_empty() {
            let reasons: Vec<&str> = violations.iter().map(|violation| violation.reason).collect();
            names.entry(reasons.join(", ")).or_default().push(meta::text(pod, "name"));
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_MAX {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} \
             existing pods",
            pods.len()
        ));
    }
    if !names.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {} violate the new PodSecurity enforce level {}",
            go_quote(namespace),
            go_quote(&standard.to_string())
        ));
    }
    let mut about: Vec<String> = names
        .into_iter()
        .map(|(reasons, names)| {
            let first = names.iter().min().copied().unwrap_or_default();
            match names.len() - 1 {
                0 => format!("{first}: {reasons}"),
                1 => format!("{first} (and 1 other pod): {reasons}"),
                others => format!("{first} (and {others} other pods): {reasons}"),
            }
        })
        .collect();
    about.sort();
    warnings.extend(about);
    warnings
}

fn controller(pod: &Value) -> Option<&str> {
    let owners = items(&pod["metadata"]["ownerReferences"]);
    owners.iter().find(|owner| owner["controller"] == true).map(|owner| text(&owner["uid"]))
}
