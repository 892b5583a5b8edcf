//! An etcd of one member, on the durable store of this crate.
//!
//! It serves etcd's v3 API as far as its clients in the world of Kubernetes go: keys, transactions,
//! watches, leases, the state of the member, and `/health` and `/version` over plain HTTP. So our
//! own server, a stock kube-apiserver and `etcdctl` can all use it, and none can tell it from etcd
//! by what it answers.
//!
//! What is different, and told where it shows: keys are UTF-8; the disk holds the latest state and
//! no history, so that whatever was before a restart is compacted; a lease without keys does not
//! survive a restart; there are no users, no other members, and no snapshots of etcd's own format.

mod about;
mod keys;
mod kv;
mod lease;
mod refusal;
mod txn;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch as channel};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use crate::commit::{GroupWriter, Reply, Transaction};
use crate::embedded::{self, OpenError};
use crate::etcd::wire::{
    ResponseHeader, cluster_server::ClusterServer, kv_server::KvServer, lease_server::LeaseServer,
    maintenance_server::MaintenanceServer, watch_server::WatchServer,
};
use crate::image::Image;
use crate::write::Writer as _;
use crate::{Config, HistoryBounds, Revision};
use keys::Meta;
use lease::Leases;

/// The version of etcd whose API this is.
pub const VERSION: &str = "3.6.8";

/// What a member is told when it starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Tells this cluster from others, for as long as its data lives.
    pub cluster_id: u64,
    pub name: String,
    /// Where clients and other members are told to find it.
    pub client_urls: Vec<String>,
    pub peer_urls: Vec<String>,
    /// Whether a write waits until it survives loss of power, not only the end of this process.
    pub sync: bool,
    pub request_bytes_max: usize,
    pub txn_ops_max: usize,
    /// How often a quiet watch that asked for it is told how far it has come.
    pub progress_interval: Duration,
}

/// How a member secures its connections, all in PEM.
#[derive(Clone)]
pub struct Tls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Who must vouch for clients; none to let everybody in.
    pub client_ca: Option<Vec<u8>>,
}

/// Why a member cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("listen")]
    Listen(#[source] io::Error),
    #[error("serve")]
    Serve(#[source] tonic::transport::Error),
}

/// An etcd of one member. A clone is another handle on it.
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    image: Arc<Image<Meta>>,
    writer: GroupWriter<Meta>,
    leases: Leases,
    options: Options,
    /// Nothing older can be read.
    compacted: AtomicI64,
    /// True from when watches are to end.
    closing: channel::Sender<bool>,
}

/// How much of the past is kept if nobody compacts it. etcd would stop taking writes at some point.
const HISTORY_BYTES_MAX: usize = 512 << 20;

/// Far beyond what is allowed, so that it is refused in etcd's words.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How long clients have to hang up when the member stops.
const GOODBYE: Duration = Duration::from_secs(1);

impl Member {
    /// Opens the data in `dir`, or makes some if there is nothing. Blocks until all is loaded.
    ///
    /// `now` is the time since the Unix epoch.
    pub fn open(
        dir: &Path,
        options: Options,
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let mut config = Config::new(keys::extract, |_| "", now);
        // Only who says so compacts.
        config.history = HistoryBounds { window: Duration::MAX, bytes_max: HISTORY_BYTES_MAX };
        let (image, writer) = embedded::open(dir, config)?;
        let leases = Leases::of(&image.snapshot());
        Ok(Member(Arc::new(Inner {
            image,
            writer,
            leases,
            options,
            compacted: AtomicI64::new(0),
            closing: channel::Sender::new(false),
        })))
    }

    /// Serves until `shutdown`, then ends watches, closes the data and returns.
    pub async fn serve(
        self,
        listeners: Vec<std::net::TcpListener>,
        tls: Option<Tls>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let mut servers = JoinSet::new();
        for listener in listeners {
            listener.set_nonblocking(true).map_err(ServeError::Listen)?;
            let listener = TcpListener::from_std(listener).map_err(ServeError::Listen)?;
            let mut server = Server::builder().accept_http1(true);
            if let Some(tls) = &tls {
                server = server.tls_config(tls.config()).map_err(ServeError::Serve)?;
            }
            let mut closing = self.0.closing.subscribe();
            let end = async move {
                // An error says that there is nobody left to stop, which means the same.
                let _ = closing.wait_for(|closing| *closing).await;
            };
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let served =
                server.add_routes(self.routes()).serve_with_incoming_shutdown(incoming, end);
            servers.spawn(served);
        }
        let mut expiry = JoinSet::new();
        let member = self.clone();
        expiry.spawn(async move { member.expire().await });

        let failed = tokio::select! {
            () = shutdown => None,
            ended = servers.join_next() => ended,
        };
        self.0.closing.send_replace(true);
        expiry.shutdown().await;
        let goodbye = async { while servers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        servers.shutdown().await;
        self.0.writer.close().await;
        match failed {
            Some(Ok(Err(error))) => Err(ServeError::Serve(error)),
            _ => Ok(()),
        }
    }

    fn routes(&self) -> Routes {
        let bounded = MESSAGE_BYTES_MAX;
        let mut routes = Routes::builder();
        routes
            .add_service(KvServer::new(self.clone()).max_decoding_message_size(bounded))
            .add_service(WatchServer::new(self.clone()))
            .add_service(LeaseServer::new(self.clone()))
            .add_service(MaintenanceServer::new(self.clone()))
            .add_service(ClusterServer::new(self.clone()));
        let router = about::routes(self.clone(), routes.routes().into_axum_router());
        Routes::from(router)
    }

    /// Does `work` on all keys at once. Nothing changes if it is refused.
    async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, Meta>, &Leases) -> Result<T, Status> + Send + 'static,
    ) -> Result<(T, Revision), Status> {
        let (sender, answer) = oneshot::channel();
        let member = self.clone();
        let job = move |transaction: &mut Transaction<'_, Meta>| -> Reply {
            let leases = &member.0.leases;
            let done = work(transaction, leases);
            match &done {
                Ok(_) => leases.follow(transaction),
                Err(_) => transaction.abandon(),
            }
            if member.0.options.sync && transaction.changes().next().is_some() {
                transaction.sync();
            }
            Box::new(move |visible| {
                let answer = match visible {
                    Ok(revision) => done.map(|done| (done, revision)),
                    Err(why) => Err(Status::unavailable(format!("etcdserver: {why}"))),
                };
                // Whoever asked may have gone.
                let _ = sender.send(answer);
            })
        };
        self.0.writer.transact(Box::new(job)).await;
        answer.await.unwrap_or_else(|_| Err(Status::unavailable("etcdserver: server stopped")))
    }

    fn header(&self, revision: Revision) -> Option<ResponseHeader> {
        Some(ResponseHeader {
            cluster_id: self.0.options.cluster_id,
            member_id: self.id(),
            revision: revision.get(),
            raft_term: TERM,
        })
    }

    /// Never 0, which clients take for none.
    fn id(&self) -> u64 {
        self.0.options.cluster_id.rotate_left(32) | 1
    }

    fn compacted(&self) -> Revision {
        Revision::new(self.0.compacted.load(Ordering::Acquire))
    }
}

/// There was one election, and everybody voted for us.
const TERM: u64 = 2;

impl Tls {
    fn config(&self) -> ServerTlsConfig {
        let identity = Identity::from_pem(&self.certificate, &self.key);
        let config = ServerTlsConfig::new().identity(identity);
        match &self.client_ca {
            Some(ca) => config.client_ca_root(Certificate::from_pem(ca)),
            None => config,
        }
    }
}
