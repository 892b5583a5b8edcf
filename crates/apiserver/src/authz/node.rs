//! What a node may do: what a kubelet must, to its own objects and to those that its pods need.
//!
//! Rules that are the same for all nodes are those of the role `system:node`, which upstream no
//! longer binds to anybody. Where it is about one object, it must be the node's. What is written is
//! not known here: the admission plugin NodeRestriction looks at that.

mod reach;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use kubewright_apimachinery::selector::field::Operator;
use serde_json::Value;

use self::reach::{Reach, Thing};
use super::{Attributes, Object, Resource, Rule};
use crate::bootstrap;
use crate::index::Store;

/// What a node is told that asks for its rules.
pub(super) const NO_RULES: &str = "node authorizer does not support user rule resolution";

/// Where nodes say that they live.
const LEASES: &str = "kube-node-lease";
/// What the pods and slices of a node can be selected by.
const NODE_FIELD: &str = "spec.nodeName";
/// Whose rules hold for all nodes.
const ROLE: &str = "system:node";

/// Why a node may not; empty where upstream does not say.
type Why = Cow<'static, str>;

/// Decides whether a node may do this.
pub(super) fn decide(store: &Store, node: &str, attributes: &Attributes<'_>) -> Result<(), Why> {
    if node.is_empty() {
        return Err("unknown node for user \"system:node:\"".into());
    }
    // No rule of nodes is about anything but resources.
    let Object::Resource(of) = attributes.object else { return Err(Why::default()) };
    let asked = Asked { store, node, verb: attributes.verb, of };
    match (of.group, of.resource) {
        ("", "secrets") => asked.read(Thing::Secret),
        ("", "configmaps") => asked.read(Thing::ConfigMap),
        ("", "persistentvolumeclaims") if of.subresource == "status" => asked.tell(Thing::Claim),
        ("", "persistentvolumeclaims") => asked.get(Thing::Claim),
        ("", "persistentvolumes") => asked.get(Thing::Volume),
        ("resource.k8s.io", "resourceclaims") => asked.get(Thing::ResourceClaim),
        ("storage.k8s.io", "volumeattachments") => asked.get(Thing::Attachment),
        ("", "serviceaccounts") => asked.service_account(),
        ("coordination.k8s.io", "leases") => asked.lease(),
        ("storage.k8s.io", "csinodes") => asked.csi_node(),
        ("resource.k8s.io", "resourceslices") => asked.slice(),
        ("", "nodes") => asked.node(),
        ("", "pods") => asked.pod(),
        _ => permit_if(RULES.iter().any(|rule| rule.allows(attributes)), ""),
    }
}

/// What all nodes may do alike.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let is_it = |role: &Value| role["kind"] == "ClusterRole" && role["metadata"]["name"] == ROLE;
    let role = bootstrap::objects().into_iter().find(is_it).expect("every cluster has the role");
    serde_json::from_value(role["rules"].clone()).expect("it is a list of rules")
});

/// A node's question about a resource.
struct Asked<'a> {
    store: &'a Store,
    node: &'a str,
    verb: &'a str,
    of: Resource<'a>,
}

