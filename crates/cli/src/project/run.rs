//! `run`: a project's operator as a process beside a cluster, the one that the kubeconfig leads to
//! or one that is there for as long as the operator.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use kubewright_cluster::run::{self as cluster_run, Keep, Options, kubeconfig_path};
use kubewright_project::Project;

use super::cargo::{build, code};
use super::install::{connect, rendered};
use super::{Which, objects};
use crate::cluster::home;
use crate::up::{self, runtime};

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    which: Which,
    /// The namespaces to look into; without it, all.
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
    if !args.namespace.is_empty() {
        arguments.insert(0, format!("--namespace={}", args.namespace.join(",")));
    }
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
        audit: None,
    };
    Ok((options, kubeconfig))
}

/// Brings a project's definitions into a cluster.
pub(super) async fn define(project: &Project, program: &Path, kubeconfig: &Path) -> Result<usize> {
    let only = ["--only".to_owned(), "crds".to_owned()];
    let definitions = rendered(project, program, &only)?;
    let client = connect(Some(kubeconfig)).await?;
    for definition in &definitions {
        objects::apply(&client, definition, true).await?;
    }
    Ok(definitions.len())
}
