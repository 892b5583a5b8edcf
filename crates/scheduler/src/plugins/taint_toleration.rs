//! Nodes keep pods away by taints, which pods may tolerate.

use k8s_openapi::api::core::v1 as core;
use kubewright::placement::tolerates;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{self, Filter, Plugin, Point, Prepared, Rejection, Score};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

pub(super) const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";
const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
const REASON: &str = "node(s) had untolerated taint(s)";

pub(crate) struct TaintToleration;

#[derive(Clone)]
struct Tolerated<'a>(&'a [core::Toleration]);

/// Counts the taints that would rather not have the pod.
struct Unwelcome<'a>(Vec<&'a core::Toleration>);

impl TaintToleration {
    pub(crate) const NAME: &str = "TaintToleration";
}

impl Plugin for TaintToleration {
    fn name(&self) -> &str {
        TaintToleration::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter, Point::PreScore, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(Prepared::Check(Box::new(Tolerated(pod.tolerations()))))
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let is_about = |it: &&core::Toleration| {
            matches!(it.effect.as_deref(), None | Some("" | PREFER_NO_SCHEDULE))
        };
        Some(Box::new(Unwelcome(pod.tolerations().iter().filter(is_about).collect())))
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let is_borne = |node: &core::Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
            are_tolerated(pod.tolerations(), taints.unwrap_or_default())
        };
        match change {
            Change::NodeAdded(node) => is_borne(node),
            Change::NodeUpdated { old, new } => !is_borne(old) && is_borne(new),
            Change::SelfUpdated { .. } => true,
            _ => false,
        }
    }
}

impl Filter for Tolerated<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        match are_tolerated(self.0, node.taints()) {
            true => Ok(()),
            false => Err(Rejection::unresolvable(REASON)),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Score for Unwelcome<'_> {
    fn score(&self, node: &Node) -> i64 {
        let taints = node.taints().iter().filter(|taint| taint.effect == PREFER_NO_SCHEDULE);
        let unwelcome = taints.filter(|taint| !self.0.iter().any(|it| tolerates(it, taint)));
        unwelcome.count() as i64
    }

    fn normalize(&self, scores: &mut [i64]) {
        plugin::normalize(scores, true);
    }
}

/// Whether nothing keeps a pod with these tolerations from being scheduled.
pub(super) fn are_tolerated(tolerations: &[core::Toleration], taints: &[core::Taint]) -> bool {
    let mut hard =
        taints.iter().filter(|taint| matches!(taint.effect.as_str(), NO_SCHEDULE | NO_EXECUTE));
    hard.all(|taint| tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}
