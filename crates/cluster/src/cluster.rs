//! A whole cluster in this process.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kubewright::Cache;
use kubewright_apiserver::admission::{Plugin, PluginSet};
use kubewright_apiserver::aggregate::Identity;
use kubewright_apiserver::audit;
use kubewright_apiserver::authn::key::{KeyError, SigningKey, VerifyingKey};
use kubewright_apiserver::authn::token::{Issuer, Lifetimes};
use kubewright_apiserver::authn::{self, Authenticator, StaticTokens, Verifier};
use kubewright_apiserver::authz::{Authorizer, Mode};
use kubewright_apiserver::connect;
use kubewright_apiserver::edge::{
    self, Authorities, Certificates, Limits, Oldest, PairError, Tls, TlsError,
};
use kubewright_apiserver::genesis;
use kubewright_apiserver::index::{self, Store};
use kubewright_apiserver::server::{Server, Settings};
use kubewright_apiserver::user::User;
use kubewright_apiserver::version::GIT_VERSION;
use kubewright_controllers as controllers;
use kubewright_store::{BackupError, Revision, Unavailable, embedded, etcd};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::authority::{self, Authority, Signing};
use crate::nodes::{self, Nodes, NodesError, Surroundings};
use crate::{Clock, Pair, Pki};

/// What a cluster says of its place that can only be reached from inside.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6443);
/// Where services get their addresses from, as kube-apiserver has it.
const SERVICE_CIDR: &str = "10.0.0.0/24";
const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;

/// What a cluster is made of.
pub struct Config {
    pub storage: Storage,
    /// None for a cluster that only this process can reach.
    pub listen: Option<Listen>,
    pub clock: Clock,
    pub controllers: controllers::Names,
    /// None for a cluster whose pods wait for somebody else's scheduler and nodes.
    pub nodes: Option<Nodes>,
    /// None for no audit log.
    pub audit: Option<audit::Config>,
    pub terms: Terms,
}

/// What a server may be told about whom it serves and how. The defaults are those of a cluster of
/// our own, which are kube-apiserver's where it has any.
#[derive(Clone)]
pub struct Terms {
    /// Who decides what clients may do.
    pub modes: Vec<Mode>,
    /// Whether requests without credentials are served at all.
    pub anonymous: bool,
    pub static_tokens: StaticTokens,
    /// Whose tokens of service accounts are good; the first of them issues ours.
    pub issuers: Vec<String>,
    /// Where those who verify tokens are told to find the keys; none for the server's address.
    pub keys_url: Option<String>,
    /// Whom tokens must be meant for; empty for the issuers.
    pub audiences: Vec<String>,
    /// What verifies tokens; none for the key that signs them.
    pub token_keys: Option<Vec<VerifyingKey>>,
    pub token_lifetimes: Lifetimes,
    pub admission: PluginSet,
    /// Whether containers may be privileged.
    pub allows_privileged: bool,
    /// Where services get their addresses from, the main network first.
    pub service_cidrs: Vec<String>,
    pub node_ports: RangeInclusive<u16>,
    /// Where others reach the server, if not where it listens.
    pub advertised: Option<IpAddr>,
    /// Which version the server says it is.
    pub version: String,
    /// How nodes are reached, but for [`Credentials::kubelet_client`].
    pub kubelets: connect::Access,
    /// Clients that speak only older versions of TLS are not served.
    pub oldest_tls: Oldest,
}

/// Where objects are.
pub enum Storage {
    /// In memory, for as long as the cluster runs.
    Memory,
    /// In a directory, which is made if it is not there.
    Embedded(PathBuf),
    Etcd(Box<etcd::Config>),
    /// Where it was opened: a directory.
    Open(Store),
}

/// How others reach a cluster.
pub struct Listen {
    pub listener: std::net::TcpListener,
    pub credentials: Credentials,
    pub limits: Limits,
}

