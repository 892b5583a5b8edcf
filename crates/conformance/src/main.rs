//! The `conformance` command: judge an endpoint, or record what it answers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::record;

/// Speaks to the endpoint of the current kubeconfig context (`KUBECONFIG`).
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play recorded cases and keep what the endpoint answers.
    Record {
        /// The folder that holds `<area>/<case>.yaml`.
        #[arg(long, default_value = "crates/apimachinery/fixtures")]
        dir: PathBuf,
        /// Write nothing; fail when an answer differs from the recorded one.
        #[arg(long)]
        check: bool,
        /// How many cases to play at once.
        #[arg(long, default_value_t = 8)]
        jobs: usize,
        /// Only these: `AREA` or `AREA/CASE`.
        only: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    run(Args::parse().command).await.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Record { dir, check, jobs, only } => {
            let endpoint = Endpoint::from_kubeconfig().await?;
            let mode = if check { record::Mode::Compare } else { record::Mode::Write };
            let failures = record::run(&endpoint, &dir, &only, mode, jobs).await?;
            Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
