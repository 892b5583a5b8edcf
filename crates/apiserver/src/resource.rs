//! What is served: a resource in one version of its group, built in or defined by a user.
//!
//! One row per served version. Handlers of requests know resources only through this.

use std::sync::{Arc, OnceLock};

use kubewright_apimachinery::apply::SameInAllVersions;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::gvk::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource,
};
use kubewright_apimachinery::schema::{self, Structural, crd};
use kubewright_store::Key;

use crate::crd::convert::Conversion;
use crate::encode::Heads;
use crate::index::PREFIX;
use crate::kinds::{self, Field, Rules};
use crate::strategy::Tracking;

/// A resource in one version of its group.
#[derive(Debug)]
pub struct Resource {
    /// Its name in paths.
    pub gvr: GroupVersionResource,
    /// The kind of its objects in this version.
    pub gvk: GroupVersionKind,
    pub list_kind: String,
    pub singular: String,
    pub namespaced: bool,
    /// The version in which objects are admitted, validated and stored.
    pub hub: GroupVersionKind,
    /// Where its objects are kept, with a slash at the end: `/registry/pods/`.
    pub prefix: String,
    pub origin: Origin,
    pub(crate) tracking: OnceLock<Tracking>,
    pub(crate) heads: OnceLock<Heads>,
}

/// Who defined a resource.
#[derive(Debug)]
pub enum Origin {
    Builtin(Builtin),
    Custom(Custom),
}

/// A resource of Kubernetes itself.
#[derive(Debug, Clone)]
pub struct Builtin {
    pub row: &'static builtin::Resource,
    pub kind: &'static builtin::Kind,
    pub hub: &'static builtin::Kind,
    pub rules: &'static Rules,
    /// What field selectors may ask for, by its names in the hub version.
    pub fields: &'static [Field],
    /// The definition of the objects that this is a part of, where they are custom.
    pub below: Option<Arc<crd::Definition>>,
}

/// A resource that a CustomResourceDefinition defines.
#[derive(Debug, Clone)]
pub struct Custom {
    pub definition: Arc<crd::Definition>,
    /// The position of this version in the definition.
    pub version: usize,
    /// The schema as it is used: defaults inside are pruned. Without one, everything is kept.
    pub schema: Arc<Structural>,
    /// The schema's rules, compiled when the first object is judged by them.
    pub rules: Arc<OnceLock<Option<schema::Rules>>>,
    /// Tells definitions apart: objects written under another one are read through this one.
    pub schema_hash: u64,
    /// What apply knows of all versions.
    pub versions: Arc<SameInAllVersions>,
    /// How this version comes about of others; without it, they differ by name only.
    pub(crate) conversion: Option<Arc<Conversion>>,
}

static PLAIN: Rules = Rules::PLAIN;

impl Resource {
    /// A resource of the table of built-in types.
    pub fn builtin(row: &'static builtin::Resource) -> Self {
        let kind = builtin::kind(row.group, row.version, row.kind).expect("it is in the table");
        // Upstream stores some kinds in a version that is not served any more; those are read in
        // any version, and we have types only for the served ones.
        let hub = row
            .storage
            .as_ref()
            .and_then(|storage| builtin::kind(storage.group, storage.version, row.kind))
            .filter(|hub| builtin::resource(hub.group, hub.version, row.name).is_some())
            .unwrap_or(kind);
        let gvk = |kind: &builtin::Kind| GroupVersionKind::new(kind.group, kind.version, kind.kind);
        Resource {
            gvr: GroupVersionResource::new(row.group, row.version, row.name),
            gvk: gvk(kind),
            list_kind: format!("{}List", row.kind),
            singular: row.singular.to_owned(),
            namespaced: row.namespaced,
            hub: gvk(hub),
            prefix: format!("{PREFIX}{}/", directory(row.group, row.name)),
            origin: Origin::Builtin(Builtin {
                row,
                kind,
                hub,
                rules: kinds::rules(row.group, row.kind).unwrap_or(&PLAIN),
                fields: kinds::rules(hub.group, row.kind).unwrap_or(&PLAIN).fields,
                below: None,
            }),
            tracking: OnceLock::new(),
            heads: OnceLock::new(),
        }
    }

