//! Which other pods a pod wants near, and which not.

use k8s_openapi::api::core::v1 as core;
use kubewright_apimachinery::selector::label::Selector;

use super::Pod;
use crate::selector::{self, Labels};

/// Pods, and how near is near: on nodes with the same value of a label.
#[derive(Debug, Clone)]
pub(crate) struct AffinityTerm {
    namespaces: Vec<String>,
    namespace_selector: Selector,
    selector: Selector,
    pub(crate) topology_key: String,
}

/// Something that is preferred, and how much.
#[derive(Debug, Clone)]
pub(crate) struct Weighted<T> {
    pub(crate) weight: i64,
    pub(crate) term: T,
}

/// All terms of a pod.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) affinity: Vec<AffinityTerm>,
    pub(super) anti_affinity: Vec<AffinityTerm>,
    pub(super) preferred_affinity: Vec<Weighted<AffinityTerm>>,
    pub(super) preferred_anti_affinity: Vec<Weighted<AffinityTerm>>,
}

impl AffinityTerm {
    /// Whether it speaks of a pod in a namespace with these labels.
    pub(crate) fn matches(&self, pod: &Pod, namespace: &Labels) -> bool {
        let is_there = self.namespaces.iter().any(|name| name == pod.namespace())
            || self.namespace_selector.matches(namespace);
        is_there && self.selector.matches(pod.labels())
    }

    /// Whether the labels of namespaces matter to it.
    pub(crate) fn spans_namespaces(&self) -> bool {
        self.namespace_selector != Selector::Nothing
    }

    fn of(namespace: &str, term: &core::PodAffinityTerm) -> Self {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        // What is no selector selects nothing: the server takes none that is none.
        let read = |it: Option<&_>| selector::labels(it).unwrap_or(Selector::Nothing);
        AffinityTerm {
            namespaces,
            namespace_selector: read(term.namespace_selector.as_ref()),
            selector: read(term.label_selector.as_ref()),
            topology_key: term.topology_key.clone(),
        }
    }
}

impl Terms {
    pub(super) fn of(namespace: &str, affinity: Option<&core::Affinity>) -> Self {
        let required = |terms: Option<&Vec<core::PodAffinityTerm>>| {
            let terms = terms.into_iter().flatten();
            terms.map(|term| AffinityTerm::of(namespace, term)).collect()
        };
        let preferred = |terms: Option<&Vec<core::WeightedPodAffinityTerm>>| {
            let terms = terms.into_iter().flatten();
            let weighted = |it: &core::WeightedPodAffinityTerm| Weighted {
                weight: it.weight.into(),
                term: AffinityTerm::of(namespace, &it.pod_affinity_term),
            };
            terms.map(weighted).collect()
        };
        let with = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let without = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        Terms {
            affinity: required(
                with.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref()),
            ),
            anti_affinity: required(
                without
                    .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref()),
            ),
            preferred_affinity: preferred(
                with.and_then(|it| {
                    it.preferred_during_scheduling_ignored_during_execution.as_ref()
                }),
            ),
            preferred_anti_affinity: preferred(
                without.and_then(|it| {
                    it.preferred_during_scheduling_ignored_during_execution.as_ref()
                }),
            ),
        }
    }
}
