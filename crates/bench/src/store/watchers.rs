//! Many watchers of one resource: how fast events reach all of them, what that costs, and proof that
//! they are handed the same event and not copies of it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kubewright_store::{Event, HistoryBounds, Put, Start, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::config;
use super::writes::Noise;
use crate::machine::processor_time;
use crate::table::{Table, count, median};

const WATCHERS: usize = 200;
const EVENTS: usize = 10_000;
const RESOURCE: &str = "/registry/pods/";

pub(crate) struct FanOut {
    store: &'static str,
    deliveries_per_second: f64,
    processor_per_delivery: Duration,
}

/// One writer whose every write is an event of its own, and many whose writes come in batches.
pub(crate) fn measure(runtime: &Runtime, dir: &Path) -> Result<[FanOut; 2]> {
    // All events stay in the history, so that no watcher is too slow however the machine is used.
    let history = HistoryBounds { bytes_max: 64 << 20, ..HistoryBounds::default() };
    let config = || kubewright_store::Config { history, ..config() };
    let memory = Store::memory(config());
    let one = runtime.block_on(fan_out("memory", &memory, 1))?;
    let embedded = Store::embedded(dir, config())?;
    let many = runtime.block_on(fan_out("embedded", &embedded, 64))?;
    Ok([one, many])
}

async fn fan_out(name: &'static str, store: &Store<()>, writers: usize) -> Result<FanOut> {
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let mut watch = store.watch(RESOURCE, Start::Now)?;
        watchers.spawn(async move {
            let mut events: Vec<Arc<Event<()>>> = Vec::with_capacity(EVENTS);
            while events.len() < EVENTS {
                events.extend(watch.next().await?);
            }
            anyhow::Ok(events)
        });
    }
    let start = Instant::now();
    let used = processor_time()?;
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let mut noise = Noise::new(writer as u64);
            for number in (writer..EVENTS).step_by(writers) {
                store.put(Put::new(format!("{RESOURCE}{number}"), noise.value())).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.context("run a writer")??;
    }
    let mut seen = Vec::new();
    while let Some(events) = watchers.join_next().await {
        seen.push(events.context("run a watcher")??);
    }
    let elapsed = start.elapsed();
    let used = processor_time()?.saturating_sub(used);

    // All are still held, so that equal addresses mean equal events.
    let same = |events: &Vec<Arc<Event<()>>>| {
        events.len() == EVENTS && events.iter().zip(&seen[0]).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    ensure!(seen.iter().all(same), "watchers were given different copies of an event");
    let deliveries = WATCHERS * EVENTS;
    let fan_out = FanOut {
        store: name,
        deliveries_per_second: deliveries as f64 / elapsed.as_secs_f64(),
        processor_per_delivery: used / u32::try_from(deliveries).context("count deliveries")?,
    };
    eprintln!("  {name}, {WATCHERS} watchers: {} /s", count(fan_out.deliveries_per_second));
    Ok(fan_out)
}

pub(crate) fn table(rounds: &[FanOut]) -> String {
    let header = ["store", "writers", "watchers × events", "deliveries/s", "CPU per delivery"];
    let mut table = Table::new(header);
    for (store, writers) in [("memory", 1), ("embedded", 64)] {
        let rows = || rounds.iter().filter(|row| row.store == store);
        let speeds: Vec<_> = rows().map(|row| row.deliveries_per_second).collect();
        let costs: Vec<_> = rows().map(|row| row.processor_per_delivery).collect();
        table.row([
            store.to_owned(),
            writers.to_string(),
            format!("{WATCHERS} × {}", count(EVENTS as f64)),
            count(median(&speeds)),
            format!("{} ns", median(&costs).as_nanos()),
        ]);
    }
    table.to_markdown()
        + "\nCPU per delivery counts the whole process, writing included. Every watcher held the same \
           10,000 events: equal pointers, no copies.\n"
}
