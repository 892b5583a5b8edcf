//! Cluster roles that are the sum of others.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{Selector, SelectorExt as _};
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Reconciler};
use serde_json::json;

use crate::part::text;
use crate::{names, part};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller of all sums.
pub(crate) fn controller() -> Controller<ClusterRole, Sums> {
    part::controller(names::CLUSTER_ROLE_AGGREGATION, Sums).depends_on(
        |change: &Change<ClusterRole>, sum: &ClusterRole| match change {
            Change::Applied { object, old, .. } => {
                is_part(object, sum) || old.as_ref().is_some_and(|old| is_part(old, sum))
            }
            Change::Deleted(object) => is_part(object, sum),
        },
    )
}

pub(crate) struct Sums;

impl Reconciler<ClusterRole> for Sums {
    async fn reconcile(&self, sum: &mut ClusterRole, ctx: &Context) -> Result<Action, Error> {
        if sum.aggregation_rule.is_none() {
            return Ok(Action::Done);
        }
        let Some(rules) = plan(sum, &ctx.list::<ClusterRole>().await?) else {
            return Ok(Action::Done);
        };
        let name = text(&sum.metadata.name);
        let mut wanted = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": name },
        });
        // A sum of nothing has no rules, rather than an empty list of them.
        if !rules.is_empty() {
            wanted["rules"] = json!(rules);
        }
        let api: Api<ClusterRole> = Api::all(ctx.client().clone());
        let parameters = PatchParams::apply(MANAGER).force();
        let applied = api.patch(name, &parameters, &Patch::Apply(&wanted)).await?;
        ctx.informer::<ClusterRole>()?.expect(&applied.metadata);
        Ok(Action::Done)
    }
}

/// The rules that a sum should have, if it has others. Roles are in the order of their names.
fn plan(sum: &ClusterRole, roles: &[Arc<ClusterRole>]) -> Option<Vec<PolicyRule>> {
    let parts = selectors(sum).flat_map(|selector| {
        let others = roles.iter().filter(|part| part.metadata.name != sum.metadata.name);
        others.filter(|part| selects(selector, part))
    });
    let mut rules: Vec<PolicyRule> = Vec::new();
    for rule in parts.flat_map(|part| part.rules.iter().flatten()) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    let is_right = sum.rules.as_deref().unwrap_or_default() == rules;
    (!is_right).then_some(rules)
}

fn is_part(role: &ClusterRole, sum: &ClusterRole) -> bool {
    selectors(sum).any(|selector| selects(selector, role))
}

fn selectors(sum: &ClusterRole) -> impl Iterator<Item = &LabelSelector> {
    let rule = sum.aggregation_rule.as_ref();
    rule.and_then(|rule| rule.cluster_role_selectors.as_ref()).into_iter().flatten()
}

/// A selector that the server let in and that yet is none selects nothing.
fn selects(selector: &LabelSelector, role: &ClusterRole) -> bool {
    let labels = role.metadata.labels.clone().unwrap_or_default();
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(&labels))
}
