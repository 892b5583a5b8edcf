//! Garbage: objects whose owners are all gone, and owners that wait for what they own.
//!
//! [`graph`] knows who owns whom, as far as watches tell, and says which objects deserve a look.
//! The look is at live objects: nothing is deleted because a cache says so. [`verdict`] decides.

mod graph;
mod verdict;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, try_join_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::{
    Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy,
};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::answer::{Refusal as _, present};
use crate::census::{Census, Change, Listener};
use crate::kinds::{Kind, Kinds};
use crate::part::{Part, text};
use graph::{Effects, Graph, Identity, Misplaced, Node, Uid};
use kubewright::Clock;
use kubewright::controller::Surroundings;
use kubewright::queue::{Outcome, Queue};
use verdict::{Owner, Verdict};

/// An owner with this finalizer waits until what blocks its deletion is gone.
const FOREGROUND: &str = "foregroundDeletion";
/// An owner with this one waits until nothing refers to it.
const ORPHAN: &str = "orphan";
const COMPONENT: &str = "garbage-collector-controller";
/// As many as upstream works on.
const AT_ONCE: usize = 20;

pub(crate) struct GarbageCollector {
    client: Client,
    clock: Clock,
    /// Whether the graph has everything. What an owner owns is not known before.
    complete: watch::Receiver<bool>,
    state: Mutex<State>,
    queue: Queue<Task>,
}

/// Something that deserves a look.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    /// Whether the object is garbage, or waits for what it owns.
    Judge(Uid),
    /// Free the object's dependents of it.
    Orphan(Uid),
    /// Tell the user that the object names an owner in another namespace.
    Report(Misplaced),
}

#[derive(Default)]
struct State {
    graph: Graph,
    kinds: Arc<Kinds>,
    absent: Absent,
    /// Objects with an owner of a kind that is not served. Not garbage, as far as one can know;
    /// they are looked at again when other kinds are served.
    unknown: HashSet<Uid>,
}

/// Owners known not to exist. A uid never comes back, so this is never wrong, only forgotten.
#[derive(Default)]
struct Absent {
    owners: HashSet<Reference>,
    order: VecDeque<Reference>,
}

/// An owner as a dependent names it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Reference {
    /// The dependent's.
    namespace: String,
    api_version: String,
    kind: String,
    name: String,
    uid: Uid,
}

const ABSENT_MAX: usize = 500;

impl Absent {
    fn add(&mut self, owner: Reference) {
        if self.owners.contains(&owner) {
            return;
        }
        if self.order.len() == ABSENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.owners.remove(&oldest);
        }
        self.order.push_back(owner.clone());
        self.owners.insert(owner);
    }
}

/// Why a task is not done.
#[derive(Debug, thiserror::Error)]
enum TaskError {
    /// Try again.
    #[error("reach the API")]
    Api(#[from] Error),
    /// Try again when other kinds are served.
    #[error("no kind {kind} in {api_version}")]
    UnknownKind { api_version: String, kind: String },
    /// No retry helps: a cluster-scoped object names an owner that has a namespace.
    #[error("a cluster-scoped object cannot have an owner with a namespace")]
    NamespacedOwner,
}

impl GarbageCollector {
    /// One that the census tells of all objects.
    pub(crate) fn new(client: Client, clock: Clock, census: &mut Census) -> Arc<Self> {
        let complete = census.complete();
        let (state, queue) = (Mutex::default(), Queue::new());
        let collector = Arc::new(Self { client, clock, complete, state, queue });
        census.tell(Arc::clone(&collector) as Arc<dyn Listener>);
        collector
    }

    async fn work(&self, task: Task) -> Outcome {
        // The sender lives as long as the census, which ends after this does.
        if self.complete.clone().wait_for(|complete| *complete).await.is_err() {
            return Outcome::Done;
        }
        let done = match &task {
            Task::Judge(uid) => self.judge(uid).await,
            Task::Orphan(uid) => self.orphan(uid).await,
            Task::Report(misplaced) => self.report(misplaced).await.map_err(TaskError::Api),
        };
        match done {
            Ok(()) => Outcome::Done,
            Err(TaskError::Api(error)) if error.is_conflict() => Outcome::Failed,
            Err(TaskError::Api(error)) => {
                warn!(?task, error = error.text(), "garbage stays");
                Outcome::Failed
            }
            Err(error @ TaskError::UnknownKind { .. }) => {
                debug!(?task, %error, "garbage is not recognised");
                if let Task::Judge(uid) | Task::Orphan(uid) = task {
                    self.state().unknown.insert(uid);
                }
                Outcome::Done
            }
            Err(error @ TaskError::NamespacedOwner) => {
                info!(?task, %error, "an owner is ignored");
                Outcome::Done
            }
        }
    }

