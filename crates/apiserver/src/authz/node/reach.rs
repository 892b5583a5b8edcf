//! Which objects belong to a node, or to its pods.
//!
//! Upstream keeps a graph of all pods, volumes and what they refer to, in step with every change,
//! and walks it for each request. Here nothing is kept: pods are in memory already, in the order of
//! their namespaces, with the node of each beside it for the watches of kubelets. Whatever a pod
//! refers to by name is in its own namespace, so a question is about the pods of one namespace;
//! those of the node are few, and only those are read that have the name somewhere in their bytes.
//! Requests of others cost nothing, writes of pods neither, and no answer is older than the store.

use kubewright_store::Snapshot;
use memchr::memmem::Finder;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::index::{self, Index, Store, Stored};
use crate::references;
use crate::selection;

const VOLUMES: &str = "/registry/persistentvolumes/";
const ATTACHMENTS: &str = "/registry/volumeattachments/";
const SLICES: &str = "/registry/resourceslices/";
/// Says that a pod only stands for one that a node has by itself. It must not give the node anything.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What a node may ask for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    Attachment,
    Claim,
    ConfigMap,
    Pod,
    ResourceClaim,
    Secret,
    ServiceAccount,
    Slice,
    Volume,
}

/// What belongs to a node.
pub(super) struct Reach<'a> {
    snapshot: Snapshot<Index>,
    node: &'a str,
}

impl<'a> Reach<'a> {
    pub(super) fn new(store: &Store, node: &'a str) -> Self {
        Reach { snapshot: store.snapshot(), node }
    }

    /// Whether this object belongs to the node, or to one of its pods. It need not be there.
    pub(super) fn has(&self, thing: Thing, namespace: &str, name: &str) -> bool {
        let is = |found: &str| found == name;
        match thing {
            Thing::Pod => {
                let key = Catalog::pods().key(Some(namespace), name);
                self.snapshot.get(key.as_str()).is_some_and(|pod| self.runs(pod))
            }
            Thing::Attachment => self.names_node(ATTACHMENTS, name),
            Thing::Slice => self.names_node(SLICES, name),
            Thing::Claim => self.claims(namespace, name),
            Thing::ConfigMap => {
                self.has_pod(namespace, name, |pod| references::config_maps(pod).any(is))
            }
            Thing::ResourceClaim => {
                self.has_pod(namespace, name, |pod| references::resource_claims(pod).any(is))
            }
            Thing::ServiceAccount => {
                self.has_pod(namespace, name, |pod| pod["spec"]["serviceAccountName"] == name)
            }
            Thing::Secret => {
                self.has_pod(namespace, name, |pod| references::secrets(pod).any(is))
                    || self.mounts_with(namespace, name)
            }
            Thing::Volume => {
                let volume = self.snapshot.get(&[VOLUMES, name].concat());
                volume.and_then(|rev| index::object(rev)).is_some_and(|volume| self.mounts(&volume))
            }
        }
    }

    /// Whether a pod runs on the node.
    fn runs(&self, pod: &Stored) -> bool {
        selection::field(Catalog::pods(), pod, "spec.nodeName") == Some(self.node)
    }

    /// Whether an object outside of namespaces says that it is about the node.
    fn names_node(&self, prefix: &str, name: &str) -> bool {
        let found = self.snapshot.get(&[prefix, name].concat());
        let object = found.and_then(|rev| index::object(rev));
        object.is_some_and(|object| object["spec"]["nodeName"] == self.node)
    }

    /// Whether there is such a pod of the node among those that have this name somewhere.
    fn has_pod(&self, namespace: &str, name: &str, is_it: impl Fn(&Value) -> bool) -> bool {
        let mention = Mention::of(name);
        self.has_pod_where(namespace, |rev| mention.is_in(rev), is_it)
    }

    fn has_pod_where(
        &self,
        namespace: &str,
        may_be_it: impl Fn(&Stored) -> bool,
        is_it: impl Fn(&Value) -> bool,
    ) -> bool {
        let pods = self.snapshot.range(&Catalog::pods().prefix_in(Some(namespace)), None, None);
        let own = pods.iter().filter(|rev| self.runs(rev) && may_be_it(rev));
        let mut own = own.filter_map(|rev| index::object(rev));
        own.any(|pod| !is_mirror(&pod) && is_it(&pod))
    }

    /// Whether a pod of the node uses this claim. One that is made for a pod has the pod's name
    /// before its own.
    fn claims(&self, namespace: &str, name: &str) -> bool {
        let mention = Mention::of(name);
        let is_made_for = |pod: &Stored| {
            let pod = pod.key.as_str().rsplit('/').next().unwrap_or_default();
            name.strip_prefix(pod).is_some_and(|rest| rest.starts_with('-'))
        };
        self.has_pod_where(
            namespace,
            |rev| is_made_for(rev) || mention.is_in(rev),
            |pod| references::claims(pod).any(|claim| claim == name),
        )
    }

    /// Whether a pod of the node uses the claim of a persistent volume.
    fn mounts(&self, volume: &Value) -> bool {
        let claim = &volume["spec"]["claimRef"];
        let text = |field: &str| claim[field].as_str().unwrap_or_default();
        claim.is_object() && self.claims(text("namespace"), text("name"))
    }

    /// Whether a pod of the node uses a persistent volume that cannot be mounted without this secret,
    /// which may be in any namespace.
    fn mounts_with(&self, namespace: &str, name: &str) -> bool {
        let mention = Mention::of(name);
        let volumes = self.snapshot.range(VOLUMES, None, None);
        let candidates = volumes.iter().filter(|rev| mention.is_in(rev));
        let mut candidates = candidates.filter_map(|rev| index::object(rev));
        candidates.any(|volume| {
            let mut secrets = references::persistent_volume_secrets(&volume);
            secrets.any(|secret| secret == (namespace, name)) && self.mounts(&volume)
        })
    }
}

/// Finds objects that have a text somewhere, before they are read.
struct Mention(Option<Finder<'static>>);

impl Mention {
    fn of(name: &str) -> Self {
        // Anything else could be written in several ways.
        let is_plain =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        Mention(is_plain.then(|| Finder::new(&format!("\"{name}\"")).into_owned()))
    }

    /// Whether an object may have the text.
    fn is_in(&self, rev: &Stored) -> bool {
        let json = rev.extracted.json(&rev.value);
        self.0.as_ref().is_none_or(|finder| finder.find(json).is_some())
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}
