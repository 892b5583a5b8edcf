//! The server, measured: ours and upstream's in turns, under the same load from the same clients.

mod bare;
pub(crate) mod client;
pub(crate) mod load;
mod rules;
pub(crate) mod site;
mod starts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use tempfile::TempDir;

use self::load::Speed;
use self::site::{Memory, Parts, Site};
use crate::table::{Table, count, median, ratio};
use crate::{machine, peer};

pub(crate) use self::bare::{Arguments as BareArguments, serve as serve_bare};
pub(crate) use self::starts::{Arguments as StartsArguments, run as run_starts};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Our program [default: the one beside this one]
    #[arg(long, value_name = "BIN")]
    kubewright: Option<PathBuf>,
    /// The folder of upstream's programs [default: KUBEWRIGHT_UPSTREAM_ASSETS, or the cache]
    #[arg(long, value_name = "DIR")]
    upstream: Option<PathBuf>,
    /// Where data goes while measuring [default: a new directory in the cache]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How often everything is measured; figures are medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each kind of request is made that is measured by time
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Only this server: for profiling
    #[arg(long)]
    only: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    Ours,
    Upstream,
}

/// What one server did in one round.
#[derive(Clone, Copy, Default)]
struct Figures {
    start: f64,
    /// With the data of an earlier run.
    restart: Option<f64>,
    idle: Memory,
    full: Memory,
    creates: Speed,
    applies: Speed,
    patches: Speed,
    reads: Speed,
    list: f64,
    list_by_label: f64,
    watch: Speed,
    delete_collection: f64,
    validations: Speed,
}

/// What the bare parts do, without a server around them.
#[derive(Clone, Copy)]
struct Floor {
    reads: Speed,
    list: f64,
    watch: Speed,
    first_start: f64,
    start: f64,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = crate::store::scratch(arguments.dir.as_deref())?;
    let ours = site::program(arguments.kubewright.as_deref())?;
    let upstream = peer::assets(arguments.upstream.as_deref())
        .filter(|assets| assets.join("kube-apiserver").exists());
    println!("Measured on {}.", machine::describe(scratch.path())?);
    match &upstream {
        Some(assets) => {
            println!("Peer: kube-apiserver and {}.", peer::version(&assets.join("etcd"))?)
        }
        None => println!(
            "Upstream is not measured: it is neither at --upstream, nor in \
             KUBEWRIGHT_UPSTREAM_ASSETS, nor in the cache (`cargo xtask upstream build` puts it there)."
        ),
    }
    println!("Medians of {} rounds, servers taking turns within a round.", arguments.rounds);
    println!("Load average before: {}.", machine::load_average()?);

    let mut of_ours = Vec::new();
    let mut of_upstream = Vec::new();
    let mut floors = Vec::new();
    let duration = Duration::from_secs(arguments.seconds);
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        if arguments.only != Some(Side::Upstream) {
            let measuring = measure_ours(&ours, scratch.path(), duration);
            of_ours.push(runtime.block_on(measuring).context("measure ours")?);
            floors.push(runtime.block_on(floor(scratch.path(), duration))?);
        }
        if let Some(assets) = upstream.as_deref().filter(|_| arguments.only != Some(Side::Ours)) {
            let measuring = measure_upstream(assets, scratch.path(), duration);
            of_upstream.push(runtime.block_on(measuring).context("measure upstream")?);
        }
    }
    println!("Load average after: {}.\n", machine::load_average()?);
    println!("{}", comparison(&of_ours, &of_upstream, &floors));
    Ok(())
}

async fn measure_ours(binary: &Path, scratch: &Path, duration: Duration) -> Result<Figures> {
    let dir = crate::store::directory(scratch)?;
    let (site, start) = Site::ours(binary, dir.path(), Parts::Alone).await?;
    let mut figures = measure(&site, duration).await?;
    figures.start = start.as_secs_f64();
    drop(site);
    let dir = crate::store::directory(scratch)?;
    for _ in 0..2 {
        let (site, again) = Site::ours(binary, dir.path(), Parts::Alone).await?;
        site.stop()?;
        figures.restart = Some(again.as_secs_f64());
    }
    Ok(figures)
}

