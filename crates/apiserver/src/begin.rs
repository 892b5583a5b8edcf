//! What a server does before it serves: creates what a fresh one has, and puts right what must be.
//! Flow control is looked after as long as the server runs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{join, join_all};
use jiff::Timestamp;
use kubewright_apimachinery::builtin;
use kubewright_store::{Durability, Expect, Key, Put, PutError, Snapshot, Unavailable};
use serde_json::Value;
use uuid::Uuid;

use crate::bootstrap::{self, Change};
use crate::catalog::Catalog;
use crate::genesis::{self, Keep, Own};
use crate::index::{self, Index, Store};
use crate::meta;
use crate::resource::Resource;
use crate::server::Inner;

const LEASE_PERIOD: Duration = Duration::from_secs(10);

/// Creates what a fresh server has, and puts right what must be. Safe to repeat, and safe beside
/// other servers on the same store.
pub(crate) async fn run(
    server: &Inner,
    settings: &genesis::Settings<'_>,
) -> Result<(), Unavailable> {
    let snapshot = server.store.latest().await?;
    let mut plan = Plan::new(settings.now);
    plan.keep(&snapshot, genesis::objects(settings));
    // A server begins once.
    let _ = server.identity.set(genesis::identity(settings).object);
    if is_without_policy(&snapshot) {
        plan.puts.extend(policy().iter().map(|template| template.put(settings.now)));
        return plan.begin(server, &snapshot).await;
    }
    for change in bootstrap::plan(&snapshot) {
        match change {
            Change::Create(object) => plan.put(object, Expect::Absent),
            Change::Update(object) => {
                let version = meta::text(&object, "resourceVersion").parse().unwrap_or_default();
                plan.put(object, Expect::At(kubewright_store::Revision::new(version)));
            }
            Change::Replace(mut object) => {
                // It gets another identity, as if it had been deleted in between.
                meta::identify(&mut object, settings.now);
                plan.put(object, Expect::Anything);
            }
        }
    }
    plan.begin(server, &snapshot).await
}

static POLICY: OnceLock<Vec<Template>> = OnceLock::new();

/// Makes what fresh servers create and have in common.
pub(crate) fn prepare() {
    policy();
}

pub(crate) fn is_unprepared() -> bool {
    POLICY.get().is_none()
}

/// Whether there is neither role nor binding.
fn is_without_policy(snapshot: &Snapshot<Index>) -> bool {
    let is_empty = |prefix: &str| snapshot.range(prefix, None, Some(1)).iter().next().is_none();
    is_empty("/registry/clusterrole") && is_empty("/registry/role")
}

/// The whole bootstrap policy, as it is stored. It differs from server to server by uids and times
/// only: a process that begins many, as tests do, makes it once.
fn policy() -> &'static [Template] {
    POLICY.get_or_init(|| {
        let mut plan = Plan::new(Timestamp::UNIX_EPOCH);
        for object in bootstrap::objects() {
            plan.put(object, Expect::Absent);
        }
        plan.puts.into_iter().map(Template::new).collect()
    })
}

/// An object that is created again and again, as another one each time.
struct Template {
    put: Put,
    /// Where its uid is, and the time of its creation.
    uid: Range<usize>,
    created: Range<usize>,
}

impl Template {
    fn new(put: Put) -> Self {
        let place = |field: &str| {
            let quoted = format!("\"{field}\":\"");
            let mut places = put.value.windows(quoted.len());
            let start = places.position(|text| text == quoted.as_bytes()).expect("it is there");
            let start = start + quoted.len();
            let length = put.value[start..].iter().position(|byte| *byte == b'"');
            start..start + length.expect("the text ends")
        };
        Template { uid: place("uid"), created: place("creationTimestamp"), put }
    }

    fn put(&self, now: Timestamp) -> Put {
        let mut value = self.put.value.to_vec();
        value[self.uid.clone()].copy_from_slice(Uuid::new_v4().to_string().as_bytes());
        value[self.created.clone()].copy_from_slice(meta::time(now).as_bytes());
        Put { value: value.into(), ..self.put.clone() }
    }
}

/// The same for the objects of flow control alone.
pub(crate) async fn keep_flow_control(server: &Inner) -> Result<(), Unavailable> {
    let now = server.now();
    let mut plan = Plan::new(now);
    plan.keep(&server.store.snapshot(), genesis::flow_control(now));
    plan.carry_out(&server.store).await
}

/// Says every ten seconds that the server lives, until dropped.
pub(crate) async fn live(server: &Inner) {
    let Some(lease) = server.identity.get() else { return };
    loop {
        tokio::time::sleep(LEASE_PERIOD).await;
        let now = server.now();
        let mut plan = Plan::new(now);
        plan.keep(&server.store.snapshot(), [genesis::renewed(lease, now)]);
        if let Err(error) = plan.carry_out(&server.store).await {
            tracing::warn!(%error, "the lease of this server is not renewed");
        }
    }
}

