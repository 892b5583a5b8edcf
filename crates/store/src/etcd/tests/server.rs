//! Real etcds for tests: one that is already running, or children of the test itself.

use std::env;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::etcd::{Config, Identity, Tls};

/// The URL of a running etcd, for tests that need nothing else.
pub(crate) fn running() -> Option<Config> {
    let Ok(endpoint) = env::var("KUBEWRIGHT_ETCD") else {
        eprintln!("skipped: set KUBEWRIGHT_ETCD to the URL of an etcd to run this on it");
        return None;
    };
    // Tests compact when they mean to.
    Some(Config { compaction_interval: None, ..Config::new(endpoint) })
}

/// A prefix that no other test uses, nor another run on the same etcd.
pub(crate) fn prefix() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    // Nothing else in a process tells two runs apart as simply as the name of a fresh directory.
    let run = tempfile::tempdir().expect("make a directory");
    let run = run.path().file_name().expect("it has a name").to_string_lossy().into_owned();
    format!("/{run}-{number}/")
}

/// An etcd that the test may kill and start again on the same data and port.
pub(crate) struct Server {
    binary: String,
    dir: TempDir,
    name: String,
    client_port: u16,
    peer_port: u16,
    /// Every member of the cluster, as etcd wants to be told.
    members: String,
    secured: Option<Secured>,
    child: Option<Child>,
}

/// Certificates for a server that speaks TLS and wants its clients to.
struct Secured {
    ca_pem: String,
    server_pem: String,
    server_key_pem: String,
    client_pem: String,
    client_key_pem: String,
}

impl Server {
    /// Starts an etcd if the environment names a binary.
    pub(crate) fn start() -> Option<Self> {
        Self::start_as(None)
    }

    /// The same, with TLS and client certificates.
    pub(crate) fn start_secured() -> Option<Self> {
        Self::start_as(Some(Secured::new()))
    }

    /// Three members of one cluster.
    pub(crate) fn start_cluster() -> Option<[Self; 3]> {
        let binary = binary()?;
        let mut servers = ["a", "b", "c"].map(|name| Self::new(&binary, name, None));
        let members = servers.each_ref().map(|server| server.members.clone()).join(",");
        for server in &mut servers {
            server.members.clone_from(&members);
            server.restart();
        }
        Some(servers)
    }

    fn start_as(secured: Option<Secured>) -> Option<Self> {
        let mut server = Self::new(&binary()?, "default", secured);
        server.restart();
        Some(server)
    }

    fn new(binary: &str, name: &str, secured: Option<Secured>) -> Self {
        let peer_port = free_port();
        Self {
            binary: binary.to_owned(),
            dir: tempfile::tempdir().expect("make a directory"),
            name: name.to_owned(),
            client_port: free_port(),
            peer_port,
            members: format!("{name}=http://127.0.0.1:{peer_port}"),
            secured,
            child: None,
        }
    }

    /// How to reach it. The first call of a client waits until it answers.
    pub(crate) fn config(&self) -> Config {
        let tls = self.secured.as_ref().map(|secured| Tls {
            ca_pem: secured.ca_pem.clone().into_bytes(),
            identity: Some(Identity {
                certificate_pem: secured.client_pem.clone().into_bytes(),
                private_key_pem: secured.client_key_pem.clone().into_bytes(),
            }),
            server_name: None,
        });
        Config { tls, compaction_interval: None, ..Config::new(self.endpoint()) }
    }

    /// Ends the process at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            child.wait().expect("wait for etcd");
        }
    }

    /// Starts the process again with what it had written.
    pub(crate) fn restart(&mut self) {
        assert!(self.child.is_none(), "the server still runs");
        let endpoint = self.endpoint();
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let mut command = Command::new(&self.binary);
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--name", &self.name, "--initial-cluster", &self.members])
            .args(["--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(secured) = &self.secured {
            secured.write_to(self.dir.path(), &mut command);
        }
        self.child = Some(command.spawn().expect("start etcd"));
    }

    /// The next start is at a port that nobody knows yet; returns the one it leaves.
    pub(crate) fn move_to_another_port(&mut self) -> u16 {
        std::mem::replace(&mut self.client_port, free_port())
    }

    /// The next start is at this port.
    pub(crate) fn move_to(&mut self, port: u16) {
        self.client_port = port;
    }

    /// The next start is that of a new cluster.
    pub(crate) fn lose_data(&self) {
        std::fs::remove_dir_all(self.data()).expect("remove etcd's data");
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn endpoint(&self) -> String {
        let scheme = if self.secured.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.client_port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Secured {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("make a key");
        let ca = CertifiedIssuer::self_signed(params, key).expect("sign the authority");

        let issue = || {
            let key = KeyPair::generate().expect("make a key");
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
            let certificate = params.signed_by(&key, &ca).expect("sign a certificate");
            (certificate.pem(), key.serialize_pem())
        };
        let (server_pem, server_key_pem) = issue();
        let (client_pem, client_key_pem) = issue();
        Self { ca_pem: ca.pem(), server_pem, server_key_pem, client_pem, client_key_pem }
    }

    fn write_to(&self, dir: &Path, command: &mut Command) {
        command.arg("--client-cert-auth");
        for (flag, name, pem) in [
            ("--trusted-ca-file", "ca.pem", &self.ca_pem),
            ("--cert-file", "server.pem", &self.server_pem),
            ("--key-file", "server.key", &self.server_key_pem),
        ] {
            let path = dir.join(name);
            std::fs::write(&path, pem).expect("write a certificate");
            command.arg(flag).arg(path);
        }
    }
}

fn binary() -> Option<String> {
    let binary = env::var("KUBEWRIGHT_ETCD_BIN").ok();
    if binary.is_none() {
        eprintln!("skipped: set KUBEWRIGHT_ETCD_BIN to an etcd binary to run this with it");
    }
    binary
}

/// A port for a server that is yet to start. It is below those that a system gives to connections
/// by itself, one of which could take it meanwhile, and nobody else here is given the same.
fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        let turn = std::process::id().wrapping_mul(97).wrapping_add(given);
        let port = u16::try_from(FIRST + turn % COUNT).expect("it is below the last port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
