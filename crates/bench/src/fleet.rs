//! A whole cluster, measured: its scheduler, controllers and simulated nodes have many pods run, and
//! clients are answered meanwhile. The load generator shares the machine.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use http::Method;
use memchr::memmem;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::machine;
use crate::server::client::{Client, Endpoint, get, request};
use crate::server::site::{self, Parts, Site};
use crate::table::{Table, count, milliseconds};

const JSON: &str = "application/json";
const NAMESPACE: &str = "/api/v1/namespaces/fleet";
const WAIT_MAX: Duration = Duration::from_secs(1_200);
/// How often a client asks meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long the cluster is looked at when all is done.
const REST: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Our program [default: the one beside this one]
    #[arg(long, value_name = "BIN")]
    kubewright: Option<PathBuf>,
    /// Where data goes while measuring [default: a new directory in the cache]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How many nodes there are
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// How many pods are to run
    #[arg(long, default_value_t = 20_000)]
    pods: usize,
    /// How many Deployments they are of
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    deployments: u32,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let scratch = crate::store::scratch(arguments.dir.as_deref())?;
    println!("Measured on {}.", machine::describe(scratch.path())?);
    println!("Load average before: {}.", machine::load_average()?);
    let table = runtime.block_on(measure(&arguments, scratch.path()))?;
    println!("Load average after: {}.\n", machine::load_average()?);
    println!("{}", table.to_markdown());
    Ok(())
}

async fn measure(arguments: &Arguments, scratch: &std::path::Path) -> Result<Table> {
    let dir = crate::store::directory(scratch)?;
    let server = site::program(arguments.kubewright.as_deref())?;
    let begun = Instant::now();
    let (site, _) = Site::ours(&server, dir.path(), Parts::Nodes(arguments.nodes)).await?;
    let mut client = site.endpoint.connect().await?;
    until_ready(&mut client, arguments.nodes).await?;
    let nodes_ready = begun.elapsed();
    let namespace = r#"{"metadata":{"name":"fleet"}}"#;
    client.send(request(Method::POST, "/api/v1/namespaces", JSON, namespace)).await?;

    let mut watching = site.endpoint.connect().await?;
    watching.open(get(&format!("{NAMESPACE}/pods?watch=true"))).await?;
    let asking = Asking::start(&site.endpoint);
    let (used, begun) = (site.processor_time()?, Instant::now());
    let pods = deploy(&mut client, arguments).await?;
    let first = tokio::time::timeout(WAIT_MAX, until_running(watching, pods)).await;
    let first = first.context("they do not run in time")??.duration_since(begun);
    let all = begun.elapsed();
    let used = site.processor_time()?.saturating_sub(used);
    let meanwhile = asking.stop().await?;
    let bytes = site.memory()?.resident;

    let rest = site.processor_time()?;
    let asking = Asking::start(&site.endpoint);
    tokio::time::sleep(REST).await;
    let afterwards = asking.stop().await?;
    let rest = site.processor_time()?.saturating_sub(rest);
    // The other connection may have been idle for longer than servers keep one.
    let mut client = site.endpoint.connect().await?;
    let list = Instant::now();
    client.send(get(&format!("{NAMESPACE}/pods"))).await?;
    let list = list.elapsed();

    let mut table = Table::new(["what", "figure"]);
    let mut row = |what: &str, figure: String| table.row([what.to_owned(), figure]);
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    row("nodes ready", seconds(nodes_ready));
    row("first pod running", seconds(first));
    row("all pods running", seconds(all));
    row("pods per second", count(pods as f64 / all.as_secs_f64()));
    row("CPU per pod", format!("{:.2} ms", used.as_secs_f64() * 1e3 / pods as f64));
    row("memory, all running", format!("{:.0} MB", bytes / 1e6));
    meanwhile.rows("while they start", &mut row);
    afterwards.rows("at rest", &mut row);
    row("list of all pods", milliseconds(list));
    row("CPU at rest", format!("{:.1} %", rest.as_secs_f64() * 100.0 / REST.as_secs_f64()));
    Ok(table)
}