    async fn judge(&self, uid: &Uid) -> Result<(), TaskError> {
        let Some(node) = self.state().graph.get(uid).cloned() else { return Ok(()) };
        // What is on its way out is left to it; its dependents' turn comes when it is gone.
        if node.deleting && !node.foreground {
            return Ok(());
        }
        let Some(live) = self.live(&node.identity).await? else { return Ok(()) };
        if node.waits_for_dependents() {
            return self.settle(&node.identity, &live).await;
        }
        let references = live.owner_references.clone().unwrap_or_default();
        let mut owners = Vec::with_capacity(references.len());
        for reference in &references {
            owners.push(self.owner(&node.identity, reference).await?);
        }
        let dependents = self.state().graph.dependents_of(uid);
        let verdict = verdict::judge(&live, &owners, &dependents);
        self.execute(&node.identity, &live, verdict).await
    }

    /// An owner that is deleted in the foreground goes when nothing blocks it any more.
    async fn settle(&self, owner: &Identity, live: &ObjectMeta) -> Result<(), TaskError> {
        let blocking = self.state().graph.blocking(&owner.uid);
        if blocking.is_empty() {
            return Ok(self.remove_finalizer(owner, live, FOREGROUND).await?);
        }
        for dependent in blocking.into_iter().filter(|node| !node.waits_for_dependents()) {
            self.queue.add(Task::Judge(dependent.identity.uid));
        }
        Ok(())
    }

    /// What has become of an owner that an object names.
    async fn owner(&self, of: &Identity, reference: &OwnerReference) -> Result<Owner, TaskError> {
        let OwnerReference { api_version, kind, name, uid, .. } = reference;
        let key = Reference {
            namespace: of.namespace.clone(),
            api_version: api_version.clone(),
            kind: kind.clone(),
            name: name.clone(),
            uid: uid.clone(),
        };
        if self.state().absent.owners.contains(&key) {
            return Ok(Owner::Absent);
        }
        let found = self.state().kinds.get(api_version, kind).cloned();
        let found = found.ok_or_else(|| TaskError::UnknownKind {
            api_version: api_version.clone(),
            kind: kind.clone(),
        })?;
        if found.namespaced && of.namespace.is_empty() {
            return Err(TaskError::NamespacedOwner);
        }
        let api = found.within(&self.client, &of.namespace);
        match present(api.get_metadata(name).await)?.map(|owner| owner.metadata) {
            Some(owner) if owner.uid.as_ref() == Some(uid) => {
                let waits = owner.deletion_timestamp.is_some() && holds(&owner, FOREGROUND);
                Ok(if waits { Owner::Waiting } else { Owner::Solid })
            }
            Some(_) | None => {
                self.state().absent.add(key);
                Ok(Owner::Absent)
            }
        }
    }

    async fn execute(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        verdict: Verdict,
    ) -> Result<(), TaskError> {
        match verdict {
            Verdict::Keep => Ok(()),
            Verdict::Release(owners) => {
                let references = live.owner_references.iter().flatten();
                let rest: Vec<&OwnerReference> =
                    references.filter(|reference| !owners.contains(&reference.uid)).collect();
                Ok(self.set_owners(identity, live, json!(rest)).await?)
            }
            Verdict::Unblock => {
                let mut references = live.owner_references.clone().unwrap_or_default();
                for reference in &mut references {
                    reference.block_owner_deletion = Some(false);
                }
                self.set_owners(identity, live, json!(references)).await?;
                // The next look is at what was just written.
                self.queue.add(Task::Judge(identity.uid.clone()));
                Ok(())
            }
            Verdict::Delete(policy) => {
                info!(%identity, ?policy, "delete garbage");
                Ok(self.delete(identity, live, policy).await?)
            }
        }
    }

    /// Deletes exactly what was looked at. A change that left the owners alone does not save it.
    async fn delete(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        policy: PropagationPolicy,
    ) -> Result<(), Error> {
        let api = self.api(identity);
        let mut parameters = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: live.uid.clone(),
                resource_version: live.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        match present(api.delete(&identity.name, &parameters).await) {
            Err(error) if error.is_conflict() => {}
            deleted => return deleted.map(drop),
        }
        let Some(now) = present(api.get_metadata(&identity.name).await)? else { return Ok(()) };
        let now = now.metadata;
        if now.uid != live.uid {
            return Ok(());
        }
        if now.owner_references != live.owner_references {
            self.queue.add(Task::Judge(identity.uid.clone()));
            return Ok(());
        }
        parameters.preconditions =
            Some(Preconditions { uid: live.uid.clone(), resource_version: None });
        present(api.delete(&identity.name, &parameters).await).map(drop)
    }

    /// Frees what the object owns, and then the object.
    async fn orphan(&self, uid: &Uid) -> Result<(), TaskError> {
        let Some(node) = self.state().graph.get(uid).cloned() else { return Ok(()) };
        let dependents = self.state().graph.dependents_of(uid);
        try_join_all(dependents.iter().map(|dependent| self.free(dependent, uid))).await?;
        let Some(live) = self.live(&node.identity).await? else { return Ok(()) };
        Ok(self.remove_finalizer(&node.identity, &live, ORPHAN).await?)
    }

