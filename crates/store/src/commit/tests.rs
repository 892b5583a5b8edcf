//! The order in which things become durable, visible and acknowledged, on an engine that a test
//! holds up and breaks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;

use super::{CEILING_STEP, GroupWriter};
use crate::engine::{Batch, Engine, EngineError};
use crate::history::Floor;
use crate::image::Image;
use crate::{
    Change, Config, Durability, Expect, Key, Put, PutError, Revision, Start, Store, Unavailable,
    UpdateError, Updated, WatchError,
};

#[tokio::test]
async fn nothing_is_visible_or_acknowledged_before_it_is_durable() {
    let bench = Bench::new();
    let mut watch = bench.store.watch("", Start::Now).unwrap();
    let mut put = bench.spawn_put(Put::new("/a", "1"));
    let batch = bench.next_batch();
    assert_eq!(batch.records, 1);
    assert!(batch.sync);
    assert!(bench.store.get("/a").is_none());
    assert_eq!(bench.store.revision(), Revision::FIRST);
    assert!(watch.take().unwrap().is_empty());
    assert!(put.try_join_next().is_none());
    bench.finish(Ok(()));
    let rev = put.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(bench.store.get("/a").unwrap().revision, rev);
    assert_eq!(watch.take().unwrap().len(), 1);
}

