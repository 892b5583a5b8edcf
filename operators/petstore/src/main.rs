//! `petstore`: the store of pets, and the operator that keeps the pets of a cluster in it.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use kube::Client;
use kubewright::webhook::{self, Server, Webhooks};
use kubewright::{Clock, connect, manifest};
use petstore::keeper::{NAME, operator};
use petstore::pet::conversion;
use petstore::service::{Store, serve};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tonic::transport::Uri;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(version, about = "A store of pets, and the operator that keeps pets of a cluster in it")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the store of pets over gRPC
    Service(ServiceArgs),
    /// Keep the pets of a cluster in the store
    Run(RunArgs),
    /// Render the objects that bring the operator into a cluster
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
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Which cluster [default: that of $KUBECONFIG, the one around, or that of ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Args)]
struct StoreArgs {
    /// Where the store is
    #[arg(long, env = "PETSTORE_STORE", value_name = "URL", default_value = DEFAULT_STORE)]
    store: Uri,
}

const DEFAULT_STORE: &str = "http://127.0.0.1:6742";

/// What the database tells of itself is of interest to its authors.
const LOGGED: &str = "info,fjall=warn,lsm_tree=warn";

#[tokio::main]
async fn main() -> Result<()> {
    let command = Cli::parse().command;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match command {
        Command::Service(args) => until_interrupted(|shutdown| service(args, shutdown)).await,
        Command::Run(args) => until_interrupted(|shutdown| run(args, shutdown)).await,
        Command::Manifests(options) => {
            let package = operator(DEFAULT_STORE.parse()?).package();
            Ok(options.run(package, &mut std::io::stdout())?)
        }
    }
}

async fn service(args: ServiceArgs, shutdown: CancellationToken) -> Result<()> {
    let store = Store::open(&args.data_dir)?;
    let listener = TcpListener::bind(args.listen);
    let listener = listener.await.with_context(|| format!("listen on {}", args.listen))?;
    println!("pets are served at http://{}", listener.local_addr()?);
    serve(listener, store, shutdown).await.context("serve pets")
}

async fn run(args: RunArgs, shutdown: CancellationToken) -> Result<()> {
    let environment = |name: &str| std::env::var_os(name);
    let connection = connect::find(args.kubeconfig.as_deref(), environment).await?;
    info!(cluster = %connection.source, store = %args.store.store, "keeping pets");
    let is_in_cluster = connection.is_in_cluster();
    let client = connection.client(&connect::Options::default())?;
    let operator = operator(args.store.store);
    let run = operator.run(client.clone(), Clock::system(), shutdown.clone());
    if is_in_cluster {
        run.await;
        return Ok(());
    }
    let (_, converted) = tokio::join!(run, convert(client, shutdown));
    converted
}

/// Converts pets for a cluster that can reach this machine.
async fn convert(client: Client, shutdown: CancellationToken) -> Result<()> {
    let webhooks = Arc::new(Webhooks::new().converting(conversion()));
    let metrics = Arc::new(webhook::Metrics::new(&mut Registry::default()));
    let now = Clock::system().now();
    let (server, place, trust) = Server::local(Arc::clone(&webhooks), metrics, now).await?;
    let installed = webhook::install(&client, NAME, webhooks.registrations(), &place, &trust).await;
    if let Err(error) = installed {
        // All else goes on without.
        warn!(error = &error as &dyn Error, "v1beta1 is not converted");
    }
    server.run(shutdown).await;
    Ok(())
}

/// Does something until somebody wants this program to end, or it ends by itself.
async fn until_interrupted<F>(run: impl FnOnce(CancellationToken) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("listen for signals")?;
    let mut running = std::pin::pin!(run(shutdown.clone()));
    tokio::select! {
        ended = &mut running => return ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listen for signals")?,
        _ = terminate.recv() => {}
    }
    shutdown.cancel();
    running.await
}
