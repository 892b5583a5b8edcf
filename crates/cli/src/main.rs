//! The `kubewright` command.

/// Prints a line for whoever listens. Nobody does behind `| head -1`, and that is no reason to end.
macro_rules! say {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($line)*);
    }};
}

mod build;
mod cluster;
mod demo;
mod diff_crd;
mod drop_in;
mod image;
mod import;
mod join;
mod manual;
mod package;
mod project;
mod service;
mod up;
mod validate;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Build, test and run Kubernetes operators.
#[derive(Parser)]
#[command(name = "kubewright", version, after_help = EXIT_CODES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 if it is done, or was so already; 1 if a command whose \
                          answer may be no says so (`validate`, `diff-crd`, `demo`); 2 if it is not \
                          done: the question makes no sense, somebody refuses, or something fails \
                          or stands in the way. `manifests` and `run` end as the operator does.";

#[derive(Subcommand)]
enum Command {
    /// Start a cluster with operators, and tell what they do.
    Demo(demo::Args),
    /// Begin an operator project.
    Init(project::create::InitArgs),
    /// Add kinds and webhooks to a project.
    #[command(subcommand)]
    Create(project::create::Create),
    /// Take kinds and webhooks away from a project, as if they had never been there.
    #[command(subcommand)]
    Delete(project::create::Delete),
    /// Print what installs a project's operator, as its own program renders it.
    Manifests(project::cargo::ManifestsArgs),
    /// Run a project's operator beside a cluster.
    Run(project::run::RunArgs),
    /// Run a project's operator beside a cluster, and again after every change.
    Dev(project::dev::DevArgs),
    /// Bring a project's definitions into a cluster.
    Install(project::install::InstallArgs),
    /// Take a project's definitions, and with them all objects of its kinds, out of a cluster.
    Uninstall(project::install::UninstallArgs),
    /// Bring a project's operator into a cluster.
    Deploy(project::install::DeployArgs),
    /// Take all that `deploy` brought out of a cluster, definitions included.
    Undeploy(project::install::UndeployArgs),
    /// Have a project use another version of the library.
    Upgrade(project::create::UpgradeArgs),
    /// Start a cluster on this machine.
    Up(Box<up::Args>),
    /// Stop a cluster.
    Down(cluster::DownArgs),
    /// List clusters.
    Clusters(cluster::ClustersArgs),
    /// Print the kubeconfig of a cluster.
    Kubeconfig(cluster::KubeconfigArgs),
    /// Delete all objects of a cluster; it keeps its certificates and its port.
    Reset(cluster::ResetArgs),
    /// Write all objects of a running cluster to a new file.
    Snapshot(cluster::SnapshotArgs),
    /// Replace all objects of a cluster by those of a snapshot.
    Restore(cluster::RestoreArgs),
    /// Images of a cluster with `--node cri`.
    #[command(subcommand)]
    Image(image::Command),
    /// Say where on this machine a Service answers.
    Service(service::Args),
    /// Be a node of any cluster, by its kubeconfig.
    Node(Box<join::NodeArgs>),
    /// Give pods of any cluster their nodes, by its kubeconfig: alone, or as a second scheduler.
    Scheduler(Box<join::SchedulerCommand>),
    /// Lay out a folder for KUBEBUILDER_ASSETS: this program as etcd and kube-apiserver.
    Envtest(drop_in::envtest::Args),
    /// What stands over a process that is a container.
    #[command(hide = true)]
    Shim { words: Vec<OsString> },
    /// Say what kube-apiserver would say of manifests, without a cluster.
    Validate(validate::Args),
    /// Print what makes a shell complete this command.
    Completions(manual::CompletionsArgs),
    /// Print or write manual pages.
    Man(manual::ManArgs),
    /// Generate Rust types from CustomResourceDefinitions.
    Import(import::Args),
    /// Package an operator: one file, Kustomize, Helm or OLM.
    Package(Box<package::Args>),
    /// Build an operator's image, without a daemon.
    Build(Box<build::BuildArgs>),
    /// Send an image to a registry.
    Push(build::PushArgs),
    /// Say what a changed CustomResourceDefinition breaks, for stored objects and for clients.
    DiffCrd(diff_crd::Args),
}

fn main() -> ExitCode {
    let started = Instant::now();
    let mut args = std::env::args_os();
    if let Some(code) = drop_in::run(args.next(), args) {
        return code;
    }
    let outcome = match Args::parse().command {
        Command::Demo(args) => demo::run(&args, started),
        Command::Init(args) => project::create::init(&args),
        Command::Create(args) => project::create::create(&args),
        Command::Delete(args) => project::create::delete(&args),
        Command::Manifests(args) => project::cargo::manifests(&args),
        Command::Run(args) => project::run::run(&args),
        Command::Dev(args) => project::dev::dev(&args),
        Command::Install(args) => project::install::install(&args),
        Command::Uninstall(args) => project::install::uninstall(&args),
        Command::Deploy(args) => project::install::deploy(&args),
        Command::Undeploy(args) => project::install::undeploy(&args),
        Command::Upgrade(args) => project::create::change_library(&args),
        Command::Up(args) => up::run(&args, started),
        Command::Down(args) => cluster::down(&args),
        Command::Clusters(args) => cluster::list(&args),
        Command::Kubeconfig(args) => cluster::kubeconfig(&args),
        Command::Reset(args) => cluster::reset(&args),
        Command::Snapshot(args) => cluster::snapshot(&args),
        Command::Restore(args) => cluster::restore(&args),
        Command::Image(command) => image::run(&command),
        Command::Service(args) => service::run(&args),
        Command::Node(args) => join::node(*args),
        Command::Scheduler(command) => join::scheduler(&command),
        Command::Envtest(args) => drop_in::envtest::run(&args),
        Command::Shim { words } => Ok(kubewright_cluster::shim(&words)),
        Command::Validate(args) => validate::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
        Command::Import(args) => import::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Push(args) => build::push(&args),
        Command::DiffCrd(args) => diff_crd::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", reasons(&error));
        ExitCode::from(2)
    })
}

/// An error and its sources, each told once. What the server has refused says it all in its message.
pub(crate) fn reasons(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for reason in error.chain() {
        let status = reason.downcast_ref::<kube::Error>().and_then(|error| match error {
            kube::Error::Api(status) => Some(status),
            _ => None,
        });
        let told = status.map_or_else(|| reason.to_string(), |status| status.message.clone());
        // Some print their source already.
        if !text.ends_with(&told) {
            text += if text.is_empty() { "" } else { ": " };
            text += &told;
        }
        if status.is_some() {
            break;
        }
    }
    text
}
