//! Servers as programs: ours, a stock kube-apiserver, and the etcd below them.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::Access;

/// Nothing that is waited for takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that ends with the test.
pub(crate) struct Program(Child);

/// A running `kubewright up`.
pub(crate) struct Ours {
    program: Program,
    pub(crate) access: Access,
}

/// Where upstream's programs are, if they are anywhere.
pub(crate) struct Upstream {
    etcd: PathBuf,
    apiserver: Option<PathBuf>,
}

pub(crate) struct Etcd {
    _program: Program,
    pub(crate) url: String,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        Program(command.spawn().unwrap_or_else(|error| panic!("start {command:?}: {error}")))
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        self.0.wait().expect("wait for the program");
    }

    /// Asks it to end, so that it ends what it has started.
    pub(crate) async fn stop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let ended = async {
            while self.0.try_wait().expect("ask for the program").is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends in time");
    }

    /// Waits for a state that the program is to bring about.
    pub(crate) async fn until(&mut self, mut is_so: impl AsyncFnMut() -> bool) {
        let so = async {
            while !is_so().await {
                let ended = self.0.try_wait().expect("ask for the program");
                assert!(ended.is_none(), "the program ended: {ended:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, so).await.expect("it comes about in time");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ours {
    /// Starts a cluster of this name in a user's home directory, and returns when it is ready.
    pub(crate) fn up(home: &Path, name: &str, args: &[&str]) -> Self {
        let (program, ready) = up(home, name, args);
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let access = Access::new(address(port.expect("a port")), &pki(home, name));
        Ours { program, access }
    }

    pub(crate) fn kill(mut self) {
        self.program.kill();
    }

    /// How much memory it has, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.program.0.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Upstream {
    /// Says so when a test has to be skipped.
    pub(crate) fn find() -> Option<Self> {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let Some(etcd) = path("KUBEWRIGHT_ETCD_BIN") else {
            eprintln!("skipped: set KUBEWRIGHT_ETCD_BIN to an etcd binary to run this with it");
            return None;
        };
        Some(Upstream { etcd, apiserver: path("KUBEWRIGHT_APISERVER_BIN") })
    }

    pub(crate) fn etcd(&self, dir: &Path) -> Etcd {
        let url = format!("http://127.0.0.1:{}", free_port());
        let peer = format!("http://127.0.0.1:{}", free_port());
        let mut command = Command::new(&self.etcd);
        command
            .arg("--data-dir")
            .arg(dir)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(["--log-level", "error", "--unsafe-no-fsync"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Etcd { _program: Program::start(&mut command), url }
    }

    /// A stock kube-apiserver; says so if there is none.
    pub(crate) fn apiserver_program(&self) -> Option<&Path> {
        if self.apiserver.is_none() {
            eprintln!("skipped: set KUBEWRIGHT_APISERVER_BIN to a kube-apiserver to run this");
        }
        self.apiserver.as_deref()
    }

    /// A stock kube-apiserver with the keys of a cluster of ours; says so if there is none.
    pub(crate) async fn apiserver(
        &self,
        home: &Path,
        name: &str,
        etcd: &Etcd,
    ) -> Option<(Program, Access)> {
        let binary = self.apiserver_program()?;
        let (port, keys) = (free_port(), pki(home, name));
        let key = |flag: &str, file: &str| format!("--{flag}={}", keys.join(file).display());
        let log = std::fs::File::create(home.join("kube-apiserver.log")).expect("a file");
        let mut command = Command::new(binary);
        command
            .args([
                format!("--etcd-servers={}", etcd.url),
                format!("--secure-port={port}"),
                "--bind-address=127.0.0.1".to_owned(),
                key("tls-cert-file", "apiserver.crt"),
                key("tls-private-key-file", "apiserver.key"),
                key("client-ca-file", "ca.crt"),
                key("service-account-key-file", "sa.pub"),
                key("service-account-signing-key-file", "sa.key"),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                "--authorization-mode=RBAC".to_owned(),
                // Nobody makes service accounts here.
                "--disable-admission-plugins=ServiceAccount".to_owned(),
            ])
            .current_dir(home)
            .stdout(Stdio::null())
            .stderr(log);
        let mut program = Program::start(&mut command);
        let access = Access::new(address(port), &keys);
        program.until(async || access.is_ready().await).await;
        Some((program, access))
    }
}

/// Starts `kubewright up` with a user's home directory; also what it says when it is ready.
pub(crate) fn up(home: &Path, name: &str, args: &[&str]) -> (Program, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command
        .args(["up", "--name", name, "--output", "json"])
        .args(if args.contains(&"--node") { &[][..] } else { &["--node", "none"] })
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut program = Program::start(&mut command);
    let output = program.0.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("hear from the cluster");
    let ready = serde_json::from_str(&line).expect("it is ready");
    (program, ready)
}

pub(crate) fn pki(home: &Path, name: &str) -> PathBuf {
    home.join(".local/share/kubewright").join(name).join("pki")
}

pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A port for a server that is yet to start. It is below those that a system gives to connections
/// by itself, one of which could take it meanwhile, and nobody else here is given the same.
pub(crate) fn free_port() -> u16 {
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
