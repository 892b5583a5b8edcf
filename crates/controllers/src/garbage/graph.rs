//! Who owns whom, and who deserves a look when that changes.
//!
//! The graph follows watches, which tell of different kinds in no order. So it may know an object
//! before its owner, or an owner that is gone; it never decides, it only points.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use super::{FOREGROUND, ORPHAN, holds};
use crate::kinds::Kind;
use crate::part::text;

pub(super) type Uid = String;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) kind: Arc<Kind>,
    /// Empty for an object without one.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Uid,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { kind, namespace, name, uid } = self;
        let (api_version, kind) = (kind.api_version(), &kind.kind);
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}

/// An object, as far as ownership goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) identity: Identity,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) deleting: bool,
    /// Has the finalizer of a deletion in the foreground.
    pub(super) foreground: bool,
    /// Has the finalizer of a deletion that orphans.
    pub(super) orphaning: bool,
}

impl Node {
    pub(super) fn read(kind: &Arc<Kind>, object: &ObjectMeta) -> Self {
        Self {
            identity: Identity {
                kind: Arc::clone(kind),
                namespace: text(&object.namespace).to_owned(),
                name: text(&object.name).to_owned(),
                uid: text(&object.uid).to_owned(),
            },
            owners: object.owner_references.clone().unwrap_or_default(),
            deleting: object.deletion_timestamp.is_some(),
            foreground: holds(object, FOREGROUND),
            orphaning: holds(object, ORPHAN),
        }
    }

    /// Whether it is deleted and stays until what blocks it is gone.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.deleting && self.foreground
    }

    /// Whether it is deleted and stays until what it owned is free.
    fn waits_for_orphans(&self) -> bool {
        self.deleting && self.orphaning
    }

    fn blocks(&self, owner: &str) -> bool {
        let blocking = |reference: &&OwnerReference| reference.block_owner_deletion == Some(true);
        self.owners.iter().filter(blocking).any(|reference| reference.uid == owner)
    }

    /// Whether a reference from this namespace means this object, going by more than the uid.
    fn fits(&self, reference: &OwnerReference, namespace: &str) -> Fit {
        let Identity { kind, namespace: own, name, .. } = &self.identity;
        if !own.is_empty() && own != namespace {
            Fit::OtherNamespace
        } else if reference.name == *name
            && reference.kind == kind.kind
            && reference.api_version == kind.api_version()
        {
            Fit::Exact
        } else {
            Fit::OtherCoordinates
        }
    }
}

#[derive(PartialEq)]
enum Fit {
    Exact,
    /// An owner cannot be in another namespace.
    OtherNamespace,
    /// Another version of the same kind, which is fine, or nonsense.
    OtherCoordinates,
}

/// What a change asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Objects that may be garbage, or may be free to go.
    pub(super) judge: BTreeSet<Uid>,
    /// Objects whose dependents are to be freed.
    pub(super) orphan: BTreeSet<Uid>,
    pub(super) misplaced: BTreeSet<Misplaced>,
}

/// An object that names an owner in another namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Misplaced {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Uid,
    /// Prints like an [`Identity`].
    owner: String,
}

impl Misplaced {
    fn new(Identity { kind, namespace, name, uid }: &Identity, owner: &OwnerReference) -> Self {
        let OwnerReference {
            api_version, kind: owner_kind, name: owner_name, uid: owner_uid, ..
        } = owner;
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            owner: format!(
                "[{api_version}/{owner_kind}, namespace: {namespace}, name: {owner_name}, \
                 uid: {owner_uid}]"
            ),
        }
    }

    pub(super) fn message(&self) -> String {
        format!("ownerRef {} does not exist in namespace {:?}", self.owner, self.namespace)
    }
}

