//! A server to be measured: processes that run on loopback until it is dropped.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kubewright_cluster::{Clock, Pki};

use super::client::{Endpoint, get};
use crate::machine;
use crate::peer::{Etcd, free_port};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const START_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Site {
    pub(crate) endpoint: Endpoint,
    server: Process,
    etcd: Option<Etcd>,
}

/// Ends when dropped.
struct Process(Child);

/// In bytes, of all processes of a site.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    /// Without pages of programs and other files.
    pub(crate) own: f64,
}

/// What runs beside the API of a server of ours.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parts {
    /// Nothing, as in kube-apiserver.
    Alone,
    Controllers,
    /// And so many nodes, with a scheduler.
    Nodes(usize),
}

impl Site {
    /// Starts ours with its data in `dir`. Also tells how long it was until it answered.
    pub(crate) async fn ours(binary: &Path, dir: &Path, parts: Parts) -> Result<(Self, Duration)> {
        let port = free_port()?;
        let mut command = Command::new(binary);
        match parts {
            Parts::Alone => command.args(["up", "--node", "none", "--controllers", ""]),
            Parts::Controllers => command.args(["up", "--node", "none"]),
            Parts::Nodes(count) => {
                command.args(["up", "--node", "fake", "--nodes", &count.to_string()])
            }
        };
        command
            .args(["--name", "bench", "--output", "json"])
            .args(["--port", &port.to_string()])
            .arg("--data-dir")
            .arg(dir.join("data"))
            .arg("--kubeconfig")
            .arg(dir.join("kubeconfig"))
            .env("XDG_DATA_HOME", dir.join("home"))
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join("log")).context("make a log")?);
        let start = Instant::now();
        let mut server = Process::start(command)?;
        let mut line = String::new();
        let output = server.0.stdout.take().context("hear from the server")?;
        BufReader::new(output).read_line(&mut line).context("hear from the server")?;
        let told = start.elapsed();
        ensure!(!line.is_empty(), "{}", log(dir));

        let endpoint = Endpoint::new(SocketAddr::new(HOST, port), &pki(&dir.join("data/pki"))?)?;
        let start = Instant::now();
        endpoint.connect().await?.send(get("/readyz")).await?;
        let ready = told + start.elapsed();
        Ok((Site { endpoint, server, etcd: None }, ready))
    }

    /// Starts upstream's, with etcd, which syncs every write. They start at the same moment.
    pub(crate) async fn upstream(assets: &Path, dir: &Path) -> Result<(Self, Duration)> {
        let port = free_port()?;
        let keys = pki(&dir.join("pki"))?;
        let endpoint = Endpoint::new(SocketAddr::new(HOST, port), &keys)?;
        let file = |name: &str| dir.join("pki").join(name).display().to_string();
        let start = Instant::now();
        let etcd = Etcd::start(&assets.join("etcd"), &dir.join("etcd"))?;
        let mut command = Command::new(assets.join("kube-apiserver"));
        command
            .arg(format!("--etcd-servers={}", etcd.endpoint()))
            .arg(format!("--secure-port={port}"))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--tls-cert-file={}", file("apiserver.crt")))
            .arg(format!("--tls-private-key-file={}", file("apiserver.key")))
            .arg(format!("--client-ca-file={}", file("ca.crt")))
            .arg("--authorization-mode=RBAC")
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--service-account-key-file={}", file("sa.pub")))
            .arg(format!("--service-account-signing-key-file={}", file("sa.key")))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            // Nobody makes the service accounts that it would wait for.
            .arg("--disable-admission-plugins=ServiceAccount")
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(File::create(dir.join("log")).context("make a log")?);
        let server = Process::start(command)?;
        let mut site = Site { endpoint, server, etcd: Some(etcd) };
        site.wait_until_ready(start, dir).await?;
        Ok((site, start.elapsed()))
    }

    /// A bare server that answers every request with what a real one answers to a read.
    pub(crate) async fn bare(dir: &Path) -> Result<Self> {
        let keys = pki(&dir.join("pki"))?;
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command.arg("bare").arg(dir.join("pki")).arg(port.to_string());
        let server = Process::start(command)?;
        let endpoint = Endpoint::new(SocketAddr::new(HOST, port), &keys)?;
        let mut site = Site { endpoint, server, etcd: None };
        site.wait_until_ready(Instant::now(), dir).await?;
        Ok(site)
    }

    async fn wait_until_ready(&mut self, start: Instant, dir: &Path) -> Result<()> {
        loop {
            if let Ok(mut client) = self.endpoint.connect().await
                && client.send(get("/readyz")).await.is_ok()
            {
                return Ok(());
            }
            if let Some(status) = self.server.0.try_wait()? {
                bail!("the server ended: {status}\n{}", log(dir));
            }
            ensure!(start.elapsed() < START_MAX, "it is not ready after {START_MAX:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The memory of all its processes.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let mut memory = Memory::default();
        let etcd = self.etcd.as_ref().map(Etcd::pid);
        for pid in etcd.into_iter().chain([self.server.0.id()]) {
            memory.resident += machine::resident_bytes(pid)? as f64;
            memory.own += machine::own_bytes(pid)? as f64;
        }
        Ok(memory)
    }

    /// The processor time that all its processes have used.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let mut time = machine::processor_time_of(self.server.0.id())?;
        if let Some(etcd) = &self.etcd {
            time += machine::processor_time_of(etcd.pid())?;
        }
        Ok(time)
    }

    /// Ends it as a user would.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.server.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("stop it")?;
        let status = self.server.0.wait().context("wait for its end")?;
        ensure!(status.success(), "it ended badly: {status}");
        Ok(())
    }
}

impl Process {
    fn start(mut command: Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).spawn();
        Ok(Process(child.with_context(|| format!("start {:?}", command.get_program()))?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing more to do about it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Our program: the one named, or the one beside this one.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(named) => Ok(named.to_owned()),
        None => {
            Ok(std::env::current_exe().context("find this program")?.with_file_name("kubewright"))
        }
    }
}

/// The keys in `dir`, which are made if they are not there.
fn pki(dir: &Path) -> Result<Pki> {
    Pki::in_dir(dir, HOST, Clock::System.now())
}

fn log(dir: &Path) -> String {
    let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
