//! Schedulers, measured: ours and upstream's in turns, on the same API server of ours, with nodes
//! that are objects only. Pods wait already when a scheduler starts, so it never waits for them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Args;
use http::Method;
use kubewright::{Clock, connect};
use kubewright_scheduler::{Config, Scheduler};
use memchr::memmem;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::server::client::{Endpoint, get, request};
use crate::server::site::{self, Parts, Site};
use crate::table::{Table, count, median, ratio};
use crate::{machine, peer};

/// The name that pods call both schedulers by.
const NAME: &str = "bench-scheduler";
const JSON: &str = "application/json";
const CLIENTS: usize = 16;
/// The first pods are not measured: until then it reads what there is.
const WARM_UP: f64 = 0.1;
const WAIT_MAX: Duration = Duration::from_secs(300);

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
    /// How many nodes there are; given several times, all are measured
    #[arg(long, default_values_t = [1_000, 5_000])]
    nodes: Vec<usize>,
    /// How many pods want one
    #[arg(long, default_value_t = 5_000)]
    pods: usize,
    /// How often everything is measured; figures are medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Args)]
pub(crate) struct ScheduleArguments {
    kubeconfig: PathBuf,
}

/// What a scheduler did.
#[derive(Clone, Copy)]
struct Figures {
    per_second: f64,
    /// Seconds of its processor time for each pod.
    processor: f64,
    bytes: f64,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = crate::store::scratch(arguments.dir.as_deref())?;
    let server = site::program(arguments.kubewright.as_deref())?;
    let upstream = peer::assets(arguments.upstream.as_deref());
    let upstream = upstream.map(|it| it.join("kube-scheduler")).filter(|it| it.exists());
    println!("Measured on {}.", machine::describe(scratch.path())?);
    println!("Medians of {} rounds, schedulers taking turns within a round.", arguments.rounds);
    println!("Load average before: {}.", machine::load_average()?);
    let mut table = Table::new(["nodes", "scheduler", "pods/s", "CPU ms/pod", "memory", "ratio"]);
    for &nodes in &arguments.nodes {
        let (mut of_ours, mut of_upstream) = (Vec::new(), Vec::new());
        for round in 1..=arguments.rounds {
            eprintln!("{nodes} nodes, round {round} of {}", arguments.rounds);
            let size = Size { nodes, pods: arguments.pods };
            let measure = |scheduler| measure(&server, scheduler, scratch.path(), size);
            of_ours.push(runtime.block_on(measure(None)).context("measure ours")?);
            if let Some(binary) = upstream.as_deref() {
                let measured = runtime.block_on(measure(Some(binary)));
                of_upstream.push(measured.context("measure upstream")?);
            }
        }
        let ours = medians(&of_ours);
        rows(&mut table, nodes, "ours", ours, String::new());
        if !of_upstream.is_empty() {
            let upstream = medians(&of_upstream);
            let times = ratio(ours.per_second, upstream.per_second);
            rows(&mut table, nodes, "kube-scheduler", upstream, format!("ours {times}"));
        }
    }
    println!("Load average after: {}.\n", machine::load_average()?);
    println!("{}", table.to_markdown());
    Ok(())
}

/// Runs our scheduler until it is killed.
pub(crate) fn schedule(arguments: ScheduleArguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    runtime.block_on(async {
        let connection = connect::find(Some(&arguments.kubeconfig), |_: &str| None).await?;
        let client = connection.client(&connect::Options::default())?;
        let config = Config::parse(&configuration(&arguments.kubeconfig))?;
        let scheduler = Scheduler::new(config);
        scheduler.run_alone(client, Clock::system(), CancellationToken::new()).await?;
        Ok(())
    })
}

#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    pods: usize,
}

