//! What may become of a pod: its images, its deadline, its tolerations, and as long as it is not
//! to be scheduled yet, where it may be.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Map, Value, json};

use crate::kinds::pod_spec::validate::{annotation, container, schedule};
use crate::kinds::{internal, typed};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const POD_SPEC: &str = "k8s.io/api/core/v1.PodSpec";
const DEADLINE_SECONDS_MAX: i64 = i32::MAX as i64;

pub(super) fn validate(object: &Value, old_object: &Value) -> Vec<Error> {
    let (pod, old): (Pod, Pod) = (typed(object), typed(old_object));
    let nothing = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&nothing);
    let old_spec = old.spec.as_ref().unwrap_or(&nothing);
    let path = Path::new("spec");

    let mut errors = super::check(&pod.metadata, spec, Some(&old));
    errors.extend(annotation_changes(&pod, &old));
    let lists = [
        ("containers", spec.containers.as_slice(), old_spec.containers.len()),
        (
            "initContainers",
            spec.init_containers.as_deref().unwrap_or_default(),
            old_spec.init_containers.as_ref().map_or(0, Vec::len),
        ),
    ];
    for (list, containers, old_count) in lists {
        let path = path.child(list);
        if containers.len() != old_count {
            let problem = "pod updates may not add or remove containers";
            errors.push(Error::forbidden(&path, problem));
            return errors;
        }
        errors.extend(image_changes(containers, &path));
    }
    let deadline_path = path.child("activeDeadlineSeconds");
    if let Some((error, is_last)) = deadline_change(spec, old_spec, &deadline_path) {
        errors.push(error);
        if is_last {
            return errors;
        }
    }
    errors.extend(toleration_changes(
        spec.tolerations.as_deref().unwrap_or_default(),
        old_spec.tolerations.as_deref().unwrap_or_default(),
        &path.child("tolerations"),
    ));
    errors.extend(gate_changes(spec, old_spec, &path.child("schedulingGates")));
    errors.extend(other_changes(object, old_object, spec, old_spec, &path));
    errors
}

/// Annotations that say what a pod is stay as they are.
pub(super) fn annotation_changes(pod: &Pod, old: &Pod) -> Vec<Error> {
    let none = BTreeMap::new();
    let annotations = pod.metadata.annotations.as_ref().unwrap_or(&none);
    let old_annotations = old.metadata.annotations.as_ref().unwrap_or(&none);
    let path = Path::new("metadata");
    let path = path.child("annotations");
    let mut errors = Vec::new();
    let mut refuse = |key: &str, app_armor: &str, mirror: &str| {
        if key.starts_with(annotation::APP_ARMOR_PREFIX) {
            errors.push(Error::forbidden(&path.key(key), app_armor));
        }
        if key == annotation::MIRROR {
            errors.push(Error::forbidden(&path.key(key), mirror));
        }
    };
    for (key, _) in old_annotations.iter().filter(|(key, old)| annotations.get(*key) != Some(old)) {
        refuse(
            key,
            "may not remove or update AppArmor annotations",
            "may not remove or update mirror pod annotation",
        );
    }
    for key in annotations.keys().filter(|key| !old_annotations.contains_key(*key)) {
        refuse(key, "may not add AppArmor annotations", "may not add mirror pod annotation");
    }
    let spec = pod.spec.clone().unwrap_or_default();
    errors.extend(super::check_annotations(&pod.metadata, &spec, Some(old)));
    errors
}

fn image_changes(containers: &[Container], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        if container.image.is_none() {
            errors.push(Error::required(&path.child("image"), ""));
        }
        errors.extend(container::validate_image_of_pod(container, &path));
    }
    errors
}

/// A deadline may come nearer. Some mistakes about it end the validation, upstream says.
fn deadline_change(spec: &PodSpec, old: &PodSpec, path: &Path<'_>) -> Option<(Error, bool)> {
    match (spec.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(seconds), _) if !(0..=DEADLINE_SECONDS_MAX).contains(&seconds) => {
            let problem = format!("must be between 0 and {DEADLINE_SECONDS_MAX}, inclusive");
            Some((Error::invalid(path, seconds, problem), true))
        }
        (Some(seconds), Some(old)) if old < seconds => {
            let problem = "must be less than or equal to previous value";
            Some((Error::invalid(path, seconds, problem), true))
        }
        (None, Some(_)) => {
            let problem = "must not update from a positive integer to nil value";
            Some((Error::invalid(path, Value::Null, problem), false))
        }
        _ => None,
    }
}

/// Tolerations may be added, and those that are there may get another time.
fn toleration_changes(
    tolerations: &[Toleration],
    old: &[Toleration],
    path: &Path<'_>,
) -> Vec<Error> {
    let is_kept = |old: &Toleration| {
        tolerations.iter().any(|new| {
            let toleration_seconds = new.toleration_seconds;
            Toleration { toleration_seconds, ..old.clone() } == *new
        })
    };
    if !old.iter().all(is_kept) {
        let problem = "existing toleration can not be modified except its tolerationSeconds";
        return vec![Error::forbidden(path, problem)];
    }
    schedule::tolerations(tolerations, path)
}

fn gate_changes(spec: &PodSpec, old: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let old: Vec<&str> =
        old.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str()).collect();
    // Of two gates of one name, only the last one is told of.
    let mut added: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, gate) in spec.scheduling_gates.iter().flatten().enumerate() {
        if !old.contains(&gate.name.as_str()) {
            added.insert(&gate.name, index);
        }
    }
    let added = added.into_iter();
    added
        .map(|(name, index)| {
            let problem =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            Error::forbidden(&path.index(index).child("name"), problem)
        })
        .collect()
}