async fn measure_upstream(assets: &Path, scratch: &Path, duration: Duration) -> Result<Figures> {
    let dir = crate::store::directory(scratch)?;
    let (site, start) = Site::upstream(assets, dir.path()).await?;
    let mut figures = measure(&site, duration).await?;
    figures.start = start.as_secs_f64();
    Ok(figures)
}

async fn measure(site: &Site, duration: Duration) -> Result<Figures> {
    let mut figures = Figures::default();
    // What runs only after a start is no part of being idle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    figures.idle = site.memory()?;
    load::prepare(site).await?;
    load::furnish(site).await?;
    figures.full = site.memory()?;
    figures.reads = load::reads(site, duration).await?;
    figures.list = load::list(site, false).await?.as_secs_f64();
    figures.list_by_label = load::list(site, true).await?.as_secs_f64();
    figures.applies = load::applies(site, duration).await?;
    figures.patches = load::patches(site, duration).await?;
    figures.watch = load::watch(site).await?;
    figures.delete_collection = load::delete_collection(site).await?.as_secs_f64();
    figures.validations = rules::validations(site, duration).await?;
    // Last, since nobody knows how many there will be.
    figures.creates = load::creates(site, duration).await?;
    Ok(figures)
}

async fn floor(scratch: &Path, duration: Duration) -> Result<Floor> {
    let dir: TempDir = crate::store::directory(scratch)?;
    let site = Site::bare(dir.path()).await?;
    let reads = load::reads(&site, duration).await?;
    let list = load::list(&site, false).await?.as_secs_f64();
    let watch = load::watch(&site).await?;
    let (first_start, start) = starts::measure()?;
    Ok(Floor { reads, list, watch, first_start, start })
}

/// One line of the comparison.
struct Row {
    what: String,
    figure: fn(&Figures) -> f64,
    show: fn(f64) -> String,
    /// Whether more is better.
    more: bool,
    bar: &'static str,
}

fn comparison(ours: &[Figures], upstream: &[Figures], floors: &[Floor]) -> String {
    let mut table = Table::new(["what", "ours", "rounds", "upstream", "ratio", "bar"]);
    let over = |rounds: &[Figures], figure: fn(&Figures) -> f64| match rounds {
        [] => None,
        rounds => Some(median(&rounds.iter().map(figure).collect::<Vec<_>>())),
    };
    for Row { what, figure, show, more, bar } in rows() {
        let (mine, theirs) = (over(ours, figure), over(upstream, figure));
        let rounds: Vec<String> = ours.iter().map(|round| show(figure(round))).collect();
        let ratio = match (mine, theirs) {
            (Some(mine), Some(theirs)) if more => ratio(mine, theirs),
            (Some(mine), Some(theirs)) => ratio(theirs, mine),
            _ => "–".to_owned(),
        };
        let shown = |figure: Option<f64>| figure.map_or("–".to_owned(), show);
        table.row([what, shown(mine), rounds.join(", "), shown(theirs), ratio, bar.to_owned()]);
    }
    let floor = |figure: fn(&Floor) -> f64| match floors {
        [] => None,
        floors => Some(median(&floors.iter().map(figure).collect::<Vec<_>>())),
    };
    let mut alone =
        |what: &str, figure: Option<f64>, show: fn(f64) -> String, ratio: String, bar: &str| {
            let shown = figure.map_or("–".to_owned(), show);
            let none = || "–".to_owned();
            table.row([what.to_owned(), shown, none(), none(), ratio, bar.to_owned()]);
        };
    let bare = floor(|floor| floor.reads.per_second);
    let share = match (over(ours, |round| round.reads.per_second), bare) {
        (Some(mine), Some(bare)) => format!("ours is {:.0} % of it", mine / bare * 100.0),
        _ => "–".to_owned(),
    };
    alone("reads from a bare hyper server, /s", bare, count, share, "≥ 50 %");
    let cpu = floor(|floor| floor.reads.processor);
    alone("its CPU per read", cpu, microseconds, "–".to_owned(), "");
    let list = floor(|floor| floor.list);
    let share = match (over(ours, |round| round.list), list) {
        (Some(mine), Some(bare)) => format!("ours takes {:.1} times that", mine / bare),
        _ => "–".to_owned(),
    };
    alone("the same list from it", list, milliseconds, share, "≤ 1.5 times");
    let per_event = floor(|floor| floor.watch.processor);
    let share = match (over(ours, |round| round.watch.processor), per_event) {
        (Some(mine), Some(bare)) => format!("ours takes {:.1} times that", mine / bare),
        _ => "–".to_owned(),
    };
    let events = floor(|floor| floor.watch.per_second);
    alone("the same events from it to 200 watchers, /s", events, count, "–".to_owned(), "");
    alone("its CPU per event delivered", per_event, microseconds, share, "≤ 2 times");
    let restart = match ours {
        [] => None,
        rounds => {
            Some(median(&rounds.iter().filter_map(|round| round.restart).collect::<Vec<_>>()))
        }
    };
    let none = || "–".to_owned();
    alone("start to ready with data of a run before", restart, milliseconds, none(), "≤ 25 ms");
    let first = floor(|floor| floor.first_start);
    alone("cluster in memory, first of a process", first, milliseconds, none(), "≤ 5 ms");
    let later = floor(|floor| floor.start);
    alone("cluster in memory, later ones", later, milliseconds, none(), "≤ 5 ms");
    table.to_markdown()
}

