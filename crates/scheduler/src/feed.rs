//! What the scheduler follows, brought into one order of events.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use kubewright::Cache;
use kubewright::informer::{Change, Informer, NotReady, Object, Scope, Subscription};
use tokio::sync::mpsc;
use tracing::warn;

/// How long informers may take before scheduling begins without them.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// Something was seen.
pub(crate) enum Event {
    Node(Seen<Node>),
    Pod(Seen<Pod>),
    Namespace(Seen<Namespace>),
    Service(Seen<Service>),
    Controller(Seen<ReplicationController>),
    ReplicaSet(Seen<ReplicaSet>),
    StatefulSet(Seen<StatefulSet>),
    Claim(Seen<PersistentVolumeClaim>),
    Volume(Seen<PersistentVolume>),
    Class(Seen<StorageClass>),
    CsiNode(Seen<CSINode>),
    Driver(Seen<CSIDriver>),
    Capacity(Seen<CSIStorageCapacity>),
    Budget(Seen<PodDisruptionBudget>),
}

/// An object is there, or was.
pub(crate) enum Seen<K> {
    Applied { object: Arc<K>, old: Option<Arc<K>> },
    Deleted(Arc<K>),
}

/// All informers of a scheduler.
pub(crate) struct Feed {
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    _subscriptions: Vec<Subscription>,
}

impl Feed {
    /// Begins to follow everything, and waits until everything was seen once.
    pub(crate) async fn start(cache: &Cache) -> Self {
        // Unbounded: whoever watches must not wait, and tells each object once until it is heard.
        let (tell, events) = mpsc::unbounded_channel();
        let mut follow = Follow { cache, tell, subscriptions: Vec::new(), synced: Vec::new() };
        // What pods refer to comes before them.
        follow.kind(Event::Namespace);
        follow.kind(Event::Class);
        follow.kind(Event::Volume);
        follow.kind(Event::Claim);
        follow.kind(Event::CsiNode);
        follow.kind(Event::Driver);
        follow.kind(Event::Capacity);
        follow.kind(Event::Service);
        follow.kind(Event::Controller);
        follow.kind(Event::ReplicaSet);
        follow.kind(Event::StatefulSet);
        follow.kind(Event::Budget);
        follow.kind(Event::Node);
        follow.kind(Event::Pod);
        for error in join_all(follow.synced).await.into_iter().filter_map(Result::err) {
            warn!(%error, "pods are scheduled without it");
        }
        Feed { events, _subscriptions: follow.subscriptions }
    }
}

struct Follow<'a> {
    cache: &'a Cache,
    tell: mpsc::UnboundedSender<Event>,
    subscriptions: Vec<Subscription>,
    synced: Vec<futures::future::BoxFuture<'static, Result<(), NotReady>>>,
}

impl Follow<'_> {
    fn kind<K>(&mut self, event: fn(Seen<K>) -> Event)
    where
        K: Object<DynamicType = ()>,
    {
        let informer: Informer<K> = self.cache.informer(&Scope::default());
        let tell = self.tell.clone();
        self.subscriptions.push(informer.subscribe(move |change| {
            let seen = match change {
                Change::Applied { object, old, .. } => {
                    Seen::Applied { object: Arc::clone(object), old: old.clone() }
                }
                Change::Deleted(last) => Seen::Deleted(Arc::clone(last)),
            };
            // Nobody hears it when the scheduler is ending.
            let _ = tell.send(event(seen));
        }));
        self.synced.push(Box::pin(async move { informer.synced(SYNC_MAX).await }));
    }
}
