//! The process that is crashed: it writes, and says on its standard output what it may rely on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::witness::Random;
use crate::embedded::{Disk, Sizes, start};
use crate::engine::{Batch, Engine, EngineError, Latest};
use crate::{Config, DeleteError, Durability, Expect, Key, Put, PutError, Revision, Store};

/// The directory of the store; without it there is nothing to do.
pub(super) const DIR: &str = "KUBEWRIGHT_CRASH_DIR";
pub(super) const SEED: &str = "KUBEWRIGHT_CRASH_SEED";
/// Acknowledge without syncing, to show that the witness would notice.
pub(super) const NEVER_SYNC: &str = "KUBEWRIGHT_CRASH_NEVER_SYNC";

/// So small that logs end and bases are made all the time.
pub(super) const SIZES: Sizes = Sizes { first: 16 << 10, log: 48 << 10, logs: 128 << 10 };

const WRITERS: u64 = 6;
const VALUE_BYTES_MAX: u64 = 3000;
/// Enough to outlast any outage.
const WRITES: u32 = 200;

/// Not a test of its own: the others run it in a process that they crash.
#[test]
fn write_until_stopped() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let Ok((disk, loaded)) = Disk::open(dir.as_ref(), SIZES) else {
        // The outage came before there was a store.
        return;
    };
    let config = Config::new(|_, _| (), |_| "", || Duration::ZERO);
    let store = if std::env::var(NEVER_SYNC).is_ok() {
        start(NeverSynced(disk), loaded, config)
    } else {
        start(disk, loaded, config)
    };
    let Ok((image, writer)) = store else { return };
    let store = Store::new(image, Arc::new(writer));
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    // The harness has begun a line, which must not swallow what is reported first.
    println!();
    runtime.block_on(write(store, seed));
}

async fn write(store: Store<()>, seed: u64) {
    let failed = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let mut random = Random::new(seed + writer + 1);
        let (store, failed) = (store.clone(), Arc::clone(&failed));
        let writer = Writer { store, failed, number: writer };
        writers.spawn(async move {
            for n in 0..WRITES {
                writer.step(&mut random, n).await;
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    if failed.load(Ordering::SeqCst) {
        // Reads go on.
        assert!(store.snapshot().range("", None, None).iter().all(|rev| !rev.value.is_empty()));
        println!("reads");
    }
    // Half of the stores that are left alone are closed, the other half just end.
    if seed.is_multiple_of(2) {
        store.close().await;
        println!("closed");
    }
}

struct Writer {
    store: Store<()>,
    failed: Arc<AtomicBool>,
    number: u64,
}

impl Writer {
    async fn step(&self, random: &mut Random, n: u32) {
        let before = self.failed.load(Ordering::SeqCst);
        let acknowledged = match random.below(8) {
            0 => self.delete(random).await,
            1 => self.put_event(n).await,
            _ => self.put(random, n).await,
        };
        match acknowledged {
            // Asked for after somebody had been told that the storage failed.
            Some(true) if before => println!("broken-promise"),
            Some(_) => {}
            None => {
                self.failed.store(true, Ordering::SeqCst);
                println!("failed");
            }
        }
    }

    /// Whether it was acknowledged; none if the storage failed.
    async fn put(&self, random: &mut Random, n: u32) -> Option<bool> {
        // Keys of one's own and keys of all.
        let owner = if random.below(3) == 0 { WRITERS } else { self.number };
        let key = format!("/registry/pods/{owner}/{}", random.below(12));
        let value = format!("{}-{n}-{:x}", self.number, random.next());
        let padding = "x".repeat(usize::try_from(random.below(VALUE_BYTES_MAX)).unwrap());
        let put = Put::new(key.as_str(), format!("{value} {padding}"));
        match self.store.put(put).await {
            Ok(rev) => {
                println!("put {} {key} {value}", rev.revision);
                Some(true)
            }
            Err(PutError::Unavailable(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn put_event(&self, n: u32) -> Option<bool> {
        let key = format!("/registry/events/{}", self.number);
        let put = Put::new(key.as_str(), n.to_string()).durability(Durability::Written);
        match self.store.put(put).await {
            Ok(rev) => {
                println!("event {}", rev.revision);
                Some(true)
            }
            Err(PutError::Unavailable(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn delete(&self, random: &mut Random) -> Option<bool> {
        let key = format!("/registry/pods/{}/{}", self.number, random.below(12));
        // The deletion may last even if its acknowledgement does not.
        println!("deleting {key}");
        match self.store.delete(&Key::from(key.as_str()), Expect::Anything).await {
            Ok(deleted) => {
                println!("deleted {} {key}", deleted.revision);
                Some(true)
            }
            Err(DeleteError::NotFound) => Some(false),
            Err(DeleteError::Unavailable(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// The engine of somebody who forgot.
struct NeverSynced(Disk);

impl Engine for NeverSynced {
    fn commit(&mut self, batch: Batch<'_>) -> Result<(), EngineError> {
        self.0.commit(Batch { sync: false, ..batch })
    }

    fn close(&mut self, _: Revision) -> Result<(), EngineError> {
        Ok(())
    }

    fn attach(&mut self, latest: Arc<dyn Latest>) {
        self.0.attach(latest);
    }
}
