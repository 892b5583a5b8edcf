//! The ReplicaSets of a Deployment: which one is of its template, what the others were, and how
//! they are numbered.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::api::ObjectMeta;

use super::rollout::{Wanted, new_size};
use crate::hash;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const HASH: &str = "pod-template-hash";

/// Annotations that are of one object, and never copied to another.
const OWN: [&str; 6] =
    [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];
const REVISION_HISTORY_CHARS_MAX: usize = 2000;
const NAME_CHARS_MAX: usize = 253;

/// The ReplicaSets of a Deployment.
#[derive(Debug, Clone)]
pub(super) struct History {
    /// The one whose template is the Deployment's.
    pub(super) new: Option<Arc<ReplicaSet>>,
    /// All others, the oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
}

impl History {
    pub(super) fn new(deployment: &Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Self {
        sets.sort_by_cached_key(|set| age(set));
        let template = deployment.spec.as_ref().map(|spec| &spec.template);
        let new = sets.iter().position(|set| {
            let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            own.map(without_hash) == template.map(without_hash)
        });
        let new = new.map(|position| sets.remove(position));
        History { new, old: sets }
    }

    /// All of them, the new one last.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// The number of the Deployment's present template.
    pub(super) fn next_revision(&self) -> i64 {
        self.old.iter().filter_map(|set| revision(set)).max().unwrap_or_default().max(0) + 1
    }

    /// The number before the last one, to which a Deployment goes back if it is not told which.
    pub(super) fn last_revision(&self) -> i64 {
        let (mut max, mut second) = (0, 0);
        for revision in self.all().filter_map(|set| revision(set)) {
            if revision >= max {
                (max, second) = (revision, max);
            } else if revision > second {
                second = revision;
            }
        }
        second
    }

    /// The old ones that nothing runs of and that are more than are kept, the oldest revision first.
    pub(super) fn forgettable(&self, kept: usize) -> Vec<Arc<ReplicaSet>> {
        let mut sets: Vec<_> =
            self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        sets.sort_by_key(|set| (revision(set), age(set)));
        let surplus = sets.len().saturating_sub(kept);
        let is_idle = |set: &ReplicaSet| {
            let status = set.status.as_ref();
            let observed = status.and_then(|status| status.observed_generation).unwrap_or_default();
            size(set) == 0
                && status.is_none_or(|status| status.replicas == 0)
                && set.metadata.generation.unwrap_or_default() <= observed
        };
        sets.into_iter().take(surplus).filter(|set| is_idle(set)).cloned().collect()
    }
}

/// The number of a ReplicaSet; zero if it has none, nothing if it is none.
pub(super) fn revision(set: &ReplicaSet) -> Option<i64> {
    match annotation(&set.metadata, REVISION) {
        Some(revision) => revision.parse().ok(),
        None => Some(0),
    }
}

pub(super) fn annotation<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// How many pods a ReplicaSet should have.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

/// The annotations that the new ReplicaSet should have: those of the Deployment, and what revisions
/// it has been.
pub(super) fn annotations(
    deployment: &Deployment,
    known: &BTreeMap<String, String>,
    revision: i64,
) -> BTreeMap<String, String> {
    let mut annotations = known.clone();
    let copied = deployment.metadata.annotations.iter().flatten();
    let copied = copied.filter(|(key, _)| !OWN.contains(&key.as_str()));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let old = known.get(REVISION).map(String::as_str).unwrap_or_default();
    let Some(number) = (if old.is_empty() { Some(0) } else { old.parse::<i64>().ok() }) else {
        return annotations;
    };
    if number < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        if known.contains_key(REVISION) {
            let past = known.get(REVISION_HISTORY).map(String::as_str).unwrap_or_default();
            if let Some(past) = remember(past, old) {
                annotations.insert(REVISION_HISTORY.to_owned(), past);
            }
        }
    }
    annotations
}

/// Past revisions with one more, the first of which are forgotten if they are too many.
fn remember(past: &str, revision: &str) -> Option<String> {
    if past.is_empty() || past.starts_with(',') {
        return Some(revision.to_owned());
    }
    let mut past = past;
    while past.len() + revision.len() + 1 > REVISION_HISTORY_CHARS_MAX {
        past = past.split_once(',')?.1;
    }
    Some(format!("{past},{revision}"))
}

/// Says on a ReplicaSet how many pods its Deployment wants, and has at most.
pub(super) fn set_sizes(annotations: &mut BTreeMap<String, String>, wanted: &Wanted) {
    annotations.insert(DESIRED_REPLICAS.to_owned(), wanted.replicas.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), (wanted.replicas + wanted.surge).to_string());
}

/// A ReplicaSet of the Deployment's template, as large as it may be now.
pub(super) fn new_set(deployment: &Deployment, history: &History, wanted: &Wanted) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash::template(&spec.template, collisions);
    let mut template = spec.template;
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector;
    selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
    let mut annotations = annotations(deployment, &BTreeMap::new(), history.next_revision());
    set_sizes(&mut annotations, wanted);
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name(deployment.metadata.name.as_deref().unwrap_or_default(), &hash)),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(new_size(wanted, history, 0)),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

/// Takes the template and the annotations of an old ReplicaSet back into its Deployment.
pub(super) fn take_back(deployment: &mut Deployment, set: &ReplicaSet) {
    let Some(template) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else { return };
    if let Some(spec) = &mut deployment.spec {
        spec.template = without_hash(template);
    }
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.retain(|key, _| OWN.contains(&key.as_str()));
    let copied = set.metadata.annotations.iter().flatten();
    let copied = copied.filter(|(key, _)| !OWN.contains(&key.as_str()));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
}

/// A template without the label that tells it from others of the same Deployment.
pub(super) fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(metadata) = &mut template.metadata
        && let Some(labels) = &mut metadata.labels
    {
        labels.remove(HASH);
        if labels.is_empty() {
            metadata.labels = None;
        }
    }
    template.metadata = template.metadata.filter(|metadata| *metadata != ObjectMeta::default());
    template
}

fn name(deployment: &str, hash: &str) -> String {
    let kept = deployment.len().min(NAME_CHARS_MAX - 1 - hash.len());
    format!("{}-{hash}", &deployment[..kept])
}

/// The order of age, and of names where ages are the same.
fn age(set: &ReplicaSet) -> impl Ord + use<> {
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, set.metadata.name.clone())
}
