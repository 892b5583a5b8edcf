//! Durable writes of 1 KB by a number of concurrent writers: ours, a library, and etcd.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use kubewright_store::etcd::Client;
use kubewright_store::etcd::wire::{Compare, PutRequest, RangeRequest, TxnRequest};
use kubewright_store::{Expect, Put, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::table::median;

pub(crate) const VALUE_BYTES: usize = 1024;

/// Something that creates a key and returns when that is durable.
pub(crate) trait Writer: Clone + Send + 'static {
    fn create(&self, key: String, value: Bytes) -> impl Future<Output = Result<()>> + Send;
}

/// What one run of some writers came to.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
    /// Processor time per write, of this process and of the peer's.
    pub(crate) processor: Duration,
}

/// Lets `writers` create keys one after another for `duration`; `used` tells the processor time that
/// everybody who takes part has used.
pub(crate) async fn measure(
    writer: &impl Writer,
    writers: usize,
    duration: Duration,
    used: impl Fn() -> Result<Duration>,
) -> Result<Figures> {
    let used_before = used()?;
    let start = Instant::now();
    let end = start + duration;
    let mut tasks = JoinSet::new();
    for index in 0..writers {
        let writer = writer.clone();
        tasks.spawn(async move {
            let mut noise = Noise::new(index as u64);
            let mut latencies = Vec::new();
            while Instant::now() < end {
                let key = format!("/registry/configmaps/w{writers}-{index}/{}", latencies.len());
                let value = noise.value();
                let asked = Instant::now();
                writer.create(key, value).await?;
                latencies.push(asked.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done.context("run a writer")??);
    }
    let elapsed = start.elapsed();
    Figures::of(latencies, elapsed, used()?.saturating_sub(used_before))
}

impl Figures {
    fn of(mut latencies: Vec<Duration>, elapsed: Duration, used: Duration) -> Result<Self> {
        latencies.sort_unstable();
        let Some(&max) = latencies.last() else { bail!("no write finished") };
        Ok(Self {
            per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
            p50: latencies[latencies.len() / 2],
            p99: latencies[latencies.len() * 99 / 100],
            max,
            processor: used / u32::try_from(latencies.len()).context("count writes")?,
        })
    }

    /// Each figure's median over `rounds`, except the worst case, which stays the worst.
    pub(crate) fn over(rounds: &[Self]) -> Self {
        let median_of =
            |figure: fn(&Self) -> Duration| median(&rounds.iter().map(figure).collect::<Vec<_>>());
        Self {
            per_second: median(&rounds.iter().map(|round| round.per_second).collect::<Vec<_>>()),
            p50: median_of(|round| round.p50),
            p99: median_of(|round| round.p99),
            processor: median_of(|round| round.processor),
            max: rounds.iter().map(|round| round.max).max().unwrap_or_default(),
        }
    }
}

impl Writer for Store<()> {
    async fn create(&self, key: String, value: Bytes) -> Result<()> {
        self.put(Put::new(key, value).expect(Expect::Absent)).await?;
        Ok(())
    }
}

/// The library that the store was made of once, alone: batches of whatever queued during the previous
/// sync, tuned as it was there. A store on it could reach no more.
#[derive(Clone)]
pub(crate) struct Library {
    queue: mpsc::Sender<Queued>,
}

struct Queued {
    key: String,
    value: Bytes,
    done: oneshot::Sender<()>,
}

impl Library {
    /// It runs on its own thread, which ends when the last clone is dropped.
    pub(crate) fn open(dir: &Path) -> Result<(Self, thread::JoinHandle<Result<()>>)> {
        let builder = Database::builder(dir).cache_size(1 << 20).max_journaling_size(64 << 20);
        let database = builder.worker_threads(1).open().context("open fjall")?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(8 << 20);
        let keyspace = database.keyspace("store", options).context("open fjall")?;
        // More than there are writers: nobody waits for the queue itself.
        let (queue, mut queued) = mpsc::channel::<Queued>(1024);
        let thread = thread::spawn(move || {
            let mut batch = Vec::new();
            while queued.blocking_recv_many(&mut batch, 1024) > 0 {
                let mut write = database.batch().durability(Some(PersistMode::SyncData));
                for Queued { key, value, .. } in &batch {
                    write.insert(&keyspace, key.as_str(), &value[..]);
                }
                write.commit().context("write to fjall")?;
                for Queued { done, .. } in batch.drain(..) {
                    // A writer that went away needs no answer.
                    let _ = done.send(());
                }
            }
            Ok(())
        });
        Ok((Self { queue }, thread))
    }
}

impl Writer for Library {
    async fn create(&self, key: String, value: Bytes) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.queue.send(Queued { key, value, done }).await.context("reach fjall")?;
        answer.await.context("write to fjall")
    }
}

/// Creates a key as kube-apiserver does: a transaction that puts it if it does not exist.
impl Writer for Arc<Client> {
    async fn create(&self, key: String, value: Bytes) -> Result<()> {
        let key = Bytes::from(key);
        let read = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let put = PutRequest { key: key.clone(), value, ..PutRequest::default() };
        let request = TxnRequest {
            compare: vec![Compare::mod_revision(key, 0)],
            success: vec![put.into()],
            failure: vec![read.into()],
        };
        let answer = self.txn(request).await?;
        ensure!(answer.succeeded, "a key was created twice");
        Ok(())
    }
}

/// Bytes that no engine can compress, without asking the system for any.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn value(&mut self) -> Bytes {
        let mut bytes = Vec::with_capacity(VALUE_BYTES);
        while bytes.len() < VALUE_BYTES {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            bytes.extend_from_slice(&self.0.to_le_bytes());
        }
        Bytes::from(bytes)
    }
}