fn rows() -> Vec<Row> {
    let row = |what: &str, figure, show, more, bar| Row {
        what: what.to_owned(),
        figure,
        show,
        more,
        bar,
    };
    let objects = count(load::OBJECTS as f64);
    let deleted = count(load::DELETED as f64);
    vec![
        row("process start to ready, nothing there", |f| f.start, milliseconds, false, "≤ 25 ms"),
        row("idle memory", |f| f.idle.own, megabytes, false, "≥ 10×"),
        row("idle memory, with pages of files", |f| f.idle.resident, megabytes, false, ""),
        Row {
            what: format!("memory with {objects} objects of 1 KB"),
            ..row("", |f| f.full.own, megabytes, false, "≥ 10×")
        },
        Row {
            what: format!("memory with {objects} objects, with pages of files"),
            ..row("", |f| f.full.resident, megabytes, false, "")
        },
        row("durable creates, 32 clients, /s", |f| f.creates.per_second, count, true, "≥ 10×"),
        row("CPU per create", |f| f.creates.processor, microseconds, false, ""),
        row("server-side applies, /s", |f| f.applies.per_second, count, true, "≥ 8×"),
        row("CPU per apply", |f| f.applies.processor, microseconds, false, ""),
        row("status patches, /s", |f| f.patches.per_second, count, true, "≥ 8×"),
        row("CPU per patch", |f| f.patches.processor, microseconds, false, ""),
        row("reads of one object, /s", |f| f.reads.per_second, count, true, "≥ 10×"),
        row("CPU per read", |f| f.reads.processor, microseconds, false, ""),
        Row { what: format!("list of {objects}"), ..row("", |f| f.list, milliseconds, false, "") },
        row("list of half of them by label", |f| f.list_by_label, milliseconds, false, ""),
        row("watch events to 200 watchers, /s", |f| f.watch.per_second, count, true, "≥ 4×"),
        row("CPU per event delivered", |f| f.watch.processor, microseconds, false, ""),
        Row {
            what: format!("deletecollection of {deleted}"),
            ..row("", |f| f.delete_collection, milliseconds, false, "≥ 20×")
        },
        row("validations by 20 rules, /s", |f| f.validations.per_second, count, true, "≥ 5×"),
        row("CPU per validation", |f| f.validations.processor, microseconds, false, ""),
    ]
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

fn microseconds(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}