/// Everything else must stay. The new spec is put back in all that may change, and compared.
fn other_changes(
    object: &Value,
    old_object: &Value,
    spec: &PodSpec,
    old_spec: &PodSpec,
    path: &Path<'_>,
) -> Vec<Error> {
    let (Some(mut munged), Some(old)) =
        (object["spec"].as_object().cloned(), old_object["spec"].as_object())
    else {
        return Vec::new();
    };
    for list in ["containers", "initContainers"] {
        restore_images(&mut munged, old, list);
    }
    for member in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut munged, old, member);
    }
    if old_spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0)
        && spec.termination_grace_period_seconds == Some(1)
    {
        restore(&mut munged, old, "terminationGracePeriodSeconds");
    }
    let mut errors = Vec::new();
    if old_spec.scheduling_gates.is_some() {
        errors.extend(node_changes(spec, old_spec, path));
        restore(&mut munged, old, "nodeSelector");
        restore_node_affinity(&mut munged, old);
    }
    let (munged, old) = (Value::Object(munged), &old_object["spec"]);
    if !builtin::equal(spec_type(), &munged, old) {
        let diff = internal::diff(POD_SPEC, old, &munged);
        let problem = format!("pod updates may not change fields other than {UPDATABLE}\n{diff}");
        errors.push(Error::forbidden(path, problem));
    }
    errors
}

fn spec_type() -> &'static builtin::Type {
    builtin::type_named(POD_SPEC).expect("pods have specs")
}

fn restore(spec: &mut Map<String, Value>, old: &Map<String, Value>, member: &str) {
    match old.get(member) {
        Some(value) => {
            spec.insert(member.to_owned(), value.clone());
        }
        None => {
            spec.shift_remove(member);
        }
    }
}

fn restore_images(spec: &mut Map<String, Value>, old: &Map<String, Value>, list: &str) {
    let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    let old = old.get(list).and_then(Value::as_array).into_iter().flatten();
    for (container, old) in containers.zip(old) {
        if let (Some(container), Some(old)) = (container.as_object_mut(), old.as_object()) {
            restore(container, old, "image");
        }
    }
}

/// A pod that is not to be scheduled yet can be told more about where.
fn node_changes(spec: &PodSpec, old: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let is_kept = |(key, value): (&String, &String)| {
        spec.node_selector.as_ref().and_then(|selector| selector.get(key)) == Some(value)
    };
    if !old.node_selector.iter().flatten().all(is_kept) {
        errors.push(Error::invalid(
            &path.child("nodeSelector"),
            json!(spec.node_selector),
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ));
    }
    let path = path.child("affinity");
    let path = path.child("nodeAffinity");
    let path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let path = path.child("nodeSelectorTerms");
    let old_terms = required_terms(old);
    if old_terms.is_empty() {
        return errors;
    }
    let terms = required_terms(spec);
    if terms.len() != old_terms.len() {
        let shown = match spec.affinity.as_ref().and_then(required_selector) {
            Some(_) => terms.iter().map(shown_term).collect(),
            None => Value::Null,
        };
        let problem = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(Error::invalid(&path, shown, problem));
        return errors;
    }
    for (index, (term, old)) in terms.iter().zip(old_terms).enumerate() {
        if !only_adds(term, old) {
            let problem = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid(&path.index(index), shown_term(term), problem));
        }
    }
    errors
}

fn required_selector(
    affinity: &k8s_openapi::api::core::v1::Affinity,
) -> Option<&k8s_openapi::api::core::v1::NodeSelector> {
    let NodeAffinity { required_during_scheduling_ignored_during_execution, .. } =
        affinity.node_affinity.as_ref()?;
    required_during_scheduling_ignored_during_execution.as_ref()
}

fn required_terms(spec: &PodSpec) -> &[NodeSelectorTerm] {
    let selector = spec.affinity.as_ref().and_then(required_selector);
    selector.map_or(&[], |selector| &selector.node_selector_terms)
}

fn shown_term(term: &NodeSelectorTerm) -> Value {
    internal::shown("k8s.io/api/core/v1.NodeSelectorTerm", &json!(term))
}

fn only_adds(term: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let lists = |term: &NodeSelectorTerm| {
        [term.match_expressions.clone(), term.match_fields.clone()].map(Option::unwrap_or_default)
    };
    let (new, old) = (lists(term), lists(old));
    // A term that asks for nothing matches nothing; anything more would match something.
    if old.iter().all(Vec::is_empty) {
        return new.iter().all(Vec::is_empty);
    }
    new.iter().zip(&old).all(|(new, old)| new.starts_with(old))
}

fn restore_node_affinity(spec: &mut Map<String, Value>, old: &Map<String, Value>) {
    let old_nodes = old.get("affinity").and_then(|affinity| affinity.get("nodeAffinity"));
    match (spec.get_mut("affinity").and_then(Value::as_object_mut), old_nodes) {
        (None, None) => {}
        (None, Some(nodes)) => {
            spec.insert("affinity".to_owned(), json!({ "nodeAffinity": nodes }));
        }
        (Some(affinity), Some(nodes)) => {
            affinity.insert("nodeAffinity".to_owned(), nodes.clone());
        }
        (Some(affinity), None) => {
            affinity.shift_remove("nodeAffinity");
            if affinity.is_empty() && !old.contains_key("affinity") {
                spec.shift_remove("affinity");
            }
        }
    }
}
