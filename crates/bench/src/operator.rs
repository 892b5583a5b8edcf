//! Operators, measured: the same one on three libraries, each alone beside one server of ours over
//! TLS.
//!
//! A reconcile is one read from the cache and one write of a status. Programs tell when their cache
//! is filled; a watch tells what they have written.

mod program;
mod widget;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use http::Method;
use kube::CustomResourceExt as _;
use serde_json::Value;

use self::program::{Program, Settled};
use self::widget::Widget;
use crate::machine;
use crate::server::client::{Client, get, request};
use crate::server::load::{JSON, Until, spread};
use crate::server::site::{self, Parts, Site};
use crate::table::{Table, count, median, ratio};

pub(crate) use self::widget::{OperateArguments, play};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Our program [default: the one beside this one]
    #[arg(long, value_name = "BIN")]
    kubewright: Option<PathBuf>,
    /// The operator on controller-runtime [default: built with `go` from its sources beside ours]
    #[arg(long, value_name = "BIN")]
    controller_runtime: Option<PathBuf>,
    /// Where data goes while measuring [default: a new directory in the cache]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How often everything is measured; figures are medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many objects are cached when memory is measured
    #[arg(long, default_value_t = 100_000)]
    cached: usize,
    /// How many objects are reconciled
    #[arg(long, default_value_t = 10_000)]
    reconciled: usize,
    /// How many reconciles may run at a time
    #[arg(long, default_value_t = 8)]
    at_once: usize,
}

/// What one operator did in one round.
#[derive(Clone, Copy)]
struct Figures {
    /// Seconds from the start of the process to a cache of all objects.
    synced: f64,
    /// Seconds of processor time until there is nothing more to do.
    synced_processor: f64,
    /// With pages of programs and other files.
    resident: f64,
    own: f64,
    peak: f64,
    per_second: f64,
    /// Of all that the process has used from its start: libraries tell at different moments that
    /// they are synced, and one may do later what another has done before.
    per_processor_second: f64,
    /// Of what it has used since it was synced.
    per_processor_second_synced: f64,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = crate::store::scratch(arguments.dir.as_deref())?;
    let own = std::env::current_exe().context("find this program")?;
    let server = site::program(arguments.kubewright.as_deref())?;
    let go = match &arguments.controller_runtime {
        Some(binary) => binary.clone(),
        None => build(scratch.path())?,
    };
    let subject = |library: &str| (own.clone(), vec!["operate".to_owned(), library.to_owned()]);
    let subjects = [
        ("kubewright", subject("kubewright")),
        ("kube::runtime", subject("kube")),
        ("controller-runtime", (go, Vec::new())),
    ];
    println!("Measured on {}.", machine::describe(scratch.path())?);
    println!("Medians of {} rounds, operators taking turns within a round.", arguments.rounds);
    println!("Load average before: {}.", machine::load_average()?);
    let mut figures: [Vec<Figures>; 3] = Default::default();
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for ((name, subject), figures) in subjects.iter().zip(&mut figures) {
            let measuring = measure(&server, scratch.path(), subject, &arguments);
            figures.push(runtime.block_on(measuring).with_context(|| format!("measure {name}"))?);
        }
    }
    println!("Load average after: {}.\n", machine::load_average()?);
    println!("{}", comparison(&arguments, &figures));
    Ok(())
}

/// Builds the operator on controller-runtime.
fn build(dir: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/controller-runtime");
    let program = dir.join("controller-runtime");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&source)
        .status()
        .context("run go, which builds the peer; --controller-runtime names one that is built")?;
    ensure!(built.success(), "the peer in {} cannot be built", source.display());
    Ok(program)
}

type Subject = (PathBuf, Vec<String>);

async fn measure(
    server: &Path,
    scratch: &Path,
    subject: &Subject,
    arguments: &Arguments,
) -> Result<Figures> {
    let (cached, reconciled) = (arguments.cached, arguments.reconciled);
    let start = |dir: &Path| {
        let mut command = Command::new(&subject.0);
        command.args(&subject.1).arg(arguments.at_once.to_string());
        Program::start(command.env("KUBECONFIG", dir.join("kubeconfig")))
    };

    let dir = crate::store::directory(scratch)?;
    let site = filled(server, dir.path(), cached, 0).await?;
    let mut program = start(dir.path())?;
    let synced = program.hear("synced").await?;
    let Settled { resident, own, peak, processor } = program.settle().await?;
    drop((program, site));

    let dir = crate::store::directory(scratch)?;
    let site = filled(server, dir.path(), reconciled, 1).await?;
    let mut writes = Writes::watch(&site).await?;
    let mut program = start(dir.path())?;
    program.hear("synced").await?;
    let (begun, used_before) = (Instant::now(), program.processor_time()?);
    writes.wait_for(reconciled).await?;
    let (elapsed, used) = (begun.elapsed(), program.processor_time()?);
    let per = |time: Duration| reconciled as f64 / time.as_secs_f64();
    Ok(Figures {
        synced: synced.as_secs_f64(),
        synced_processor: processor.as_secs_f64(),
        resident,
        own,
        peak,
        per_second: per(elapsed),
        per_processor_second: per(used),
        per_processor_second_synced: per(used - used_before),
    })
}

