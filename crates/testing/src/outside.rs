//! The cluster as other processes reach it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::config::Kubeconfig;
use kubewright_apiserver::edge::{self, Authorities, Certificates, Limits, Tls};
use kubewright_apiserver::server::Server;
use kubewright_cluster::{Pki, kubeconfig::Access};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A file that leads other processes to a cluster, and what listens for them.
pub(crate) struct Outside {
    dir: TempDir,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Outside {
    /// Has a server listen on loopback, over TLS, for whoever has the file.
    pub(crate) async fn of(server: &Server, now: Duration) -> Self {
        let pki = Pki::in_memory(ADDRESS, now).expect("keys");
        let listener = TcpListener::bind((ADDRESS, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let own = &pki.server;
        let certificates = Certificates::new(own.certificate.as_bytes(), own.key.as_bytes());
        let clients = pki.ca.certificate.as_bytes();
        let authorities = Authorities { clients, proxies: b"" };
        let certificates = Arc::new(certificates.expect("a certificate"));
        let tls = Tls::new(certificates, authorities).expect("an authority");
        let (server, stop, mut tasks) = (server.clone(), CancellationToken::new(), JoinSet::new());
        let shutdown = stop.clone();
        tasks.spawn(async move {
            let handler = move |request| {
                let server = server.clone();
                async move { server.call(request).await }
            };
            edge::serve(listener, tls, Limits::default(), handler, shutdown).await;
        });
        let access = Access {
            name: "test",
            server: &format!("https://{}", SocketAddr::new(ADDRESS, port)),
            ca_pem: &pki.ca.certificate,
            user: &pki.admin,
        };
        Outside { dir: written(&access.alone()), stop, tasks }
    }

    /// The cluster that the kubeconfig leads to, with another namespace.
    pub(crate) fn existing(namespace: &str) -> Self {
        let mut found = Kubeconfig::read().unwrap_or_else(|error| panic!("a kubeconfig: {error}"));
        let current = found.current_context.clone();
        for context in &mut found.contexts {
            if Some(&context.name) == current.as_ref()
                && let Some(context) = &mut context.context
            {
                context.namespace = Some(namespace.to_owned());
            }
        }
        // JSON is YAML.
        let text = serde_json::to_string(&found).expect("a kubeconfig");
        Outside { dir: written(&text), stop: CancellationToken::new(), tasks: JoinSet::new() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        file(self.dir.path())
    }

    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

fn written(kubeconfig: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(file(dir.path()), kubeconfig).expect("a file");
    dir
}

fn file(dir: &Path) -> PathBuf {
    dir.join("kubeconfig")
}
