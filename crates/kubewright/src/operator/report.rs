//! How an operator is doing, for those who look after it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cache::{Cache, WeakCache};
use crate::controller::Part;
use crate::informer::State;
use crate::serve::Check;
use crate::serve::debug::Report;

/// Whether all kinds can be read. One that cannot stops only those who read it, but people should
/// know.
pub(super) fn caches(cache: &Cache) -> Check {
    let cache = cache.downgrade();
    Check::new(move || {
        let reports = cache.upgrade().map(|cache| cache.report()).unwrap_or_default();
        let troubles: Vec<String> = reports
            .iter()
            .filter_map(|report| {
                trouble(&report.state).map(|why| format!("{}: {why}", report.kind))
            })
            .collect();
        async move {
            match troubles.is_empty() {
                true => Ok(()),
                false => Err(troubles.join("; ")),
            }
        }
    })
}

/// The page about controllers.
pub(super) struct Controllers {
    pub(super) cache: WeakCache,
    pub(super) parts: Arc<[Box<dyn Part>]>,
}

impl Report for Controllers {
    fn report(&self) -> Value {
        let reports = self.cache.upgrade().map(|cache| cache.report()).unwrap_or_default();
        let kinds: Vec<Value> = reports
            .iter()
            .map(|report| {
                json!({
                    "kind": report.kind,
                    "state": trouble(&report.state).unwrap_or_else(|| "live".to_owned()),
                    "objects": report.objects,
                    "bytes": report.bytes,
                    "lists": report.lists,
                })
            })
            .collect();
        let controllers: Vec<Value> = self.parts.iter().map(|part| part.report()).collect();
        json!({ "controllers": controllers, "kinds": kinds })
    }
}

/// What is wrong with a watch, if anything.
fn trouble(state: &State) -> Option<String> {
    match state {
        State::Live => None,
        State::Listing => Some("is listed for the first time".to_owned()),
        State::Missing => Some("is not served".to_owned()),
        State::Stale(why) => Some(format!("is stale: {why}")),
        State::Forbidden(why) => Some(format!("is forbidden: {why}")),
    }
}
