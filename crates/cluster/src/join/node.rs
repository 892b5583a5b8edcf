//! A node of ours, or several, in any cluster.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, Taint};
use kube::Client;
use kube::api::{Api, PostParams};
use kubewright::certificate::Current;
use kubewright::{Cache, Clock};
use kubewright_node::{BalancerConfig, Server, ServerConfig, balance};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::serving::{self, Serving, Subject};
use super::{Reached, reach};
use crate::home::Hold;
use crate::nodes::{self, Engine, Places, Runtime};
use crate::process::{Signals, raise_file_limit};

/// What joins, and how.
#[derive(Debug)]
pub struct NodeOptions {
    /// The file that leads to the cluster; none for where clients look.
    pub kubeconfig: Option<PathBuf>,
    /// What the nodes are called; none for the name of this machine.
    pub names: Vec<String>,
    pub runtime: Runtime,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Where the API server reaches the node; none for the address by which the node reaches it.
    pub address: Option<IpAddr>,
    /// Where questions are answered; 0 for any port that is free.
    pub port: u16,
    /// Who vouches for those who ask; none for whom the cluster says.
    pub client_ca: Option<PathBuf>,
    pub serving: Serving,
    /// Where Ingresses are served, if they are.
    pub ingress: Option<SocketAddr>,
}

/// A node that is about to work.
#[derive(Debug)]
pub struct Joined {
    /// Where the API server is.
    pub server: String,
    pub names: Vec<String>,
    /// Where the API server reaches the node.
    pub address: SocketAddr,
}

/// Plays nodes until a signal ends it. What runs on them ends too; a process that was killed leaves
/// it to the next one. `ready` is called when all that can be wrong at once is right.
pub async fn node(options: NodeOptions, ready: impl FnOnce(&Joined)) -> Result<()> {
    raise_file_limit();
    let mut signals = Signals::new()?;
    let Reached { client, config: found } = reach(options.kubeconfig.as_deref()).await?;
    permit(&client).await?;
    let names = match options.names.is_empty() {
        true => vec![nodes::hostname()],
        false => options.names,
    };
    let url = &found.cluster_url;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    let address = match options.address {
        Some(address) => address,
        None => own_address(&host, port)?,
    };
    let _hold = match &options.runtime {
        Runtime::Process { directory, .. } | Runtime::Cri { directory, .. } => {
            Some(Hold::take(directory)?)
        }
        Runtime::Fake { .. } => None,
    };
    let clock = Clock::system();
    let certificate = Current::new();
    let subject = Subject { node: names[0].clone(), address };
    serving::make(&subject, &certificate, &clock)?;
    let server = Server::bind(ServerConfig {
        address: SocketAddr::new(address, options.port),
        certificate: certificate.clone(),
        client_authorities: authorities(options.client_ca.as_deref(), &client).await?,
    })
    .await?;
    let ingress = match options.ingress {
        Some(place) => {
            let listener = TcpListener::bind(place).await;
            Some(listener.with_context(|| format!("serve Ingresses at {place}"))?)
        }
        None => None,
    };

    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let server_here = host.parse().ok().filter(IpAddr::is_loopback);
    let server_here = server_here.map(|host| SocketAddr::new(host, port));
    let agent = names.first().cloned();
    let places = Places { node: address, server: Some((host, port)), agent };
    let engine = Engine::start(&options.runtime, &client, places, &clock, &mut tasks, &shutdown);
    let Engine { machine, runtime, locals } = engine.await?;
    ready(&Joined {
        server: found.cluster_url.to_string(),
        names: names.clone(),
        address: server.address(),
    });
    let keeping = (certificate, client.clone(), clock.clone(), shutdown.clone());
    let (certificate, asking, time, stop) = keeping;
    tasks.spawn(serving::keep(options.serving, subject, certificate, asking, time, stop));
    let (cache, informing) = Cache::new(client.clone());
    tasks.spawn(informing);
    if options.runtime.runs() {
        let config = BalancerConfig {
            addresses: vec![address],
            ingress,
            locals,
            runtime: Arc::clone(&runtime),
            server: server_here,
            nodes: names.clone(),
            node: options.runtime.host_ports_of(&names),
            client: client.clone(),
            clock: clock.clone(),
        };
        let (cache, stop) = (cache.clone(), shutdown.clone());
        tasks.spawn(async move { balance(&cache, config, stop).await });
    }
    let config = kubewright_node::Config {
        nodes: names,
        labels: options.labels,
        taints: options.taints,
        machine,
        runtime,
        sees_all: false,
        server: Some(server),
        metrics: None,
        clock,
    };
    {
        let playing = kubewright_node::run(client, &cache, config, shutdown.clone());
        let mut playing = std::pin::pin!(playing);
        tokio::select! {
            () = &mut playing => bail!("the node has ended by itself"),
            () = signals.stop() => {
                shutdown.cancel();
                playing.await;
            }
        }
    }
    options.runtime.end().await;
    drop(cache);
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Says at once what would otherwise be tried again without end.
async fn permit(client: &Client) -> Result<()> {
    let attributes = ResourceAttributes {
        verb: Some("create".to_owned()),
        resource: Some("nodes".to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await;
    match review.context("ask what this user may do")?.status {
        Some(status) if status.allowed => Ok(()),
        _ => bail!(
            "the user of this kubeconfig may not register nodes: use one of an administrator, or \
             of the node (system:node:NAME in the group system:nodes)"
        ),
    }
}

/// The address by which this machine reaches a server, and so most likely the other way round.
fn own_address(host: &str, port: u16) -> Result<IpAddr> {
    let find = || {
        let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0"))?;
        // Nothing is sent: the system is only asked for the way.
        socket.connect((host, port))?;
        socket.local_addr()
    };
    let found = find().with_context(|| format!("find the way to {host}: name --address"))?;
    Ok(found.ip())
}

/// Who vouches for those who ask: in a file, or as the API server publishes it.
async fn authorities(file: Option<&Path>, client: &Client) -> Result<Vec<CertificateDer<'static>>> {
    let pem = match file {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("read --client-ca-file {}", path.display()))?,
        None => {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
            let published = maps.get_opt("extension-apiserver-authentication").await;
            let published = published.unwrap_or_else(|error| {
                warn!(%error, "clients are known by tokens only: --client-ca-file names who vouches");
                None
            });
            let data = published.and_then(|map| map.data).unwrap_or_default();
            data.get("client-ca-file").cloned().unwrap_or_default()
        }
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(|error| anyhow!("read who vouches for clients: {error}"))?;
    match file {
        Some(path) if found.is_empty() => {
            bail!("there is no certificate in --client-ca-file {}", path.display())
        }
        _ => Ok(found),
    }
}
