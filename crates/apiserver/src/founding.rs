//! What a server sees to in its store before it answers anybody: that what must be there is there.
//!
//! [`genesis`] and [`bootstrap`] say what that is; here it is written. All of it at once, since a
//! first start that waited for one write after the other would wait for the disk two hundred times.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::try_join_all;
use jiff::Timestamp;
use kubewright_apimachinery::apply::FieldManager;
use kubewright_store::{
    DeleteError, Durability, Expect, Put, PutError, Revision, Snapshot, Unavailable,
};
use serde_json::Value;

use crate::catalog::Catalog;
use crate::genesis::{self, Keep};
use crate::index::{Index, Store};
use crate::kinds::Context;
use crate::resource::Resource;
use crate::user::{MASTERS, User};
use crate::{bootstrap, meta};

/// Who manages the fields of the server's own objects.
const MANAGER: &str = "kube-apiserver";

/// Why the store does not hold what it must.
#[derive(Debug, thiserror::Error)]
pub enum FoundError {
    /// Try again, or tell a person.
    #[error("write what every cluster has")]
    Unavailable(#[source] Unavailable),
    /// No retry will help.
    #[error("write {key}, which has {bytes} bytes where {limit} are allowed")]
    TooLarge { key: String, bytes: usize, limit: usize },
}

/// Brings the store to where a server of these settings can serve from it. Another server may be
/// doing the same with the same store; whoever is second finds everything done.
pub async fn found(store: &Store, settings: &genesis::Settings<'_>) -> Result<(), FoundError> {
    let snapshot = store.latest().await.map_err(FoundError::Unavailable)?;
    let kinds = kinds();
    let user = User::new("system:apiserver", [MASTERS.to_owned()]);
    let founder = Founder { store, kinds: &kinds, user: &user, now: settings.now };
    let own = genesis::objects(settings);
    let own = own.iter().filter_map(|own| founder.own(&snapshot, own));
    let policy = bootstrap::plan(&snapshot).into_iter().map(|change| founder.policy(change));
    let writes: Vec<Write> = own.chain(policy).collect();
    try_join_all(writes.into_iter().map(|write| founder.write(write))).await?;
    Ok(())
}

type Kinds = HashMap<(String, String), Arc<Resource>>;

/// Resources by `apiVersion` and kind.
fn kinds() -> Kinds {
    Catalog::builtin()
        .map(|resource| {
            let gvk = &resource.gvk;
            ((gvk.api_version(), gvk.kind.clone()), Arc::clone(resource))
        })
        .collect()
}

struct Founder<'a> {
    store: &'a Store,
    kinds: &'a Kinds,
    user: &'a User,
    now: Timestamp,
}

/// Something to write.
struct Write {
    put: Put,
    /// Whether what is there goes first, because it cannot become what is wanted.
    anew: bool,
}

