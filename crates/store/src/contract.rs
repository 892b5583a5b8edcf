//! What every store does: one suite of claims, run against each kind of store.
//!
//! A claim is an async function of a [`Lab`]. It assumes nothing about numbers but that they
//! rise, and keeps to keys of its own, because a shared etcd has other users.

mod claims;
mod model;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{At, Config, Event, Expect, HistoryBounds, Key, Put, Query, Rev, Store};

/// What the suite extracts: something that is easily computed and rarely right by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    key_bytes: usize,
    value_sum: u64,
}

/// A store to experiment on.
pub(crate) struct Lab {
    pub(crate) store: Store<Probe>,
    /// Every key of the experiment is below this.
    root: String,
    time: Time,
    /// What must outlive the store, such as its directory.
    _keep: Box<dyn Any + Send + Sync>,
}

/// A clock that a claim moves by hand.
#[derive(Clone, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

/// Opens a fresh store whose histories have these bounds.
pub(crate) type Open = dyn Fn(HistoryBounds) -> BoxFuture<'static, Lab>;

/// Makes one test of each claim, against the stores that `$open` opens: a function from a
/// configuration and a clock to a future [`Lab`].
macro_rules! contract {
    ($open:path) => {
        $crate::contract::claims::for_each_claim!($crate::contract::contract_test, $open);
    };
}

macro_rules! contract_test {
    ($open:path, $($claim:ident),* $(,)?) => {
        $(
            #[test]
            fn $claim() {
                $crate::contract::run($open, $crate::contract::claims::$claim);
            }
        )*
    };
}

pub(crate) use {contract, contract_test};

mod memory {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use crate::contract::{Lab, Probe, Time};
    use crate::{Config, Store};

    crate::contract::contract!(open);

    fn open(config: Config<Probe>, time: Time) -> BoxFuture<'static, Lab> {
        async { Lab::new(Store::memory(config), "/registry", time, ()) }.boxed()
    }
}

mod embedded {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use crate::contract::{Lab, Probe, Time};
    use crate::{Config, Store};

    crate::contract::contract!(open);

    fn open(config: Config<Probe>, time: Time) -> BoxFuture<'static, Lab> {
        async {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::embedded(dir.path(), config).unwrap();
            Lab::new(store, "/registry", time, dir)
        }
        .boxed()
    }
}

/// On an etcd of our own, over the wire.
mod member {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use crate::contract::{Lab, Probe, Time};
    use crate::etcd;
    use crate::member::tests::Served;
    use crate::{Config, Store};

    crate::contract::contract!(open);

    fn open(config: Config<Probe>, time: Time) -> BoxFuture<'static, Lab> {
        async {
            let served = Served::start();
            let cluster =
                etcd::Config { compaction_interval: None, ..etcd::Config::new(served.url.clone()) };
            let store = Store::etcd(config, &cluster, "/registry/").await.unwrap();
            Lab::new(store, "/registry", time, served)
        }
        .boxed()
    }
}

/// Runs only where an etcd is named; `etcd::tests` says how.
mod etcd {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use crate::contract::{Lab, Probe, Time, claims};
    use crate::etcd::tests::server::{prefix, running};
    use crate::{Config, Store};

    macro_rules! where_etcd_runs {
        ($open:path, $($claim:ident),* $(,)?) => {
            $(
                #[test]
                fn $claim() {
                    if running().is_some() {
                        crate::contract::run($open, claims::$claim);
                    }
                }
            )*
        };
    }

    claims::for_each_claim!(where_etcd_runs, open);

    fn open(config: Config<Probe>, time: Time) -> BoxFuture<'static, Lab> {
        async {
            let cluster = running().expect("an etcd is named");
            let prefix = prefix();
            let store = Store::etcd(config, &cluster, &prefix).await.unwrap();
            Lab::new(store, prefix.trim_end_matches('/'), time, ())
        }
        .boxed()
    }
}

/// Runs a claim on two threads, so that tasks really overlap.
pub(crate) fn run(
    open: fn(Config<Probe>, Time) -> BoxFuture<'static, Lab>,
    claim: impl AsyncFn(&Open),
) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(claim(&move |history| {
        let time = Time::default();
        let clock = time.clone();
        let config = Config::new(probe, resource, move || clock.now());
        open(Config { history, ..config }, time)
    }));
}

impl Lab {
    pub(crate) fn new(
        store: Store<Probe>,
        root: impl Into<String>,
        time: Time,
        keep: impl Any + Send + Sync,
    ) -> Self {
        Self { store, root: root.into(), time, _keep: Box::new(keep) }
    }

    /// `pods/a/b` below the experiment's root.
    fn key(&self, path: &str) -> Key {
        Key::from(format!("{}/{path}", self.root))
    }

    async fn put(&self, path: &str, value: &str) -> Arc<Rev<Probe>> {
        self.store.put(self.write(path, value)).await.unwrap()
    }

    fn write(&self, path: &str, value: &str) -> Put {
        Put::new(self.key(path), value.as_bytes().to_vec())
    }

    async fn delete(&self, path: &str) -> crate::Revision {
        self.store.delete(&self.key(path), Expect::Anything).await.unwrap().revision
    }

    fn get(&self, path: &str) -> Option<Arc<Rev<Probe>>> {
        self.store.get(self.key(path).as_str())
    }

    /// What is below `path`, as `name=value` joined with spaces.
    fn list(&self, path: &str, at: At) -> Result<String, crate::RangeError> {
        let prefix = self.key(path);
        let range = self.store.range(&Query { at, ..Query::prefix(prefix.as_str()) })?;
        Ok(range.iter().map(|rev| self.show(rev)).collect::<Vec<_>>().join(" "))
    }

    fn show(&self, rev: &Rev<Probe>) -> String {
        format!("{}={}", self.path(&rev.key), text(&rev.value))
    }

    /// An event as `name:before>after`.
    fn show_event(&self, event: &Event<Probe>) -> String {
        let value = |rev: &Option<Arc<Rev<Probe>>>| {
            rev.as_ref().map_or(String::new(), |rev| text(&rev.value))
        };
        format!("{}:{}>{}", self.path(&event.key), value(&event.previous), value(&event.current))
    }

    fn path<'a>(&self, key: &'a Key) -> &'a str {
        key.as_str().strip_prefix(&self.root).unwrap().strip_prefix('/').unwrap()
    }

    /// Lets time pass, and the store do what it does then.
    async fn pass(&self, time: Duration) {
        self.time.pass(time);
        self.store.expire().await.unwrap();
    }
}

impl Time {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

fn text(value: &Bytes) -> String {
    String::from_utf8(value.to_vec()).unwrap()
}

fn probe(key: &Key, value: &Bytes) -> Probe {
    Probe {
        key_bytes: key.as_str().len(),
        value_sum: value.iter().map(|byte| u64::from(*byte)).sum(),
    }
}

/// `/registry/pods/a/b` is of resource `/registry/pods/`.
fn resource(key: &str) -> &str {
    let end = key.match_indices('/').nth(2).map_or(key.len(), |(at, _)| at + 1);
    &key[..end]
}

/// A state, for comparing one list with another.
fn state(lab: &Lab, path: &str) -> BTreeMap<String, String> {
    let prefix = lab.key(path);
    let range = lab.store.range(&Query::prefix(prefix.as_str())).unwrap();
    range.iter().map(|rev| (rev.key.to_string(), text(&rev.value))).collect()
}
