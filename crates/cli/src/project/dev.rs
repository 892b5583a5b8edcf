//! `dev`: builds and runs an operator again after every change of its sources, beside a cluster
//! that stays. Webhooks are called in the operator's process, which the library sees to.

mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_cluster::run::run_while;
use kubewright_project::Project;
use notify::{RecursiveMode, Watcher as _};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::screen::Screen;
use self::state::{Event, State, Step};
use super::Which;
use super::cargo::{build_command, program_in};
use super::run::{beside, define};
use crate::up::{self, runtime};

#[derive(clap::Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    which: Which,
    /// The namespaces to look into; without it, all.
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
/// So many lines wait to be shown; whoever writes more waits, too.
const EVENTS_MAX: usize = 256;

pub(crate) fn dev(args: &DevArgs) -> Result<ExitCode> {
    let project = args.which.open()?;
    let mut arguments = args.arguments.clone();
    if !args.namespace.is_empty() {
        arguments.insert(0, format!("--namespace={}", args.namespace.join(",")));
    }
    let is_screen = !args.plain && std::io::stdout().is_terminal();
    up::log_at("error");
    up::keep_pages_small();
    let runtime = runtime()?;
    if let Some(path) = &args.kubeconfig {
        let kubeconfig = std::path::absolute(path).context("find the kubeconfig")?;
        let screen = Screen::new(is_screen, &project.name, &kubeconfig);
        let mut stage = Stage { project, kubeconfig, arguments, screen };
        let stop = CancellationToken::new();
        return runtime.block_on(async {
            let mut developed = std::pin::pin!(stage.develop(&stop));
            tokio::select! {
                developed = &mut developed => developed?,
                heard = tokio::signal::ctrl_c() => {
                    stop.cancel();
                    developed.await?;
                    heard.context("listen for Ctrl-C")?;
                }
            }
            Ok(ExitCode::SUCCESS)
        });
    }
    let (options, kubeconfig) = beside(&project)?;
    let screen = Screen::new(is_screen, &project.name, &kubeconfig);
    let mut stage = Stage { project, kubeconfig, arguments, screen };
    // Its end is the cluster's, to which nobody has to say good-bye.
    let never = CancellationToken::new();
    let developed = runtime.block_on(run_while(options, async |_| stage.develop(&never).await))?;
    developed.unwrap_or(Ok(())).map(|()| ExitCode::SUCCESS)
}

struct Stage {
    project: Project,
    kubeconfig: PathBuf,
    arguments: Vec<String>,
    screen: Screen,
}

/// An operator that runs.
struct Running {
    child: Child,
    /// What reads its output.
    readers: JoinSet<()>,
}

impl Stage {
    /// Builds and runs until `stop`; then what is under way ends.
    async fn develop(&mut self, stop: &CancellationToken) -> Result<()> {
        let (events, mut inbox) = mpsc::channel(EVENTS_MAX);
        let _watcher = watch(&self.project.root, events.clone())?;
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
                        former.stop().await;
                    }
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
                Some(event) = inbox.recv() => {
                    if let Event::Line { from, text } = &event {
                        self.screen.line(from, text);
                    }
                    state.next(event)
                }
                () = stop.cancelled() => {
                    if let Some(running) = running.take() {
                        running.stop().await;
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
            .spawn()
            .with_context(|| format!("run {}", program.display()))?;
        let mut readers = JoinSet::new();
        let output = child.stdout.take().context("hear the operator")?;
        let errors = child.stderr.take().context("hear the operator")?;
        readers.spawn(read("operator", output, events.clone()));
        readers.spawn(read("operator", errors, events.clone()));
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

/// Tells of changes of the sources, for as long as it is kept.
fn watch(root: &Path, events: mpsc::Sender<Event>) -> Result<notify::RecommendedWatcher> {
    // Some systems tell of paths as they really are.
    let root = root.canonicalize().with_context(|| format!("find {}", root.display()))?;
    let sources = root.clone();
    let tell = move |event: notify::Result<notify::Event>| {
        let is_change = event.is_ok_and(|event| {
            let is_ours = || event.paths.iter().any(|path| is_source(&sources, path));
            // Where too much has happened, nobody says what it was.
            event.need_rescan() || !event.kind.is_access() && is_ours()
        });
        if is_change {
            // Where so much waits already, a change does too.
            let _ = events.try_send(Event::Changed);
        }
    };
    let mut watcher = notify::recommended_watcher(tell).context("watch the sources")?;
    // Editors put another file in the place of the one they change, and whoever watches the file
    // watches the one that is gone.
    for (path, mode) in [
        (root.clone(), RecursiveMode::NonRecursive),
        (root.join(SOURCES), RecursiveMode::Recursive),
    ] {
        if path.exists() {
            let watched = watcher.watch(&path, mode);
            watched.with_context(|| format!("watch {}", path.display()))?;
        }
    }
    Ok(watcher)
}

/// Where sources are, and what else is built.
const SOURCES: &str = "src";
const BUILT: [&str; 2] = ["Cargo.toml", "build.rs"];

/// Whether the operator is another when this file is. Not all is that changes at the root: a build
/// writes there.
fn is_source(root: &Path, path: &Path) -> bool {
    path.starts_with(root.join(SOURCES)) || BUILT.iter().any(|name| path == root.join(name))
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

/// Passes lines on, each with where it comes from.
async fn read(from: &'static str, pipe: impl AsyncRead + Unpin, events: mpsc::Sender<Event>) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        if events.send(Event::Line { from, text }).await.is_err() {
            return;
        }
    }
}
