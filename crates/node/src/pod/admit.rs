//! Whether a node takes a pod that is new to it. Decides only, in the words of upstream's kubelet.
//!
//! A scheduler has asked the same before. But whoever names a node in a pod asks no scheduler, and
//! two schedulers may fill a node at the same moment. Left out: no pod is ended to make room for a
//! critical one, which is what schedulers preempt for.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod, Taint};
use kubewright::placement::{selects, tolerates};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::pod::Side;
use kubewright_apimachinery::resources::{self, Amounts, CPU, EPHEMERAL_STORAGE, MEMORY};
use serde_json::Value;

use crate::sysctl;

const PODS: &str = "pods";
const ANY_ADDRESS: &str = "0.0.0.0";
const OS_LABEL: &str = "kubernetes.io/os";

/// Why a node does not take a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    Refused(Rejection),
    /// Only what the node is labelled or tainted with speaks against the pod. That may have changed
    /// a moment ago: who has read it from a cache looks again.
    Doubted(Rejection),
}

/// What a pod takes of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Thousandths of processors, and units of all else.
    requests: BTreeMap<String, i64>,
    ports: Vec<HostPort>,
}

/// A port of the node itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

/// Whether a node takes a pod beside others. Of several reasons against it the first is told.
pub(crate) fn admit(pod: &Pod, needs: &Needs, others: &[&Needs], node: &Node) -> Verdict {
    let unfit = forbidden(pod).or_else(|| other_system(pod, node)).or_else(|| strict(pod, node));
    let lacking = lacking(needs, others, &allocatable(node));
    let (affinity, ports) = (unselected(pod, node), taken(needs, others));
    let is_doubtful = unfit.is_none() && lacking.is_none() && ports.is_none();
    let reasons = [unfit, lacking, affinity, ports, untolerated(pod, node)];
    match reasons.into_iter().flatten().next() {
        None => Verdict::Admitted,
        Some(rejection) if is_doubtful => Verdict::Doubted(rejection),
        Some(rejection) => Verdict::Refused(rejection),
    }
}

/// What a node is labelled or tainted with that speaks against a pod.
pub(crate) fn misfit(pod: &Pod, node: &Node) -> Option<Rejection> {
    unselected(pod, node).or_else(|| untolerated(pod, node))
}

impl Needs {
    /// What a pod asks for.
    pub(crate) fn of(pod: &Pod) -> Self {
        Needs::by(pod, |_, one| Side::Requests.of(one))
    }

    /// What a pod takes that is here: besides what it asks for, what its containers have until they
    /// are given less.
    pub(crate) fn held(pod: &Pod) -> Self {
        Needs::by(pod, |tree, one| {
            let status = &tree["status"];
            let lists = [&status["initContainerStatuses"], &status["containerStatuses"]];
            let mut known = lists.into_iter().filter_map(Value::as_array).flatten();
            let known = known.find(|known| known["name"] == one["name"]);
            let mut requests = Side::Requests.of(one);
            for (name, amount) in known.map(|known| Side::Requests.of(known)).unwrap_or_default() {
                if requests.get(&name).is_none_or(|own| *own < amount) {
                    requests.insert(name, amount);
                }
            }
            requests
        })
    }

    fn by(pod: &Pod, one: impl Fn(&Value, &Value) -> Amounts) -> Self {
        let tree = serde_json::to_value(pod).unwrap_or_default();
        let requests = resources::pod::requests(&tree, |container| one(&tree, container));
        let requests = requests.into_iter().map(|(name, amount)| {
            let amount = units(&name, &amount);
            (name, amount)
        });
        let spec = pod.spec.as_ref();
        let lasting =
            |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
        let main = spec.into_iter().flat_map(|spec| &spec.containers);
        let ports = main.chain(init.filter(lasting)).flat_map(|it| it.ports.iter().flatten());
        let ports = ports.filter_map(|port| {
            let address = port.host_ip.clone().filter(|address| !address.is_empty());
            Some(HostPort {
                address: address.unwrap_or_else(|| ANY_ADDRESS.to_owned()),
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                port: port.host_port.filter(|port| *port > 0)?,
            })
        });
        Needs { requests: requests.collect(), ports: ports.collect() }
    }

    /// Whether it leaves more than another of what resizes are about.
    pub(crate) fn is_less(&self, other: &Needs) -> bool {
        [CPU, MEMORY].iter().any(|name| self.request(name) < other.request(name))
    }

    pub(super) fn request(&self, name: &str) -> i64 {
        self.requests.get(name).copied().unwrap_or_default()
    }
}

fn units(name: &str, amount: &Quantity) -> i64 {
    if name == CPU { amount.milli_value() } else { amount.value() }
}

fn failed(predicate: &str, why: &str) -> Rejection {
    let message = format!("Predicate {predicate} failed: {why}");
    Rejection { reason: predicate.to_owned(), message }
}

