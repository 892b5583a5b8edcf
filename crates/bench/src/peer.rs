//! A real etcd as a child process: found, started on free loopback ports, stopped when dropped.

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use kubewright_store::etcd::{Client, Config};

/// The version whose etcd is looked for in the user's cache.
const UPSTREAM: &str = "v1.36.4";

/// The etcd to measure against: the one named, else upstream's as built into the cache.
pub(crate) fn find(named: Option<&Path>) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    Some(assets(None)?.join("etcd")).filter(|binary| binary.exists())
}

/// The folder of upstream's programs: the one named, else where they are built.
pub(crate) fn assets(named: Option<&Path>) -> Option<PathBuf> {
    match (named, env::var_os("KUBEWRIGHT_UPSTREAM_ASSETS")) {
        (Some(named), _) => Some(named.to_owned()),
        (None, Some(assets)) => Some(PathBuf::from(assets)),
        (None, None) => Some(cache()?.join("upstream").join(UPSTREAM)),
    }
}

/// Where this program may keep files for the user.
pub(crate) fn cache() -> Option<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    Some(base.join("kubewright"))
}

pub(crate) struct Etcd {
    child: Child,
    endpoint: String,
}

impl Etcd {
    /// Starts a cluster of one with its data in `dir`; it syncs every write, as by default.
    pub(crate) fn start(binary: &Path, dir: &Path) -> Result<Self> {
        let endpoint = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let child = Command::new(binary)
            .arg("--data-dir")
            .arg(dir)
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(["--quota-backend-bytes", "8589934592", "--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        Ok(Self { child, endpoint })
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client whose first call waits until etcd answers.
    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::new(&Config::new(&self.endpoint))?)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing more to do about it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `etcd --version` says on its first line.
pub(crate) fn version(binary: &Path) -> Result<String> {
    let output = Command::new(binary)
        .arg("--version")
        .output()
        .with_context(|| format!("run {}", binary.display()))?;
    ensure!(output.status.success(), "{} --version fails", binary.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("etcd Version: "));
    Ok(format!("etcd {}", version.unwrap_or("of unknown version").trim()))
}

pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr().context("find a free port")?.port())
}
