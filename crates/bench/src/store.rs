//! The store, measured: durable writes next to etcd and the bare engine, recovery after a kill, and
//! the cost of many watchers.

pub(crate) mod recovery;
mod watchers;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use kubewright_store::{Config, Store};
use tempfile::TempDir;

use self::writes::{BareEngine, Figures};
use crate::etcd::{self, Etcd};
use crate::machine;
use crate::table::{Table, count, median, milliseconds, ratio};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The etcd to measure against [default: upstream's, from KUBEWRIGHT_UPSTREAM_ASSETS or the cache]
    #[arg(long, value_name = "BIN")]
    etcd: Option<PathBuf>,
    /// Where data goes while measuring [default: a new directory in the cache]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How often everything is measured; figures are medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each number of writers writes
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

const WRITERS: [usize; 3] = [1, 8, 64];
const OURS: &str = "embedded";
const BARE: &str = "bare engine";

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = scratch(arguments.dir.as_deref())?;
    let binary = etcd::find(arguments.etcd.as_deref());
    let peer = binary.as_deref().map(etcd::version).transpose()?;
    println!("Measured on {}.", machine::describe(scratch.path())?);
    match &peer {
        Some(version) => println!("Peer: {version}, with its default settings."),
        None => println!(
            "etcd is not measured: there is none at --etcd, in KUBEWRIGHT_UPSTREAM_ASSETS, or in the \
             cache (`cargo xtask upstream build` puts it there)."
        ),
    }
    println!("Medians of {} rounds, engines taking turns within a round.", arguments.rounds);

    let mut cells = Vec::new();
    let mut recoveries = Vec::new();
    let mut fan_outs = Vec::new();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        let duration = Duration::from_secs(arguments.seconds);
        for writers in WRITERS {
            let mut measured = |engine: &'static str, figures: Figures| {
                eprintln!("  {engine}, {writers} writers: {} /s", count(figures.per_second));
                cells.push(Cell { engine, writers, figures });
            };
            let dir = directory(scratch.path())?;
            measured(OURS, runtime.block_on(ours(dir.path(), writers, duration))?);
            let dir = directory(scratch.path())?;
            measured(BARE, runtime.block_on(bare(dir.path(), writers, duration))?);
            if let Some(binary) = &binary {
                let dir = directory(scratch.path())?;
                measured("etcd", runtime.block_on(theirs(binary, dir.path(), writers, duration))?);
            }
        }
        recoveries.push(recovery::measure(directory(scratch.path())?.path())?);
        fan_outs.extend(watchers::measure(&runtime, directory(scratch.path())?.path())?);
    }

    println!("\n### Durable writes of {} bytes\n\n{}", writes::VALUE_BYTES, writes_table(&cells));
    println!("### Recovery\n\n{}", recovery_table(&recoveries));
    println!("### Watch fan-out\n\n{}", watchers::table(&fan_outs));
    Ok(())
}

/// One engine with so many writers in one round.
struct Cell {
    engine: &'static str,
    writers: usize,
    figures: Figures,
}

async fn ours(dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let store = Store::embedded(dir, config())?;
    let figures = writes::measure(&store, writers, duration).await;
    store.close().await;
    figures
}

async fn bare(dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let (engine, thread) = BareEngine::open(dir)?;
    let figures = writes::measure(&engine, writers, duration).await;
    drop(engine);
    thread.join().expect("the engine's thread does not panic")?;
    figures
}

async fn theirs(binary: &Path, dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let etcd = Etcd::start(binary, dir)?;
    let client = Arc::new(etcd.client()?);
    client.status().await.context("wait for etcd")?;
    writes::measure(&client, writers, duration).await
}

fn writes_table(cells: &[Cell]) -> String {
    let header =
        ["engine", "writers", "writes/s", "rounds", "p50", "p99", "max", "of etcd", "of bare"];
    let mut table = Table::new(header);
    for writers in WRITERS {
        let rounds = |engine: &str| -> Vec<Figures> {
            let matching = |cell: &&Cell| cell.engine == engine && cell.writers == writers;
            cells.iter().filter(matching).map(|cell| cell.figures).collect()
        };
        let of = |ours: f64, engine: &str| match rounds(engine).as_slice() {
            [] => "–".to_owned(),
            theirs => ratio(ours, Figures::over(theirs).per_second),
        };
        for engine in [OURS, BARE, "etcd"] {
            let rounds = rounds(engine);
            if rounds.is_empty() {
                continue;
            }
            let figures = Figures::over(&rounds);
            let speeds = rounds.iter().map(|round| round.per_second);
            let slowest = speeds.clone().fold(f64::INFINITY, f64::min);
            let fastest = speeds.fold(0.0, f64::max);
            table.row([
                engine.to_owned(),
                writers.to_string(),
                count(figures.per_second),
                format!("{}–{}", count(slowest), count(fastest)),
                milliseconds(figures.p50),
                milliseconds(figures.p99),
                milliseconds(figures.max),
                of(figures.per_second, "etcd"),
                of(figures.per_second, BARE),
            ]);
        }
    }
    table.to_markdown()
}

fn recovery_table(rounds: &[Duration]) -> String {
    let mut table = Table::new(["what", "median", "worst"]);
    table.row([
        format!("open {} objects after a kill", count(recovery::OBJECTS as f64)),
        milliseconds(median(rounds)),
        milliseconds(rounds.iter().copied().max().unwrap_or_default()),
    ]);
    table.to_markdown()
}

/// The configuration of every store here: nothing extracted, one resource per path element.
pub(crate) fn config() -> Config<()> {
    fn resource(key: &str) -> &str {
        let end = key.match_indices('/').nth(2).map_or(key.len(), |(slash, _)| slash + 1);
        &key[..end]
    }
    let start = Instant::now();
    Config::new(|_, _| (), resource, move || start.elapsed())
}

fn scratch(named: Option<&Path>) -> Result<TempDir> {
    let parent = match named {
        Some(dir) => dir.to_owned(),
        None => etcd::cache().context("find the user's cache; --dir names another place")?,
    };
    std::fs::create_dir_all(&parent).with_context(|| format!("make {}", parent.display()))?;
    TempDir::with_prefix_in("bench-", &parent)
        .with_context(|| format!("write {}", parent.display()))
}

fn directory(scratch: &Path) -> Result<TempDir> {
    TempDir::new_in(scratch).context("make a directory")
}
