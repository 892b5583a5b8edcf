//! Pods that need something only newer nodes can do go to nodes which say that they can.

use k8s_openapi::api::core::v1 as core;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) didn't match Pod's required features";

pub(crate) struct NodeDeclaredFeatures;

/// The features that a pod needs.
#[derive(Clone)]
struct Needed(Vec<&'static str>);

impl NodeDeclaredFeatures {
    pub(crate) const NAME: &str = "NodeDeclaredFeatures";
}

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &str {
        NodeDeclaredFeatures::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        let needed = needed(pod);
        Ok(match needed.is_empty() {
            true => Prepared::Anywhere,
            false => Prepared::Check(Box::new(Needed(needed))),
        })
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        match change {
            Change::NodeAdded(_) => true,
            Change::NodeUpdated { old, new } => declared(old) != declared(new),
            Change::SelfUpdated { old, new } => needed(old) != needed(new),
            _ => false,
        }
    }
}

impl Filter for Needed {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let declared = declared(&node.object);
        match self.0.iter().all(|needed| declared.iter().any(|it| it == needed)) {
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

fn declared(node: &core::Node) -> &[String] {
    let status = node.status.as_ref();
    status.and_then(|status| status.declared_features.as_deref()).unwrap_or_default()
}

fn needed(pod: &Pod) -> Vec<&'static str> {
    let Some(spec) = pod.spec() else { return Vec::new() };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut rules =
        containers.flat_map(|container| container.restart_policy_rules.iter().flatten());
    let restarts_all = rules.any(|rule| rule.action == "RestartAllContainers");
    let has_own_users = spec.host_network == Some(true) && spec.host_users == Some(false);
    let all = [
        ("RestartAllContainersOnContainerExits", restarts_all),
        ("UserNamespacesHostNetworkSupport", has_own_users),
    ];
    all.into_iter().filter_map(|(name, is_needed)| is_needed.then_some(name)).collect()
}
