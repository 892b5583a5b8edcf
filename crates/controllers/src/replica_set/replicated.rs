//! Kinds that want so many pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use kubewright::context::Kind;
use kubewright_apimachinery::selector::label::Selector;

use super::plan::{Counts, Failure, Wanted};
use crate::part::{count, seconds, time};
use crate::selection;

const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(crate) trait Replicated: Kind + Clone {
    fn wanted(&self) -> Wanted<'_>;

    fn selector(&self) -> Selector;

    /// Says in its status how many pods there are, and why not others.
    fn report(&mut self, counts: &Counts, failure: Option<Failure>, now: Timestamp);
}

impl Replicated for ReplicaSet {
    fn wanted(&self) -> Wanted<'_> {
        let spec = self.spec.as_ref();
        Wanted {
            replicas: replicas(spec.and_then(|spec| spec.replicas)),
            min_ready: seconds(spec.and_then(|spec| spec.min_ready_seconds)),
            template: spec.and_then(|spec| spec.template.as_ref()),
        }
    }

    fn selector(&self) -> Selector {
        selection::selector(self.spec.as_ref().map(|spec| &spec.selector))
    }

    fn report(&mut self, counts: &Counts, failure: Option<Failure>, now: Timestamp) {
        let status = self.status.get_or_insert_default();
        let failure = failure.map(|failure| ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.message),
            last_transition_time: Some(time(now)),
        });
        *status = ReplicaSetStatus {
            replicas: counts.replicas,
            fully_labeled_replicas: count(counts.fully_labelled),
            ready_replicas: count(counts.ready),
            available_replicas: count(counts.available),
            terminating_replicas: Some(counts.terminating),
            observed_generation: self.metadata.generation,
            conditions: settle(status.conditions.take(), failure, |known| &known.type_),
        };
    }
}

impl Replicated for ReplicationController {
    fn wanted(&self) -> Wanted<'_> {
        let spec = self.spec.as_ref();
        Wanted {
            replicas: replicas(spec.and_then(|spec| spec.replicas)),
            min_ready: seconds(spec.and_then(|spec| spec.min_ready_seconds)),
            template: spec.and_then(|spec| spec.template.as_ref()),
        }
    }

    fn selector(&self) -> Selector {
        let selector = self.spec.as_ref().and_then(|spec| spec.selector.clone());
        selector.map_or(Selector::Nothing, Selector::from_labels)
    }

    fn report(&mut self, counts: &Counts, failure: Option<Failure>, now: Timestamp) {
        let status = self.status.get_or_insert_default();
        let failure = failure.map(|failure| ReplicationControllerCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.message),
            last_transition_time: Some(time(now)),
        });
        *status = ReplicationControllerStatus {
            replicas: counts.replicas,
            fully_labeled_replicas: count(counts.fully_labelled),
            ready_replicas: count(counts.ready),
            available_replicas: count(counts.available),
            observed_generation: self.metadata.generation,
            conditions: settle(status.conditions.take(), failure, |known| &known.type_),
        };
    }
}

/// Conditions with a failure or without. One that is known stays as it was first told.
fn settle<C>(
    known: Option<Vec<C>>,
    failure: Option<C>,
    kind: impl Fn(&C) -> &str,
) -> Option<Vec<C>> {
    let mut conditions = known.unwrap_or_default();
    match failure {
        None => conditions.retain(|condition| kind(condition) != REPLICA_FAILURE),
        Some(failure) => {
            if !conditions.iter().any(|condition| kind(condition) == REPLICA_FAILURE) {
                conditions.push(failure);
            }
        }
    }
    (!conditions.is_empty()).then_some(conditions)
}

fn replicas(spec: Option<i32>) -> usize {
    usize::try_from(spec.unwrap_or(1)).unwrap_or_default()
}