async fn until_ready(client: &mut Client, nodes: usize) -> Result<()> {
    let begun = Instant::now();
    loop {
        let list = client.read(get("/api/v1/nodes")).await?;
        let ready = memmem::find_iter(&list, br#""reason":"KubeletReady""#).count();
        if ready >= nodes {
            return Ok(());
        }
        ensure!(begun.elapsed() < WAIT_MAX, "{ready} of {nodes} nodes are ready");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes Deployments, and tells how many pods they want.
async fn deploy(client: &mut Client, arguments: &Arguments) -> Result<usize> {
    let each = arguments.pods / arguments.deployments as usize;
    for number in 0..arguments.deployments {
        let labels = json!({"app": format!("app-{number}")});
        let requests = json!({"cpu": "100m", "memory": "200Mi"});
        let deployment = json!({
            "metadata": {"name": format!("app-{number}")},
            "spec": {
                "replicas": each,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{
                    "name": "main", "image": "registry.example/app:1",
                    "resources": {"requests": requests},
                }]}},
            },
        });
        let path = "/apis/apps/v1/namespaces/fleet/deployments";
        client.send(request(Method::POST, path, JSON, deployment.to_string())).await?;
    }
    Ok(each * arguments.deployments as usize)
}

/// Waits until so many pods run; tells when the first did.
async fn until_running(mut watching: Client, pods: usize) -> Result<Instant> {
    let (mut running, mut first) = (HashSet::new(), None);
    while running.len() < pods {
        let event = watching.line().await?;
        if memmem::find(&event, br#""phase":"Running""#).is_some() {
            first.get_or_insert_with(Instant::now);
            running.insert(name(&event).context("a pod has a name")?);
        }
    }
    first.context("there are no pods")
}

/// The first name in an event, which is that of its object.
fn name(event: &[u8]) -> Option<Vec<u8>> {
    let key = br#""metadata":{"name":""#;
    let rest = &event[memmem::find(event, key)? + key.len()..];
    Some(rest[..memchr::memchr(b'"', rest)?].to_vec())
}

/// How long answers took.
#[derive(Default)]
struct Answers {
    reads: Vec<Duration>,
    writes: Vec<Duration>,
}

impl Answers {
    fn rows(mut self, when: &str, row: &mut impl FnMut(&str, String)) {
        for (what, times) in [("read", &mut self.reads), ("write", &mut self.writes)] {
            times.sort_unstable();
            let share = |share: f64| {
                let index = (times.len() as f64 * share) as usize;
                times.get(index).or(times.last()).copied().unwrap_or_default()
            };
            let figure = format!("{} / {}", milliseconds(share(0.5)), milliseconds(share(0.99)));
            row(&format!("a {what} {when}, median / 99 %"), figure);
        }
    }
}

/// A client that asks until it is stopped.
struct Asking {
    stop: CancellationToken,
    task: JoinSet<Result<Answers>>,
}

impl Asking {
    fn start(endpoint: &Endpoint) -> Self {
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        task.spawn(ask(endpoint.clone(), stop.clone()));
        Asking { stop, task }
    }

    async fn stop(mut self) -> Result<Answers> {
        self.stop.cancel();
        self.task.join_next().await.context("there is one")?.context("a client panicked")?
    }
}

/// Reads and writes an object now and then, until it is told to stop.
async fn ask(endpoint: Endpoint, stop: CancellationToken) -> Result<Answers> {
    let mut client = endpoint.connect().await?;
    let (mut answers, mut number) = (Answers::default(), 0_u32);
    let mut ticks = tokio::time::interval(ASK_EVERY);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        number += 1;
        let begun = Instant::now();
        client.send(get("/api/v1/namespaces/default")).await?;
        answers.reads.push(begun.elapsed());
        let begun = Instant::now();
        let object =
            json!({"metadata": {"generateName": "asked-"}, "data": {"number": number.to_string()}});
        let path = "/api/v1/namespaces/default/configmaps";
        client.send(request(Method::POST, path, JSON, object.to_string())).await?;
        answers.writes.push(begun.elapsed());
    }
    Ok(answers)
}
