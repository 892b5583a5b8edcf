//! `run`: a project's operator as a process beside a cluster, the one that the kubeconfig leads to
//! or one that is there for as long as the operator.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use kubewright::connect;
use kubewright_cluster::run::{self as cluster_run, Keep, Options, kubeconfig_path};
use kubewright_project::Project;

use super::cargo::{build, code};
use super::install::{client, rendered};
use super::{Which, objects};
use crate::cluster::home;
use crate::up::{self, runtime};

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    which: Which,
    /// The namespaces to look into; without it, all, or that of the kubeconfig's context if the
    /// project is `--namespaced`.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    namespace: Vec<String>,
    /// The file that says which cluster; without it, what kubectl uses.
    #[arg(long, value_name = "FILE", conflicts_with = "embedded")]
    kubeconfig: Option<PathBuf>,
    /// Start a cluster for it, which ends with it.
    #[arg(long)]
    embedded: bool,
    /// More flags of the operator, after `--`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let project = args.which.open()?;
    let program = build(&project)?;
    let mut arguments = args.arguments.clone();
    let cluster = match (args.embedded, &args.kubeconfig) {
        (true, _) => Cluster::New,
        (false, path) => Cluster::There(path.as_deref()),
    };
    let within = within(&project, &args.namespace, &arguments, cluster)?;
    within.told.iter().for_each(|told| eprintln!("{told}"));
    arguments.splice(0..0, within.flag);
    if !args.embedded {
        let mut command = Command::new(&program);
        command.args(&arguments).current_dir(&project.root);
        if let Some(path) = &args.kubeconfig {
            let path = std::path::absolute(path).context("find the kubeconfig")?;
            command.env("KUBECONFIG", path);
        }
        // In the place of this process, so that signals are the operator's own.
        let error = command.exec();
        return Err(error).with_context(|| format!("run {}", program.display()));
    }
    up::log_at("error");
    up::keep_pages_small();
    let (options, kubeconfig) = beside(&project)?;
    let ran = runtime()?.block_on(cluster_run::run_while(options, async |record| {
        eprintln!("cluster ready at {}; export KUBECONFIG={}", record.server, kubeconfig.display());
        define(&project, &program, &kubeconfig).await?;
        let mut operator = tokio::process::Command::new(&program);
        operator.args(&arguments).current_dir(&project.root).env("KUBECONFIG", &kubeconfig);
        let status = operator.kill_on_drop(true).status().await;
        anyhow::Ok(code(status.with_context(|| format!("run {}", program.display()))?))
    }))?;
    ran.unwrap_or(Ok(ExitCode::SUCCESS))
}

/// Which cluster an operator is run beside.
pub(super) enum Cluster<'a> {
    /// One that is there, by its file, or what kubectl uses.
    There(Option<&'a Path>),
    New,
}

/// The namespaces that an operator looks into.
#[derive(Default)]
pub(super) struct Within {
    /// What it is told.
    pub(super) flag: Option<String>,
    /// What people are told if they have not said it themselves.
    pub(super) told: Option<String>,
}

/// Those that are said. An operator for its own namespace has none here, but it is not to do more
/// than it will where it is deployed, so it looks into the one that kubectl would.
pub(super) fn within(
    project: &Project,
    said: &[String],
    arguments: &[String],
    cluster: Cluster<'_>,
) -> Result<Within> {
    let flag = |names: &str| Some(format!("--namespace={names}"));
    if !said.is_empty() {
        return Ok(Within { flag: flag(&said.join(",")), told: None });
    }
    // A file may say it, too, and a flag would go before it.
    let is_said = ["--namespace", "--config"].iter().any(|flag| says(arguments, flag))
        || ["KUBEWRIGHT_NAMESPACE", "WATCH_NAMESPACE", "KUBEWRIGHT_CONFIG"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !project.namespaced || is_said {
        return Ok(Within::default());
    }
    let name = match cluster {
        Cluster::New => DEFAULT.to_owned(),
        Cluster::There(kubeconfig) => {
            let found = connect::find(kubeconfig, |name: &str| std::env::var_os(name));
            let found = runtime()?.block_on(found)?;
            found.namespace().to_owned()
        }
    };
    let told = format!(
        "{} is for one namespace: it looks into {name}, that of the kubeconfig's context; \
         --namespace names others",
        project.name
    );
    Ok(Within { flag: flag(&name), told: Some(told) })
}

/// Where clients are that nobody has told otherwise.
const DEFAULT: &str = "default";

/// Whether arguments have a flag, with its value in the same one or in the next.
pub(super) fn says(arguments: &[String], flag: &str) -> bool {
    let rest = |it: &String| it.strip_prefix(flag).map(str::to_owned);
    arguments.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with('='))
}

/// A cluster beside a project's operator, of which nothing stays; and the kubeconfig that leads to
/// it while it is there.
pub(super) fn beside(project: &Project) -> Result<(Options, PathBuf)> {
    let (home, name) = (home()?, format!("{}-dev", project.name));
    let kubeconfig = kubeconfig_path(&home.dir(&name)?);
    let options = Options {
        name,
        home,
        port: Some(0),
        keep: Keep::Nothing,
        // It comes and goes, so it does not become anybody's current context.
        kubeconfig: None,
        controllers: up::parse_controllers("*").map_err(anyhow::Error::msg)?,
        node: cluster_run::Node::Fake { count: 1, stages: Vec::new() },
        ingress_port: None,
        scheduler: Default::default(),
        audit: None,
    };
    Ok((options, kubeconfig))
}

/// Brings a project's definitions into a cluster.
pub(super) async fn define(project: &Project, program: &Path, kubeconfig: &Path) -> Result<usize> {
    let only = ["--only".to_owned(), "crds".to_owned()];
    let definitions = rendered(project, program, &only)?;
    let client = client(Some(kubeconfig)).await?;
    for definition in &definitions {
        objects::apply(&client, definition, true).await?;
    }
    Ok(definitions.len())
}
