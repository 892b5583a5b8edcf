//! Pods of nodes: a node runs those it was given, and shows those it has by itself, as mirrors,
//! which must not lead to anything else.

use kubewright_apimachinery::json::go_quote;
use serde_json::Value;

use super::{Write, missing, same};
use crate::admission::{Operation, items, text};
use crate::meta;
use crate::references;
use crate::refusal::Refusal;

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Sources of volumes that need nothing of the API.
const HARMLESS: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];
/// Sources that are objects of the API, or need some, and what these are called.
const REFERRING: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
/// The same for parts of projected volumes.
const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

impl Write<'_> {
    pub(super) fn judge_pod(&self) -> Result<(), Refusal> {
        match (self.attributes.part, self.attributes.operation) {
            (None, Operation::Create) => self.judge_mirror(),
            (None, Operation::Delete) => self.judge_deletion(),
            (None, _) => self.forbid(format!(
                "unexpected operation {}, node {} can only create and delete mirror pods",
                go_quote(self.operation()),
                go_quote(self.node)
            )),
            (Some("status"), _) => self.judge_status(),
            (Some("eviction"), Operation::Create) => self.judge_eviction(),
            (Some("eviction"), _) => {
                self.forbid(format!("unexpected operation {}", self.operation()))
            }
            (Some(part), _) => self.forbid(format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                go_quote(part)
            )),
        }
    }

    fn judge_mirror(&self) -> Result<(), Refusal> {
        let (pod, node) = (self.object, go_quote(self.node));
        if pod["metadata"]["annotations"].get(MIRROR).is_none() {
            let annotation = go_quote(MIRROR);
            return self.forbid(format!(
                "pod does not have {annotation} annotation, node {node} can only create mirror pods"
            ));
        }
        if pod["spec"]["nodeName"] != self.node {
            return self.forbid(format!(
                "node {node} can only create pods with spec.nodeName set to itself"
            ));
        }
        self.judge_owner()?;
        match reference(pod) {
            Ok(None) => Ok(()),
            Ok(Some(resource)) => {
                self.forbid(format!("node {node} can not create pods that reference {resource}"))
            }
            Err(why) => self.forbid(format!("error checking mirror pod for API references: {why}")),
        }
    }

    /// Requires that the pod goes with its node.
    fn judge_owner(&self) -> Result<(), Refusal> {
        let node = go_quote(self.node);
        let why = match items(&self.object["metadata"]["ownerReferences"]) {
            [] => format!("node {node} can only create pods with an owner reference set to itself"),
            [owner] => return self.judge_only_owner(owner),
            _ => format!(
                "node {node} can only create pods with a single owner reference set to itself"
            ),
        };
        self.forbid(why)
    }

    fn judge_only_owner(&self, owner: &Value) -> Result<(), Refusal> {
        let node = go_quote(self.node);
        let is_own =
            owner["apiVersion"] == "v1" && owner["kind"] == "Node" && owner["name"] == self.node;
        if !is_own {
            return self.forbid(format!(
                "node {node} can only create pods with an owner reference set to itself"
            ));
        }
        if owner["controller"] != true {
            return self.forbid(format!(
                "node {node} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner["blockOwnerDeletion"] == true {
            return self.forbid(format!(
                "node {node} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let found = self.scene.get(&format!("/registry/minions/{}", self.node));
        let found = found.ok_or_else(|| missing("", "node", self.node))?;
        let (named, uid) = (text(&owner["uid"]), meta::text(&found, "uid"));
        if named != uid {
            // Upstream calls them by each other's names.
            let node = self.node;
            return self.forbid(format!("node {node} UID mismatch: expected {named} got {uid}"));
        }
        Ok(())
    }

    fn judge_deletion(&self) -> Result<(), Refusal> {
        let pod = self.pod(self.attributes.name)?;
        if pod["spec"]["nodeName"] == self.node {
            return Ok(());
        }
        let node = go_quote(self.node);
        self.forbid(format!("node {node} can only delete pods with spec.nodeName set to itself"))
    }

    fn judge_status(&self) -> Result<(), Refusal> {
        let Some(old) = self.attributes.old.filter(|_| self.is_update()) else {
            return self.forbid_operation();
        };
        let (new, node) = (self.object, go_quote(self.node));
        if old["spec"]["nodeName"] != self.node {
            return self.forbid(format!(
                "node {node} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        let differs = |path: &str| {
            let of = |pod: &Value| pod.pointer(path).cloned().unwrap_or_default();
            !same(&of(old), &of(new))
        };
        // The first steers what is sent to the pod, the others give access to claims.
        if differs("/metadata/labels") {
            return self.forbid(format!("node {node} cannot update labels through pod status"));
        }
        if differs("/status/resourceClaimStatuses") {
            return self.forbid(format!("node {node} cannot update resource claim statues"));
        }
        if differs("/status/extendedResourceClaimStatus") {
            return self
                .forbid(format!("node {node} cannot update extended resource claim status"));
        }
        Ok(())
    }

    fn judge_eviction(&self) -> Result<(), Refusal> {
        let names = [self.attributes.name, meta::text(self.object, "name")];
        let Some(name) = names.into_iter().find(|name| !name.is_empty()) else {
            return self.forbid("could not determine pod from request data");
        };
        if self.pod(name)?["spec"]["nodeName"] == self.node {
            return Ok(());
        }
        let node = self.node;
        self.forbid(format!("node {node} can only evict pods with spec.nodeName set to itself"))
    }
}

/// What of the API a pod refers to, if anything; what nobody knows may refer to anything.
fn reference(pod: &Value) -> Result<Option<&'static str>, String> {
    let spec = &pod["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if references::secrets(pod).next().is_some() {
        return Ok(Some("secrets"));
    }
    if references::config_maps(pod).next().is_some() {
        return Ok(Some("configmaps"));
    }
    if !items(&spec["resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in items(&spec["volumes"]) {
        if let Some(found) = reference_of_volume(volume)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn reference_of_volume(volume: &Value) -> Result<Option<&'static str>, String> {
    let has = |source: &str| volume[source].is_object();
    let name = go_quote(text(&volume["name"]));
    if HARMLESS.into_iter().any(has) {
        return Ok(None);
    }
    if let Some((_, found)) = REFERRING.iter().find(|(source, _)| has(source)) {
        return Ok(Some(found));
    }
    if !has("projected") {
        return Err(format!("unknown volume type for volume  {name}"));
    }
    for part in items(&volume["projected"]["sources"]) {
        let has = |source: &str| part[source].is_object();
        if let Some((_, found)) = PROJECTED.iter().find(|(source, _)| has(source)) {
            return Ok(Some(found));
        }
        if !has("downwardAPI") {
            return Err(format!("unknown source for projected volume {name}"));
        }
    }
    Ok(None)
}
