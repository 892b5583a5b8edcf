//! `dev`: builds and runs an operator again after every change of its sources, beside a cluster
//! that stays. Webhooks are called in the operator's process, which the library sees to.

mod report;
mod screen;
mod sources;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_cluster::Signals;
use kubewright_cluster::run::run_while;
use kubewright_project::Project;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::report::Report;
use self::screen::Screen;
use self::sources::Watch;
use self::state::{Event, State, Step};
use super::Which;
use super::cargo::{build_command, program_in};
use super::run::{Cluster, beside, define, within};
use crate::up::{self, runtime};

#[derive(clap::Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    which: Which,
    /// The namespaces to look into; without it, all, or that of the kubeconfig's context if the
    /// project is `--namespaced`.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    namespace: Vec<String>,
    /// The file that says which cluster; without it, one is started that ends with this command.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Print lines, as if this were no terminal.
    #[arg(long)]
    plain: bool,
    /// More flags of the operator, after `--`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Changes that come together are one: editors write several files.
const SETTLING: Duration = Duration::from_millis(150);
/// How long an operator may take to stop before it is killed.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How often the operator is asked how it is doing, and how long it may take to say so.
const ASKING: Duration = Duration::from_secs(1);
/// So many lines wait to be shown; whoever writes more waits, too.
const EVENTS_MAX: usize = 256;

pub(crate) fn dev(args: &DevArgs) -> Result<ExitCode> {
    let project = args.which.open()?;
    let mut arguments = args.arguments.clone();
    let cluster = args.kubeconfig.as_deref().map_or(Cluster::New, |it| Cluster::There(Some(it)));
    let within = within(&project, &args.namespace, &arguments, cluster)?;
    arguments.splice(0..0, within.flag);
    let Pages { metrics, flags } = pages(&arguments)?;
    arguments.splice(0..0, flags.into_iter().chain(brevity(&arguments)));
    let is_screen = !args.plain && std::io::stdout().is_terminal();
    up::log_at("error");
    up::keep_pages_small();
    let runtime = runtime()?;
    if let Some(path) = &args.kubeconfig {
        let kubeconfig = std::path::absolute(path).context("find the kubeconfig")?;
        let screen = Screen::new(is_screen, &project.name, &kubeconfig, metrics, within.told);
        let mut stage = Stage { project, kubeconfig, arguments, metrics, screen };
        let stop = CancellationToken::new();
        return runtime.block_on(async {
            let mut signals = Signals::new()?;
            let mut developed = std::pin::pin!(stage.develop(&stop));
            tokio::select! {
                developed = &mut developed => developed?,
                () = signals.stop() => {
                    stop.cancel();
                    developed.await?;
                }
            }
            Ok(ExitCode::SUCCESS)
        });
    }
    let (options, kubeconfig) = beside(&project)?;
    let screen = Screen::new(is_screen, &project.name, &kubeconfig, metrics, within.told);
    let mut stage = Stage { project, kubeconfig, arguments, metrics, screen };
    // Its end is the cluster's, to which nobody has to say good-bye.
    let never = CancellationToken::new();
    let developed = runtime.block_on(run_while(options, async |_| stage.develop(&never).await))?;
    developed.unwrap_or(Ok(())).map(|()| ExitCode::SUCCESS)
}

/// Where on this machine, and only there, the operator has its pages.
struct Pages {
    /// Where it can be asked how it is doing; none if its author says something about metrics.
    metrics: Option<SocketAddr>,
    flags: Vec<String>,
}

/// Whether the author of an operator says something by a flag or a variable.
fn is_said(arguments: &[String], flag: &str, variable: &str) -> bool {
    arguments.iter().any(|it| it.starts_with(flag)) || std::env::var_os(variable).is_some()
}

/// Has an operator end soon enough to take its webhooks back, too, before it is killed.
fn brevity(arguments: &[String]) -> Option<String> {
    let flag = "--graceful-shutdown-timeout";
    let is_said = is_said(arguments, flag, "KUBEWRIGHT_GRACEFUL_SHUTDOWN_TIMEOUT");
    (!is_said).then(|| format!("{flag}=4s"))
}

/// Several operators may be developed at once, so each has its own ports, but for what its author
/// says something about.
fn pages(arguments: &[String]) -> Result<Pages> {
    let is_said = |flag: &str, variable: &str| is_said(arguments, flag, variable);
    // They are free until somebody else takes them, and the operator says so then.
    let free = || TcpListener::bind("127.0.0.1:0").context("find a port for metrics and probes");
    // Both are held until both are known, else they might be one.
    let (one, other) = (free()?, free()?);
    let (one, other) = (one.local_addr(), other.local_addr());
    let mut pages = Pages { metrics: None, flags: Vec::new() };
    if !is_said("--metrics-", "KUBEWRIGHT_METRICS_BIND_ADDRESS") {
        let address = one.context("find a port for metrics")?;
        let flags = [format!("--metrics-bind-address={address}"), "--metrics-secure=false".into()];
        pages.metrics = Some(address);
        pages.flags.extend(flags);
    }
    if !is_said("--health-probe-", "KUBEWRIGHT_HEALTH_PROBE_BIND_ADDRESS") {
        let address = other.context("find a port for probes")?;
        pages.flags.push(format!("--health-probe-bind-address={address}"));
    }
    Ok(pages)
}

