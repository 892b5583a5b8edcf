//! The pods of a Job: how new ones look, and which go first.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec,
};
use kube::api::ObjectMeta;

use super::policy::Failure;
use super::terms::{self, FAILURES, FINALIZER, IGNORED_FAILURES, INDEX, Terms};
use crate::part::text;

/// The longest prefix that a generated name has room for.
const PREFIX_BYTES_MAX: usize = 58;
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// A pod of a Job that has no indexes.
pub(super) fn new(job: &Job) -> Pod {
    let template = template(job);
    let metadata = template.metadata.unwrap_or_default();
    let mut finalizers = metadata.finalizers.unwrap_or_default();
    if !finalizers.iter().any(|known| known == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", text(&job.metadata.name))),
            namespace: job.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: Some(finalizers),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// A pod for an index, in the place of one that has failed, if there was one.
pub(super) fn new_for(job: &Job, index: u32, replaced: Option<&Pod>) -> Pod {
    let name = text(&job.metadata.name);
    let mut pod = new(job);
    let suffix = format!("-{index}-");
    let mut prefix = format!("{name}{suffix}");
    if prefix.len() > PREFIX_BYTES_MAX {
        prefix = format!("{}{suffix}", &prefix[..PREFIX_BYTES_MAX - suffix.len()]);
    }
    pod.metadata.generate_name = Some(prefix);
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if Terms(job).limit_per_index().is_some() {
        let (mut failures, mut ignored) = (0, 0);
        if let Some(pod) = replaced {
            (failures, ignored) = (terms::failures(pod), terms::ignored_failures(pod));
            match Failure::of(job, pod).counts() {
                true => failures += 1,
                false => ignored += 1,
            }
        }
        annotations.insert(FAILURES.to_owned(), failures.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
        }
    }
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{name}-{index}"));
        let containers = spec.containers.iter_mut();
        containers.chain(spec.init_containers.iter_mut().flatten()).for_each(tell_index);
    }
    pod
}

/// Lets a container know its index, unless it is told otherwise.
fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        ..ObjectFieldSelector::default()
    };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

fn template(job: &Job) -> PodTemplateSpec {
    job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default()
}

/// The active pods that should go, at least so many: those that share an index or have none that is
/// wanted, then those that have come least far.
pub(super) fn surplus<'a>(job: &Job, active: &[&'a Pod], at_least: usize) -> Vec<&'a Pod> {
    let mut left: Vec<&Pod> = active.to_vec();
    left.sort_by_cached_key(|pod| progress(pod));
    let mut gone = Vec::new();
    if Terms(job).is_indexed() {
        // The one that has come farthest keeps the index.
        let mut kept: Vec<&Pod> = Vec::new();
        for pod in left.into_iter().rev() {
            let is_taken = kept.iter().any(|kept| terms::index(kept) == terms::index(pod));
            match is_taken || !Terms(job).has_place_for(pod) {
                true => gone.push(pod),
                false => kept.push(pod),
            }
        }
        kept.reverse();
        gone.sort_by_key(|pod| terms::index(pod));
        left = kept;
    }
    let more = at_least.saturating_sub(gone.len());
    gone.extend(left.into_iter().take(more));
    gone
}

/// How far a pod has come; those that have come least far are missed least.
fn progress(pod: &Pod) -> impl Ord + use<> {
    let is_assigned = pod.spec.as_ref().is_some_and(|spec| !text(&spec.node_name).is_empty());
    let phase = match terms::phase(pod) {
        "Pending" | "" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let ready_since = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready_since = ready_since
        .filter(|condition| condition.type_ == "Ready" && condition.status == "True")
        .find_map(|condition| condition.last_transition_time.as_ref().map(|time| time.0));
    let restarts = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let restarts = restarts.map(|container| container.restart_count).max().unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    // Of two that are ready, or made, the later comes first; one without a time before all.
    let age = |since: Option<Timestamp>| since.map(Reverse);
    (is_assigned, phase, terms::is_ready(pod), age(ready_since), Reverse(restarts), age(created))
}
