//! A fresh upstream on loopback for the time of one command.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Extra;
use super::assets::{self, program};
use super::authority::{self, Authority, FRONT_PROXY, Pair};
use super::process::{Component, dependent, is_interrupted, pass_signals_on, run_command};

/// Generous: a loaded machine with cold files.
const START_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

/// Serves to ask every component how it is: each has a certificate of its own making.
const HEALTH_KUBECONFIG: &str = "health.kubeconfig";

/// See [`Extra::Housekeeping`].
const HOUSEKEEPING: &str = "namespace-controller,garbage-collector-controller,\
                            serviceaccount-controller,serviceaccount-token-controller,\
                            root-ca-certificate-publisher-controller,\
                            clusterrole-aggregation-controller,resourcequota-controller,\
                            persistentvolumeclaim-protection-controller,\
                            persistentvolume-protection-controller,\
                            validatingadmissionpolicy-status-controller";

/// Runs `command` beside a fresh upstream, whose kube-apiserver has these flags beside its own; the
/// command's exit code is ours. Whatever happens, nothing that was started here is left running.
pub fn run(with: &[Extra], apiserver_flags: &[String], command: &[OsString]) -> Result<ExitCode> {
    let assets = assets::build()?;
    pass_signals_on()?;
    let folder = tempfile::Builder::new()
        .prefix("upstream-")
        // It holds keys.
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .context("make a folder")?;
    let mut cluster = Cluster::start(&assets, folder.path(), with, apiserver_flags)?;
    if let Err(error) = cluster.wait_until_ready() {
        if !is_interrupted() {
            cluster.print_logs();
        }
        return Err(error);
    }
    let code = cluster.run(command)?;
    if code != 0 {
        // A component that is still there has no part in the failure; the command has said more.
        cluster.print_logs_of_the_dead()?;
    }
    Ok(ExitCode::from(code))
}

struct Cluster {
    assets: PathBuf,
    kubeconfig: PathBuf,
    etcd_url: String,
    /// What must answer before the cluster is of use, by the URL it answers on.
    health: Vec<String>,
    components: Vec<Component>,
}

struct Ports {
    etcd_client: u16,
    etcd_peer: u16,
    apiserver: u16,
    controller_manager: u16,
    scheduler: u16,
}

impl Cluster {
    fn start(
        assets: &Path,
        folder: &Path,
        with: &[Extra],
        apiserver_flags: &[String],
    ) -> Result<Self> {
        let ports = Ports::free()?;
        let secrets = Secrets::write(folder, ports.apiserver)?;
        let etcd_url = format!("http://127.0.0.1:{}", ports.etcd_client);
        let with = |extra| with.contains(&extra);

        let mut components = Vec::new();
        let mut start = |name, arguments: Vec<String>| -> Result<()> {
            let program = program(assets, name)?;
            components.push(Component::start(name, &program, folder, &arguments)?);
            Ok(())
        };
        start("etcd", etcd_arguments(&ports))?;
        let controllers = match () {
            () if with(Extra::ControllerManager) => Some("*"),
            () if with(Extra::Housekeeping) => Some(HOUSEKEEPING),
            () => None,
        };
        let mut arguments = apiserver_arguments(&ports, &etcd_url, controllers.is_some());
        arguments.extend_from_slice(apiserver_flags);
        start("kube-apiserver", arguments)?;
        let mut health = vec![format!("https://127.0.0.1:{}/readyz", ports.apiserver)];
        if let Some(controllers) = controllers {
            start("kube-controller-manager", controller_manager_arguments(&ports, controllers))?;
            health.push(format!("https://127.0.0.1:{}/healthz", ports.controller_manager));
        }
        if with(Extra::Scheduler) {
            start("kube-scheduler", scheduler_arguments(&ports))?;
            health.push(format!("https://127.0.0.1:{}/healthz", ports.scheduler));
        }
        Ok(Self {
            assets: assets.to_owned(),
            kubeconfig: secrets.kubeconfig,
            etcd_url,
            health,
            components,
        })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        for url in self.health.clone() {
            while !self.is_healthy(&url)? {
                if is_interrupted() {
                    bail!("interrupted while upstream started");
                }
                for component in &mut self.components {
                    if let Some(status) = component.ended()? {
                        bail!("{} ended: {status}", component.name);
                    }
                }
                if Instant::now() > deadline {
                    bail!("{url} is not healthy after {START_MAX:?}");
                }
                thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// Asks by kubectl, which spares this program a TLS client.
    fn is_healthy(&self, url: &str) -> Result<bool> {
        let path = url.find("://").and_then(|at| url[at + 3..].find('/').map(|to| at + 3 + to));
        let (server, path) = url.split_at(path.context("a health URL has a path")?);
        let status = dependent(program(&self.assets, "kubectl")?)?
            .args(["--server", server, "get", "--raw", path])
            .env("KUBECONFIG", self.kubeconfig.with_file_name(HEALTH_KUBECONFIG))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("run kubectl")?;
        Ok(status.success())
    }

    fn run(&self, command: &[OsString]) -> Result<u8> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(self.assets.clone()).chain(std::env::split_paths(&path)),
        )
        .context("extend PATH")?;
        run_command(command, |command| {
            command
                .env("KUBECONFIG", &self.kubeconfig)
                .env("KUBEWRIGHT_ETCD", &self.etcd_url)
                .env("PATH", path);
        })
    }

    fn print_logs(&self) {
        for component in &self.components {
            eprint!("{}", component.tail());
        }
    }

    fn print_logs_of_the_dead(&mut self) -> Result<()> {
        for component in &mut self.components {
            if let Some(status) = component.ended()? {
                eprint!("{} ended: {status}\n{}", component.name, component.tail());
            }
        }
        Ok(())
    }
}

impl Ports {
    /// Ports that are free now, below those that a system gives to connections by itself: one of
    /// these could take a port before its component starts.
    fn free() -> Result<Self> {
        const FIRST: u32 = 10_000;
        const COUNT: u32 = 22_000;
        let start = std::process::id().wrapping_mul(97) % COUNT;
        let candidates = (0..COUNT).map(|turn| FIRST + (start + turn) % COUNT);
        let ports = candidates.filter_map(|port| u16::try_from(port).ok());
        let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        let mut next = || free.next().context("find a free port");
        Ok(Self {
            etcd_client: next()?,
            etcd_peer: next()?,
            apiserver: next()?,
            controller_manager: next()?,
            scheduler: next()?,
        })
    }
}

/// Files in the cluster's folder; components run there and name them without it.
struct Secrets {
    kubeconfig: PathBuf,
}

impl Secrets {
    fn write(folder: &Path, port: u16) -> Result<Self> {
        let authority = Authority::new("kubewright-upstream")?;
        // Whoever it vouches for may speak for anybody, so it vouches for nobody else.
        let proxy_authority = Authority::new("kubewright-upstream-front-proxy")?;
        let proxy = proxy_authority.proxy()?;
        let server = authority.server()?;
        let admin = authority.client("admin", "system:masters")?;
        let kubelet_client = authority.client("kube-apiserver-kubelet-client", "system:masters")?;
        let token = authority::token()?;
        let (signing_key, verifying_key) = authority::token_key()?;
        let kubeconfig = folder.join("kubeconfig");
        let files = [
            ("ca.crt", authority.pair.certificate.clone()),
            ("ca.key", authority.pair.key.clone()),
            ("server.crt", server.certificate),
            ("server.key", server.key),
            ("kubelet-client.crt", kubelet_client.certificate),
            ("kubelet-client.key", kubelet_client.key),
            ("proxy-ca.crt", proxy_authority.pair.certificate),
            ("proxy.crt", proxy.certificate),
            ("proxy.key", proxy.key),
            ("service-account.key", signing_key),
            ("service-account.pub", verifying_key),
            ("tokens.csv", format!("{token},token-admin,token-admin,\"system:masters\"\n")),
            ("kubeconfig", kubeconfig_text(port, &authority, &admin, &token)),
            (HEALTH_KUBECONFIG, health_kubeconfig_text(&token)),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).with_context(|| format!("write {name}"))?;
        }
        Ok(Self { kubeconfig })
    }
}

