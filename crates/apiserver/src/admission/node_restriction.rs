//! NodeRestriction: a node writes what is its own. It tells how it and its pods are, and it gets
//! neither pods nor secrets that nobody gave it.
//!
//! Whether a node may write a resource at all, the authorizer has decided before; here it is known
//! what is written. Whoever is no node is none of its business. Requests for certificates of pods,
//! which upstream judges too, are a kind that is not served.

mod labels;
mod pods;
mod tokens;

#[cfg(test)]
mod tests;

use std::fmt;

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use super::{Attributes, Operation, Scene, certificates, text};
use crate::authz::escalation::prune;
use crate::kinds::internal;
use crate::meta;
use crate::refusal::Refusal;
use crate::user::NODE_PREFIX;

/// Where nodes say that they live.
const LEASES: &str = "kube-node-lease";
/// Who signs certificates by which nodes are known, as servers and as clients.
const NODE_SIGNERS: [&str; 2] =
    ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];
const CLAIM: &str = "k8s.io/api/core/v1.PersistentVolumeClaim";
/// What a node may say of a claim: how far its volume has grown.
const CLAIM_FIELDS: [&str; 4] =
    ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"];

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> Result<(), Refusal> {
    judge(scene, attributes, Some(object))
}

/// Refuses a write of a node that is not its own; deletions are of no object.
pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<(), Refusal> {
    let Some(node) = attributes.user.node() else { return Ok(()) };
    let write = Write { scene, attributes, node, object: object.unwrap_or(&Value::Null) };
    if node.is_empty() {
        let user = go_quote(&attributes.user.name);
        return write.forbid(format!("could not determine node from user {user}"));
    }
    let gvr = &attributes.resource.gvr;
    match (gvr.group.as_str(), gvr.resource.as_str()) {
        ("", "pods") => write.judge_pod(),
        ("", "nodes") => write.judge_node(),
        ("", "persistentvolumeclaims") => write.judge_claim(),
        ("", "serviceaccounts") => write.judge_token(),
        ("coordination.k8s.io", "leases") => write.judge_lease(),
        ("storage.k8s.io", "csinodes") => {
            write.require_own("can only access CSINode with the same name as the requesting node")
        }
        ("resource.k8s.io", "resourceslices") => write.judge_slice(),
        ("certificates.k8s.io", "certificatesigningrequests") => write.judge_certificate(),
        _ => Ok(()),
    }
}

/// What a node is about to write.
struct Write<'a> {
    scene: &'a Scene<'a>,
    attributes: &'a Attributes<'a>,
    node: &'a str,
    /// Null when something is deleted.
    object: &'a Value,
}

