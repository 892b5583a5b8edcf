//! How long nodes may believe what they have read of Secrets and ConfigMaps: the longer, the more
//! nodes there are.

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use crate::part;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// From how many nodes down and up to how many a step lasts, and its seconds. They overlap, so that
/// a node more or less does not change all the others.
const STEPS: &[(usize, usize, u32)] =
    &[(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

pub(crate) fn controller() -> Controller<Node, NodeTtl> {
    part::controller("ttl-controller", NodeTtl::default())
}

/// The controller of what nodes may believe.
#[derive(Default)]
pub(crate) struct NodeTtl {
    step: Mutex<usize>,
}

impl Reconciler<Node> for NodeTtl {
    async fn reconcile(&self, node: &mut Node, ctx: &Context) -> Result<Action, Error> {
        let count = ctx.list::<Node>().await?.len();
        let seconds = {
            let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
            *step = next(*step, count);
            STEPS[*step].2
        };
        let annotations = node.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), seconds.to_string());
        Ok(Action::Done)
    }
}

/// The step for so many nodes, coming from another.
fn next(step: usize, count: usize) -> usize {
    match STEPS[step] {
        (_, up_to, _) if count > up_to => next(step + 1, count),
        (from, ..) if count < from => next(step - 1, count),
        _ => step,
    }
}