#[tokio::test]
async fn what_queues_during_a_sync_is_the_next_batch() {
    let bench = Bench::new();
    let mut first = bench.spawn_put(Put::new("/first", "1"));
    assert_eq!(bench.next_batch().records, 1);
    let mut rest = JoinSet::new();
    for n in 0..10 {
        bench.spawn_put_in(&mut rest, Put::new(format!("/{n}"), "1"));
    }
    // The tasks run until they wait for their answers.
    tokio::task::yield_now().await;
    bench.finish(Ok(()));
    first.join_next().await.unwrap().unwrap().unwrap();
    let batch = bench.next_batch();
    assert_eq!(batch.records, 10);
    bench.finish(Ok(()));
    let mut revisions: Vec<_> =
        rest.join_all().await.into_iter().map(|put| put.unwrap().get()).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (3..13).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_key_written_twice_in_a_batch_is_stored_once_and_seen_twice() {
    let bench = Bench::new();
    let mut hold = bench.spawn_put(Put::new("/hold", "1"));
    bench.next_batch();
    let mut watch = bench.store.watch("", Start::Now).unwrap();
    let mut puts = JoinSet::new();
    for value in ["1", "2", "3"] {
        bench.spawn_put_in(&mut puts, Put::new("/a", value));
        tokio::task::yield_now().await;
    }
    bench.finish(Ok(()));
    hold.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(bench.next_batch().records, 1);
    bench.finish(Ok(()));
    puts.join_all().await;
    let values: Vec<_> = watch
        .take()
        .unwrap()
        .iter()
        .filter(|event| event.key.as_str() == "/a")
        .map(|event| event.current.as_ref().unwrap().value.clone())
        .collect();
    assert_eq!(values, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_failed_precondition_is_answered_when_the_winner_is_visible() {
    let bench = Bench::new();
    let mut hold = bench.spawn_put(Put::new("/hold", "1"));
    bench.next_batch();
    let mut winner = bench.spawn_put(Put::new("/a", "1").expect(Expect::Absent));
    tokio::task::yield_now().await;
    let mut loser = bench.spawn_put(Put::new("/a", "2").expect(Expect::Absent));
    tokio::task::yield_now().await;
    bench.finish(Ok(()));
    hold.join_next().await.unwrap().unwrap().unwrap();
    bench.next_batch();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(loser.try_join_next().is_none(), "the winner is not durable yet");
    bench.finish(Ok(()));
    let won = winner.join_next().await.unwrap().unwrap().unwrap();
    let lost = loser.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(matches!(lost, PutError::Conflict { found: Some(found), .. } if found == won));
}

#[tokio::test]
async fn an_update_works_on_the_pending_revision() {
    let bench = Bench::new();
    let mut hold = bench.spawn_put(Put::new("/hold", "1"));
    bench.next_batch();
    // Both decide on what readers see, which is nothing; one of them is first.
    let mut updates = JoinSet::new();
    let (seen, sightings) = channel();
    for _ in 0..2 {
        let (store, seen) = (bench.store.clone(), seen.clone());
        updates.spawn(async move {
            let append = |found: Option<Arc<crate::Rev<()>>>| {
                let found = found
                    .map_or(String::new(), |rev| String::from_utf8(rev.value.to_vec()).unwrap());
                seen.send(found.clone()).unwrap();
                async move { Ok::<_, ()>(Change::put(found + "x")) }
            };
            store.update(&Key::from("/a"), append).await.unwrap()
        });
        tokio::task::yield_now().await;
    }
    bench.finish(Ok(()));
    hold.join_next().await.unwrap().unwrap().unwrap();
    // The loser learns of the winner while the winner's batch is still being written ...
    bench.next_batch();
    while sightings.try_iter().all(|found| found != "x") {
        tokio::task::yield_now().await;
    }
    assert!(bench.store.get("/a").is_none());
    // ... so its second attempt is in the very next batch.
    tokio::task::yield_now().await;
    bench.finish(Ok(()));
    bench.next_batch();
    bench.finish(Ok(()));
    for updated in updates.join_all().await {
        assert!(matches!(updated, Updated::Put(_)));
    }
    assert_eq!(bench.store.get("/a").unwrap().value, "xx");
}

#[tokio::test]
async fn a_refusal_that_saw_a_pending_revision_waits_for_it() {
    let bench = Bench::new();
    let mut hold = bench.spawn_put(Put::new("/hold", "1"));
    bench.next_batch();
    let mut winner = bench.spawn_put(Put::new("/a", "1"));
    tokio::task::yield_now().await;
    let mut refusal = JoinSet::new();
    let store = bench.store.clone();
    refusal.spawn(async move {
        store
            .update(&Key::from("/a"), |found| async move {
                if found.is_some() { Err("taken") } else { Ok(Change::put("2")) }
            })
            .await
    });
    tokio::task::yield_now().await;
    bench.finish(Ok(()));
    hold.join_next().await.unwrap().unwrap().unwrap();
    bench.next_batch();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(refusal.try_join_next().is_none(), "it would tell of what may be lost");
    bench.finish(Err("the disk is gone"));
    let refused = refusal.join_next().await.unwrap().unwrap();
    assert!(matches!(refused, Err(UpdateError::Unavailable(Unavailable::Failed(_)))));
    assert!(winner.join_next().await.unwrap().unwrap().is_err());
}

#[tokio::test]
async fn after_a_failure_nothing_is_written_and_reads_go_on() {
    let bench = Bench::new();
    let mut kept = bench.spawn_put(Put::new("/kept", "1"));
    bench.next_batch();
    bench.finish(Ok(()));
    kept.join_next().await.unwrap().unwrap().unwrap();
    let mut watch = bench.store.watch("", Start::Now).unwrap();
    let mut lost = bench.spawn_put(Put::new("/lost", "1"));
    bench.next_batch();
    bench.finish(Err("the disk is gone"));
    for _ in 0..2 {
        let error = lost.join_next().await.unwrap().unwrap().unwrap_err();
        let PutError::Unavailable(why @ Unavailable::Failed(_)) = error else {
            panic!("{error:?}")
        };
        let source = std::error::Error::source(&why).unwrap();
        assert_eq!(source.to_string(), "the disk is gone");
        lost = bench.spawn_put(Put::new("/kept", "2"));
    }
    assert!(lost.join_next().await.unwrap().unwrap().is_err());
    assert!(bench.batches.lock().unwrap().try_recv().is_err(), "the engine was asked again");
    assert_eq!(bench.store.get("/kept").unwrap().value, "1");
    assert!(bench.store.get("/lost").is_none());
    assert!(watch.take().unwrap().is_empty());
    let never = bench.store.wait_for(Revision::new(1000)).now_or_never();
    assert!(matches!(never, Some(Err(Unavailable::Failed(_)))), "it would wait for ever");
}

#[tokio::test]
async fn a_committer_that_panics_leaves_nobody_waiting() {
    let bench = Bench::new();
    let mut watch = bench.store.watch("", Start::Now).unwrap();
    let mut put = bench.spawn_put(Put::new("/a", "1"));
    bench.next_batch();
    bench.finish(Err(PANIC));
    let error = put.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, PutError::Unavailable(Unavailable::Closed)), "{error:?}");
    assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
    assert!(bench.store.wait_for(Revision::new(100)).await.is_err());
}

#[tokio::test]
async fn only_what_must_be_is_synced() {
    let bench = Bench::new();
    let event = |key: &str| Put::new(key, "1").durability(Durability::Written);
    let synced = async |put: Put| {
        let mut put = bench.spawn_put(put);
        let batch = bench.next_batch();
        bench.finish(Ok(()));
        put.join_next().await.unwrap().unwrap().unwrap();
        (batch.sync, batch.ceiling)
    };
    // The first number needs a ceiling above it, which must be on disk before anyone sees it.
    let (sync, ceiling) = synced(event("/e")).await;
    assert!(sync);
    assert_eq!(ceiling, Revision::new(2 + CEILING_STEP));
    assert_eq!(synced(event("/e")).await, (false, ceiling));
    assert_eq!(synced(Put::new("/a", "1")).await, (true, ceiling));
}

/// An outcome that is a bug.
const PANIC: &str = "panic";

/// A store whose engine does nothing until told.
struct Bench {
    store: Store<()>,
    batches: Mutex<Receiver<Seen>>,
    outcomes: Sender<Result<(), &'static str>>,
}

/// What an engine was given.
struct Seen {
    records: usize,
    sync: bool,
    ceiling: Revision,
}

struct Held {
    batches: Sender<Seen>,
    outcomes: Receiver<Result<(), &'static str>>,
}

impl Engine for Held {
    fn commit(&mut self, batch: Batch<'_>) -> Result<(), EngineError> {
        let Batch { records, ceiling, sync, .. } = batch;
        let _ = self.batches.send(Seen { records: records.len(), sync, ceiling });
        let outcome = self.outcomes.recv().unwrap_or(Err("the test is over"));
        assert_ne!(outcome, Err(PANIC));
        outcome.map_err(|error| Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(error)))
    }

    fn close(&mut self, _: Revision) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Bench {
    fn new() -> Self {
        let config = Config::new(|_, _| (), |_| "", || Duration::ZERO);
        let first = Revision::FIRST;
        let image = Image::new(config, Vec::new(), first, Floor::at(first));
        let (sender, batches) = channel();
        let (outcomes, receiver) = channel();
        let engine = Held { batches: sender, outcomes: receiver };
        let writer = GroupWriter::start(Arc::clone(&image), engine, first).unwrap();
        let store = Store::new(image, Arc::new(writer));
        Self { store, batches: Mutex::new(batches), outcomes }
    }

    fn spawn_put(&self, put: Put) -> JoinSet<Result<Revision, PutError>> {
        let mut task = JoinSet::new();
        self.spawn_put_in(&mut task, put);
        task
    }

    fn spawn_put_in(&self, tasks: &mut JoinSet<Result<Revision, PutError>>, put: Put) {
        let store = self.store.clone();
        // Boxed and polled once here, so that the write is in the queue when this returns.
        let mut write = async move { store.put(put).await.map(|rev| rev.revision) }.boxed();
        if let Some(done) = (&mut write).now_or_never() {
            tasks.spawn(std::future::ready(done));
        } else {
            tasks.spawn(write);
        }
    }

    /// Waits until the engine has a batch in hand.
    fn next_batch(&self) -> Seen {
        self.batches.lock().unwrap().recv().unwrap()
    }

    fn finish(&self, outcome: Result<(), &'static str>) {
        self.outcomes.send(outcome).unwrap();
    }
}
