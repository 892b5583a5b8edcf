//! What tests read from: a store in memory, and resources of both origins.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use kubewright_apimachinery::schema::crd;
use kubewright_apimachinery::{builtin, yaml};
use kubewright_store::{Config, Durability, Expect, HistoryBounds, Put};
use serde_json::Value;

use crate::body::Body;
use crate::encode::Encoder;
use crate::index::{self, Store, Stored};
use crate::resource::Resource;

/// A moment in 2026, at which everything here happens.
pub(crate) const NOW: Duration = Duration::from_secs(1_794_787_200);

pub(crate) fn store() -> Store {
    Store::memory(Config::new(index::extract, index::resource_of, || NOW))
}

/// A store that keeps next to no history.
pub(crate) fn forgetful_store() -> Store {
    let mut config = Config::new(index::extract, index::resource_of, || NOW);
    config.history = HistoryBounds { window: Duration::ZERO, bytes_max: 1 };
    Store::memory(config)
}

pub(crate) fn encoder(store: &Store) -> Encoder {
    let describe = |ty: &str, field: &str| Some(format!("{ty}#{field}"));
    Encoder::new(store.config().clock.clone(), Arc::new(describe))
}

pub(crate) fn resource(group: &str, version: &str, name: &str) -> Arc<Resource> {
    let row = builtin::resource(group, version, name).expect("it is built in");
    Arc::new(Resource::builtin(row))
}

/// The version `version` of a namespaced resource `widgets.example.com`, given the `versions` of its
/// definition.
pub(crate) fn widgets(version: &str, versions: &str) -> Arc<Resource> {
    let mut definition = object(
        "
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: widgets.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
        ",
    );
    definition["spec"]["versions"] = object(versions);
    let parsed = Arc::new(crd::Definition::parse(&definition).expect("it is a definition"));
    let mut resources = crate::crd::resources(&definition, &parsed, None).into_iter();
    resources.find(|resource| resource.gvr.version == version).expect("it has this version")
}

/// Reads YAML.
pub(crate) fn object(text: &str) -> Value {
    yaml::decode(text).expect("it is YAML").value
}

/// Writes an object at the place it says, whatever is there.
pub(crate) async fn put(store: &Store, resource: &Resource, object: &Value) -> Stored {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = text("/metadata/name").expect("it has a name");
    let put = Put {
        key: resource.key(text("/metadata/namespace"), name),
        value: index::to_bytes(object),
        expect: Expect::Anything,
        ttl: None,
        durability: Durability::Synced,
    };
    store.put(put).await.expect("the store takes it")
}

/// A ConfigMap in the namespace `default`.
pub(crate) fn config_map(name: &str) -> Value {
    object(&format!(
        "
        kind: ConfigMap
        apiVersion: v1
        metadata:
          name: {name}
          namespace: default
          uid: uid-{name}
          creationTimestamp: '2026-11-16T00:00:00Z'
        data: {{of: {name}}}
        "
    ))
}

/// Everything a body holds.
pub(crate) async fn text(body: Body) -> String {
    let bytes = body.collect().await.expect("a body cannot fail").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("it is text")
}
