//! Waiting for a state.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kubewright::ObjectKey;
use kubewright::informer::{Informer, Object, Scope, Source};
use tokio::sync::watch;

use crate::Cluster;

/// How long a test waits for a state. Under a paused clock it is over as soon as nothing more
/// happens.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Cluster {
    /// Waits until an object is so, or is not there if that is what `is_so` wants, and gives it.
    ///
    /// # Panics
    /// If it is not so within a minute: with the object as it is then, the events about it, and what
    /// the controllers did last of the operators that the test [runs](Cluster::run), with it first.
    pub async fn eventually<K>(
        &self,
        namespace: Option<&str>,
        name: &str,
        is_so: impl Fn(Option<&K>) -> bool,
    ) -> Option<Arc<K>>
    where
        K: Object<DynamicType = ()> + Debug,
    {
        let fields = Some(format!("metadata.name={name}"));
        let scope = Scope { fields, ..Scope::within(namespace) };
        let (informer, run) = Informer::<K>::new(Source::new(self.plain_client(), (), scope));
        let key = ObjectKey::new(namespace, name);
        let (tell, mut told) = watch::channel(());
        let _subscription = informer.subscribe(move |_| tell.send_replace(()));
        let reached = async {
            informer
                .synced(WAIT_MAX)
                .await
                .unwrap_or_else(|error| panic!("wait for {key}: {error}"));
            loop {
                told.mark_unchanged();
                let object = informer.get(&key).expect("it is synced");
                if is_so(object.as_deref()) {
                    return object;
                }
                told.changed().await.expect("its sender is in the subscription");
            }
        };
        let reached = async {
            tokio::select! {
                object = reached => object,
                () = run => unreachable!("it ends with the informer"),
            }
        };
        match tokio::time::timeout(WAIT_MAX, reached).await {
            Ok(object) => object,
            Err(_) => {
                let (events, reconciles) = (self.events(&key).await, self.operators().report(&key));
                let object = informer.get(&key);
                panic!(
                    "{key} is not so after {WAIT_MAX:?}. It is {object:#?}\n{events}{reconciles}"
                );
            }
        }
    }

    /// What was told about an object, a line for each event.
    async fn events(&self, key: &ObjectKey) -> String {
        let namespace = key.namespace().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.plain_client(), namespace);
        let listed = events.list(&ListParams::default()).await;
        let about = |event: &Event| {
            event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some(key.name()))
        };
        let lines = listed.into_iter().flatten().filter(about).map(|event| {
            let part = |part: Option<String>| part.unwrap_or_default();
            let (by, kind) = (part(event.reporting_controller), part(event.type_));
            format!("{by}: {kind} {}: {}\n", part(event.reason), part(event.note))
        });
        lines.collect()
    }
}