/// A server with as many objects. Those of round 0 want nothing of their operator.
async fn filled(server: &Path, dir: &Path, objects: usize, round: u64) -> Result<Site> {
    let (site, _) = Site::ours(server, dir, Parts::Controllers).await?;
    let mut client = site.endpoint.connect().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = serde_json::to_vec(&Widget::crd())?;
    client.send(request(Method::POST, definitions, JSON, definition)).await?;
    let name = &Widget::crd().metadata.name.context("a definition has a name")?;
    let mut served = client.read(get(&format!("{definitions}/{name}"))).await?;
    while memchr::memmem::find(&served, b"the initial names have been accepted").is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        served = client.read(get(&format!("{definitions}/{name}"))).await?;
    }
    spread(&site, Until::Count(objects), move |number| {
        request(Method::POST, widget::PATH, JSON, widget::body(number, round))
    })
    .await?;
    Ok(site)
}

/// The statuses that an operator writes.
struct Writes(Client);

impl Writes {
    async fn watch(site: &Site) -> Result<Self> {
        let mut client = site.endpoint.connect().await?;
        let list = client.read(get(&format!("{}?limit=1", widget::PATH))).await?;
        let list: Value = serde_json::from_slice(&list).context("read a list")?;
        let version = list["metadata"]["resourceVersion"].as_str().context("read a list")?;
        let path = format!("{}?watch=1&resourceVersion={version}", widget::PATH);
        client.open(get(&path)).await?;
        Ok(Writes(client))
    }

    /// Waits until so many different objects have their status.
    async fn wait_for(&mut self, objects: usize) -> Result<()> {
        let mut settled = HashSet::new();
        while settled.len() < objects {
            let event = self.0.line().await?;
            let name = memchr::memmem::find(&event, b"widget-");
            if memchr::memmem::find(&event, br#""status":{"round":1}"#).is_some() {
                let name = name.context("an event names an object")?;
                settled.insert(event[name..name + 13].to_vec());
            }
        }
        Ok(())
    }
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

fn comparison(arguments: &Arguments, figures: &[Vec<Figures>; 3]) -> String {
    let header =
        ["what", "kubewright", "kube::runtime", "ratio", "controller-runtime", "ratio", "bar"];
    let mut table = Table::new(header);
    for Row { what, figure, show, more, bar } in rows(arguments) {
        let [ours, kube, go] =
            figures.each_ref().map(|rounds| median(&rounds.iter().map(figure).collect::<Vec<_>>()));
        let to = |theirs| if more { ratio(ours, theirs) } else { ratio(theirs, ours) };
        table.row([what, show(ours), show(kube), to(kube), show(go), to(go), bar.to_owned()]);
    }
    table.to_markdown()
}

fn rows(arguments: &Arguments) -> Vec<Row> {
    let row = |what: String, figure, show, more, bar| Row { what, figure, show, more, bar };
    let cached = count(arguments.cached as f64);
    let seconds: fn(f64) -> String = |seconds| format!("{seconds:.2} s");
    let megabytes: fn(f64) -> String = |bytes| format!("{:.0} MB", bytes / 1e6);
    vec![
        row("reconciles per CPU second".into(), |f| f.per_processor_second, count, true, "≥ 3×"),
        row("once synced".into(), |f| f.per_processor_second_synced, count, true, ""),
        row("reconciles per second, once synced".into(), |f| f.per_second, count, true, ""),
        row(format!("memory with {cached} objects"), |f| f.own, megabytes, false, "≥ 4×"),
        row("with pages of files".into(), |f| f.resident, megabytes, false, ""),
        row("its peak".into(), |f| f.peak, megabytes, false, ""),
        row(format!("start to {cached} synced"), |f| f.synced, seconds, false, ""),
        row("CPU until idle".into(), |f| f.synced_processor, seconds, false, ""),
    ]
}
