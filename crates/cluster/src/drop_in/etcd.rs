//! etcd's place: a member that keeps its keys in a directory.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_store::member::{self, Member};
pub use kubewright_store::member::{Tls, VERSION};
use uuid::Uuid;

use crate::Clock;
use crate::process::{Signals, raise_file_limit};

/// What a member is told.
pub struct Options {
    pub name: String,
    pub data_dir: PathBuf,
    /// Where clients are served.
    pub listen: Vec<SocketAddr>,
    pub tls: Option<Tls>,
    /// Where clients and other members are told to find it.
    pub client_urls: Vec<String>,
    pub peer_urls: Vec<String>,
    /// Whether a write waits until it survives loss of power.
    pub sync: bool,
    pub request_bytes_max: usize,
    pub txn_ops_max: usize,
    pub progress_interval: Duration,
}

/// Serves until a signal says stop.
pub async fn run(options: Options) -> Result<()> {
    raise_file_limit();
    let mut signals = Signals::new()?;
    let Options { data_dir, listen, tls, .. } = options;
    // First of all: a client that connects now waits for the answer, and need not ask again.
    let listeners = listen
        .iter()
        .map(|address| TcpListener::bind(address).with_context(|| format!("listen on {address}")));
    let listeners = listeners.collect::<Result<Vec<_>>>()?;
    if data_dir.join("member").exists() {
        bail!(
            "{} holds the data of another etcd, whose format is not ours: choose another \
             --data-dir",
            data_dir.display()
        );
    }
    fs::create_dir_all(&data_dir).with_context(|| format!("make {}", data_dir.display()))?;
    let settings = member::Options {
        cluster_id: cluster_id(&data_dir)?,
        name: options.name,
        client_urls: options.client_urls,
        peer_urls: options.peer_urls,
        sync: options.sync,
        request_bytes_max: options.request_bytes_max,
        txn_ops_max: options.txn_ops_max,
        progress_interval: options.progress_interval,
    };
    let store = data_dir.join("store");
    let opening =
        tokio::task::spawn_blocking(move || Member::open(&store, settings, || Clock::System.now()));
    let member = opening.await.expect("opening a store does not panic").context("open the data")?;
    member.serve(listeners, tls, signals.stop()).await.context("serve clients")
}

/// What tells this cluster from others: made once, then found again.
fn cluster_id(data_dir: &Path) -> Result<u64> {
    let path = data_dir.join("cluster-id");
    match fs::read_to_string(&path) {
        Ok(text) => {
            u64::from_str_radix(text.trim(), 16).with_context(|| format!("read {}", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let id = Uuid::new_v4().as_u64_pair().0;
            fs::write(&path, format!("{id:016x}\n"))
                .with_context(|| format!("write {}", path.display()))?;
            Ok(id)
        }
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}
