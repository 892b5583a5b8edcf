//! Cluster roles that are the sum of others.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::{Selector, SelectorExt as _};
use kube::{Client, Error};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::answer::Refusal as _;
use crate::controller::{Change, Controller, text};
use crate::kinds::Kind;
use crate::queue::{self, Outcome, Queue};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The roles whose rules are not what they should be, with the rules they should have.
fn plan(roles: &[ClusterRole]) -> Vec<(&str, Vec<PolicyRule>)> {
    let mut sorted: Vec<&ClusterRole> = roles.iter().collect();
    sorted.sort_by_key(|role| text(&role.metadata.name));
    let sums = sorted.iter().filter_map(|sum| {
        let selectors = sum.aggregation_rule.as_ref()?.cluster_role_selectors.as_ref();
        let parts = selectors.into_iter().flatten().flat_map(|selector| {
            let others = sorted.iter().filter(|part| part.metadata.name != sum.metadata.name);
            others.filter(|part| selects(selector, part))
        });
        let mut rules: Vec<PolicyRule> = Vec::new();
        for rule in parts.flat_map(|part| part.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        let right = sum.rules.as_deref().unwrap_or_default() == rules;
        (!right).then(|| (text(&sum.metadata.name), rules))
    });
    sums.collect()
}

/// A selector that the server let in and that yet is none selects nothing.
fn selects(selector: &LabelSelector, role: &ClusterRole) -> bool {
    let labels = role.metadata.labels.clone().unwrap_or_default();
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(&labels))
}

/// The controller of all sums.
pub(crate) struct ClusterRoles {
    api: Api<ClusterRole>,
    /// One key: a change of any role may change any sum.
    queue: Queue<()>,
}

impl ClusterRoles {
    pub(crate) fn new(client: Client) -> Self {
        Self { api: Api::all(client), queue: Queue::new() }
    }

    async fn work(&self) -> Outcome {
        match self.reconcile().await {
            Ok(()) => Outcome::Done,
            Err(error) => {
                warn!(error = error.text(), "roles are not aggregated");
                Outcome::Failed
            }
        }
    }

    async fn reconcile(&self) -> Result<(), Error> {
        let roles = self.api.list(&ListParams::default()).await?;
        let parameters = PatchParams::apply(MANAGER).force();
        for (name, rules) in plan(&roles.items) {
            let mut sum = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": { "name": name },
            });
            // A sum of nothing has no rules, rather than an empty list of them.
            if !rules.is_empty() {
                sum["rules"] = json!(rules);
            }
            self.api.patch(name, &parameters, &Patch::Apply(&sum)).await?;
        }
        Ok(())
    }
}

impl Controller for ClusterRoles {
    fn wants(&self, kind: &Kind) -> bool {
        kind.is("rbac.authorization.k8s.io", "clusterroles")
    }

    fn observe(&self, change: &Change<'_>) {
        match change {
            Change::Applied(..) | Change::Deleted(..) => self.queue.add(()),
            Change::Kinds(_) => {}
        }
    }

    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            queue::work(&self.queue, 1, &shutdown, |()| self.work()).await;
        })
    }
}