#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// Who names an owner, whether or not the owner is known.
    dependents: HashMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub(super) fn dependents_of(&self, owner: &str) -> Vec<Node> {
        self.named_by(owner).cloned().collect()
    }

    /// The dependents that an owner must wait for.
    pub(super) fn blocking(&self, owner: &str) -> Vec<Node> {
        self.named_by(owner).filter(|node| node.blocks(owner)).cloned().collect()
    }

    fn named_by(&self, owner: &str) -> impl Iterator<Item = &Node> {
        let uids = self.dependents.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid))
    }

    /// An object is there, or has changed.
    pub(super) fn apply(&mut self, node: Node) -> Effects {
        let mut effects = Effects::default();
        let uid = node.identity.uid.clone();
        let before = self.nodes.remove(&uid);
        let before_owners: &[OwnerReference] =
            before.as_ref().map(|before| before.owners.as_slice()).unwrap_or_default();
        for old in before_owners {
            // Whoever waited for it may go.
            let blocked = old.block_owner_deletion == Some(true);
            if blocked && !node.blocks(&old.uid) && self.nodes.contains_key(&old.uid) {
                effects.judge.insert(old.uid.clone());
            }
            if !node.owners.iter().any(|reference| reference.uid == old.uid) {
                self.forget_dependent(&old.uid, &uid);
            }
        }
        for reference in &node.owners {
            self.dependents.entry(reference.uid.clone()).or_default().insert(uid.clone());
            if !before_owners.contains(reference) {
                self.look_at_reference(&node, reference, &mut effects);
            }
        }
        if before.is_none() {
            self.look_at_dependents(&node, &mut effects);
        }
        if node.waits_for_orphans() {
            if !before.as_ref().is_some_and(Node::waits_for_orphans) {
                effects.orphan.insert(uid.clone());
            }
        } else if node.waits_for_dependents()
            && !before.as_ref().is_some_and(Node::waits_for_dependents)
        {
            effects.judge.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
            effects.judge.insert(uid.clone());
        }
        self.nodes.insert(uid, node);
        effects
    }

    /// An object is gone.
    pub(super) fn delete(&mut self, uid: &str) -> Effects {
        let mut effects = Effects::default();
        let Some(node) = self.nodes.remove(uid) else { return effects };
        effects.judge.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        for reference in &node.owners {
            self.forget_dependent(&reference.uid, uid);
            if self.nodes.get(&reference.uid).is_some_and(Node::waits_for_dependents) {
                effects.judge.insert(reference.uid.clone());
            }
        }
        effects
    }

    /// A new reference: is its owner there, and the one that is meant?
    fn look_at_reference(&self, node: &Node, reference: &OwnerReference, effects: &mut Effects) {
        let Identity { namespace, uid, .. } = &node.identity;
        match self.nodes.get(&reference.uid) {
            Some(owner) => match owner.fits(reference, namespace) {
                // It came while its owner waits: the owner waits for it too.
                Fit::Exact if owner.waits_for_dependents() => {
                    effects.judge.insert(reference.uid.clone());
                }
                Fit::Exact => {}
                Fit::OtherCoordinates => {
                    effects.judge.insert(uid.clone());
                }
                Fit::OtherNamespace => {
                    effects.judge.insert(uid.clone());
                    effects.misplaced.insert(Misplaced::new(&node.identity, reference));
                }
            },
            None => {
                effects.judge.insert(uid.clone());
            }
        }
    }

    /// A new object: is it what those who named it before meant?
    fn look_at_dependents(&self, owner: &Node, effects: &mut Effects) {
        let uid = &owner.identity.uid;
        for dependent in self.named_by(uid) {
            let references = dependent.owners.iter().filter(|reference| reference.uid == *uid);
            for reference in references {
                let fit = owner.fits(reference, &dependent.identity.namespace);
                if fit != Fit::Exact {
                    effects.judge.insert(dependent.identity.uid.clone());
                }
                if fit == Fit::OtherNamespace {
                    effects.misplaced.insert(Misplaced::new(&dependent.identity, reference));
                }
            }
        }
    }

    fn forget_dependent(&mut self, owner: &str, dependent: &str) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}
