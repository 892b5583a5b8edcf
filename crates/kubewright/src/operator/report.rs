//! How an operator is doing, for those who look after it.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cache::{Cache, WeakCache};
use crate::controller::Part;
use crate::informer::{Report as Informed, State};
use crate::key::ObjectKey;
use crate::serve::Check;
use crate::serve::debug::Report;

/// Whether all kinds can be read that must be. One that cannot stops only those who read it, but
/// people should know.
pub(super) fn caches(cache: &Cache) -> Check {
    readable(cache, |report| !is_done_without(report))
}

/// Whether all kinds can be had that somebody would make use of.
pub(super) fn caches_if_served(cache: &Cache) -> Check {
    readable(cache, is_done_without)
}

fn is_done_without(report: &Informed) -> bool {
    !report.is_needed && matches!(report.state, State::Missing | State::Forbidden(_))
}

/// Whether kinds can be read, of those that are asked about.
fn readable(cache: &Cache, is_asked: fn(&Informed) -> bool) -> Check {
    let cache = cache.downgrade();
    Check::new(move || {
        let reports = cache.upgrade().map(|cache| cache.report()).unwrap_or_default();
        let troubles: Vec<String> = reports
            .iter()
            .filter(|report| is_asked(report))
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

/// Whether nothing troubles somebody, by what they say of themselves.
pub(super) fn untroubled<T: Send + Sync + 'static>(
    status: watch::Receiver<T>,
    trouble: fn(&T) -> Option<&String>,
) -> Check {
    Check::new(move || {
        let trouble = trouble(&status.borrow()).cloned();
        async move { trouble.map_or(Ok(()), Err) }
    })
}

/// Whether no object has its reconciles panic. It is the program's mistake, and people should know;
/// but others than the objects it is about are none the worse for it.
pub(super) fn reconciles(parts: &Arc<[Box<dyn Part>]>) -> Check {
    let parts = Arc::clone(parts);
    Check::new(move || {
        let told = parts.iter().filter_map(|part| {
            let (keys, more) = part.panicking();
            let keys: Vec<&str> = keys.iter().map(ObjectKey::as_str).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let name = part.name();
            (!keys.is_empty()).then(|| format!("{name} panics at {}{more}", keys.join(", ")))
        });
        let told: Vec<String> = told.collect();
        async move {
            match told.is_empty() {
                true => Ok(()),
                false => Err(told.join("; ")),
            }
        }
    })
}

/// The page about controllers, the kinds they read, and webhooks.
pub(super) struct Controllers {
    pub(super) cache: WeakCache,
    pub(super) parts: Arc<[Box<dyn Part>]>,
    /// Where webhooks are called, if they are.
    pub(super) webhooks: Vec<String>,
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
        json!({ "controllers": controllers, "kinds": kinds, "webhooks": self.webhooks })
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