struct Stage {
    project: Project,
    kubeconfig: PathBuf,
    arguments: Vec<String>,
    metrics: Option<SocketAddr>,
    screen: Screen,
}

/// An operator that runs.
struct Running {
    child: Child,
    /// What reads its output, and asks how it is doing.
    readers: JoinSet<()>,
}

impl Stage {
    /// Builds and runs until `stop`; then what is under way ends.
    async fn develop(&mut self, stop: &CancellationToken) -> Result<()> {
        let (events, mut inbox) = mpsc::channel(EVENTS_MAX);
        let changes = Arc::new(Notify::new());
        let mut watch = Watch::begin(&self.project.root, Arc::clone(&changes))?;
        watch.look(&self.project, None).await?;
        let mut state = State::default();
        let mut builds = JoinSet::new();
        let mut running: Option<Running> = None;
        let mut step = Step::Build;
        loop {
            match step {
                Step::Build => {
                    let (project, events) = (self.project.clone(), events.clone());
                    builds.spawn(async move {
                        let built = build(&project, &events).await;
                        // The loop may have ended.
                        let _ =
                            events.send(Event::Built(built.map_err(|it| format!("{it:#}")))).await;
                    });
                }
                Step::Restart(program) => {
                    if let Some(former) = running.take() {
                        self.end(former, &mut inbox).await;
                    }
                    watch.look(&self.project, Some(&program)).await?;
                    match self.start(&program, &events).await {
                        Ok(started) => running = Some(started),
                        Err(error) => state.note(crate::reasons(&error)),
                    }
                }
                Step::Wait => {}
            }
            self.screen.show(&state);
            let ended = async {
                match &mut running {
                    Some(running) => running.child.wait().await,
                    None => std::future::pending().await,
                }
            };
            step = tokio::select! {
                () = changes.notified() => state.next(Event::Changed),
                Some(event) = inbox.recv() => {
                    if let Event::Line { from, text } = &event {
                        self.screen.line(from, text);
                    }
                    state.next(event)
                }
                () = stop.cancelled() => {
                    if let Some(running) = running.take() {
                        self.end(running, &mut inbox).await;
                    }
                    return Ok(());
                }
                status = ended => {
                    running = None;
                    let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                    state.next(Event::Ended(status))
                }
            };
        }
    }

    /// Has an operator stop, and shows what it says until then: it cannot stop while it waits to be
    /// heard.
    async fn end(&mut self, running: Running, inbox: &mut mpsc::Receiver<Event>) {
        let mut stopped = std::pin::pin!(running.stop());
        loop {
            tokio::select! {
                () = &mut stopped => return,
                Some(event) = inbox.recv() => {
                    if let Event::Line { from, text } = event {
                        self.screen.line(from, &text);
                    }
                }
            }
        }
    }

    async fn start(&self, program: &Path, events: &mpsc::Sender<Event>) -> Result<Running> {
        define(&self.project, program, &self.kubeconfig).await?;
        let mut child = Command::new(program)
            .args(&self.arguments)
            .current_dir(&self.project.root)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Who presses Ctrl-C means `dev`: a signal from there and one from here would be two, and
            // the second one has the operator end at once and take nothing back.
            .process_group(0)
            .spawn()
            .with_context(|| format!("run {}", program.display()))?;
        let mut readers = JoinSet::new();
        let output = child.stdout.take().context("hear the operator")?;
        let errors = child.stderr.take().context("hear the operator")?;
        readers.spawn(read("operator", output, events.clone()));
        readers.spawn(read("operator", errors, events.clone()));
        if let Some(address) = self.metrics.filter(|_| self.screen.is_screen()) {
            readers.spawn(ask(address, events.clone()));
        }
        Ok(Running { child, readers })
    }
}

impl Running {
    /// Lets what is under way end.
    async fn stop(mut self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // It may have ended by itself.
            let _ = kill_process(id, Signal::TERM);
        }
        if tokio::time::timeout(STOP_MAX, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        // Nobody else has its output, so they end with it, or are dropped here.
        self.readers.abort_all();
    }
}

/// Builds the operator once changes have settled; what cargo says becomes lines.
async fn build(project: &Project, events: &mpsc::Sender<Event>) -> Result<PathBuf> {
    tokio::time::sleep(SETTLING).await;
    let mut cargo = Command::from(build_command(project));
    let mut child = cargo.stderr(Stdio::piped()).kill_on_drop(true).spawn().context("run cargo")?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (output, errors) = output.zip(errors).context("hear cargo")?;
    let mut program = None;
    let messages = async {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            program = program_in(&line, &project.name).or(program.take());
        }
    };
    tokio::join!(messages, read("cargo", errors, events.clone()));
    let status = child.wait().await.context("wait for cargo")?;
    anyhow::ensure!(status.success(), "it does not build");
    program.with_context(|| format!("find the binary {:?} of the package", project.name))
}

/// Asks an operator every so often how it is doing.
async fn ask(address: SocketAddr, events: mpsc::Sender<Event>) {
    loop {
        tokio::time::sleep(ASKING).await;
        let report = tokio::time::timeout(ASKING, Report::ask(address)).await;
        if events.send(Event::Reported(report.unwrap_or_default())).await.is_err() {
            return;
        }
    }
}

/// Passes lines on, each with where it comes from.
async fn read(from: &'static str, pipe: impl AsyncRead + Unpin, events: mpsc::Sender<Event>) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        if events.send(Event::Line { from, text }).await.is_err() {
            return;
        }
    }
}
