//! Which kinds an API serves, from its discovery documents.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use kube::{Client, Error};

/// One kind in one version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
}

/// Prints as upstream's messages name a resource: `apps/v1, Resource=deployments`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.plural)
    }
}

impl Kind {
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// `v1`, or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `widgets.example.com`, which is what the kind's definition is called if it has one.
    pub(crate) fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// All objects of the kind.
    pub(crate) fn everywhere(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    /// The objects beside one in this namespace, which only matters if the kind has namespaces.
    pub(crate) fn within(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource())
        } else {
            self.everywhere(client)
        }
    }

    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }
}

/// All that an API serves.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Each resource once, in the version that the server prefers.
    pub(crate) preferred: Vec<Arc<Kind>>,
    /// The versions of groups whose server does not answer: `metrics.k8s.io/v1beta1`.
    pub(crate) stale: Vec<String>,
    served: HashMap<(String, String), Arc<Kind>>,
}

impl Kinds {
    pub(crate) async fn discover(client: &Client) -> Result<Self, Error> {
        let (core, groups) = futures::try_join!(
            client.list_core_api_versions_aggregated(),
            client.list_api_groups_aggregated(),
        )?;
        Ok(Self::read(core.items.into_iter().chain(groups.items)))
    }

    fn read(groups: impl Iterator<Item = APIGroupDiscovery>) -> Self {
        let mut kinds = Self::default();
        for group in groups {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            let mut known: HashSet<String> = HashSet::new();
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    kinds.stale.push(format!("{name}/{number}"));
                }
                for resource in version.resources {
                    let Some(kind) = read(&name, &number, resource) else { continue };
                    let kind = Arc::new(kind);
                    // Versions come in the order of the server's preference.
                    if known.insert(kind.plural.clone()) {
                        kinds.preferred.push(Arc::clone(&kind));
                    }
                    kinds.served.insert((kind.api_version(), kind.kind.clone()), kind);
                }
            }
        }
        kinds
    }

    /// The kind that a reference means.
    pub(crate) fn get(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.served.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// The kinds that a resource of a version may mean. A resource without a group may be of any.
    pub(crate) fn meant(&self, group: &str, version: &str, resource: &str) -> Vec<&Arc<Kind>> {
        let resource = resource.to_lowercase();
        let is_meant = |kind: &&Arc<Kind>| {
            let is_named = kind.plural == resource || kind.kind.to_lowercase() == resource;
            is_named && kind.version == version && (group.is_empty() || kind.group == group)
        };
        self.served.values().filter(is_meant).collect()
    }

    pub(crate) fn defines(&self, definition: &str) -> bool {
        self.preferred.iter().any(|kind| kind.definition() == definition)
    }
}

#[cfg(test)]
impl Kinds {
    /// What discovery documents say, for tests.
    pub(crate) fn of_groups(groups: serde_json::Value) -> Self {
        let groups: Vec<APIGroupDiscovery> = serde_json::from_value(groups).expect("a document");
        Self::read(groups.into_iter())
    }
}

fn read(group: &str, version: &str, resource: APIResourceDiscovery) -> Option<Kind> {
    Some(Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: resource.response_kind?.kind?,
        plural: resource.resource?,
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs,
    })
}
