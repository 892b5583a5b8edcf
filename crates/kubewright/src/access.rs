//! What an operator may do: declared as types, rendered as RBAC.
//!
//! An [`Access`] is one declared use of a kind. The roles a kind can play have names
//! ([`Access::reconciled`], [`Access::owned`], [`Access::read`], [`Access::written`]), and more can
//! be added to each. [`rules`] turns any number of them into the fewest rules that say the same, in
//! a stable order. What the library itself needs of a cluster is declared the same way.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kubewright::access::{self, Access};
//!
//! let rules = access::rules(&[Access::read::<ConfigMap>(), Access::read::<Secret>()]);
//! assert_eq!(rules.len(), 1);
//! assert_eq!(rules[0].resources.as_deref().unwrap(), ["configmaps", "secrets"]);
//! assert_eq!(rules[0].verbs, ["get", "list", "watch"]);
//! ```

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::core::ApiResource;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

const READ: &[&str] = &["get", "list", "watch"];
const CHANGE: &[&str] = &["update", "patch"];
const WRITE: &[&str] = &["create", "update", "patch", "delete"];

/// One declared use of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub group: String,
    pub version: String,
    pub kind: String,
    /// What the API calls the kind in paths and rules.
    pub plural: String,
    /// Whether objects of this kind are in namespaces.
    pub namespaced: bool,
    /// In which namespaces it is used.
    pub reach: Reach,
    /// The only objects that are used; none means any.
    pub names: BTreeSet<String>,
    /// On the objects themselves.
    pub verbs: BTreeSet<String>,
    /// On their subresources, by name.
    pub subresources: BTreeMap<String, BTreeSet<String>>,
}

/// In which namespaces a kind is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reach {
    /// Wherever the operator looks, which its settings say; and the whole cluster for kinds that
    /// are in no namespace.
    Watched,
    /// Only where the operator itself runs.
    Home,
}

impl Access {
    /// A kind that nothing is done with yet.
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let resource = ApiResource::erase::<K>(&());
        // What is in some scope that is not known yet may be in a namespace.
        Access::of_dynamic(
            &resource,
            TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>(),
        )
    }

    /// The same for a kind that has no type.
    pub fn of_dynamic(resource: &ApiResource, namespaced: bool) -> Self {
        Access {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespaced,
            reach: Reach::Watched,
            names: BTreeSet::new(),
            verbs: BTreeSet::new(),
            subresources: BTreeMap::new(),
        }
    }

    /// A kind whose objects a controller brings about: it watches them, writes their status, and
    /// holds their deletion with finalizers. The right to write `finalizers` is what clusters ask
    /// of those who make children whose deletion the owner's waits for.
    pub fn reconciled<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Access::of::<K>()
            .and(READ)
            .and(CHANGE)
            .on("status", &["get", "update", "patch"])
            .on("finalizers", &["update"])
    }

    /// A kind whose objects are children: watched and made, changed and deleted.
    pub fn owned<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Access::of::<K>().and(READ).and(WRITE)
    }

    /// A kind that is only looked at.
    pub fn read<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Access::of::<K>().and(READ)
    }

    /// A kind that is written, and never watched.
    pub fn written<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Access::of::<K>().and(WRITE)
    }

    /// With these verbs as well.
    ///
    /// ```
    /// use k8s_openapi::api::rbac::v1::Role;
    /// use kubewright::access::Access;
    ///
    /// // Roles that grant more than the operator has itself.
    /// let roles = Access::owned::<Role>().and(&["bind", "escalate"]);
    /// assert!(roles.verbs.contains("escalate"));
    /// ```
    pub fn and(mut self, verbs: &[&str]) -> Self {
        self.verbs.extend(verbs.iter().map(|&verb| verb.to_owned()));
        self
    }

    /// With these verbs on a subresource, such as `scale`.
    pub fn on(mut self, subresource: &str, verbs: &[&str]) -> Self {
        let known = self.subresources.entry(subresource.to_owned()).or_default();
        known.extend(verbs.iter().map(|&verb| verb.to_owned()));
        self
    }

    /// Only objects of these names. Clusters cannot hold this against `create`, since the name is
    /// not known then; and `list` and `watch` only where the name is what they select by.
    pub fn named<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.names.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Only where the operator itself runs.
    pub fn at_home(mut self) -> Self {
        self.reach = Reach::Home;
        self
    }
}

