//! The store, measured: durable writes next to etcd and a bare engine, recovery after a kill, and
//! the cost of many watchers.

pub(crate) mod recovery;
mod watchers;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use kubewright_store::{Config, Store};
use tempfile::TempDir;

use self::writes::{Figures, Library};
use crate::machine;
use crate::peer::{self, Etcd};
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
    /// Only writes, only of this engine: for profiling
    #[arg(long)]
    engine: Option<Engine>,
    /// Numbers of concurrent writers
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64])]
    writers: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Embedded,
    Fjall,
    Etcd,
}

const ENGINES: [Engine; 3] = [Engine::Embedded, Engine::Fjall, Engine::Etcd];

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = scratch(arguments.dir.as_deref())?;
    let binary = peer::find(arguments.etcd.as_deref());
    let peer = binary.as_deref().map(peer::version).transpose()?;
    println!("Measured on {}.", machine::describe(scratch.path())?);
    match &peer {
        Some(version) => println!("Peer: {version}, with its default settings."),
        None => println!(
            "etcd is not measured: there is none at --etcd, in KUBEWRIGHT_UPSTREAM_ASSETS, or in the \
             cache (`cargo xtask upstream build` puts it there)."
        ),
    }
    println!("Medians of {} rounds, engines taking turns within a round.", arguments.rounds);

    let duration = Duration::from_secs(arguments.seconds);
    let mut cells = Vec::new();
    let mut recoveries = Vec::new();
    let mut fan_outs = Vec::new();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for &writers in &arguments.writers {
            for engine in ENGINES {
                if arguments.engine.is_some_and(|only| only != engine) {
                    continue;
                }
                let dir = directory(scratch.path())?;
                let figures = match (engine, &binary) {
                    (Engine::Embedded, _) => {
                        runtime.block_on(embedded(dir.path(), writers, duration))?
                    }
                    (Engine::Fjall, _) => runtime.block_on(fjall(dir.path(), writers, duration))?,
                    (Engine::Etcd, Some(binary)) => {
                        runtime.block_on(etcd(binary, dir.path(), writers, duration))?
                    }
                    (Engine::Etcd, None) => continue,
                };
                let name = engine.name();
                eprintln!("  {name}, {writers} writers: {} /s", count(figures.per_second));
                cells.push(Cell { engine, writers, figures });
            }
        }
        if arguments.engine.is_none() {
            recoveries.push(recovery::measure(directory(scratch.path())?.path())?);
            fan_outs.extend(watchers::measure(&runtime, directory(scratch.path())?.path())?);
        }
    }

    println!("\n### Durable writes of {} bytes\n", writes::VALUE_BYTES);
    println!("{}", writes_table(&cells, &arguments.writers));
    if arguments.engine.is_none() {
        println!("### Recovery\n\n{}", recovery_table(&recoveries));
        println!("### Watch fan-out\n\n{}", watchers::table(&fan_outs));
    }
    Ok(())
}

/// One engine with so many writers in one round.
struct Cell {
    engine: Engine,
    writers: usize,
    figures: Figures,
}

async fn embedded(dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let store = Store::embedded(dir, config())?;
    let figures = writes::measure(&store, writers, duration, machine::processor_time).await;
    store.close().await;
    figures
}

async fn fjall(dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let (engine, thread) = Library::open(dir)?;
    let figures = writes::measure(&engine, writers, duration, machine::processor_time).await;
    drop(engine);
    thread.join().expect("the engine's thread does not panic")?;
    figures
}

async fn etcd(binary: &Path, dir: &Path, writers: usize, duration: Duration) -> Result<Figures> {
    let etcd = Etcd::start(binary, dir)?;
    let client = Arc::new(etcd.client()?);
    client.status().await.context("wait for etcd")?;
    let used = || Ok(machine::processor_time()? + machine::processor_time_of(etcd.pid())?);
    writes::measure(&client, writers, duration, used).await
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Fjall => "fjall alone",
            Self::Etcd => "etcd",
        }
    }
}

fn writes_table(cells: &[Cell], writers: &[usize]) -> String {
    let header = [
        "engine", "writers", "writes/s", "rounds", "p50", "p99", "max", "CPU", "of etcd",
        "of fjall",
    ];
    let mut table = Table::new(header);
    for &writers in writers {
        let rounds = |engine: Engine| -> Vec<Figures> {
            let matching = |cell: &&Cell| cell.engine == engine && cell.writers == writers;
            cells.iter().filter(matching).map(|cell| cell.figures).collect()
        };
        let of = |ours: f64, engine: Engine| match rounds(engine).as_slice() {
            [] => "–".to_owned(),
            theirs => ratio(ours, Figures::over(theirs).per_second),
        };
        for engine in ENGINES {
            let rounds = rounds(engine);
            if rounds.is_empty() {
                continue;
            }
            let figures = Figures::over(&rounds);
            let speeds = rounds.iter().map(|round| round.per_second);
            let slowest = speeds.clone().fold(f64::INFINITY, f64::min);
            let fastest = speeds.fold(0.0, f64::max);
            table.row([
                engine.name().to_owned(),
                writers.to_string(),
                count(figures.per_second),
                format!("{}–{}", count(slowest), count(fastest)),
                milliseconds(figures.p50),
                milliseconds(figures.p99),
                milliseconds(figures.max),
                format!("{:.0} µs", figures.processor.as_secs_f64() * 1e6),
                of(figures.per_second, Engine::Etcd),
                of(figures.per_second, Engine::Fjall),
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

pub(crate) fn scratch(named: Option<&Path>) -> Result<TempDir> {
    let parent = match named {
        Some(dir) => dir.to_owned(),
        None => peer::cache().context("find the user's cache; --dir names another place")?,
    };
    std::fs::create_dir_all(&parent).with_context(|| format!("make {}", parent.display()))?;
    TempDir::with_prefix_in("bench-", &parent)
        .with_context(|| format!("write {}", parent.display()))
}

pub(crate) fn directory(scratch: &Path) -> Result<TempDir> {
    TempDir::new_in(scratch).context("make a directory")
}
