//! kube-apiserver's place: a server on an etcd, with the certificates and keys it is given.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
pub use kubewright_apiserver::admission::{PluginSet, PluginsError};
use kubewright_apiserver::audit;
use kubewright_apiserver::authn::StaticTokens;
use kubewright_apiserver::authn::key::VerifyingKey;
pub use kubewright_apiserver::authz::Mode;
pub use kubewright_apiserver::edge::{Limits, Oldest};
use kubewright_controllers::Names;
use kubewright_store::etcd;
use tracing::info;

use crate::authority::{Authority, Purpose, Subject};
use crate::process::{Signals, raise_file_limit};
use crate::{Clock, Cluster, Config, Credentials, FrontProxy, Listen, Pair, Storage, Terms};

/// What a server is told. Files are read when it starts.
pub struct Options {
    pub bind: SocketAddr,
    pub etcd: etcd::Config,
    /// Where the server's certificate is looked for, and kept if it must be made.
    pub cert_dir: PathBuf,
    /// The certificate and its key, if not there.
    pub certificate: Option<(PathBuf, PathBuf)>,
    pub client_ca: Option<PathBuf>,
    pub static_tokens: Option<PathBuf>,
    /// Signs the tokens of service accounts.
    pub signing_key: PathBuf,
    /// Verify them.
    pub token_keys: Vec<PathBuf>,
    /// [`FrontProxy::ca`] is a path here.
    pub front_proxy: Option<FrontProxy>,
    /// The certificate and key of [`FrontProxy::client`], which need somebody to vouch for them.
    pub proxy_client: Option<(PathBuf, PathBuf)>,
    /// The certificate and key by which nodes know this server.
    pub kubelet_client: Option<(PathBuf, PathBuf)>,
    /// Vouches for nodes.
    pub kubelet_ca: Option<PathBuf>,
    pub controllers: Names,
    pub audit: Option<audit::Config>,
    pub limits: Limits,
    /// All but what the files above say.
    pub terms: Terms,
}

/// Serves until a signal says stop. `ready` is called once, when the server answers.
pub async fn run(options: Options, ready: impl FnOnce()) -> Result<()> {
    raise_file_limit();
    let mut signals = Signals::new()?;
    // First of all: a client that connects now waits for the answer, and need not ask again.
    let listener =
        TcpListener::bind(options.bind).with_context(|| format!("listen on {}", options.bind))?;
    let clock = Clock::System;
    let credentials = credentials(&options, clock.now())?;
    let mut terms = options.terms;
    if let Some(path) = &options.static_tokens {
        terms.static_tokens = StaticTokens::parse(&read(path)?)
            .with_context(|| format!("use the tokens in {}", path.display()))?;
    }
    let kubelet_ca = options.kubelet_ca.as_deref().map(read).transpose()?;
    terms.kubelets.authorities = kubelet_ca.map(String::into_bytes);
    terms.token_keys = Some(token_keys(&options.token_keys)?);
    terms.advertised = Some(terms.advertised.unwrap_or_else(|| advertised(options.bind.ip())));
    let config = Config {
        storage: Storage::Etcd(Box::new(options.etcd)),
        listen: Some(Listen { listener, credentials, limits: options.limits }),
        clock,
        controllers: options.controllers,
        nodes: None,
        audit: options.audit,
        terms,
    };
    let starting = Cluster::start(config);
    let cluster = tokio::select! {
        started = starting => started.context("start the server")?,
        // Whoever waits for an etcd may lose patience.
        () = signals.stop() => return Ok(()),
    };
    ready();
    signals.stop().await;
    cluster.shutdown().await;
    Ok(())
}

fn credentials(options: &Options, now: Duration) -> Result<Credentials> {
    let pair = |(certificate, key): &(PathBuf, PathBuf)| {
        anyhow::Ok(Pair { certificate: read(certificate)?, key: read(key)? })
    };
    let server = match &options.certificate {
        Some(files) => pair(files)?,
        None => serving(&options.cert_dir, options.bind.ip(), now)?,
    };
    let client_ca = options.client_ca.as_deref().map(read).transpose()?;
    let front_proxy = match &options.front_proxy {
        Some(proxy) => Some(FrontProxy {
            ca: read(Path::new(&proxy.ca))?,
            client: options.proxy_client.as_ref().map(pair).transpose()?,
            ..proxy.clone()
        }),
        None => None,
    };
    Ok(Credentials {
        root_ca: server.certificate.clone(),
        server,
        client_ca,
        service_account_key: read(&options.signing_key)?,
        front_proxy,
        kubelet_client: options.kubelet_client.as_ref().map(pair).transpose()?,
        authority: None,
    })
}

fn token_keys(paths: &[PathBuf]) -> Result<Vec<VerifyingKey>> {
    let mut keys = Vec::new();
    for path in paths {
        let found = VerifyingKey::from_pem(read(path)?.as_bytes());
        keys.extend(found.with_context(|| format!("use the key in {}", path.display()))?);
    }
    Ok(keys)
}

/// The certificate in `dir`, under upstream's name for it; one that vouches for itself is made if
/// there is none.
fn serving(dir: &Path, address: IpAddr, now: Duration) -> Result<Pair> {
    let path = |file: &str| dir.join(file);
    let (certificate, key) = (path("apiserver.crt"), path("apiserver.key"));
    if certificate.exists() && key.exists() {
        return Ok(Pair { certificate: read(&certificate)?, key: read(&key)? });
    }
    let authority = Authority::new(&format!("kubewright-ca@{}", now.as_secs()), now)?;
    let mut subjects = vec![
        Subject::Name("localhost".to_owned()),
        Subject::Name("kubernetes.default.svc".to_owned()),
        Subject::Name("kubernetes.default".to_owned()),
        Subject::Name("kubernetes".to_owned()),
        Subject::Address(Ipv4Addr::LOCALHOST.into()),
    ];
    subjects.push(Subject::Address(advertised(address)));
    let issued = authority.issue("CN=kube-apiserver", Purpose::Server(subjects), now)?;
    let pair = Pair {
        // Clients that trust the file trust what vouches for it, too.
        certificate: issued.certificate + &authority.pair.certificate,
        key: issued.key,
    };
    fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    fs::write(&certificate, &pair.certificate)
        .with_context(|| format!("write {}", certificate.display()))?;
    let mut private = fs::OpenOptions::new();
    private.write(true).create(true).truncate(true).mode(0o600);
    private
        .open(&key)
        .and_then(|mut file| std::io::Write::write_all(&mut file, pair.key.as_bytes()))
        .with_context(|| format!("write {}", key.display()))?;
    info!(certificate = %certificate.display(), "made a certificate");
    Ok(pair)
}

/// Where others reach a server that listens at `bind`. As upstream has it, those who listen
/// everywhere, or only to this machine, name the address that leads out of it.
fn advertised(bind: IpAddr) -> IpAddr {
    if !bind.is_unspecified() && !bind.is_loopback() {
        return bind;
    }
    // Nothing is sent: connecting only chooses the address to send from.
    let outward = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    match outward {
        Ok(address) if !address.ip().is_unspecified() => address.ip(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    // In upstream's words, which people look for.
    fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow::anyhow!("open {}: no such file or directory", path.display())
        }
        _ => anyhow::Error::new(error).context(format!("read {}", path.display())),
    })
}