impl Asked<'_> {
    /// Reads one object in a namespace, also as a list or watch of that object alone.
    fn read(&self, thing: Thing) -> Result<(), Why> {
        permit_if(
            self.is_one_of(&["get", "list", "watch"]),
            "can only read resources of this type",
        )?;
        permit_if(self.of.subresource.is_empty(), "cannot read subresource")?;
        let why = "can only read namespaced object of this type";
        permit_if(!self.of.namespace.is_empty(), why)?;
        self.reaches(thing)
    }

    fn get(&self, thing: Thing) -> Result<(), Why> {
        let why = "can only get individual resources of this type";
        permit_if(self.verb == "get", why)?;
        permit_if(self.of.subresource.is_empty(), "cannot get subresource")?;
        self.reaches(thing)
    }

    /// Writes the status of one object.
    fn tell(&self, thing: Thing) -> Result<(), Why> {
        let why = "can only get/update/patch this type";
        permit_if(self.is_one_of(&["update", "patch"]), why)?;
        self.reaches(thing)
    }

    fn service_account(&self) -> Result<(), Why> {
        if self.verb == "get" && self.of.subresource.is_empty() {
            return self.read(Thing::ServiceAccount);
        }
        let why = "can only create tokens for individual service accounts";
        permit_if(self.verb == "create" && !self.of.name.is_empty(), why)?;
        let why = "can only create token subresource of serviceaccount";
        permit_if(self.of.subresource == "token", why)?;
        self.reaches(Thing::ServiceAccount)
    }

    fn lease(&self) -> Result<(), Why> {
        let why = "can only get, create, update, patch, or delete a node lease";
        permit_if(self.is_one_of(&["get", "create", "update", "patch", "delete"]), why)?;
        if self.of.namespace != LEASES {
            return Err(
                format!("can only access leases in the \"{LEASES}\" system namespace").into()
            );
        }
        let why = "can only access node lease with the same name as the requesting node";
        permit_if(self.is_own(), why)
    }

    fn csi_node(&self) -> Result<(), Why> {
        let why = "can only get, create, update, patch, or delete a CSINode";
        permit_if(self.is_one_of(&["get", "create", "update", "patch", "delete"]), why)?;
        permit_if(self.of.subresource.is_empty(), "cannot authorize CSINode subresources")?;
        let why = "can only access CSINode with the same name as the requesting node";
        permit_if(self.is_own(), why)
    }

    fn slice(&self) -> Result<(), Why> {
        permit_if(self.of.subresource.is_empty(), "cannot authorize ResourceSlice subresources")?;
        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.reaches(Thing::Slice),
            "watch" | "list" | "deletecollection" => permit_if(
                self.selects_own(),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => {
                Err("only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                      create, update, patch, delete, deletecollection"
                    .into())
            }
        }
    }

    fn node(&self) -> Result<(), Why> {
        match (self.of.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            // A node that is not there yet is its own, too.
            ("", "get" | "list" | "watch") => match self.of.name {
                name if name == self.node => Ok(()),
                "" => Err(format!(
                    "node '{}' cannot read all nodes, only its own Node object",
                    self.node
                )
                .into()),
                other => Err(format!(
                    "node '{}' cannot read '{other}', only its own Node object",
                    self.node
                )
                .into()),
            },
            _ => Err(Why::default()),
        }
    }

    fn pod(&self) -> Result<(), Why> {
        match (self.of.subresource, self.verb) {
            ("", "get") => self.get(Thing::Pod),
            ("", "list" | "watch") if self.selects_own() => Ok(()),
            ("", "list" | "watch") if !self.of.name.is_empty() => self.reaches(Thing::Pod),
            ("", "list" | "watch") => {
                Err("can only list/watch pods with spec.nodeName field selector".into())
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => Err(Why::default()),
        }
    }

    /// Whether the object is one that the node's pods lead to.
    fn reaches(&self, thing: Thing) -> Result<(), Why> {
        let Resource { namespace, name, .. } = self.of;
        permit_if(!name.is_empty(), "No Object name found")?;
        match Reach::new(self.store, self.node).has(thing, namespace, name) {
            true => Ok(()),
            false => {
                Err(format!("no relationship found between node '{}' and this object", self.node)
                    .into())
            }
        }
    }

    fn is_one_of(&self, verbs: &[&str]) -> bool {
        verbs.contains(&self.verb)
    }

    /// Whether the object is called as the node is. What is created has no name here yet.
    fn is_own(&self) -> bool {
        self.verb == "create" || self.of.name == self.node
    }

    /// Whether only what is the node's own is asked for.
    fn selects_own(&self) -> bool {
        let mut terms = self.of.fields.iter();
        terms.any(|term| {
            term.field == NODE_FIELD && term.operator == Operator::Equals && term.value == self.node
        })
    }
}

fn permit_if(may: bool, why: &'static str) -> Result<(), Why> {
    if may { Ok(()) } else { Err(why.into()) }
}