/// Events about objects, in the namespaces of these.
pub fn events() -> Vec<Access> {
    vec![Access::of::<Event>().and(&["create", "patch"])]
}

/// The leases of those who lead, or share work; and the events that tell of it.
pub fn leases() -> Vec<Access> {
    let event = Access::of::<Event>().and(&["create", "patch"]).at_home();
    vec![Access::owned::<Lease>().at_home(), event]
}

/// To ask the cluster who a caller is and what it may do, which guards `/metrics`.
pub fn reviews() -> Vec<Access> {
    let review = |group: &str, kind: &str| {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{group}/v1"),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        Access::of_dynamic(&resource, false).and(&["create"])
    };
    vec![
        review("authentication.k8s.io", "TokenReview"),
        review("authorization.k8s.io", "SubjectAccessReview"),
    ]
}

/// Where an operator keeps the certificates it makes, and who must trust them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// The Secret that keeps them, where the operator runs.
    pub secret: String,
    /// Configurations of webhooks, by name.
    pub mutating: Vec<String>,
    pub validating: Vec<String>,
    /// Definitions whose objects the operator converts, by name.
    pub definitions: Vec<String>,
}

/// To keep certificates, and to tell the API server which it is to trust: nobody else's.
pub fn certificates(uses: &Certificates) -> Vec<Access> {
    fn trusting<K>(names: &[String]) -> Option<Access>
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let names = names.iter().map(String::as_str);
        let access = Access::of::<K>().and(&["get", "patch"]).named(names);
        // Without names it would be the right to all of them.
        (!access.names.is_empty()).then_some(access)
    }
    let secret = Access::of::<Secret>().at_home();
    [
        Some(secret.clone().and(&["create"])),
        Some(secret.and(&["get", "update"]).named([uses.secret.as_str()])),
        trusting::<MutatingWebhookConfiguration>(&uses.mutating),
        trusting::<ValidatingWebhookConfiguration>(&uses.validating),
        trusting::<CustomResourceDefinition>(&uses.definitions),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The fewest rules that grant all of this, in a stable order: what has the same verbs shares a
/// rule, first the resources of one group, then the groups of the same resources. Versions, reach
/// and scope are not a rule's business.
pub fn rules<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> Vec<PolicyRule> {
    type Texts = BTreeSet<String>;
    // What may be done with a resource of a group, and with which objects of it.
    let mut grants: BTreeMap<(String, String, Texts), Texts> = BTreeMap::new();
    for access in accesses {
        let subresources = access.subresources.iter();
        let parts = subresources.map(|(name, verbs)| (format!("{}/{name}", access.plural), verbs));
        for (resource, verbs) in parts.chain([(access.plural.clone(), &access.verbs)]) {
            let place = (access.group.clone(), resource, access.names.clone());
            grants.entry(place).or_default().extend(verbs.iter().cloned());
        }
    }

    // A right to all objects says more than one to some.
    let to_all = grants.clone();
    for ((group, resource, names), verbs) in &mut grants {
        if !names.is_empty()
            && let Some(more) = to_all.get(&(group.clone(), resource.clone(), Texts::new()))
        {
            verbs.retain(|verb| !more.contains(verb));
        }
    }
    grants.retain(|_, verbs| !verbs.is_empty());

    let mut by_group: BTreeMap<(String, Texts, Texts), Texts> = BTreeMap::new();
    for ((group, resource, names), verbs) in grants {
        by_group.entry((group, names, verbs)).or_default().insert(resource);
    }
    let mut by_resources: BTreeMap<(Texts, Texts, Texts), Texts> = BTreeMap::new();
    for ((group, names, verbs), resources) in by_group {
        by_resources.entry((resources, names, verbs)).or_default().insert(group);
    }

    let mut rules: Vec<_> = by_resources
        .into_iter()
        .map(|((resources, names, verbs), groups)| (groups, resources, names, verbs))
        .collect();
    rules.sort();
    let list = |texts: Texts| Vec::from_iter(texts);
    let some = |texts: Texts| (!texts.is_empty()).then(|| list(texts));
    rules
        .into_iter()
        .map(|(groups, resources, names, verbs)| PolicyRule {
            api_groups: Some(list(groups)),
            resources: Some(list(resources)),
            resource_names: some(names),
            verbs: list(verbs),
            non_resource_urls: None,
        })
        .collect()
}
