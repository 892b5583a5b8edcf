//! What the API shows of a node. Pure, but for looking at the machine.

mod machine;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints,
    NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference, Time};
use kube::api::ObjectMeta;

pub use self::machine::Machine;

/// The version of Kubernetes that nodes behave as.
const VERSION: &str = "v1.36.4+kubewright";

pub(crate) const LEASES: &str = "kube-node-lease";
/// How long others believe in a node that they do not hear of.
const LEASE_SECONDS: i32 = 40;

/// What this node can do that others may not, by the names that upstream gives it; in their order.
const FEATURES: [&str; 3] = [
    // What speaks WebSockets to an API server may speak them to us.
    "ExtendWebSocketsToKubelet",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
];

/// What a node finds when it looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Findings {
    /// The images that are there.
    pub(crate) images: Vec<ContainerImage>,
    /// Why it can run nothing, if it cannot.
    pub(crate) trouble: Option<String>,
}

/// What is known of a node before it exists.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) machine: Machine,
    pub(crate) runtime_version: String,
    /// Where its server listens; zero if it has none.
    pub(crate) port: u16,
}

impl Profile {
    /// The node, as it is registered.
    pub(crate) fn node(&self, now: Timestamp) -> Node {
        let taints = (!self.taints.is_empty()).then(|| self.taints.clone());
        let annotations = [("volumes.kubernetes.io/controller-managed-attach-detach", "true")];
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels()),
                annotations: Some(annotations.map(owned).into()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec { taints, ..NodeSpec::default() }),
            status: Some(self.status(&[], &Findings::default(), now)),
        }
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let machine = &self.machine;
        let own = [
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/os", &machine.os),
            ("kubernetes.io/arch", &machine.architecture),
            ("beta.kubernetes.io/os", &machine.os),
            ("beta.kubernetes.io/arch", &machine.architecture),
        ];
        let mut labels: BTreeMap<String, String> =
            own.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        labels.extend(self.labels.clone());
        labels
    }

    /// The status of the node. `old` has the conditions that were shown before: times of what has
    /// not changed stay, and so does what others say.
    pub(crate) fn status(
        &self,
        old: &[NodeCondition],
        found: &Findings,
        now: Timestamp,
    ) -> NodeStatus {
        let machine = &self.machine;
        let address =
            |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
        NodeStatus {
            addresses: Some(vec![
                address("InternalIP", machine.address.to_string()),
                address("Hostname", self.name.clone()),
            ]),
            capacity: Some(machine.capacity.clone()),
            allocatable: Some(machine.capacity.clone()),
            conditions: Some(conditions(old, found.trouble.as_deref(), now)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: self.port.into() }),
            }),
            node_info: Some(NodeSystemInfo {
                architecture: machine.architecture.clone(),
                boot_id: machine.boot_id.clone(),
                container_runtime_version: self.runtime_version.clone(),
                kernel_version: machine.kernel_version.clone(),
                kube_proxy_version: String::new(),
                kubelet_version: VERSION.to_owned(),
                machine_id: machine.machine_id.clone(),
                operating_system: machine.os.clone(),
                os_image: machine.os_image.clone(),
                swap: None,
                system_uuid: machine.system_uuid.clone(),
            }),
            images: (!found.images.is_empty()).then(|| found.images.clone()),
            declared_features: Some(FEATURES.map(str::to_owned).to_vec()),
            ..NodeStatus::default()
        }
    }

    /// Whether a node shows what it should, whatever else others have told of it: resources and
    /// conditions of theirs stay.
    pub(crate) fn is_shown(&self, node: &Node, found: &Findings) -> bool {
        let own = self.status(&[], found, Timestamp::UNIX_EPOCH);
        let Some(shown) = &node.status else { return false };
        type Amounts = Option<BTreeMap<String, Quantity>>;
        let has_all = |own: &Amounts, shown: &Amounts| {
            let amount = |name: &str| shown.as_ref().and_then(|shown| shown.get(name));
            own.iter().flatten().all(|(name, own)| amount(name) == Some(own))
        };
        let has_condition = |own: &NodeCondition| {
            let mut all = shown.conditions.iter().flatten();
            all.any(|it| {
                (&it.type_, &it.status, &it.reason, &it.message)
                    == (&own.type_, &own.status, &own.reason, &own.message)
            })
        };
        shown.addresses == own.addresses
            && shown.daemon_endpoints == own.daemon_endpoints
            && shown.node_info == own.node_info
            // Those who do not know it drop it.
            && (shown.declared_features.is_none()
                || shown.declared_features == own.declared_features)
            && (own.images.is_none() || shown.images == own.images)
            && has_all(&own.capacity, &shown.capacity)
            && has_all(&own.allocatable, &shown.allocatable)
            && own.conditions.iter().flatten().all(has_condition)
    }

    /// The lease by which others know that the node is alive.
    pub(crate) fn lease(&self, node_uid: Option<String>, now: Timestamp) -> Lease {
        let owner = node_uid.map(|uid| OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.name.clone(),
            uid,
            ..OwnerReference::default()
        });
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: owner.map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.name.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// What a node that works says of itself.
const WELL: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

fn conditions(old: &[NodeCondition], trouble: Option<&str>, now: Timestamp) -> Vec<NodeCondition> {
    let is_ours = |type_: &str| WELL.iter().any(|(ours, ..)| *ours == type_);
    let foreign = old.iter().filter(|condition| !is_ours(&condition.type_)).cloned();
    let ours = WELL.map(|well| {
        let (type_, status, reason, message) = match (well, trouble) {
            (("Ready", ..), Some(trouble)) => ("Ready", "False", "KubeletNotReady", trouble),
            (well, _) => well,
        };
        let same = old.iter().find(|old| old.type_ == type_ && old.status == status);
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: same
                .and_then(|old| old.last_transition_time.clone())
                .or(Some(Time(now))),
        }
    });
    foreign.chain(ours).collect()
}