    /// What an endpoint below the objects takes and gives, as if it were a resource of its own.
    pub(crate) fn below(&self, gvk: GroupVersionKind) -> Self {
        let kind = builtin::kind(&gvk.group, &gvk.version, &gvk.kind).expect("it is in the table");
        let (row, below) = match &self.origin {
            Origin::Builtin(builtin) => (builtin.row, None),
            // Any row will do: nothing of it concerns what has a kind of its own.
            Origin::Custom(custom) => {
                let row = builtin::resource("apps", "v1", "deployments");
                (row.expect("it is in the table"), Some(Arc::clone(&custom.definition)))
            }
        };
        Resource {
            gvr: self.gvr.clone(),
            hub: gvk.clone(),
            gvk,
            list_kind: String::new(),
            singular: String::new(),
            namespaced: self.namespaced,
            prefix: self.prefix.clone(),
            origin: Origin::Builtin(Builtin {
                row,
                kind,
                hub: kind,
                rules: &PLAIN,
                fields: &[],
                below,
            }),
            tracking: OnceLock::new(),
            heads: OnceLock::new(),
        }
    }

    /// The kind of what an endpoint below built-in objects takes.
    pub(crate) fn part_kind(&self, part: &str) -> Option<GroupVersionKind> {
        let Origin::Builtin(builtin) = &self.origin else { return None };
        let mut parts = builtin.row.subresources.iter();
        let below = parts.find(|below| below.name == part)?;
        Some(GroupVersionKind::new(below.group, below.version, below.kind))
    }

    pub fn group_resource(&self) -> GroupResource {
        self.gvr.group_resource()
    }

    /// What its objects are judged as, and called when they are refused.
    pub fn group_kind(&self) -> GroupKind {
        self.hub.group_kind()
    }

    pub fn group_version(&self) -> GroupVersion {
        self.gvr.group_version()
    }

    /// Where one object is kept. `namespace` is given exactly for namespaced resources.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> Key {
        Key::from(match namespace {
            Some(namespace) => [&self.prefix, namespace, "/", name].concat(),
            None => [&self.prefix, name].concat(),
        })
    }

    /// What the keys of all objects begin with, or of those in one namespace.
    pub fn prefix_in(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => [&self.prefix, namespace, "/"].concat(),
            None => self.prefix.clone(),
        }
    }

    /// Whether it can be asked to do this: `create`, `watch`.
    pub fn has_verb(&self, verb: &str) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => builtin.row.verbs.contains(&verb),
            Origin::Custom(_) => true,
        }
    }

    /// Whether there is such an endpoint below its objects.
    pub fn knows_part(&self, part: &str) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => builtin.row.subresources.iter().any(|row| row.name == part),
            Origin::Custom(_) => self.has_part(part, "get"),
        }
    }

    /// Whether an endpoint below its objects can be asked to do this.
    pub fn has_part(&self, part: &str, verb: &str) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => {
                let mut parts = builtin.row.subresources.iter();
                parts.any(|row| row.name == part && row.verbs.contains(&verb))
            }
            Origin::Custom(custom) => {
                let parts = custom.version().subresources.as_ref();
                matches!(verb, "get" | "patch" | "update")
                    && match part {
                        "status" => parts.is_some_and(|parts| parts.status),
                        "scale" => parts.is_some_and(|parts| parts.scale.is_some()),
                        _ => false,
                    }
            }
        }
    }
}

impl Custom {
    /// The rules that objects must keep, if the schema has any.
    pub fn rules(&self) -> Option<&schema::Rules> {
        self.rules.get_or_init(|| schema::Rules::new(&self.schema)).as_ref()
    }

    pub fn version(&self) -> &crd::Version {
        &self.definition.versions()[self.version]
    }
}

/// Where upstream keeps a built-in resource. Some kept their first name; two servers that
/// extended the API early kept their group.
fn directory(group: &str, resource: &str) -> String {
    match (group, resource) {
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        ("apiextensions.k8s.io" | "apiregistration.k8s.io", resource) => {
            format!("{group}/{resource}")
        }
        (_, resource) => resource.to_owned(),
    }
}