/// Two users with all rights, one by certificate and one by token; the first is current.
fn kubeconfig_text(port: u16, authority: &Authority, admin: &Pair, token: &str) -> String {
    let ca = BASE64.encode(&authority.pair.certificate);
    let certificate = BASE64.encode(&admin.certificate);
    let key = BASE64.encode(&admin.key);
    format!(
        "apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: upstream
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
- name: token-admin
  user:
    token: {token}
contexts:
- name: admin
  context:
    cluster: upstream
    user: admin
- name: token-admin
  context:
    cluster: upstream
    user: token-admin
"
    )
}

fn health_kubeconfig_text(token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: health
clusters: [{{name: any, cluster: {{insecure-skip-tls-verify: true}}}}]
users: [{{name: health, user: {{token: {token}}}}}]
contexts: [{{name: health, context: {{cluster: any, user: health}}}}]
"
    )
}

fn etcd_arguments(ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd_client);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // The data dies with the run, so nothing is gained by waiting for the disk.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver_arguments(ports: &Ports, etcd_url: &str, controllers: bool) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers={etcd_url}"),
        format!("--secure-port={}", ports.apiserver),
        "--bind-address=127.0.0.1".to_owned(),
        "--tls-cert-file=server.crt".to_owned(),
        "--tls-private-key-file=server.key".to_owned(),
        "--client-ca-file=ca.crt".to_owned(),
        "--proxy-client-cert-file=proxy.crt".to_owned(),
        "--proxy-client-key-file=proxy.key".to_owned(),
        "--requestheader-client-ca-file=proxy-ca.crt".to_owned(),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-uid-headers=X-Remote-Uid".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--kubelet-client-certificate=kubelet-client.crt".to_owned(),
        "--kubelet-client-key=kubelet-client.key".to_owned(),
        // As kubeadm has it: names of nodes need not be known to this machine.
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname".to_owned(),
        "--token-auth-file=tokens.csv".to_owned(),
        // As kubeadm has it, here and for the plugin: nodes have what is theirs.
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-account-key-file=service-account.pub".to_owned(),
        "--service-account-signing-key-file=service-account.key".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    if !controllers {
        // Nobody would make the service accounts that it waits for.
        arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    arguments
}

fn controller_manager_arguments(ports: &Ports, controllers: &str) -> Vec<String> {
    vec![
        format!("--controllers={controllers}"),
        "--kubeconfig=kubeconfig".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.controller_manager),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        "--service-account-private-key-file=service-account.key".to_owned(),
        "--root-ca-file=ca.crt".to_owned(),
        "--cluster-signing-cert-file=ca.crt".to_owned(),
        "--cluster-signing-key-file=ca.key".to_owned(),
    ]
}

fn scheduler_arguments(ports: &Ports) -> Vec<String> {
    vec![
        "--kubeconfig=kubeconfig".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.scheduler),
        "--leader-elect=false".to_owned(),
    ]
}