impl Founder<'_> {
    /// What to do about an object of the server's own, if anything.
    fn own(&self, snapshot: &Snapshot<Index>, own: &genesis::Own) -> Option<Write> {
        let resource = self.resource(&own.object);
        let key = key(resource, &own.object);
        let Some(rev) = snapshot.get(key.as_str()) else {
            return Some(self.create(own.object.clone()));
        };
        let live = resource.live(rev);
        let is_ours = match own.keep {
            Keep::CreateOnly => false,
            Keep::Reconcile => true,
            Keep::ReconcileWhile(mark) => live["metadata"]["annotations"][mark] == "true",
        };
        if !is_ours {
            return None;
        }
        let mut object = live.clone();
        let wanted = own.object.as_object().expect("an object is a mapping");
        for (field, value) in wanted {
            match field.as_str() {
                // A status is a report, and those who report will.
                "apiVersion" | "kind" | "status" => {}
                "metadata" => {
                    for part in ["labels", "annotations"] {
                        adopt(&mut object["metadata"], part, &value[part]);
                    }
                }
                _ => object[field] = value.clone(),
            }
        }
        (object != live).then(|| self.update(resource, object, &live, rev.revision))
    }

    fn policy(&self, change: bootstrap::Change) -> Write {
        match change {
            bootstrap::Change::Create(object) => self.create(object),
            bootstrap::Change::Replace(object) => Write { anew: true, ..self.create(object) },
            bootstrap::Change::Update(mut object) => {
                let resource = self.resource(&object);
                let key = key(resource, &object);
                let version = meta::text(&object, "resourceVersion").parse().unwrap_or_default();
                let live = self.store.get(key.as_str()).map(|rev| resource.live(&rev));
                match live {
                    Some(live) => self.update(resource, object, &live, Revision::new(version)),
                    None => {
                        meta::wipe(&mut object);
                        self.create(object)
                    }
                }
            }
        }
    }

    fn create(&self, object: Value) -> Write {
        let resource = self.resource(&object);
        let key = key(resource, &object);
        let mut object = resource.to_hub(self.track(resource, None, object));
        meta::identify(&mut object, self.now);
        let value = resource.to_bytes(&mut object);
        let put =
            Put { key, value, expect: Expect::Absent, ttl: None, durability: Durability::Synced };
        Write { put, anew: false }
    }

    fn update(&self, resource: &Resource, object: Value, live: &Value, seen: Revision) -> Write {
        let key = key(resource, &object);
        let mut object = resource.to_hub(self.track(resource, Some(live), object));
        let context = Context { user: self.user, now: self.now };
        resource.prepare_update(None, &mut object, live, &context);
        let value = resource.to_bytes(&mut object);
        let put =
            Put { key, value, expect: Expect::At(seen), ttl: None, durability: Durability::Synced };
        Write { put, anew: false }
    }

    async fn write(&self, Write { mut put, anew }: Write) -> Result<(), FoundError> {
        if anew {
            match self.store.delete(&put.key, Expect::Anything).await {
                Ok(_) | Err(DeleteError::NotFound | DeleteError::Conflict { .. }) => {}
                Err(DeleteError::Unavailable(why)) => return Err(FoundError::Unavailable(why)),
            }
            put.expect = Expect::Absent;
        }
        let key = put.key.clone();
        match self.store.put(put).await {
            // Somebody was faster, and wanted the same.
            Ok(_) | Err(PutError::Conflict { .. }) => Ok(()),
            Err(PutError::TooLarge { bytes, limit }) => {
                Err(FoundError::TooLarge { key: key.as_str().to_owned(), bytes, limit })
            }
            Err(PutError::Unavailable(why)) => Err(FoundError::Unavailable(why)),
        }
    }

    fn resource(&self, object: &Value) -> &Resource {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        self.kinds
            .get(&(text("apiVersion"), text("kind")))
            .expect("the server's own objects are of kinds that it serves")
    }

    fn track(&self, resource: &Resource, live: Option<&Value>, object: Value) -> Value {
        let (api_version, reset, empty) =
            (resource.gvk.api_version(), resource.reset(None), resource.empty());
        resource.with_versions(|versions| {
            let manager = FieldManager {
                api_version: &api_version,
                kind: &resource.gvk.kind,
                subresource: "",
                versions,
                reset: &reset,
                empty: &empty,
            };
            manager.update(live, object, MANAGER, self.now)
        })
    }
}

fn key(resource: &Resource, object: &Value) -> kubewright_store::Key {
    let namespace = Some(meta::text(object, "namespace")).filter(|name| !name.is_empty());
    resource.key(namespace, meta::text(object, "name"))
}

/// Adds what is wanted to a mapping of texts, whatever else is in it.
fn adopt(metadata: &mut Value, field: &str, wanted: &Value) {
    let Some(wanted) = wanted.as_object().filter(|wanted| !wanted.is_empty()) else { return };
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Default::default());
    }
    let found = metadata[field].as_object_mut().expect("it was just made one");
    for (key, value) in wanted {
        found.insert(key.clone(), value.clone());
    }
}