/// Measures a program of upstream's, or else ours.
async fn measure(
    server: &Path,
    scheduler: Option<&Path>,
    scratch: &Path,
    size: Size,
) -> Result<Figures> {
    let dir = crate::store::directory(scratch)?;
    let (site, _) = Site::ours(server, dir.path(), Parts::Controllers).await?;
    prepare(&site.endpoint, size).await?;
    let mut watching = site.endpoint.connect().await?;
    watching.open(get("/api/v1/namespaces/bench/pods?watch=true")).await?;
    let kubeconfig = dir.path().join("kubeconfig");
    let process = start(scheduler, &kubeconfig, dir.path())?;
    let warm = (size.pods as f64 * WARM_UP) as usize;
    let (mut bound, mut since, mut used) = (0, None, Duration::ZERO);
    let counting = async {
        while bound < size.pods {
            let event = watching.line().await?;
            bound += usize::from(memmem::find(&event, b"\"nodeName\":\"").is_some());
            if since.is_none() && bound >= warm {
                used = machine::processor_time_of(process.0.id())?;
                since = Some((Instant::now(), bound));
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(WAIT_MAX, counting).await.context("it is not done in time")??;
    let (since, before) = since.context("there are too few pods")?;
    let measured = (size.pods - before) as f64;
    let used = machine::processor_time_of(process.0.id())?.saturating_sub(used);
    Ok(Figures {
        per_second: measured / since.elapsed().as_secs_f64(),
        processor: used.as_secs_f64() / measured,
        bytes: machine::resident_bytes(process.0.id())? as f64,
    })
}

/// Makes nodes, and pods that wait.
async fn prepare(endpoint: &Endpoint, size: Size) -> Result<()> {
    let mut client = endpoint.connect().await?;
    let namespace = r#"{"metadata":{"name":"bench"}}"#;
    client.send(request(Method::POST, "/api/v1/namespaces", JSON, namespace)).await?;
    let account = "/api/v1/namespaces/bench/serviceaccounts/default";
    let begun = Instant::now();
    while client.send(get(account)).await.is_err() {
        ensure!(begun.elapsed() < WAIT_MAX, "nobody makes the service account");
        client = endpoint.connect().await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    create(endpoint, "/api/v1/nodes", size.nodes, node).await?;
    create(endpoint, "/api/v1/namespaces/bench/pods", size.pods, pod).await
}

async fn create(
    endpoint: &Endpoint,
    path: &'static str,
    objects: usize,
    object: fn(usize) -> String,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    for first in 0..CLIENTS {
        let endpoint = endpoint.clone();
        tasks.spawn(async move {
            let mut client = endpoint.connect().await?;
            for number in (first..objects).step_by(CLIENTS) {
                let body = Bytes::from(object(number));
                client.send(request(Method::POST, path, JSON, body)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.context("a client panicked")??;
    }
    Ok(())
}

fn node(number: usize) -> String {
    let name = format!("node-{number:05}");
    let amounts =
        json!({"cpu": "32", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
        }},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
    .to_string()
}

fn pod(number: usize) -> String {
    json!({
        "metadata": {"name": format!("pod-{number:05}"), "labels": {"app": "bench"}},
        "spec": {
            "schedulerName": NAME,
            "containers": [{
                "name": "main",
                "image": "registry.example/app:1",
                "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
            }],
        },
    })
    .to_string()
}

/// Both get the same: upstream's client may ask as often as it likes.
fn configuration(kubeconfig: &Path) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {:?}, qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
profiles: [{{schedulerName: {NAME}}}]
",
        kubeconfig.display().to_string()
    )
}

/// Ends when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing more to do about it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(upstream: Option<&Path>, kubeconfig: &Path, dir: &Path) -> Result<Process> {
    let mut command = match upstream {
        Some(binary) => {
            let config = dir.join("scheduler.yaml");
            fs::write(&config, configuration(kubeconfig)).context("write its configuration")?;
            let mut command = Command::new(binary);
            command.arg("--config").arg(config).arg("--secure-port=0");
            command.arg("--authentication-kubeconfig").arg(kubeconfig);
            command.arg("--authorization-kubeconfig").arg(kubeconfig);
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().context("find this program")?);
            command.arg("schedule").arg(kubeconfig);
            command
        }
    };
    let log = File::create(dir.join("scheduler.log")).context("make a log")?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(Process(command.spawn().context("start a scheduler")?))
}

fn medians(figures: &[Figures]) -> Figures {
    let of = |of: fn(&Figures) -> f64| median(&figures.iter().map(of).collect::<Vec<f64>>());
    Figures {
        per_second: of(|it| it.per_second),
        processor: of(|it| it.processor),
        bytes: of(|it| it.bytes),
    }
}

fn rows(table: &mut Table, nodes: usize, name: &str, figures: Figures, ratio: String) {
    table.row([
        count(nodes as f64),
        name.to_owned(),
        count(figures.per_second),
        format!("{:.2}", figures.processor * 1e3),
        format!("{:.0} MB", figures.bytes / 1e6),
        ratio,
    ]);
}
