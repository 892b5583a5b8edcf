//! The `conformance` command: judge an endpoint, or record what it answers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::{judge, record, scenario};

/// Speaks to the endpoint of the current kubeconfig context (`KUBECONFIG`).
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge the endpoint by every scenario.
    Run {
        /// Whose list of expected failures to hold it to.
        #[arg(long, default_value = "upstream")]
        target: String,
        /// Only scenarios whose name or api-surface id contains this.
        #[arg(long)]
        filter: Option<String>,
        /// How many scenarios to run at once.
        #[arg(long, default_value_t = 8)]
        jobs: usize,
        /// Run what fails once more, alone: what fails twice is wrong.
        #[arg(long)]
        patient: bool,
        /// Judge the scheduler that runs beside it, too.
        #[arg(long)]
        scheduler: bool,
        /// Judge the nodes that pods run on, too, and what controllers, scheduler and nodes make of
        /// workloads together.
        #[arg(long)]
        nodes: bool,
        /// Judge what becomes of commands in containers and connections to pods, too, where nodes
        /// run them.
        #[arg(long)]
        commands: bool,
        /// Judge how it finds what is behind a Service, too: straight by EndpointSlices, as
        /// kube-apiserver does with `--enable-aggregator-routing`.
        #[arg(long)]
        routing: bool,
        /// Leave out what an API server and its controllers do alone.
        #[arg(long)]
        only: bool,
    },
    /// Print every scenario with the api-surface ids it proves.
    List,
    /// Check, without an endpoint, that scenarios, api-surface and recordings agree.
    Check,
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
        Command::Run {
            target,
            filter,
            jobs,
            patient,
            scheduler,
            nodes,
            commands,
            routing,
            only,
        } => {
            let endpoint = Endpoint::from_kubeconfig().await?;
            let expected = judge::expected_failures(&target)?;
            let manner = judge::Manner { jobs, is_patient: patient };
            let mut scenarios = if only { Vec::new() } else { scenario::all() };
            if nodes {
                scenarios.extend(scenario::running());
            }
            if scheduler {
                scenarios.extend(scenario::scheduling());
            }
            if commands {
                scenarios.extend(scenario::entering());
            }
            if routing {
                scenarios.extend(scenario::routing());
            }
            let filter = filter.as_deref();
            let judging = judge::run_these(&endpoint, scenarios, filter, &expected, manner);
            let verdict = judging.await?;
            println!("{verdict}");
            Ok(if verdict.is_pass() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::List => {
            for scenario in scenario::every() {
                println!("{} {}", scenario.name, scenario.proves.join(" "));
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Check => {
            let faults = kubewright_conformance::faults()?;
            faults.iter().for_each(|fault| println!("{fault}"));
            Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Record { dir, check, jobs, only } => {
            let endpoint = Endpoint::from_kubeconfig().await?;
            let mode = if check { record::Mode::Compare } else { record::Mode::Write };
            let failures = record::run(&endpoint, &dir, &only, mode, jobs).await?;
            Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
