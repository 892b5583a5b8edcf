//! Which requests a webhook, a policy or a binding is about, and as what it sees them.

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::gvk::{GroupResource, GroupVersionKind, GroupVersionResource};
use kubewright_apimachinery::schema::crd;
use kubewright_apimachinery::selector::label::{LabelSelector, Selector};
use kubewright_apimachinery::status::Status;
use serde_json::{Map, Value};

use super::{Attributes, Operation, items, text};
use crate::catalog::Catalog;
use crate::index::Store;
use crate::refusal::Refusal;
use crate::resource::{Builtin, Origin, Resource};

/// Who is meant, in the words that all of them have in common.
pub(super) struct Criteria {
    /// All resources, if there are none.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// Whether rules also mean what they name in other versions.
    takes_equivalents: bool,
    /// An unreadable one is told when a request comes to it.
    namespaces: Result<Selector, String>,
    objects: Result<Selector, String>,
}

/// Requests of some kind.
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resources and what is below them, either of which may be a star.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Any name, if there are none.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
}

/// As what the resource and the object of a request are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aspect {
    pub(super) gvr: GroupVersionResource,
    pub(super) gvk: GroupVersionKind,
}

impl Criteria {
    /// What a webhook says.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        Criteria::new(Some(rules(&webhook["rules"])), webhook)
    }

    /// What `matchConstraints` of a policy or `matchResources` of a binding say.
    pub(super) fn of_policy(matches: &Value) -> Self {
        let rules = rules(&matches["resourceRules"]);
        Criteria::new((!rules.is_empty()).then_some(rules), matches)
    }

    fn new(rules: Option<Vec<Rule>>, matches: &Value) -> Self {
        Criteria {
            rules,
            excluded: self::rules(&matches["excludeResourceRules"]),
            takes_equivalents: matches["matchPolicy"] == "Equivalent",
            namespaces: selector(&matches["namespaceSelector"]),
            objects: selector(&matches["objectSelector"]),
        }
    }

    /// As what a request is seen, or None if it is not meant.
    ///
    /// # Errors
    /// When it cannot be told whether it is.
    pub(super) fn aspect(
        &self,
        store: &Store,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Aspect>, Refusal> {
        let aspect = match &self.rules {
            None => Some(Aspect::of(attributes.resource)),
            Some(rules) => self.matching(rules, attributes),
        };
        let Some(aspect) = aspect else { return Ok(None) };
        if self.matching(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        let in_namespace = self.selects_namespace(store, attributes, object);
        let of_object = self.selects_object(attributes, object);
        // Who is not meant need not hear that it could not be told.
        if matches!(in_namespace, Ok(false)) || matches!(of_object, Ok(false)) {
            return Ok(None);
        }
        in_namespace.and(of_object)?;
        Ok(Some(aspect))
    }

    /// By rules alone. An earlier rule comes before a later one, but the request as it is comes
    /// before any equivalent.
    fn matching(&self, rules: &[Rule], attributes: &Attributes<'_>) -> Option<Aspect> {
        let resource = attributes.resource;
        if rules.iter().any(|rule| rule.matches(attributes, &resource.gvr)) {
            return Some(Aspect::of(resource));
        }
        if !self.takes_equivalents || rules.is_empty() {
            return None;
        }
        let equivalents = equivalents(resource, attributes.part);
        let find =
            |rule: &Rule| equivalents.iter().find(|other| rule.matches(attributes, &other.gvr));
        rules.iter().find_map(find).cloned()
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

impl Aspect {
    fn of(resource: &Resource) -> Self {
        Aspect { gvr: resource.gvr.clone(), gvk: resource.gvk.clone() }
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
            names: texts("resourceNames").collect(),
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
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
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

fn rules(rules: &Value) -> Vec<Rule> {
    items(rules).iter().map(Rule::read).collect()
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

/// Nobody is selected by no selector; what is stored has one.
pub(super) fn selector(selector: &Value) -> Result<Selector, String> {
    if selector.is_null() {
        return Ok(Selector::Nothing);
    }
    let selector: LabelSelector =
        serde_json::from_value(selector.clone()).map_err(|error| error.to_string())?;
    selector.to_selector().map_err(|error| error.to_string())
}

/// What the objects of a resource, or their parts, are in the other versions and groups that show
/// them.
fn equivalents(resource: &Resource, part: Option<&str>) -> Vec<Aspect> {
    let own = &resource.gvr;
    let in_version = |version: &crd::Version| {
        GroupVersionResource::new(&*own.group, &*version.name, &*own.resource)
    };
    let mut found: Vec<Aspect> = match &resource.origin {
        Origin::Custom(custom) => {
            let kind = &*resource.gvk.kind;
            let aspect = |version: &crd::Version| Aspect {
                gvr: in_version(version),
                gvk: GroupVersionKind::new(&*own.group, &*version.name, kind),
            };
            with_part(&custom.definition, part).map(aspect).collect()
        }
        // What has a kind of its own has it in every version.
        Origin::Builtin(Builtin { below: Some(definition), .. }) => {
            let aspect = |version: &crd::Version| Aspect {
                gvr: in_version(version),
                gvk: resource.gvk.clone(),
            };
            with_part(definition, part).map(aspect).collect()
        }
        Origin::Builtin(_) => builtin_equivalents(resource, part),
    };
    found.retain(|aspect| aspect.gvr != *own);
    found
}

/// The versions in which objects have a part.
fn with_part<'a>(
    definition: &'a crd::Definition,
    part: Option<&'a str>,
) -> impl Iterator<Item = &'a crd::Version> {
    definition.versions().iter().filter(move |version| {
        let parts = version.subresources.as_ref();
        match part {
            None => true,
            Some("status") => parts.is_some_and(|parts| parts.status),
            Some("scale") => parts.is_some_and(|parts| parts.scale.is_some()),
            Some(_) => false,
        }
    })
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
