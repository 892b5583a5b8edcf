//! What a controller does by the clock: it looks at everything now and then, at some objects by a
//! timer, and asks elsewhere what has changed.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{error, warn};

use super::Trigger;
use crate::informer::{Informer, Object};
use crate::key::ObjectKey;
use crate::queue::Add;
use crate::random;
use crate::reconcile::Error;

/// What is looked at only to be sure is less urgent than what happens.
const RESYNC_PRIORITY: i32 = -100;

/// Something that goes on for as long as a controller runs, and has objects looked at.
pub(super) struct Routine<K> {
    /// How causes call it.
    pub(super) source: String,
    start: Box<Start<K>>,
}

type Start<K> = dyn Fn(Informer<K>, Trigger) -> BoxFuture<'static, ()> + Send + Sync;

impl<K: Object> Routine<K> {
    /// Has everything looked at so often, give or take a tenth.
    pub(super) fn resync(every: Duration) -> Self {
        Routine::new("resync".to_owned(), move |informer, trigger| resync(informer, trigger, every))
    }

    /// Has those objects looked at, every so often, that are due then.
    pub(super) fn timer(
        name: &str,
        every: Duration,
        is_due: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        let is_due = Arc::new(is_due);
        Routine::new(format!("timer {name}"), move |informer, trigger| {
            timer(informer, trigger, every, Arc::clone(&is_due))
        })
    }

    /// Has those objects looked at of which `ask` says something else than the last time.
    pub(super) fn poll<V, F, R>(name: &str, every: Duration, ask: F) -> Self
    where
        V: PartialEq + Send + 'static,
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<BTreeMap<ObjectKey, V>, Error>> + Send + 'static,
    {
        let ask = Arc::new(ask);
        let source = format!("poll {name}");
        let told = source.clone();
        Routine::new(source, move |_, trigger| poll(told.clone(), trigger, every, Arc::clone(&ask)))
    }

    pub(super) fn start(&self, informer: &Informer<K>, trigger: Trigger) -> BoxFuture<'static, ()> {
        (self.start)(informer.clone(), trigger)
    }

    fn new<R>(
        source: String,
        start: impl Fn(Informer<K>, Trigger) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let start = Box::new(move |informer, trigger| start(informer, trigger).boxed());
        Routine { source, start }
    }
}

async fn resync<K: Object>(informer: Informer<K>, trigger: Trigger, every: Duration) {
    // Who wants no resync may say so by a very long time.
    let tenth = u64::try_from(every.as_millis() / 10).unwrap_or(u64::MAX).clamp(1, u64::MAX / 2);
    loop {
        let jitter = Duration::from_millis(random::below(2 * tenth));
        sleep(every.saturating_sub(Duration::from_millis(tenth)).saturating_add(jitter)).await;
        for object in informer.readable() {
            let key = ObjectKey::of(object.meta());
            trigger.fire_with(key, Add::default().priority(RESYNC_PRIORITY));
        }
    }
}

async fn timer<K: Object>(
    informer: Informer<K>,
    trigger: Trigger,
    every: Duration,
    is_due: Arc<impl Fn(&K) -> bool>,
) {
    loop {
        sleep(every).await;
        for object in informer.readable() {
            // Who cannot tell is looked at.
            if informer.panics().caught("a timer", || is_due(&object)).unwrap_or(true) {
                trigger.fire(ObjectKey::of(object.meta()));
            }
        }
    }
}

async fn poll<V, F, R>(source: String, trigger: Trigger, every: Duration, ask: Arc<F>)
where
    V: PartialEq,
    F: Fn() -> R,
    R: Future<Output = Result<BTreeMap<ObjectKey, V>, Error>>,
{
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Nothing at first: what the first answer has may have changed since it was last looked at.
    let mut known = BTreeMap::new();
    loop {
        ticks.tick().await;
        match AssertUnwindSafe(async { ask().await }).catch_unwind().await {
            Ok(Ok(found)) => {
                for key in differences(&known, &found) {
                    trigger.fire(key);
                }
                known = found;
            }
            Ok(Err(error)) => warn!(source, %error, "a poll failed"),
            Err(_) => error!(source, "a poll panicked"),
        }
    }
}

/// The keys of which two answers say different things, or only one says anything.
fn differences<V: PartialEq>(
    old: &BTreeMap<ObjectKey, V>,
    new: &BTreeMap<ObjectKey, V>,
) -> Vec<ObjectKey> {
    let changed = new.iter().filter(|(key, value)| old.get(key) != Some(*value));
    let gone = old.iter().filter(|(key, _)| !new.contains_key(key));
    changed.chain(gone).map(|(key, _)| key.clone()).collect()
}