impl Write<'_> {
    fn judge_node(&self) -> Result<(), Refusal> {
        let node = go_quote(self.node);
        let Attributes { name, operation, old, .. } = *self.attributes;
        if name != self.node {
            let name = go_quote(name);
            return self.forbid(format!("node {node} is not allowed to modify node {name}"));
        }
        let (new, old) = (self.object, old.unwrap_or(&Value::Null));
        let source = &new["spec"]["configSource"];
        match operation {
            Operation::Create => {
                if !source.is_null() {
                    return self.forbid(format!(
                        "node {node} is not allowed to create pods with a non-nil configSource"
                    ));
                }
                self.permit_labels(&Value::Null, |labels| {
                    format!("node {node} is not allowed to set the following labels: {labels}")
                })
            }
            Operation::Update => {
                if !source.is_null() && !same(source, &old["spec"]["configSource"]) {
                    return self.forbid(format!(
                        "node {node} is not allowed to update configSource to a new non-nil \
                         configSource"
                    ));
                }
                // It could have pods come that are to be elsewhere.
                if !same(&new["spec"]["taints"], &old["spec"]["taints"]) {
                    return self.forbid(format!("node {node} is not allowed to modify taints"));
                }
                let owners = |node: &Value| node["metadata"]["ownerReferences"].clone();
                if !same(&owners(new), &owners(old)) {
                    let why = format!("node {node} is not allowed to modify ownerReferences");
                    return self.forbid(why);
                }
                self.permit_labels(&old["metadata"]["labels"], |labels| {
                    format!("is not allowed to modify labels: {labels}")
                })
            }
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    /// Refuses labels other than those that a node may give itself.
    fn permit_labels(
        &self,
        old: &Value,
        why: impl FnOnce(String) -> String,
    ) -> Result<(), Refusal> {
        let forbidden = labels::forbidden(&self.object["metadata"]["labels"], old);
        match forbidden.is_empty() {
            true => Ok(()),
            false => self.forbid(why(forbidden.join(", "))),
        }
    }

    fn judge_claim(&self) -> Result<(), Refusal> {
        if self.attributes.part != Some("status") {
            return self.forbid("may only update PVC status");
        }
        let Some(old) = self.attributes.old.filter(|_| self.is_update()) else {
            return self.forbid_operation();
        };
        let (old, new) = (fixed_of_claim(old), fixed_of_claim(self.object));
        if same(&old, &new) {
            return Ok(());
        }
        self.forbid(format!(
            "node {} is not allowed to update fields other than status.quantity and \
             status.conditions: {}",
            go_quote(self.node),
            internal::diff(CLAIM, &old, &new)
        ))
    }

    fn judge_lease(&self) -> Result<(), Refusal> {
        if self.namespace() != LEASES {
            let why =
                format!("can only access leases in the {} system namespace", go_quote(LEASES));
            return self.forbid(why);
        }
        self.require_own("can only access node lease with the same name as the requesting node")
    }

    fn judge_slice(&self) -> Result<(), Refusal> {
        // Who may update one, the authorizer knows.
        let (slice, what) = match self.attributes.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.attributes.old.unwrap_or(&Value::Null), "delete"),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        if slice["spec"]["nodeName"] == self.node {
            return Ok(());
        }
        self.forbid(format!(
            "can only {what} ResourceSlice with the same NodeName as the requesting node"
        ))
    }

    fn judge_certificate(&self) -> Result<(), Refusal> {
        let spec = &self.object["spec"];
        let is_create = self.attributes.operation == Operation::Create;
        if !is_create || !NODE_SIGNERS.contains(&text(&spec["signerName"])) {
            return Ok(());
        }
        let own = format!("{NODE_PREFIX}{}", self.node);
        match certificates::common_name(text(&spec["request"])) {
            Ok(name) if name == own => Ok(()),
            Ok(_) => self.forbid(format!("can only create a node CSR with CN={own}")),
            Err(why) => self.forbid(format!("unable to parse csr: {why}")),
        }
    }

    /// Refuses an object that is not called as the node is.
    fn require_own(&self, why: &str) -> Result<(), Refusal> {
        let name = match self.attributes.operation {
            Operation::Create => meta::text(self.object, "name"),
            _ => self.attributes.name,
        };
        if name == self.node { Ok(()) } else { self.forbid(why) }
    }

    fn namespace(&self) -> &str {
        self.attributes.namespace.unwrap_or_default()
    }

    fn is_update(&self) -> bool {
        self.attributes.operation == Operation::Update
    }

    fn forbid<T>(&self, why: impl fmt::Display) -> Result<T, Refusal> {
        let object = Some(self.object).filter(|object| !object.is_null());
        Err(self.attributes.forbid(object, why))
    }

    fn forbid_operation<T>(&self) -> Result<T, Refusal> {
        self.forbid(format!("unexpected operation {}", go_quote(self.operation())))
    }

    fn operation(&self) -> &'static str {
        match self.attributes.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    fn pod(&self, name: &str) -> Result<Value, Refusal> {
        let key = format!("/registry/pods/{}/{name}", self.namespace());
        self.scene.get(&key).ok_or_else(|| missing("", "pod", name))
    }
}

/// The refusal of upstream's caches, which know resources by the names of kinds.
fn missing(group: &str, kind: &str, name: &str) -> Refusal {
    Box::new(Status::not_found(&GroupResource::new(group, kind), name))
}

/// Whether two trees say the same: what is empty says nothing.
fn same(one: &Value, other: &Value) -> bool {
    let pruned = |value: &Value| {
        let mut value = value.clone();
        prune(&mut value);
        Some(value).filter(|value| !is_empty(value))
    };
    pruned(one) == pruned(other)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// A claim without what a node may change, and without what changes by itself.
fn fixed_of_claim(claim: &Value) -> Value {
    let mut claim = claim.clone();
    for (part, fields) in
        [("metadata", &["resourceVersion", "managedFields"][..]), ("status", &CLAIM_FIELDS[..])]
    {
        if let Some(part) = claim.get_mut(part).and_then(Value::as_object_mut) {
            part.retain(|field, _| !fields.contains(&field.as_str()));
        }
    }
    claim
}
