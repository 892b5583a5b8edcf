//! Somebody else who is asked, by HTTP, which nodes will do and which are better.

#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1 as core;
use kube::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tracing::{debug, warn};

use self::wire::{
    BindingArgs, BindingResult, Candidates, FilterResult, HostPriority, MetaVictims, NodeList,
    PreemptionArgs, PreemptionResult, Question, Victims,
};
use crate::config::{self, ConfigError, invalid};
use crate::cycle::Diagnosis;
use crate::node::Node;
use crate::plugin::{Assignment, Preemption, Rejection, SCORE_MAX, Work};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const TIMEOUT: Duration = Duration::from_secs(5);
/// The best that an extender says of a node.
const PRIORITY_MAX: i64 = 10;

#[derive(Clone)]
pub(crate) struct Extender {
    config: Arc<config::Extender>,
    client: Client,
    /// Without a slash at the end.
    path: String,
    timeout: Duration,
    managed: BTreeSet<String>,
}

impl Extender {
    /// # Errors
    /// There is no such place, or it cannot be trusted as it is said.
    pub(crate) fn new(config: &config::Extender) -> Result<Self, ConfigError> {
        let (client, path) = wire::client(config)?;
        let given = config.http_timeout.as_deref().map(wire::duration);
        let given = given.transpose().map_err(|why| invalid("extenders.httpTimeout", why))?;
        Ok(Extender {
            client,
            path,
            timeout: given.filter(|given| !given.is_zero()).unwrap_or(TIMEOUT),
            managed: config.managed_resources.iter().map(|it| it.name.clone()).collect(),
            config: Arc::new(config.clone()),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.url_prefix
    }

    pub(crate) fn filters(&self) -> bool {
        !self.config.filter_verb.is_empty()
    }

    pub(crate) fn prioritizes(&self) -> bool {
        !self.config.prioritize_verb.is_empty()
    }

    /// Whether a pod asks for what this looks after.
    pub(crate) fn is_interested(&self, pod: &Pod) -> bool {
        let Some(spec) = pod.spec() else { return false };
        let asks = |container: &core::Container| {
            let resources = container.resources.as_ref();
            let requests = resources.and_then(|it| it.requests.as_ref()).into_iter().flatten();
            let limits = resources.and_then(|it| it.limits.as_ref()).into_iter().flatten();
            requests.chain(limits).any(|(name, _)| self.managed.contains(name))
        };
        self.managed.is_empty()
            || spec.containers.iter().any(asks)
            || spec.init_containers.iter().flatten().any(asks)
    }

    /// The nodes that will do, of those that would.
    pub(crate) async fn filter<'a>(
        &self,
        pod: &Pod,
        nodes: Vec<&'a Node>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<&'a Node>, String> {
        if !self.filters() {
            return Ok(nodes);
        }
        let asked: Result<FilterResult, String> =
            self.ask(&self.config.filter_verb, &self.question(pod, &nodes)).await;
        let result = match asked.and_then(FilterResult::checked) {
            Ok(result) => result,
            Err(error) if self.config.ignorable => {
                debug!(extender = self.name(), error, "an extender is passed over");
                return Ok(nodes);
            }
            Err(error) => return Err(error),
        };
        let find = |name: &str| nodes.iter().find(|node| *node.name == *name).copied();
        let mut left = Vec::new();
        for name in result.names(self.config.node_cache_capable) {
            left.push(find(&name).ok_or_else(|| {
                format!(
                    "extender {:?} claims a filtered node {name:?} which is not found in the \
                     input node list",
                    self.name()
                )
            })?);
        }
        for (name, why) in &result.failed_and_unresolvable_nodes {
            if let Some(node) = find(name) {
                let rejection = Rejection::unresolvable(why.clone());
                diagnosis.reject_by_extender(&node.name, rejection);
            }
        }
        for (name, why) in &result.failed_nodes {
            if let Some(node) = find(name)
                && !result.failed_and_unresolvable_nodes.contains_key(name)
            {
                let rejection = Rejection::unschedulable(why.clone());
                diagnosis.reject_by_extender(&node.name, rejection);
            }
        }
        Ok(left)
    }

    /// Adds what this thinks of nodes to their scores. If it does not answer, it thinks nothing.
    pub(crate) async fn prioritize(&self, pod: &Pod, nodes: &[&Node], scores: &mut [i64]) {
        if !self.prioritizes() {
            return;
        }
        let question = self.question(pod, nodes);
        let asked: Result<Vec<HostPriority>, String> =
            self.ask(&self.config.prioritize_verb, &question).await;
        match asked {
            Ok(priorities) => {
                let scale = self.config.weight * (SCORE_MAX / PRIORITY_MAX);
                let by_name: BTreeMap<&str, i64> =
                    priorities.iter().map(|it| (it.host.as_str(), it.score * scale)).collect();
                for (node, score) in nodes.iter().zip(scores) {
                    *score += by_name.get(&*node.name).copied().unwrap_or_default();
                }
            }
            Err(error) => warn!(extender = self.name(), error, "an extender gives no scores"),
        }
    }

    /// Who may go, of those who would.
    pub(crate) async fn preempt(
        &self,
        pod: &Pod,
        candidates: Vec<Preemption>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Preemption>, String> {
        if self.config.preempt_verb.is_empty() || candidates.is_empty() {
            return Ok(candidates);
        }
        let args = PreemptionArgs {
            pod: &pod.object,
            victims: if self.config.node_cache_capable {
                let all = candidates.iter();
                Candidates::Meta(all.map(|it| (&*it.node, MetaVictims::of(it))).collect())
            } else {
                let all = candidates.iter();
                Candidates::Whole(all.map(|it| (&*it.node, Victims::of(it))).collect())
            },
        };
        let asked: Result<PreemptionResult, String> =
            self.ask(&self.config.preempt_verb, &args).await;
        match asked.and_then(|result| self.read_victims(result, snapshot)) {
            Err(error) if self.config.ignorable => {
                debug!(extender = self.name(), error, "an extender is passed over");
                Ok(candidates)
            }
            read => read,
        }
    }

    /// Binds a pod, if this does.
    pub(crate) fn bind(&self, assignment: &Arc<Assignment>) -> Option<Work> {
        if self.config.bind_verb.is_empty() {
            return None;
        }
        let (extender, assignment) = (self.clone(), Arc::clone(assignment));
        Some(Box::pin(async move {
            let args = BindingArgs::of(&assignment);
            let result: BindingResult = extender.ask(&extender.config.bind_verb, &args).await?;
            match result.error.is_empty() {
                true => Ok(()),
                false => Err(result.error),
            }
        }))
    }

    fn question<'a>(&self, pod: &'a Pod, nodes: &[&'a Node]) -> Question<'a> {
        let is_known = self.config.node_cache_capable;
        Question {
            pod: &pod.object,
            nodes: (!is_known).then(|| NodeList::of(nodes)),
            node_names: is_known.then(|| nodes.iter().map(|node| &*node.name).collect()),
        }
    }

    fn read_victims(
        &self,
        result: PreemptionResult,
        snapshot: &Snapshot,
    ) -> Result<Vec<Preemption>, String> {
        let mut all = Vec::new();
        for (name, meta) in result.node_name_to_meta_victims {
            let node = snapshot.node(&name);
            let node = node.ok_or_else(|| format!("node {name:?} not found"))?;
            let mut victims = Vec::new();
            for victim in &meta.pods {
                let found = node.pods.iter().find(|pod| *pod.uid == *victim.uid);
                victims.push(Arc::clone(found.ok_or_else(|| {
                    format!(
                        "extender: {} claims to preempt pod (UID: {}) on node: {name}, but the \
                         pod is not found on that node",
                        self.name(),
                        victim.uid
                    )
                })?));
            }
            match (victims.is_empty(), self.config.ignorable) {
                (true, true) => continue,
                (true, false) => {
                    return Err(format!("expected at least one victim pod on node {name:?}"));
                }
                (false, _) => all.push(Preemption {
                    node: Arc::clone(&node.name),
                    victims,
                    violations: usize::try_from(meta.num_pdb_violations).unwrap_or_default(),
                }),
            }
        }
        Ok(all)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        verb: &str,
        question: &impl Serialize,
    ) -> Result<T, String> {
        let request = wire::request(&format!("{}/{verb}", self.path), question)?;
        let answering = async {
            let response = self.client.send(request).await?;
            let status = response.status();
            Ok::<_, kube::Error>((status, response.into_body().collect_bytes().await?))
        };
        match timeout(self.timeout, answering).await {
            Ok(Ok((StatusCode::OK, body))) => {
                serde_json::from_slice(&body).map_err(|error| error.to_string())
            }
            Ok(Ok((status, _))) => {
                let (prefix, code) = (self.name().trim_end_matches('/'), status.as_u16());
                Err(format!("failed {verb} with extender at URL {prefix}/{verb}, code {code}"))
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("{verb} with extender {:?}: no answer in time", self.name())),
        }
    }
}