/// Who a server is, and by whom it knows others. All in PEM.
#[derive(Clone)]
pub struct Credentials {
    pub server: Pair,
    /// Vouches for clients; none for a server that knows nobody by a certificate.
    pub client_ca: Option<String>,
    /// By which pods know the server.
    pub root_ca: String,
    /// Signs the tokens of service accounts.
    pub service_account_key: String,
    pub front_proxy: Option<FrontProxy>,
    /// This server, to nodes.
    pub kubelet_client: Option<Pair>,
    /// Signs requests for certificates in the cluster; none where another process has its key.
    pub authority: Option<Pair>,
}

/// Who may say in headers on whose behalf it speaks, to this server and to those behind it.
#[derive(Clone)]
pub struct FrontProxy {
    /// Vouches for such proxies.
    pub ca: String,
    /// Such a proxy: this server, to those behind it.
    pub client: Option<Pair>,
    pub allowed_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_prefixes: Vec<String>,
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("open the store")]
    Embedded(#[source] embedded::OpenError),
    #[error("open the store in etcd")]
    Etcd(#[source] etcd::OpenError),
    #[error("use the server's certificate")]
    Certificate(#[source] PairError),
    #[error("secure connections")]
    Tls(#[source] TlsError),
    #[error("sign tokens of service accounts")]
    TokenKey(#[source] KeyError),
    #[error("found the cluster")]
    Found(#[source] Unavailable),
    #[error("make keys")]
    Keys(#[source] anyhow::Error),
    #[error("listen")]
    Listen(#[source] io::Error),
    #[error("write the audit log")]
    Audit(#[source] audit::OpenError),
    #[error("have nodes")]
    Nodes(#[from] NodesError),
}

/// A running cluster. Dropping it ends it in the middle of whatever it does; [`Cluster::shutdown`]
/// does not.
pub struct Cluster {
    server: Server,
    store: Store,
    shutdown: CancellationToken,
    /// Ends when told, before the server whose clients they are.
    controllers: JoinSet<()>,
    stop_controllers: CancellationToken,
    /// Ends on `shutdown`.
    listener: JoinSet<()>,
    /// What the server does by itself; ends on `shutdown`.
    work: JoinSet<()>,
    /// Writes the audit log; ends when told, after everything that it is told of.
    audit: JoinSet<()>,
    stop_audit: CancellationToken,
}

impl Cluster {
    /// Returns when the cluster answers.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let Config { storage, listen, clock, controllers: names, nodes, audit, terms } = config;
        let is_on_disk = matches!(storage, Storage::Embedded(_) | Storage::Open(_));
        // What is in memory begins with nothing there: what it creates then is made beside all that
        // comes before. Whoever needs it waits until it is made.
        let left = Server::left_to_prepare().filter(|_| matches!(storage, Storage::Memory));
        let preparing = left.map(tokio::task::spawn_blocking);
        // One thread waits for the disk while this one reads tables.
        let (store, ()) = tokio::join!(storage.open(clock), async { Server::prepare() });
        let store = store?;
        let log = audit.map(|audit| audit::Log::open(audit, store.config().clock.clone()));
        let log = log.transpose().map_err(StartError::Audit)?;
        let (mut audit, stop_audit) = (JoinSet::new(), CancellationToken::new());
        if let Some(log) = log.clone() {
            let stop = stop_audit.clone();
            audit.spawn(async move { log.run(stop).await });
        }
        let shutdown = CancellationToken::new();
        let mut address = match &listen {
            Some(listen) => listen.listener.local_addr().map_err(StartError::Listen)?,
            None => NOWHERE,
        };
        if let Some(advertised) = terms.advertised {
            address.set_ip(advertised);
        }
        let key = match &listen {
            Some(listen) => listen.credentials.service_account_key.clone(),
            // Tokens need not outlive a cluster that nobody else can reach.
            None => authority::key().map_err(StartError::Keys)?,
        };
        let has_controllers = controllers::NAMES.iter().any(|name| names.includes(name));
        let mut companions = Vec::from_iter(has_controllers.then_some("controller-manager"));
        // Where nodes are, pods are given to them.
        companions.extend(nodes.as_ref().map(|_| "scheduler"));
        let (networks, oldest_tls) = (terms.service_cidrs.clone(), terms.oldest_tls);
        let credentials = listen.as_ref().map(|listen| &listen.credentials);
        let front_proxy = credentials.and_then(|credentials| credentials.front_proxy.as_ref());
        let kubelet_client =
            credentials.and_then(|credentials| credentials.kubelet_client.as_ref());
        let keys = Keys { token: &key, front_proxy, kubelet_client };
        let server = server(&store, address, terms, keys, &shutdown, log, companions)?;
        begin(&server, clock, address, &networks, credentials).await?;
        if let Some(preparing) = preparing {
            preparing.await.expect("it does not panic");
        }

        let mut work = JoinSet::new();
        let (working, stop) = (server.clone(), shutdown.clone());
        work.spawn(async move { working.run(stop).await });
        let authority = match &listen {
            Some(listen) => listen.credentials.authority.clone().map(Authority::from_pair),
            // Nobody is known by what it signs, but whoever waits for that gets it.
            None => Some(Authority::new("kubewright", clock.now())),
        };
        let authority = authority.transpose().map_err(StartError::Keys)?;
        let root_ca_pem = match &listen {
            Some(listen) => Some(listen.credentials.root_ca.clone()),
            None => authority.as_ref().map(|authority| authority.pair.certificate.clone()),
        };
        let config = controllers::Config {
            names,
            root_ca_pem,
            clock: kubewright::Clock::new(move || timestamp(clock)),
            local_volumes: nodes.as_ref().map(|nodes| nodes.volumes.clone()),
            signer: authority.map(|authority| -> controllers::SharedSigner {
                Arc::new(Signing::new(authority, clock))
            }),
            // Nodes of ours are this machine.
            load_balancer: nodes.as_ref().map(|_| controllers::Address::Ip(nodes::ADDRESS)),
        };
        let stop_controllers = CancellationToken::new();
        let mut controllers = JoinSet::new();
        let clients = clients(&server);
        let (cache, informing) = Cache::new(clients.informers());
        controllers.spawn(informing);
        if let Some(nodes) = nodes {
            let around = Surroundings {
                server: &server,
                cache: &cache,
                place: listen.as_ref().map(|listen| (address, &listen.credentials)),
                clock: config.clock.clone(),
            };
            controllers.spawn(nodes.start(around, stop_controllers.clone()).await?);
        } else if is_on_disk {
            // Nodes that were killed could not say goodbye.
            controllers.spawn(nodes::withdraw(&server));
        }
        controllers.spawn(controllers::run(clients, cache, config, stop_controllers.clone()));
        let mut listener = JoinSet::new();
        if let Some(Listen { listener: socket, credentials, limits }) = listen {
            let Credentials { server: own, client_ca, front_proxy, .. } = credentials;
            let certificates = Certificates::new(own.certificate.as_bytes(), own.key.as_bytes());
            let certificates = Arc::new(certificates.map_err(StartError::Certificate)?);
            let proxy_ca = front_proxy.map(|proxy| proxy.ca).unwrap_or_default();
            let authorities = Authorities {
                clients: client_ca.as_deref().unwrap_or_default().as_bytes(),
                proxies: proxy_ca.as_bytes(),
            };
            let tls = Tls::since(oldest_tls, certificates, authorities);
            let tls = tls.map_err(StartError::Tls)?;
            socket.set_nonblocking(true).map_err(StartError::Listen)?;
            let socket = TcpListener::from_std(socket).map_err(StartError::Listen)?;
            let (server, shutdown) = (server.clone(), shutdown.clone());
            listener.spawn(async move {
                let handler = move |request| {
                    let server = server.clone();
                    async move { server.call(request).await }
                };
                edge::serve(socket, tls, limits, handler, shutdown).await;
            });
        }
        Ok(Cluster {
            server,
            store,
            shutdown,
            controllers,
            stop_controllers,
            listener,
            work,
            audit,
            stop_audit,
        })
    }

    /// The API, for clients in this process.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The last change.
    pub fn revision(&self) -> Revision {
        self.store.revision()
    }

    /// Writes all objects, as they are at one moment, to a new file.
    pub async fn snapshot(&self, path: &Path) -> Result<Revision, BackupError> {
        let (store, path) = (self.store.clone(), path.to_owned());
        let writing = tokio::task::spawn_blocking(move || store.backup(&path));
        writing.await.expect("a backup does not panic")
    }

    /// Ends watches, lets requests under way finish, and returns when everything that was
    /// acknowledged is where it belongs and nothing runs any more.
    pub async fn shutdown(mut self) {
        self.stop_controllers.cancel();
        while self.controllers.join_next().await.is_some() {}
        self.shutdown.cancel();
        while self.listener.join_next().await.is_some() {}
        while self.work.join_next().await.is_some() {}
        self.stop_audit.cancel();
        while self.audit.join_next().await.is_some() {}
        self.store.close().await;
    }
}

/// What controllers are called in the fields they manage, where clients look for this name.
const CONTROLLERS: &str = "kube-controller-manager";

/// The server as each controller sees it, with the rights that its account has.
fn clients(server: &Server) -> controllers::Clients {
    let server = server.clone();
    controllers::Clients::by_user(move |name| {
        let is_account = name.starts_with("system:serviceaccount:");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
        let groups = groups.into_iter().filter(|_| is_account).map(str::to_owned);
        let server = server.as_user(User::new(name, groups)).known_as(CONTROLLERS);
        kube::Client::new(server, "default")
    })
}

impl Storage {
    pub(crate) async fn open(self, clock: Clock) -> Result<Store, StartError> {
        let config =
            kubewright_store::Config::new(index::extract, index::resource_of, move || clock.now());
        match self {
            Storage::Memory => Ok(Store::memory(config)),
            Storage::Embedded(dir) => {
                let opening = tokio::task::spawn_blocking(move || Store::embedded(&dir, config));
                opening.await.expect("opening a store does not panic").map_err(StartError::Embedded)
            }
            Storage::Etcd(cluster) => {
                Store::etcd(config, &cluster, index::PREFIX).await.map_err(StartError::Etcd)
            }
            Storage::Open(store) => Ok(store),
        }
    }
}

/// The name that tokens of service accounts bear, and whom they are for unless they say otherwise.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// What a server proves itself with.
#[derive(Clone, Copy)]
struct Keys<'a> {
    /// Signs the tokens of service accounts.
    token: &'a str,
    front_proxy: Option<&'a FrontProxy>,
    kubelet_client: Option<&'a Pair>,
}

fn server(
    store: &Store,
    address: SocketAddr,
    terms: Terms,
    keys: Keys<'_>,
    shutdown: &CancellationToken,
    audit: Option<audit::Log>,
    companions: Vec<&'static str>,
) -> Result<Server, StartError> {
    let Keys { token, front_proxy, kubelet_client } = keys;
    let key = SigningKey::from_pem(token.as_bytes()).map_err(StartError::TokenKey)?;
    let Terms { issuers, audiences, token_keys, .. } = terms;
    let audiences = if audiences.is_empty() { issuers.clone() } else { audiences };
    let url = issuers.first().cloned().unwrap_or_default();
    let keys = token_keys.unwrap_or_else(|| vec![key.public.clone()]);
    let verifier = Verifier::new(issuers, audiences.clone(), keys);
    let authorizer = Arc::new(Authorizer::new(store.clone()).with_modes(terms.modes));
    let mut authenticator =
        Authenticator::new(store.clone(), authorizer, terms.static_tokens, verifier);
    authenticator.anonymous = terms.anonymous;
    authenticator.front_proxy = front_proxy.map(|proxy| authn::FrontProxy {
        allowed_names: proxy.allowed_names.clone(),
        username_headers: proxy.username_headers.clone(),
        uid_headers: proxy.uid_headers.clone(),
        group_headers: proxy.group_headers.clone(),
        extra_prefixes: proxy.extra_prefixes.clone(),
    });
    let identity = |pair: &Pair| Identity {
        certificate: pair.certificate.clone().into_bytes(),
        key: pair.key.clone().into_bytes(),
    };
    let kubelets = connect::Access { identity: kubelet_client.map(identity), ..terms.kubelets };
    let identity = front_proxy.and_then(|proxy| proxy.client.as_ref()).map(identity);
    let (keys_url, lifetimes) = (terms.keys_url, terms.token_lifetimes);
    let issuer = Issuer { url, keys_url, audiences, key, lifetimes };
    Ok(Server::new(Settings {
        store: store.clone(),
        authenticator,
        issuer: Some(issuer),
        address: address.to_string(),
        service_cidrs: terms.service_cidrs,
        node_ports: terms.node_ports,
        admission: terms.admission,
        allows_privileged: terms.allows_privileged,
        version: terms.version,
        shutdown: shutdown.clone(),
        audit,
        identity,
        kubelets,
        companions,
    }))
}

/// What every cluster has.
async fn begin(
    server: &Server,
    clock: Clock,
    address: SocketAddr,
    networks: &[String],
    credentials: Option<&Credentials>,
) -> Result<(), StartError> {
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let networks = texts(networks);
    let front_proxy = credentials.and_then(|credentials| credentials.front_proxy.as_ref());
    let lists = front_proxy.map(|proxy| {
        [
            &proxy.allowed_names,
            &proxy.username_headers,
            &proxy.uid_headers,
            &proxy.group_headers,
            &proxy.extra_prefixes,
        ]
        .map(|list| texts(list))
    });
    let proxy = front_proxy.zip(lists.as_ref());
    server
        .begin(&genesis::Settings {
            now: timestamp(clock),
            address: address.ip(),
            port: address.port(),
            service_cidrs: &networks,
            client_ca: credentials.and_then(|credentials| credentials.client_ca.as_deref()),
            proxy: proxy.map(|(proxy, [names, usernames, uids, groups, extra])| genesis::Proxy {
                ca: &proxy.ca,
                allowed_names: names,
                username_headers: usernames,
                uid_headers: uids,
                group_headers: groups,
                extra_prefixes: extra,
            }),
            hostname: &hostname,
            process: &Uuid::new_v4().to_string(),
        })
        .await
        .map_err(StartError::Found)
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            // As with kubeadm, here and for the plugin: nodes have what is theirs.
            modes: vec![Mode::Node, Mode::Rbac],
            anonymous: true,
            static_tokens: StaticTokens::default(),
            issuers: vec![ISSUER.to_owned()],
            keys_url: None,
            audiences: Vec::new(),
            token_keys: None,
            token_lifetimes: Lifetimes::default(),
            admission: PluginSet::default().with(Plugin::NodeRestriction),
            // As with kubeadm, which has its servers told so; they would allow none by themselves.
            allows_privileged: true,
            service_cidrs: vec![SERVICE_CIDR.to_owned()],
            node_ports: NODE_PORTS,
            advertised: None,
            version: GIT_VERSION.to_owned(),
            kubelets: connect::Access {
                // As kubeadm has it. Names of nodes need not be known to this machine.
                address_types: ["InternalIP", "ExternalIP", "Hostname"].map(str::to_owned).into(),
                ..connect::Access::default()
            },
            oldest_tls: Oldest::default(),
        }
    }
}

impl From<Pki> for Credentials {
    fn from(pki: Pki) -> Self {
        let list = |text: &str| vec![text.to_owned()];
        Credentials {
            server: pki.server,
            client_ca: Some(pki.ca.certificate.clone()),
            root_ca: pki.ca.certificate.clone(),
            service_account_key: pki.service_account_key,
            front_proxy: Some(FrontProxy {
                ca: pki.front_proxy_ca.certificate,
                client: Some(pki.front_proxy_client),
                allowed_names: list("front-proxy-client"),
                username_headers: list("X-Remote-User"),
                uid_headers: list("X-Remote-Uid"),
                group_headers: list("X-Remote-Group"),
                extra_prefixes: list("X-Remote-Extra-"),
            }),
            kubelet_client: Some(pki.kubelet_client),
            authority: Some(pki.ca),
        }
    }
}

fn timestamp(clock: Clock) -> Timestamp {
    let now = jiff::SignedDuration::try_from(clock.now()).expect("a time of this age");
    Timestamp::from_duration(now).expect("a time of this age")
}
