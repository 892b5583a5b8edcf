//! What the kinds that make pods from a template have in common.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::{LabelSelector, Leniency, NotASelector, Selector};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{check, edit, pod_spec};

/// Where the template of most workloads is.
pub(super) const TEMPLATE: &str = "/spec/template";

/// A strategy is to roll, within these bounds, unless it says otherwise.
pub(super) fn default_strategy(strategy: &mut Value, unavailable: Value, surge: Value) {
    edit::fill_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        edit::fill(strategy, "rollingUpdate", json!({}));
        edit::fill(&mut strategy["rollingUpdate"], "maxUnavailable", unavailable);
        edit::fill(&mut strategy["rollingUpdate"], "maxSurge", surge);
    }
}

/// The selector of a spec. The types of workloads do not tell whether there is one.
pub(super) fn selector_of(spec: &Value) -> Option<LabelSelector> {
    Option::deserialize(&spec["selector"]).expect("selectors in normal form are well formed")
}

/// A selector that there must be and that selects something: without one, all pods of the
/// namespace would be the workload's.
pub(super) fn check_selector(
    selector: Option<&LabelSelector>,
    owner: &str,
    path: &Path<'_>,
) -> Vec<Error> {
    let Some(selector) = selector else {
        return vec![Error::required(path, "")];
    };
    let mut errors = selector.validate(Leniency::default(), path);
    errors.extend(refuse_empty(selector, owner, path));
    errors
}

/// A selector without conditions is one of everything.
pub(super) fn refuse_empty(
    selector: &LabelSelector,
    owner: &str,
    path: &Path<'_>,
) -> Option<Error> {
    let is_empty = selector.match_labels.is_empty() && selector.match_expressions.is_empty();
    let detail = || format!("empty selector is invalid for {owner}");
    is_empty.then(|| Error::invalid(path, check::shown(selector), detail()))
}

/// Pods that were selected once must not be forgotten.
pub(super) fn check_same_selector(object: &Value, old: &Value) -> Option<Error> {
    let [new, old] = [object, old].map(|object| selector_of(&object["spec"]));
    check::immutable(&Path::new("spec.selector"), &new, &old)
}

/// What a selector means. An absent one selects nothing.
pub(super) fn meaning(selector: Option<&LabelSelector>) -> Result<Selector, NotASelector> {
    selector.map_or(Ok(Selector::Nothing), LabelSelector::to_selector)
}

/// A workload must select the pods that it makes.
pub(super) fn check_labels(
    selector: &Selector,
    template: &PodTemplateSpec,
    path: &Path<'_>,
) -> Option<Error> {
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let matches = selector.matches(&labels);
    let metadata = path.child("metadata");
    (!matches).then(|| {
        Error::invalid(
            &metadata.child("labels"),
            json!(labels),
            "`selector` does not match template `labels`",
        )
    })
}

/// Pods of workloads that keep running are restarted, and have no deadline.
pub(super) fn check_lasting(
    template: &PodTemplateSpec,
    owner: &str,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let path = path.child("spec");
    let spec = template.spec.as_ref();
    let policy = spec.and_then(|spec| spec.restart_policy.as_deref()).unwrap_or_default();
    if policy != "Always" {
        errors.push(Error::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if spec.is_some_and(|spec| spec.active_deadline_seconds.is_some()) {
        errors.push(Error::forbidden(
            &path.child("activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {owner} is not Supported"),
        ));
    }
    errors
}

/// Counts of a status or spec that may not be negative; absent ones are zero.
pub(super) fn check_counts(parent: &Value, names: &[&str], path: &Path<'_>) -> Vec<Error> {
    let counts = names.iter().map(|name| (name, parent[name].as_i64().unwrap_or_default()));
    counts.filter_map(|(name, count)| check::non_negative(&path.child(name), count)).collect()
}

/// The replicas that a status counts: these are at most all of them, and those that are available
/// are ready, too. The field of the latter has another name in each message.
pub(super) fn check_replicas(status: &Value, parts: &[&str], ready: &str) -> Vec<Error> {
    let path = Path::new("status");
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    let at_most = |name: &str, bound: &str, shown: &str| {
        let detail = format!("cannot be greater than {shown}");
        (count(name) > count(bound)).then(|| Error::invalid(&path.child(name), count(name), detail))
    };
    let of_all = parts.iter().filter_map(|name| at_most(name, "replicas", "status.replicas"));
    of_all.chain(at_most("availableReplicas", "readyReplicas", ready)).collect()
}

/// Names that collided are never tried again, so their count may only grow.
pub(super) fn check_collisions(status: &Value, old: &Value) -> Option<Error> {
    let (new, old) = (status["collisionCount"].as_i64(), old["collisionCount"].as_i64()?);
    let path = Path::new("status");
    (new.is_none_or(|new| new < old)).then(|| {
        Error::invalid(
            &path.child("collisionCount"),
            new.unwrap_or_default(),
            "cannot be decremented",
        )
    })
}

/// What to tell about the template at a JSON pointer, which stands at the path.
pub(super) fn template_warnings(object: &Value, pointer: &str, path: &Path<'_>) -> Vec<String> {
    let template = object.pointer(pointer).map(PodTemplateSpec::deserialize);
    let template = template.map(|template| template.expect("templates have their type's form"));
    template.map_or_else(Vec::new, |template| pod_spec::template_warnings(&template, path))
}

/// Drops what is switched off from the template at a JSON pointer, unless the old one has it.
pub(super) fn drop_disabled(object: &mut Value, old: Option<&Value>, pointer: &str) {
    let old = old.and_then(|old| old.pointer(pointer));
    if let Some(template) = object.pointer_mut(pointer) {
        pod_spec::drop_disabled_template_fields(template, old);
    }
}

/// What to tell about the name of a new workload and about a template that is new.
pub(super) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = name_warnings(object, old);
    if is_another(object, old) {
        warnings.extend(template_warnings(object, TEMPLATE, &Path::new("spec.template")));
    }
    warnings
}

/// Whether an object is new, or another generation than the old one.
pub(super) fn is_another(object: &Value, old: Option<&Value>) -> bool {
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    old.is_none_or(|old| generation(object) != generation(old))
}

/// The name of a workload becomes part of those of its pods, whose rule is stricter.
pub(super) fn name_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let problems = match old {
        None => name::dns1123_label(edit::text(object, "/metadata/name")),
        Some(_) => Vec::new(),
    };
    if problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising \
         behavior; a DNS label is recommended: [{}]",
        problems.join(" ")
    )]
}
