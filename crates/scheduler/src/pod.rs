//! A pod as the scheduler sees it: what decides where it can be, read once.

mod affinity;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::ObjectReference;
use kubewright::ObjectKey;
use kubewright::placement::{NodeTerm, NodeTerms};
use kubewright_apimachinery::selector::label::Selector;

pub(crate) use self::affinity::{AffinityTerm, Weighted};
use crate::resources::{self, NonZero, Resources};
use crate::selector::{Labels, NO_LABELS};

/// Whose pods nobody else claims.
pub(crate) const DEFAULT_SCHEDULER: &str = "default-scheduler";
const ANY_ADDRESS: &str = "0.0.0.0";

/// A pod, and what was read from it.
#[derive(Debug)]
pub struct Pod {
    pub object: Arc<core::Pod>,
    pub key: ObjectKey,
    pub uid: Arc<str>,
    pub priority: i32,
    /// What all its containers ask for together.
    pub requests: Resources,
    pub(crate) non_zero: NonZero,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) images: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    /// From `nodeSelector`.
    pub(crate) node_labels: Option<Selector>,
    /// From the node affinity that is required, and that is preferred.
    pub(crate) node_terms: Option<NodeTerms>,
    pub(crate) preferred_nodes: Vec<Weighted<NodeTerm>>,
    pub(crate) affinity: Vec<AffinityTerm>,
    pub(crate) anti_affinity: Vec<AffinityTerm>,
    pub(crate) preferred_affinity: Vec<Weighted<AffinityTerm>>,
    pub(crate) preferred_anti_affinity: Vec<Weighted<AffinityTerm>>,
}

/// A port of the node that a pod wants for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

/// A claim that a pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) name: String,
    /// It is made for this pod, and goes with it.
    pub(crate) is_ephemeral: bool,
}

impl Pod {
    pub fn new(object: Arc<core::Pod>) -> Self {
        let (requests, non_zero) = resources::of_pod(&object);
        let key = ObjectKey::of(&object.metadata);
        let spec = object.spec.as_ref();
        let affinity = spec.and_then(|spec| spec.affinity.as_ref());
        let nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            nodes.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
        let preferred =
            nodes.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
        let preferred = preferred
            .into_iter()
            .flatten()
            .map(|it| Weighted { weight: it.weight.into(), term: NodeTerm::of(&it.preference) });
        let node_labels = spec.and_then(|spec| spec.node_selector.clone());
        let terms = affinity::Terms::of(key.namespace().unwrap_or_default(), affinity);
        Pod {
            uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
            priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
            requests,
            non_zero,
            ports: spec.map(ports).unwrap_or_default(),
            images: spec.map(images).unwrap_or_default(),
            claims: spec.map(|spec| claims(key.name(), spec)).unwrap_or_default(),
            node_labels: node_labels.map(Selector::from_labels),
            node_terms: required.map(NodeTerms::of),
            preferred_nodes: preferred.collect(),
            affinity: terms.affinity,
            anti_affinity: terms.anti_affinity,
            preferred_affinity: terms.preferred_affinity,
            preferred_anti_affinity: terms.preferred_anti_affinity,
            key,
            object,
        }
    }

    pub fn namespace(&self) -> &str {
        self.key.namespace().unwrap_or_default()
    }

    pub fn labels(&self) -> &Labels {
        self.object.metadata.labels.as_ref().unwrap_or(&NO_LABELS)
    }

    /// Who is to schedule it.
    pub fn scheduler_name(&self) -> &str {
        let name = self.spec().and_then(|spec| spec.scheduler_name.as_deref());
        name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_SCHEDULER)
    }

    /// Where it is.
    pub fn node_name(&self) -> Option<&str> {
        self.spec()?.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Where room is made for it.
    pub fn nominated_node(&self) -> Option<&str> {
        let name = self.object.status.as_ref()?.nominated_node_name.as_deref();
        name.filter(|name| !name.is_empty())
    }

    /// It has ended, and needs nothing any more.
    pub(crate) fn is_over(&self) -> bool {
        let phase = self.object.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    pub(crate) fn start_time(&self) -> Option<Timestamp> {
        self.object.status.as_ref()?.start_time.as_ref().map(|time| time.0)
    }

    pub(crate) fn spec(&self) -> Option<&core::PodSpec> {
        self.object.spec.as_ref()
    }

    pub(crate) fn tolerations(&self) -> &[core::Toleration] {
        self.spec().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
    }

    pub(crate) fn volumes(&self) -> &[core::Volume] {
        self.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
    }

    pub(crate) fn has_affinity(&self) -> bool {
        !(self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.preferred_affinity.is_empty()
            && self.preferred_anti_affinity.is_empty())
    }

    /// Whether a node has what `nodeSelector` and the required node affinity ask for.
    pub(crate) fn selects_node(&self, name: &str, labels: &Labels) -> bool {
        self.node_labels.as_ref().is_none_or(|selector| selector.matches(labels))
            && self.node_terms.as_ref().is_none_or(|terms| terms.matches(name, labels))
    }

    pub(crate) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(self.namespace().to_owned()),
            name: Some(self.key.name().to_owned()),
            uid: Some(self.uid.to_string()),
            resource_version: self.object.metadata.resource_version.clone(),
            ..ObjectReference::default()
        }
    }
}

impl HostPort {
    /// Whether both cannot be had at once.
    pub(crate) fn conflicts(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address
                || self.address == ANY_ADDRESS
                || other.address == ANY_ADDRESS)
    }
}

/// Containers that run for as long as the pod does.
fn lasting(spec: &core::PodSpec) -> impl Iterator<Item = &core::Container> {
    let is_lasting = |it: &&core::Container| it.restart_policy.as_deref() == Some("Always");
    spec.init_containers.iter().flatten().filter(is_lasting).chain(&spec.containers)
}

fn ports(spec: &core::PodSpec) -> Vec<HostPort> {
    let ports = lasting(spec).flat_map(|container| container.ports.iter().flatten());
    let wanted = ports.filter_map(|port| {
        let or = |text: &Option<String>, otherwise: &str| match text.as_deref() {
            None | Some("") => otherwise.to_owned(),
            Some(text) => text.to_owned(),
        };
        Some(HostPort {
            address: or(&port.host_ip, ANY_ADDRESS),
            protocol: or(&port.protocol, "TCP"),
            port: port.host_port.filter(|&port| port > 0)?,
        })
    });
    wanted.collect()
}

fn images(spec: &core::PodSpec) -> Vec<String> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let volumes = spec.volumes.iter().flatten().filter_map(|volume| volume.image.as_ref());
    let images = containers.map(|container| container.image.as_deref().unwrap_or_default());
    images
        .chain(volumes.map(|image| image.reference.as_deref().unwrap_or_default()))
        .map(with_tag)
        .collect()
}

/// Nodes report images with a tag, which pods may leave out.
fn with_tag(image: &str) -> String {
    match image.rfind(':') <= image.rfind('/') {
        true => format!("{image}:latest"),
        false => image.to_owned(),
    }
}

fn claims(pod: &str, spec: &core::PodSpec) -> Vec<Claim> {
    let claim = |volume: &core::Volume| {
        let named = volume.persistent_volume_claim.as_ref();
        let named =
            named.map(|claim| Claim { name: claim.claim_name.clone(), is_ephemeral: false });
        let own = volume.ephemeral.as_ref();
        let own = own.map(|_| Claim { name: format!("{pod}-{}", volume.name), is_ephemeral: true });
        named.or(own)
    };
    spec.volumes.iter().flatten().filter_map(claim).collect()
}