/// What is to be written.
struct Plan {
    resources: HashMap<(String, String), &'static Arc<Resource>>,
    now: Timestamp,
    puts: Vec<Put>,
}

impl Plan {
    fn new(now: Timestamp) -> Self {
        Plan { resources: by_kind(), now, puts: Vec::new() }
    }

    /// Has these objects created that are missing, and put right that must be.
    fn keep(&mut self, snapshot: &Snapshot<Index>, objects: impl IntoIterator<Item = Own>) {
        for own in objects {
            let Some(resource) = self.resources.get(&kind(&own.object)) else { continue };
            match snapshot.get(key(resource, &own.object).as_str()) {
                None => self.put(own.object, Expect::Absent),
                Some(rev) => {
                    if let Some(stored) = index::object(rev)
                        && must_change(&own.keep, &stored)
                        && let Some(object) = corrected(&stored, &own.object)
                    {
                        self.put(object, Expect::At(rev.revision));
                    }
                }
            }
        }
    }

    fn put(&mut self, mut object: Value, expect: Expect) {
        let Some(resource) = self.resources.get(&kind(&object)) else { return };
        let key = key(resource, &object);
        if expect == Expect::Absent {
            meta::identify(&mut object, self.now);
        }
        // What is stored is what a client would have sent.
        if let Some(kind) = builtin_kind(&object)
            && let Ok(decoded) = builtin::decode(kind, object.clone())
        {
            object = decoded.value;
        }
        let value = resource.to_bytes(&mut object);
        self.puts.push(Put { key, value, expect, ttl: None, durability: Durability::Synced });
    }

    /// The Services there are, and those there will be.
    fn services(&self, snapshot: &Snapshot<Index>) -> Vec<Value> {
        const PREFIX: &str = "/registry/services/specs/";
        let stored = snapshot.range(PREFIX, None, None);
        let stored = stored.iter().filter_map(|rev| index::object(rev));
        let new = self.puts.iter().filter(|put| put.key.as_str().starts_with(PREFIX));
        let new = new.filter_map(|put| serde_json::from_slice(&put.value).ok());
        stored.chain(new).collect()
    }

    /// Writes all, and has Services keep their addresses.
    async fn begin(self, server: &Inner, snapshot: &Snapshot<Index>) -> Result<(), Unavailable> {
        let services = self.services(snapshot);
        let repair = server.services.repair(&services, self.now);
        // Together, so that they share a sync.
        let (done, ()) = join(self.carry_out(&server.store), repair).await;
        done
    }

    /// Writes all at once, so that they share a sync. What somebody else wrote meanwhile stays.
    async fn carry_out(self, store: &Store) -> Result<(), Unavailable> {
        for done in join_all(self.puts.into_iter().map(|put| store.put(put))).await {
            match done {
                Ok(_) | Err(PutError::Conflict { .. }) => {}
                Err(PutError::TooLarge { .. }) => unreachable!("our own objects are small"),
                Err(PutError::Unavailable(error)) => return Err(error),
            }
        }
        Ok(())
    }
}

fn by_kind() -> HashMap<(String, String), &'static Arc<Resource>> {
    let stored = Catalog::builtin().filter(|resource| resource.gvk == resource.hub);
    stored
        .filter(|resource| resource.has_verb("create") && resource.has_verb("get"))
        .map(|resource| ((resource.gvk.api_version(), resource.gvk.kind.clone()), resource))
        .collect()
}

fn kind(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

fn builtin_kind(object: &Value) -> Option<&'static builtin::Kind> {
    let (version, kind) = kind(object);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    builtin::kind(group, version, &kind)
}

fn key(resource: &Resource, object: &Value) -> Key {
    let namespace = Some(meta::text(object, "namespace")).filter(|_| resource.namespaced);
    resource.key(namespace, meta::text(object, "name"))
}

fn must_change(keep: &Keep, stored: &Value) -> bool {
    match keep {
        Keep::CreateOnly => false,
        Keep::Reconcile => true,
        Keep::ReconcileWhile(annotation) => {
            stored["metadata"]["annotations"][*annotation] == "true"
        }
        Keep::ReconcileLabelled(label) => {
            let value = stored["metadata"]["labels"][*label].as_str();
            value.is_some_and(|value| !value.is_empty())
        }
    }
}

/// The stored object with everything put right but its metadata and its status, which tells what
/// has become of it; `None` if all is right.
fn corrected(stored: &Value, wanted: &Value) -> Option<Value> {
    let mut object = stored.clone();
    for (field, value) in wanted.as_object()? {
        if !matches!(field.as_str(), "metadata" | "status") {
            object[field.as_str()] = value.clone();
        }
    }
    if object == *stored {
        return None;
    }
    if let Some(generation) = stored["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = (generation + 1).into();
    }
    Some(object)
}
