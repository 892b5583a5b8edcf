//! Nodes that are not heard of any more, and what that means for others.
//!
//! `health` tells by its signs of life how it is with a node; `taints` what the scheduler and the
//! pods on it are told.

mod health;
mod taints;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use crate::part;
use crate::part::text;
use health::{Health, Pulse, readiness};
use taints::Eviction;

const AT_ONCE: usize = 8;
const LEASES: &str = "kube-node-lease";

pub(crate) fn controller() -> Controller<Node, NodeLife> {
    let life = NodeLife::default();
    let state = Arc::clone(&life.state);
    // Whether any node is ready decides about those that are not.
    let is_concerned = move |change: &Change<Node>, node: &Node| {
        let is_news = match change {
            Change::Applied { object, old: Some(old), .. } => readiness(object) != readiness(old),
            Change::Applied { old: None, .. } | Change::Deleted(_) => true,
        };
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        is_news && state.unfit.contains(text(&node.metadata.name))
    };
    let node_of = |lease: &Lease| match lease.metadata.namespace.as_deref() {
        Some(LEASES) => vec![ObjectKey::new(None, text(&lease.metadata.name))],
        _ => Vec::new(),
    };
    part::controller("node-controller", life)
        .depends_on::<Node>(is_concerned)
        .watches::<Lease>(node_of)
        .reads::<Pod>()
        .at_once(AT_ONCE)
}

/// The controller of the life of nodes.
#[derive(Default)]
pub(crate) struct NodeLife {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    pulses: HashMap<String, Pulse>,
    /// The nodes that are not ready.
    unfit: HashSet<String>,
    /// When the pods of another node of a zone may be told to leave.
    next: HashMap<String, Timestamp>,
}

impl Reconciler<Node> for NodeLife {
    async fn reconcile(&self, node: &mut Node, ctx: &Context) -> Result<Action, Error> {
        let (name, now) = (text(&node.metadata.name).to_owned(), ctx.now());
        let lease = ctx.get::<Lease>(Some(LEASES), &name).await?;
        let renewed = lease.and_then(|lease| Some(lease.spec.as_ref()?.renew_time.as_ref()?.0));
        let (pulse, is_new) = {
            let mut state = self.state();
            let before = state.pulses.get(&name).copied();
            let pulse = Pulse::of(node, renewed, before, now);
            state.pulses.insert(name.clone(), pulse);
            (pulse, before.is_none())
        };
        if is_new {
            let note = format!("Node {name} event: Registered Node {name} in Controller");
            ctx.event(Event::normal("RegisteredNode", note));
        }
        let mut again_after = None;
        match pulse.health(node, now) {
            Health::Alive(left) => again_after = Some(left),
            Health::Silent => {}
            Health::Falls(conditions) => {
                if readiness(node) == Some("True") {
                    let note = format!("Node {name} status is now: NodeNotReady");
                    ctx.event(Event::normal("NodeNotReady", note));
                    // Before it is known that the node has fallen: it must not be forgotten.
                    mark_pods(ctx, &name, now).await?;
                }
                node.status.get_or_insert_default().conditions = Some(conditions);
            }
        }
        let evicts = self.evicts(ctx, node, now).await?;
        if let Some(Wait(wait)) = evicts.err() {
            again_after = Some(again_after.map_or(wait, |left| left.min(wait)));
        }
        if let Some(taints) = taints::plan(node, evicts.unwrap_or(None), now) {
            node.spec.get_or_insert_default().taints = Some(taints);
        }
        Ok(match again_after {
            // A moment later than it is due, so that it is due by then.
            Some(left) => {
                let left = left + SignedDuration::from_millis(1);
                Action::RequeueAfter(Duration::try_from(left).unwrap_or_default())
            }
            None => Action::Done,
        })
    }

    fn gone(&self, key: &ObjectKey) {
        let mut state = self.state();
        state.pulses.remove(key.name());
        state.unfit.remove(key.name());
    }
}

/// It is not the turn of a node yet.
#[derive(Debug, Clone, Copy)]
struct Wait(SignedDuration);

impl NodeLife {
    /// Whether the pods of a node may be told to leave; none if nothing changes for them.
    async fn evicts(
        &self,
        ctx: &Context,
        node: &Node,
        now: Timestamp,
    ) -> Result<Result<Option<bool>, Wait>, Error> {
        let name = text(&node.metadata.name);
        if readiness(node).is_none_or(|ready| ready == "True") {
            self.state().unfit.remove(name);
            return Ok(Ok(Some(false)));
        }
        self.state().unfit.insert(name.to_owned());
        let nodes = ctx.list::<Node>().await?;
        // What is known of this one is newer.
        let others =
            nodes.iter().map(AsRef::as_ref).filter(|it| it.metadata.name != node.metadata.name);
        let zone = taints::zone(node);
        let every = match taints::eviction(&zone, others.chain([node])) {
            Eviction::Off => return Ok(Ok(Some(false))),
            Eviction::Halted => return Ok(Ok(None)),
            Eviction::Every(every) => every,
        };
        if !taints::awaits_eviction(node) {
            return Ok(Ok(Some(true)));
        }
        if taints::is_evicting(node) {
            // It is only for another reason than before.
            return Ok(Ok(Some(true)));
        }
        let mut state = self.state();
        let next = state.next.entry(zone).or_insert(now);
        if *next > now {
            return Ok(Err(Wait(next.duration_since(now))));
        }
        *next = now.saturating_add(every).unwrap_or(now);
        Ok(Ok(Some(true)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says of the pods of a silent node that they are not ready, so that nobody is sent to them.
async fn mark_pods(ctx: &Context, node: &str, now: Timestamp) -> Result<(), Error> {
    let on_node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| text(&spec.node_name) == node);
    for pod in ctx.list::<Pod>().await?.into_iter().filter(|pod| on_node(pod)) {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
        let ready = conditions.unwrap_or_default().iter().position(|it| it.type_ == "Ready");
        let Some(position) =
            ready.filter(|it| conditions.unwrap_or_default()[*it].status != "False")
        else {
            continue;
        };
        let written = ctx.edit(pod.as_ref(), |pod| {
            let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
            conditions[position].status = "False".to_owned();
            conditions[position].last_transition_time = Some(Time(now));
        });
        match written.await {
            Err(error) if error.code() == Some(404) => continue,
            written => drop(written?),
        }
        let event = Event::warning("NodeNotReady", "Node is not ready");
        ctx.event_about(pod.as_ref(), event);
    }
    Ok(())
}
