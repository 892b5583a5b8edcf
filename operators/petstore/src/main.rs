//! `petstore`: the store of pets, and the operator that keeps the pets of a cluster in it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, Parser, Subcommand};
use kubewright::settings::{Layer, LogFormat, Logs};
use kubewright::{logging, manifest};
use petstore::keeper;
use petstore::service::{Store, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tonic::transport::Uri;

#[derive(Parser)]
#[command(version, about = "A store of pets, and the operator that keeps pets of a cluster in it")]
struct Cli {
    /// Where the operator finds the store
    #[arg(long, env = "PETSTORE_STORE", value_name = "URL", global = true)]
    #[arg(default_value = "http://127.0.0.1:6742")]
    store: Uri,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the store of pets over gRPC
    Service(ServiceArgs),
    /// Run the operator
    Run(Box<Layer>),
    /// Write the manifests that install the operator
    Manifests(manifest::Options),
}

#[derive(Args)]
struct ServiceArgs {
    /// Where to listen; port 0 is any that is free
    #[arg(long, env = "PETSTORE_LISTEN", default_value = "127.0.0.1:6742")]
    listen: SocketAddr,
    /// Where the pets are kept; made if it is not there
    #[arg(long, env = "PETSTORE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    /// A level, or levels by module
    // What the database tells of itself is of interest to its authors.
    #[arg(long, env = "RUST_LOG", default_value = "info,fjall=warn,lsm_tree=warn")]
    log_level: String,
    /// What a line of the log looks like
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// Where traces are sent, by OTLP over gRPC
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
}

fn main() -> Result<()> {
    let Cli { store, command } = Cli::parse();
    match command {
        Command::Service(args) => service(args),
        Command::Run(flags) => {
            keeper::operator(store).start(&flags).map_err(|error| anyhow!(error))
        }
        Command::Manifests(options) => {
            Ok(options.run(keeper::package(&store), &mut io::stdout().lock())?)
        }
    }
}

#[tokio::main]
async fn service(args: ServiceArgs) -> Result<()> {
    let logs = Logs { level: args.log_level, format: args.log_format };
    let logging = logging::start("petstore", &logs, args.otlp_endpoint.as_deref())?;
    let store = Store::open(&args.data_dir)?;
    let listener = TcpListener::bind(args.listen);
    let listener = listener.await.with_context(|| format!("listen on {}", args.listen))?;
    println!("pets are served at http://{}", listener.local_addr()?);
    let shutdown = CancellationToken::new();
    let (served, interrupted) = tokio::join!(
        async {
            let served = serve(listener, store, shutdown.clone()).await;
            shutdown.cancel();
            served
        },
        interrupted(&shutdown),
    );
    logging.finish().await;
    interrupted.context("listen for signals")?;
    served.context("serve pets")
}

/// Ends the program when somebody wants it to.
async fn interrupted(shutdown: &CancellationToken) -> io::Result<()> {
    let signals = async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    };
    let interrupted = tokio::select! {
        interrupted = signals => interrupted,
        () = shutdown.cancelled() => Ok(()),
    };
    shutdown.cancel();
    interrupted
}
