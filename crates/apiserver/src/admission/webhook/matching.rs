//! Which requests a webhook wants to be asked about, and in which version.

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::gvk::{GroupResource, GroupVersionKind, GroupVersionResource};
use kubewright_apimachinery::selector::label::Selector;
use kubewright_apimachinery::status::Status;
use serde_json::{Map, Value};

use super::configuration::Hook;
use crate::admission::{Attributes, Operation, items, text};
use crate::catalog::Catalog;
use crate::index::Store;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};

/// What a webhook wants to see.
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resources and what is below them, either of which may be a star.
    resources: Vec<(String, String)>,
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
}

/// As what a webhook sees the resource and the object of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aspect {
    pub(super) gvr: GroupVersionResource,
    pub(super) gvk: GroupVersionKind,
}

impl Hook {
    /// As what the webhook wants to see a request, or None if it does not want to.
    ///
    /// # Errors
    /// When it cannot be told whether it wants to.
    pub(super) fn aspect(
        &self,
        store: &Store,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Aspect>, Refusal> {
        let Some(aspect) = self.matching_aspect(attributes) else { return Ok(None) };
        let in_namespace = self.selects_namespace(store, attributes, object);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let of_object = self.selects_object(attributes, object);
        if matches!(of_object, Ok(false)) {
            return Ok(None);
        }
        in_namespace.and(of_object)?;
        Ok(Some(aspect))
    }

    /// By the rules alone. An earlier rule comes before a later one, but the request as it is comes
    /// before any equivalent.
    fn matching_aspect(&self, attributes: &Attributes<'_>) -> Option<Aspect> {
        let resource = attributes.resource;
        if self.rules.iter().any(|rule| rule.matches(attributes, &resource.gvr)) {
            return Some(Aspect { gvr: resource.gvr.clone(), gvk: resource.gvk.clone() });
        }
        if !self.takes_equivalents {
            return None;
        }
        let equivalents = equivalents(resource, attributes.part);
        let find =
            |rule: &Rule| equivalents.iter().find(|other| rule.matches(attributes, &other.gvr));
        self.rules.iter().find_map(find).cloned()
    }

    fn selects_namespace(
        &self,
        store: &Store,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, Refusal> {
        let namespace = attributes.namespace_or_own();
        let resource = attributes.resource.gvr.resource.as_str();
        if namespace.is_empty() && resource != "namespaces" {
            return Ok(true);
        }
        let selector = readable(&self.namespaces)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        if resource == "namespaces" && attributes.part.is_none() && is_write {
            // What is stored does not know it yet.
            return Ok(selector.matches(&object.and_then(labels)));
        }
        let Some(found) = store.get(&format!("/registry/namespaces/{namespace}")) else {
            let namespaces = GroupResource::new("", "namespaces");
            return Err(Box::new(Status::not_found(&namespaces, namespace)));
        };
        Ok(selector.matches(&found.extracted.labels))
    }

    fn selects_object(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, Refusal> {
        let selector = readable(&self.objects)?;
        if selector.is_everything() {
            return Ok(true);
        }
        // What has no metadata has no labels to be selected by.
        let selects = |object: Option<&Value>| {
            object.is_some_and(|object| {
                object["metadata"].is_object() && selector.matches(&labels(object))
            })
        };
        Ok(selects(object) || selects(attributes.old))
    }
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let texts = |field: &str| items(&rule[field]).iter().map(|item| text(item).to_owned());
        let resource = |resource: String| match resource.split_once('/') {
            Some((resource, part)) => (resource.to_owned(), part.to_owned()),
            None => (resource, String::new()),
        };
        Rule {
            operations: texts("operations").collect(),
            groups: texts("apiGroups").collect(),
            versions: texts("apiVersions").collect(),
            resources: texts("resources").map(resource).collect(),
            scope: match text(&rule["scope"]) {
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::All,
            },
        }
    }

    /// Whether a request is meant, if it were about this resource.
    pub(super) fn matches(&self, attributes: &Attributes<'_>, gvr: &GroupVersionResource) -> bool {
        let named = |list: &[String], word: &str| list.iter().any(|item| is(item, word));
        let part = attributes.part.unwrap_or_default();
        let mut resources = self.resources.iter();
        self.is_in_scope(attributes, gvr)
            && named(&self.operations, attributes.operation.as_str())
            && named(&self.groups, &gvr.group)
            && named(&self.versions, &gvr.version)
            && resources.any(|(resource, below)| is(resource, &gvr.resource) && is(below, part))
    }

    /// Namespaces are in the scope of the cluster.
    fn is_in_scope(&self, attributes: &Attributes<'_>, gvr: &GroupVersionResource) -> bool {
        let is_namespace =
            gvr.group.is_empty() && gvr.version == "v1" && gvr.resource == "namespaces";
        let is_namespaced = !is_namespace && !attributes.namespace_or_own().is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Namespaced => is_namespaced,
            Scope::Cluster => !is_namespaced,
        }
    }
}

/// Whether a word of a rule names something.
fn is(word: &str, name: &str) -> bool {
    word == "*" || word == name
}

fn readable(selector: &Result<Selector, String>) -> Result<&Selector, Refusal> {
    selector.as_ref().map_err(|why| Box::new(Status::internal_error(why)))
}

fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["labels"].as_object()
}

/// What the objects of a resource, or their parts, are in the other versions and groups that show
/// them.
fn equivalents(resource: &Resource, part: Option<&str>) -> Vec<Aspect> {
    let own = &resource.gvr;
    let mut found = match &resource.origin {
        Origin::Custom(custom) => {
            let spec = &custom.definition.spec;
            let with_part = custom.definition.versions().iter().filter_map(|version| {
                let parts = version.subresources.as_ref();
                let gvk = GroupVersionKind::new(&*own.group, &*version.name, &*spec.names.kind);
                let gvk = match part {
                    None => Some(gvk),
                    Some("status") => parts.filter(|parts| parts.status).map(|_| gvk),
                    _ => None,
                }?;
                let gvr = GroupVersionResource::new(&*own.group, &*version.name, &*own.resource);
                Some(Aspect { gvr, gvk })
            });
            with_part.collect()
        }
        Origin::Builtin(_) => builtin_equivalents(resource, part),
    };
    found.retain(|aspect| aspect.gvr != *own);
    found
}

/// Those that are stored in the same place, in the order in which versions are preferred.
fn builtin_equivalents(resource: &Resource, part: Option<&str>) -> Vec<Aspect> {
    let rows = builtin::versions().iter().flat_map(|version| &version.resources);
    let same = rows.filter(|row| {
        let other = Catalog::builtin_resource(row.group, row.version, row.name);
        other.is_some_and(|other| other.prefix == resource.prefix)
    });
    let aspect = |row: &builtin::Resource| {
        let gvk = match part {
            None => GroupVersionKind::new(row.group, row.version, row.kind),
            Some(part) => {
                let below = row.subresources.iter().find(|below| below.name == part)?;
                GroupVersionKind::new(below.group, below.version, below.kind)
            }
        };
        Some(Aspect { gvr: GroupVersionResource::new(row.group, row.version, row.name), gvk })
    };
    same.filter_map(aspect).collect()
}
