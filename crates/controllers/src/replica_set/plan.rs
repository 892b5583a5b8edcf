//! How many pods are missing or too many, and how many there are.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kubewright_apimachinery::selector::label::Selector;

use crate::pods::{Doubling, deletion_order, is_available, is_ready};
use crate::selection::selects;

/// So many pods are made or deleted before what came of it is looked at.
const BURST_MAX: usize = 500;

/// What an object asks for.
pub(crate) struct Wanted<'o> {
    pub(crate) replicas: usize,
    pub(crate) min_ready: Duration,
    pub(crate) template: Option<&'o PodTemplateSpec>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    Create(usize),
    Delete(Vec<Arc<Pod>>),
}

/// How many pods there are that run or will, and how they are doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) replicas: i32,
    /// With all labels of the template, and not only those that are selected by.
    pub(crate) fully_labelled: i32,
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) terminating: i32,
}

/// Why there are not as many pods as there should be.
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

pub(super) fn plan(
    replicas: usize,
    active: &[Arc<Pod>],
    doubling: &Doubling,
    now: Timestamp,
) -> Plan {
    if active.len() < replicas {
        return Plan::Create((replicas - active.len()).min(BURST_MAX));
    }
    let surplus = (active.len() - replicas).min(BURST_MAX);
    if surplus == 0 {
        return Plan::Nothing;
    }
    let mut pods = active.to_vec();
    deletion_order(&mut pods, doubling, now);
    pods.truncate(surplus);
    Plan::Delete(pods)
}

pub(super) fn count(
    wanted: &Wanted<'_>,
    active: &[Arc<Pod>],
    terminating: usize,
    now: Timestamp,
) -> Counts {
    let described = wanted.template.and_then(|template| template.metadata.as_ref());
    let labels = described.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    let fully = Selector::from_labels(labels);
    let of = |holds: &dyn Fn(&Pod) -> bool| number(active.iter().filter(|pod| holds(pod)).count());
    Counts {
        replicas: number(active.len()),
        fully_labelled: of(&|pod| selects(&fully, &pod.metadata)),
        ready: of(&is_ready),
        available: of(&|pod| is_available(pod, wanted.min_ready, now)),
        terminating: number(terminating),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
