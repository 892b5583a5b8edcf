//! The `kubewright` command.

mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, test and run Kubernetes operators.
#[derive(Parser)]
#[command(name = "kubewright", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what kube-apiserver would say of manifests, without a cluster.
    Validate(validate::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Validate(args) => validate::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
