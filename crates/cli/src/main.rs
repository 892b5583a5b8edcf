//! The `kubewright` command.

/// Prints a line for whoever listens. Nobody does behind `| head -1`, and that is no reason to end.
macro_rules! say {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($line)*);
    }};
}

mod cluster;
mod drop_in;
mod up;
mod validate;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Build, test and run Kubernetes operators.
#[derive(Parser)]
#[command(name = "kubewright", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
    /// Lay out a folder for KUBEBUILDER_ASSETS: this program as etcd and kube-apiserver.
    Envtest(drop_in::envtest::Args),
    /// Say what kube-apiserver would say of manifests, without a cluster.
    Validate(validate::Args),
}

fn main() -> ExitCode {
    let started = Instant::now();
    let mut args = std::env::args_os();
    if let Some(code) = drop_in::run(args.next(), args) {
        return code;
    }
    let outcome = match Args::parse().command {
        Command::Up(args) => up::run(&args, started),
        Command::Down(args) => cluster::down(&args),
        Command::Clusters(args) => cluster::list(&args),
        Command::Kubeconfig(args) => cluster::kubeconfig(&args),
        Command::Reset(args) => cluster::reset(&args),
        Command::Snapshot(args) => cluster::snapshot(&args),
        Command::Restore(args) => cluster::restore(&args),
        Command::Envtest(args) => drop_in::envtest::run(&args),
        Command::Validate(args) => validate::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