fn allocatable(node: &Node) -> BTreeMap<String, i64> {
    let amounts = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let amounts = amounts.into_iter().flatten();
    let read = amounts.filter_map(|(name, amount)| {
        let amount = Quantity::parse(&amount.0).ok()?;
        Some((name.clone(), units(name, &amount)))
    });
    read.collect()
}

/// It wants to set what is not its own.
fn forbidden(pod: &Pod) -> Option<Rejection> {
    let message = sysctl::refusal(pod)?;
    Some(Rejection { reason: "SysctlForbidden".to_owned(), message })
}

/// Its processes are to be in no groups but those that it names, which the node cannot see to.
fn strict(pod: &Pod, node: &Node) -> Option<Rejection> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let policy = context.and_then(|context| context.supplemental_groups_policy.as_deref());
    let features = node.status.as_ref().and_then(|status| status.features.as_ref());
    let is_able = features.and_then(|features| features.supplemental_groups_policy) == Some(true);
    (policy == Some("Strict") && !is_able).then(|| Rejection {
        reason: "SupplementalGroupsPolicyNotSupported".to_owned(),
        message: "SupplementalGroupsPolicy=Strict is not supported in this node".to_owned(),
    })
}

/// The pod is for another operating system.
fn other_system(pod: &Pod, node: &Node) -> Option<Rejection> {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let own = info.map_or("linux", |info| info.operating_system.as_str());
    let rejection = |reason: &str, message: &str| Rejection {
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    // A label of the pod, not a selector: so upstream reads it.
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(OS_LABEL));
    if label.is_some_and(|label| label != own) {
        let why = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Some(rejection("PodOSSelectorNodeLabelDoesNotMatch", why));
    }
    let wanted = pod.spec.as_ref().and_then(|spec| spec.os.as_ref());
    wanted.filter(|wanted| wanted.name != own).map(|_| {
        let why = "Failed to admit pod as the OS field doesn't match node OS";
        rejection("PodOSNotSupported", why)
    })
}

/// The first resource of which there is not enough left.
fn lacking(
    needs: &Needs,
    others: &[&Needs],
    allocatable: &BTreeMap<String, i64>,
) -> Option<Rejection> {
    let capacity = |name: &str| allocatable.get(name).copied().unwrap_or_default();
    let used = |name: &str| others.iter().map(|other| other.request(name)).sum();
    let first = [CPU, MEMORY, EPHEMERAL_STORAGE];
    let rest = needs.requests.keys().map(String::as_str).filter(|name| {
        // What no node has as its own is counted by somebody else.
        let is_elsewhere = resources::is_extended(name) && !allocatable.contains_key(*name);
        !first.contains(name) && !is_elsewhere
    });
    let pods = std::iter::once((PODS, 1, others.len() as i64));
    let amounts = first.into_iter().chain(rest).map(|name| (name, needs.request(name), used(name)));
    let mut all = pods.chain(amounts.filter(|(_, requested, _)| *requested > 0));
    let (name, requested, used) =
        all.find(|(name, requested, used)| *requested > capacity(name) - used)?;
    Some(Rejection {
        reason: format!("OutOf{name}"),
        message: format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, \
             capacity: {}",
            capacity(name)
        ),
    })
}

fn taken(needs: &Needs, others: &[&Needs]) -> Option<Rejection> {
    let mut taken = others.iter().flat_map(|other| &other.ports);
    let is_taken = taken.any(|taken| needs.ports.iter().any(|port| port.conflicts(taken)));
    let why = "node(s) didn't have free ports for the requested pod ports";
    is_taken.then(|| failed("NodePorts", why))
}

impl HostPort {
    fn conflicts(&self, other: &HostPort) -> bool {
        let is_any = |port: &HostPort| port.address == ANY_ADDRESS;
        (self.port, &self.protocol) == (other.port, &other.protocol)
            && (is_any(self) || is_any(other) || self.address == other.address)
    }
}

fn untolerated(pod: &Pod, node: &Node) -> Option<Rejection> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut taints = taints.into_iter().flatten().filter(|taint| taint.effect == "NoExecute");
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref());
    let tolerations = tolerations.unwrap_or_default();
    let is_borne = |taint: &Taint| tolerations.iter().any(|it| tolerates(it, taint));
    let why = "node(s) had taints that the pod didn't tolerate";
    (!taints.all(is_borne)).then(|| failed("TaintToleration", why))
}

/// The node is none of those that a pod asks for.
fn unselected(pod: &Pod, node: &Node) -> Option<Rejection> {
    let is_selected = pod.spec.as_ref().is_none_or(|spec| selects(spec, node));
    let why = "node(s) didn't match Pod's node affinity/selector";
    (!is_selected).then(|| failed("NodeAffinity", why))
}
