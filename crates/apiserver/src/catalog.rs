//! Everything that is served, as of one moment.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::schema::crd;

use crate::aggregate::Roster;
use crate::discovery::{self, Discovery};
use crate::openapi::OpenApi;
use crate::resource::Resource;

type Rows = HashMap<Box<str>, Arc<Resource>>;

/// The resources of Kubernetes itself; made once, since they never change.
static BUILTIN: LazyLock<Rows> = LazyLock::new(|| {
    let rows = builtin::versions().iter().flat_map(|version| &version.resources);
    index(rows.map(|row| Arc::new(Resource::builtin(row))))
});

/// Everything that is served.
#[derive(Debug)]
pub struct Catalog {
    pub discovery: Discovery,
    pub open_api: Arc<OpenApi>,
    /// Which versions other servers answer for.
    pub roster: Arc<Roster>,
    definitions: Vec<Arc<crd::Definition>>,
    custom: Arc<Rows>,
}

impl Catalog {
    /// Reads the table of what is built in, before somebody waits for it.
    pub(crate) fn prepare() {
        LazyLock::force(&BUILTIN);
    }

    /// What is served while these definitions are established and these versions registered.
    pub fn new(
        server: Arc<discovery::Server>,
        definitions: Vec<Arc<crd::Definition>>,
        custom: impl IntoIterator<Item = Arc<Resource>>,
        roster: Arc<Roster>,
    ) -> Self {
        let open_api = OpenApi::new(definitions.clone()).with(roster.told());
        Catalog {
            discovery: Discovery::new(server, definitions.clone(), Arc::clone(&roster)),
            open_api: Arc::new(open_api),
            roster,
            definitions,
            custom: Arc::new(index(custom)),
        }
    }

    /// The same resources, while other versions are registered.
    pub fn registered(&self, server: Arc<discovery::Server>, roster: Arc<Roster>) -> Self {
        let definitions = self.definitions.clone();
        let told = roster.told();
        let open_api = match told == self.open_api.told() {
            true => Arc::clone(&self.open_api),
            false => Arc::new(OpenApi::new(definitions.clone()).with(told)),
        };
        Catalog {
            discovery: Discovery::new(server, definitions.clone(), Arc::clone(&roster)),
            open_api,
            roster,
            definitions,
            custom: Arc::clone(&self.custom),
        }
    }

    /// The groups and versions of custom resources.
    pub(crate) fn defined(&self) -> BTreeSet<(&str, &str)> {
        let versions = self.definitions.iter().flat_map(|definition| {
            let served = definition.versions().iter().filter(|version| version.served);
            served.map(|version| (definition.spec.group.as_str(), version.name.as_str()))
        });
        versions.collect()
    }

    /// The resource of this name in this version.
    pub fn resource(&self, group: &str, version: &str, name: &str) -> Option<&Arc<Resource>> {
        let path = path(group, version, name);
        BUILTIN.get(&*path).or_else(|| self.custom.get(&*path))
    }

    /// The resource of definitions.
    pub(crate) fn definitions() -> &'static Arc<Resource> {
        &BUILTIN["apiextensions.k8s.io/v1/customresourcedefinitions"]
    }

    pub(crate) fn api_services() -> &'static Arc<Resource> {
        &BUILTIN["apiregistration.k8s.io/v1/apiservices"]
    }

    pub(crate) fn namespaces() -> &'static Arc<Resource> {
        &BUILTIN["/v1/namespaces"]
    }

    pub(crate) fn pods() -> &'static Arc<Resource> {
        &BUILTIN["/v1/pods"]
    }

    pub(crate) fn budgets() -> &'static Arc<Resource> {
        &BUILTIN["policy/v1/poddisruptionbudgets"]
    }

    pub(crate) fn endpoints() -> &'static Arc<Resource> {
        &BUILTIN["/v1/endpoints"]
    }

    pub(crate) fn quotas() -> &'static Arc<Resource> {
        &BUILTIN["/v1/resourcequotas"]
    }

    pub(crate) fn flow_schemas() -> &'static Arc<Resource> {
        &BUILTIN["flowcontrol.apiserver.k8s.io/v1/flowschemas"]
    }

    pub(crate) fn priority_levels() -> &'static Arc<Resource> {
        &BUILTIN["flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"]
    }

    /// A resource of Kubernetes itself.
    pub(crate) fn builtin_resource(
        group: &str,
        version: &str,
        name: &str,
    ) -> Option<&'static Arc<Resource>> {
        BUILTIN.get(&*path(group, version, name))
    }

    pub fn builtin() -> impl Iterator<Item = &'static Arc<Resource>> {
        BUILTIN.values()
    }

    pub fn custom(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.custom.values()
    }
}

fn index(resources: impl IntoIterator<Item = Arc<Resource>>) -> Rows {
    let row = |resource: Arc<Resource>| {
        let gvr = &resource.gvr;
        let path = path(&gvr.group, &gvr.version, &gvr.resource);
        (path.into_boxed_str(), resource)
    };
    resources.into_iter().map(row).collect()
}

fn path(group: &str, version: &str, name: &str) -> String {
    format!("{group}/{version}/{name}")
}
