//! Watches of custom resources end when the resource is defined anew: what they would send next is
//! not what their clients have seen so far.

use std::sync::Arc;

use kubewright_store::{Event, Rev, Start, Watch};
use serde_json::Value;

use crate::index::{self, Index, PREFIX, Store};
use crate::resource::Custom;

/// The definition of a resource that is watched.
pub(super) struct Definition {
    key: String,
    watch: Watch<Index>,
}

impl Definition {
    /// `None` when the store has ended.
    pub(super) fn watch(store: &Store, custom: &Custom) -> Option<Self> {
        let spec = &custom.definition.spec;
        let name = format!("{}.{}", spec.names.plural, spec.group);
        let key = format!("{PREFIX}apiextensions.k8s.io/customresourcedefinitions/{name}");
        let watch = store.watch(&key, Start::Now).ok()?;
        Some(Definition { key, watch })
    }

    /// Returns when the resource is served differently, or not at all. May be dropped while it
    /// waits.
    pub(super) async fn changed(&mut self) {
        while let Ok(events) = self.watch.next().await {
            let mut events = events.iter().filter(|event| event.key.as_str() == self.key);
            if events.any(|event| is_redefined(event)) {
                return;
            }
        }
    }
}

/// Conditions come and go; what is served depends on the rest.
fn is_redefined(event: &Event<Index>) -> bool {
    let served = |rev: &Option<Arc<Rev<Index>>>| -> Option<(Value, Value)> {
        let mut object = index::object(rev.as_ref()?)?;
        Some((object["spec"].take(), object["status"]["acceptedNames"].take()))
    };
    event.current.is_none() || served(&event.previous) != served(&event.current)
}