    async fn free(&self, dependent: &Node, owner: &Uid) -> Result<(), Error> {
        let identity = &dependent.identity;
        let Some(live) = self.live(identity).await? else { return Ok(()) };
        let references = live.owner_references.iter().flatten();
        let rest: Vec<&OwnerReference> =
            references.filter(|reference| reference.uid != *owner).collect();
        if rest.len() == live.owner_references.as_ref().map_or(0, Vec::len) {
            return Ok(());
        }
        self.set_owners(identity, &live, json!(rest)).await
    }

    async fn set_owners(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        owners: Value,
    ) -> Result<(), Error> {
        self.patch(identity, live, json!({ "ownerReferences": owners })).await
    }

    async fn remove_finalizer(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        finalizer: &str,
    ) -> Result<(), Error> {
        if !holds(live, finalizer) {
            return Ok(());
        }
        let rest: Vec<&String> =
            live.finalizers.iter().flatten().filter(|other| *other != finalizer).collect();
        self.patch(identity, live, json!({ "finalizers": rest })).await
    }

    /// Changes metadata of exactly what was looked at. A merge patch is what every kind takes,
    /// built in or custom.
    async fn patch(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        mut metadata: Value,
    ) -> Result<(), Error> {
        metadata["uid"] = json!(live.uid);
        metadata["resourceVersion"] = json!(live.resource_version);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let api = self.api(identity);
        let patched = api.patch_metadata(&identity.name, &PatchParams::default(), &patch).await;
        present(patched).map(drop)
    }

    /// The object as it now is, if it is still the same.
    async fn live(&self, identity: &Identity) -> Result<Option<ObjectMeta>, Error> {
        let found = present(self.api(identity).get_metadata(&identity.name).await)?;
        let found = found.map(|found| found.metadata);
        Ok(found.filter(|found| found.uid.as_ref() == Some(&identity.uid)))
    }

    fn api(&self, identity: &Identity) -> Api<DynamicObject> {
        identity.kind.within(&self.client, &identity.namespace)
    }

    async fn report(&self, misplaced: &Misplaced) -> Result<(), Error> {
        let now = self.clock.now();
        let namespace = match misplaced.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        let time = Timestamp::from_second(now.as_second()).map(Time).ok();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", misplaced.name, now.as_nanosecond())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(misplaced.api_version.clone()),
                kind: Some(misplaced.kind.clone()),
                namespace: Some(misplaced.namespace.clone()),
                name: Some(misplaced.name.clone()),
                uid: Some(misplaced.uid.clone()),
                ..ObjectReference::default()
            },
            type_: Some("Warning".to_owned()),
            reason: Some("OwnerRefInvalidNamespace".to_owned()),
            message: Some(misplaced.message()),
            count: Some(1),
            first_timestamp: time.clone(),
            last_timestamp: time,
            source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
            reporting_component: Some(COMPONENT.to_owned()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        match api.create(&PostParams::default(), &event).await {
            // The namespace is going, and its events with it.
            Err(error) if error.is_terminating() || error.is_absent() => Ok(()),
            created => created.map(drop),
        }
    }

    fn enqueue(&self, effects: Effects) {
        for uid in effects.judge {
            self.queue.add(Task::Judge(uid));
        }
        for uid in effects.orphan {
            self.queue.add(Task::Orphan(uid));
        }
        for misplaced in effects.misplaced {
            self.queue.add(Task::Report(misplaced));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a finalizer is on an object.
fn holds(object: &ObjectMeta, finalizer: &str) -> bool {
    object.finalizers.iter().flatten().any(|held| held == finalizer)
}

impl Listener for GarbageCollector {
    fn wants(&self, kind: &Kind) -> bool {
        // Events own nothing, are owned by nothing, and are many.
        kind.can("delete") && !kind.is("", "events") && !kind.is("events.k8s.io", "events")
    }

    fn observe(&self, change: &Change<'_>) {
        let effects = match change {
            Change::Kinds(kinds) => {
                let mut state = self.state();
                state.kinds = Arc::clone(kinds);
                Effects { judge: state.unknown.drain().collect(), ..Effects::default() }
            }
            Change::Applied(kind, object) => {
                let node = Node::read(kind, object);
                self.state().graph.apply(node)
            }
            Change::Deleted(_, object) => self.state().graph.delete(text(&object.uid)),
        };
        self.enqueue(effects);
    }
}

impl Part for Arc<GarbageCollector> {
    fn run(
        self: Box<Self>,
        _: Surroundings,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.queue.work(AT_ONCE, &shutdown, |task| self.work(task)).await;
        })
    }
}
