//! An operator as a program: arguments, logs, signals.

use std::error::Error as StdError;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, io};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::{Host, Operator, Surrounding};
use crate::chain::chain;
use crate::clock::Clock;
use crate::settings::{Layer, Settings};
use crate::{connect, logging, manifest};

#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Layer,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator, which it does without a command too
    Run(Box<Layer>),
    /// Write the manifests that install the operator
    Manifests(manifest::Options),
}

type Failure = Box<dyn StdError + Send + Sync>;

pub(super) fn main(operator: Operator) -> ExitCode {
    // Else what describes the settings would describe the program.
    let described = Arguments::command().about(None::<&str>).long_about(None::<&str>);
    let parsed = Arguments::from_arg_matches(&described.get_matches());
    let Arguments { command, settings } = parsed.unwrap_or_else(|error| error.exit());
    let done = match command {
        None => run(operator, &settings),
        Some(Command::Run(settings)) => run(operator, &settings),
        Some(Command::Manifests(options)) => {
            options.run(operator.package(), &mut io::stdout().lock()).map_err(Failure::from)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", chain(&*failure));
            ExitCode::FAILURE
        }
    }
}

pub(super) fn run(operator: Operator, flags: &Layer) -> Result<(), Failure> {
    let settings = Settings::load(flags, |name| env::var_os(name))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let endpoint = settings.otlp_endpoint.as_deref();
        let logging = logging::start(operator.name(), &settings.logs, endpoint)?;
        let ran = serve(operator, settings).await;
        logging.finish().await;
        ran
    })
}

async fn serve(operator: Operator, settings: Settings) -> Result<(), Failure> {
    // Before anything is asked: a signal that nobody waits for ends the program as it is.
    let signals = Signals::listen()?;
    let mut registry = Registry::default();
    let metrics = Arc::new(connect::Metrics::new(&mut registry));
    let found = connect::find(settings.kubeconfig.as_deref(), |name| env::var_os(name)).await?;
    let surrounding = match found.config.cluster_url.host() {
        _ if found.is_in_cluster() => Surrounding::Pod,
        Some("localhost" | "127.0.0.1" | "[::1]") => Surrounding::Beside,
        _ => Surrounding::Afar,
    };
    let namespace = found.namespace().to_owned();
    let options = connect::Options { metrics: Some(metrics), protobuf: settings.protobuf };
    let client = found.client(&options)?;
    let clock = Clock::system();
    let host = Host { client, clock, settings, namespace, surrounding, registry };
    let shutdown = CancellationToken::new();
    let served = operator.serve(host, shutdown.clone());
    tokio::select! {
        served = served => Ok(served?),
        failure = signals.heed(&shutdown) => Err(failure),
    }
}

/// What tells the program to end.
struct Signals {
    interrupts: Signal,
    terminations: Signal,
}

impl Signals {
    /// From now on a signal is kept until it is heeded.
    fn listen() -> io::Result<Self> {
        let (interrupts, terminations) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { interrupts, terminations })
    }

    /// Ends the program gently at the first signal, and at once at the second.
    async fn heed(mut self, shutdown: &CancellationToken) -> Failure {
        self.next().await;
        info!("stopping; a second signal ends it at once");
        shutdown.cancel();
        self.next().await;
        "ended by a second signal".into()
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}
