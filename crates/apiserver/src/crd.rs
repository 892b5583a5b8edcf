//! CustomResourceDefinitions: from a stored definition to the resources it defines.

pub(crate) mod convert;
pub(crate) mod life;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use kubewright_apimachinery::apply::{SameInAllVersions, Schema};
use kubewright_apimachinery::gvk::{GroupVersionKind, GroupVersionResource};
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::{
    self,
    crd::{Definition, Version},
};
use kubewright_store::Revision;
use serde_json::Value;

use self::convert::{Conversion, Webhook};
use crate::aggregate::{Identity, Lesson, Registry};
use crate::catalog::Catalog;
use crate::discovery;
use crate::index::{self, PREFIX, Store};
use crate::metrics::Metrics;
use crate::resource::{Custom, Origin, Resource};

/// Where definitions are kept.
pub(crate) const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// Keeps the catalog in step with the stored definitions and APIServices.
pub(crate) struct Shelf {
    store: Store,
    metrics: Arc<Metrics>,
    about: Arc<discovery::Server>,
    outlines: life::Outlines,
    current: RwLock<Current>,
}

struct Current {
    catalog: Arc<Catalog>,
    /// What was read of each definition, by its key, while its revision is this.
    read: HashMap<String, (Revision, Option<Read>)>,
    registry: Registry,
}

/// A definition whose resources are served.
#[derive(Clone)]
struct Read {
    definition: Arc<Definition>,
    resources: Vec<Arc<Resource>>,
}

impl Shelf {
    /// The catalog of what is stored; `about` is what discovery tells of the server, `identity` who
    /// it is to servers behind it.
    pub(crate) fn new(
        store: Store,
        metrics: Arc<Metrics>,
        about: discovery::Server,
        identity: Option<Identity>,
    ) -> Self {
        let about = Arc::new(about);
        let catalog = Catalog::new(Arc::clone(&about), Vec::new(), [], Arc::default());
        let current = RwLock::new(Current {
            catalog: Arc::new(catalog),
            read: HashMap::new(),
            registry: Registry::new(store.clone(), identity),
        });
        let shelf = Shelf { store, metrics, about, outlines: life::Outlines::default(), current };
        shelf.refresh();
        shelf
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).catalog)
    }

    /// Keeps what the server that an APIService names has told.
    pub(crate) fn learn(&self, name: &str, lesson: Lesson) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.registry.learn(name, lesson) {
            current.register(&self.about);
        }
    }

    /// Reads the definitions and APIServices again that have changed. Called before a write of one
    /// is answered, so that whoever knows of the write finds what it defines.
    pub(crate) fn refresh(&self) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.store.snapshot();
        let is_registered_anew = current.registry.refresh(&snapshot);
        let stored = snapshot.range(DEFINITIONS, None, None);
        let mut read = HashMap::new();
        let mut changed = false;
        for rev in stored.iter() {
            let key = rev.key.as_str();
            let known = current.read.remove(key).filter(|(revision, _)| *revision == rev.revision);
            changed |= known.is_none();
            let compile = || compile(&self.store, &self.metrics, &index::object(rev)?);
            let entry = known.unwrap_or_else(|| (rev.revision, compile()));
            read.insert(key.to_owned(), entry);
        }
        changed |= !current.read.is_empty();
        current.read = read;
        if changed {
            let mut served: Vec<&Read> =
                current.read.values().filter_map(|(_, read)| read.as_ref()).collect();
            served.sort_by_key(|read| name(&read.definition).to_owned());
            let definitions = served.iter().map(|read| Arc::clone(&read.definition)).collect();
            let resources: Vec<_> = served.iter().flat_map(|read| read.resources.clone()).collect();
            let (about, roster) = (Arc::clone(&self.about), Arc::new(current.registry.roster()));
            current.catalog = Arc::new(Catalog::new(about, definitions, resources, roster));
        } else if is_registered_anew {
            current.register(&self.about);
        }
    }
}

impl Current {
    /// Has the catalog know of the registered versions.
    fn register(&mut self, about: &Arc<discovery::Server>) {
        let roster = Arc::new(self.registry.roster());
        self.catalog = Arc::new(self.catalog.registered(Arc::clone(about), roster));
    }
}

fn name(definition: &Definition) -> &str {
    definition.metadata.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// What is served of a definition, if it is established.
fn compile(store: &Store, metrics: &Arc<Metrics>, object: &Value) -> Option<Read> {
    let definition = Arc::new(Definition::parse(object).ok()?);
    if !definition.status.established {
        return None;
    }
    let webhook = Webhook::of(store, metrics, object, &definition);
    let resources = resources(object, &definition, webhook);
    Some(Read { definition, resources })
}

/// The resource of a definition in the version in which it is stored, served or not.
fn resource(store: &Store, metrics: &Arc<Metrics>, object: &Value) -> Option<Arc<Resource>> {
    let mut served = object.clone();
    for version in served["spec"]["versions"].as_array_mut()? {
        version["served"] = true.into();
    }
    let definition = Arc::new(Definition::parse(&served).ok()?);
    let webhook = Webhook::of(store, metrics, &served, &definition);
    let mut resources = resources(&served, &definition, webhook).into_iter();
    resources.find(|resource| resource.gvk == resource.hub)
}

/// The resources of a definition, one for each version that is served. The webhook converts between
/// them; without one they differ by name only.
pub(crate) fn resources(
    object: &Value,
    definition: &Arc<Definition>,
    webhook: Option<Webhook>,
) -> Vec<Arc<Resource>> {
    let spec = &definition.spec;
    let raw = object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let raw_schema = |at: usize| raw.get(at)?.pointer("/schema/openAPIV3Schema");
    let schemas = spec.versions().iter().enumerate().map(|(at, version)| {
        let schema = raw_schema(at).map_or_else(Schema::deduced, Schema::structural);
        (format!("{}/{}", spec.group, version.name), schema)
    });
    let versions = Arc::new(SameInAllVersions::new(schemas));
    let Some(hub) = definition.storage_version() else { return Vec::new() };
    let names = &spec.names;
    let webhook = webhook.map(Arc::new);
    // An object is read through the schema of the version that it is stored in, too.
    let mut hasher = DefaultHasher::new();
    json::to_string(&object["spec"]).hash(&mut hasher);
    let schema_hash = hasher.finish();
    let served = spec.versions().iter().enumerate().filter(|(_, version)| version.served);
    let resource = |(at, version): (usize, &Version)| {
        let mut schema = version.open_api_v3_schema().cloned().unwrap_or_default();
        schema::prune_defaults(&mut schema);
        let gvk = |version: &str| GroupVersionKind::new(&*spec.group, version, &*names.kind);
        Arc::new(Resource {
            gvr: GroupVersionResource::new(&*spec.group, &*version.name, &*names.plural),
            gvk: gvk(&version.name),
            list_kind: names.list_kind.clone(),
            singular: names.singular.clone(),
            namespaced: spec.scope != "Cluster",
            hub: gvk(&hub.name),
            prefix: format!("{PREFIX}{}/{}/", spec.group, names.plural),
            origin: Origin::Custom(Custom {
                definition: Arc::clone(definition),
                version: at,
                schema: Arc::new(schema),
                rules: Arc::default(),
                schema_hash,
                versions: Arc::clone(&versions),
                conversion: webhook.clone().map(|webhook| {
                    Arc::new(Conversion::new(webhook, &gvk(&version.name), schema_hash))
                }),
            }),
            tracking: OnceLock::new(),
            heads: OnceLock::new(),
        })
    };
    served.map(resource).collect()
}
