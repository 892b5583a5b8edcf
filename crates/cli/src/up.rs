//! `kubewright up`: a cluster on this machine, in the foreground or on its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use kubewright_cluster::home::{DEFAULT_NAME, Home, Record};
use kubewright_cluster::kubeconfig;
use kubewright_cluster::run::{self, Keep, Options};
use kubewright_cluster::{NAMES, Names, SchedulerConfig, Stage, audit, etcd, parse_stages};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;

use crate::cluster::{Output, home, parse_name};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of the cluster and of its context.
    #[arg(long, value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
    /// Where it is served on 127.0.0.1: 6443, or where it was before; 0 is any port that is free.
    #[arg(long)]
    port: Option<u16>,
    /// Where its certificates and objects are kept.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep everything in memory and leave nothing behind.
    #[arg(long, conflicts_with_all = ["data_dir", "store"])]
    ephemeral: bool,
    /// Add the context to this file, not to the one kubectl uses.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where objects are: `embedded`, or `etcd=URL[,URL...]`.
    #[arg(long, value_parser = parse_store, default_value = "embedded")]
    store: Store,
    /// The authorities that may have signed etcd's certificates.
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// The certificate to show to etcd.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_keyfile", "etcd_cafile"])]
    etcd_certfile: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
    /// What runs pods: `fake` has them live and end, and runs nothing; with `process` their
    /// containers are processes of this machine; `cri=SOCKET` is a container runtime, such as
    /// containerd; with `none` they wait for a scheduler and nodes of somebody else.
    #[arg(long, value_parser = parse_node, default_value = "fake")]
    node: Node,
    /// How many nodes there are with `--node fake`; otherwise it is this machine.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: usize,
    /// What containers are said to do with `--node fake`, as a list of stages in YAML (docs/node.md).
    #[arg(long, value_name = "FILE")]
    stages: Option<PathBuf>,
    /// How pods are given to nodes: a KubeSchedulerConfiguration (docs/scheduler.md).
    #[arg(long, value_name = "FILE")]
    scheduler_config: Option<PathBuf>,
    /// Where Ingresses are served on 127.0.0.1 if pods run: 8080; 0 is any port that is free.
    #[arg(long, value_name = "PORT")]
    ingress_port: Option<u16>,
    /// Which controllers run, as kube-controller-manager takes them: `*` is all, `-NAME` not this
    /// one, `NAME` only those named, and an empty list none.
    #[arg(long, value_name = "LIST", value_parser = parse_controllers, default_value = "*")]
    #[arg(allow_hyphen_values = true, long_help = controllers_help())]
    controllers: Names,
    /// Which requests go to the audit log, and how much of them: an audit.k8s.io/v1 Policy.
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// Where the audit log goes, a line of JSON for each event; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "audit_policy")]
    audit_log: Option<PathBuf>,
    /// How large the audit log may grow before it is put aside, in megabytes; 0 is any size.
    #[arg(long, value_name = "MB", requires = "audit_log", default_value_t = 100)]
    audit_log_maxsize: u64,
    /// How many audit logs that were put aside are kept; 0 keeps all.
    #[arg(long, value_name = "COUNT", requires = "audit_log", default_value_t = 100)]
    audit_log_maxbackup: usize,
    /// How many days audit logs that were put aside are kept; 0 is any time.
    #[arg(long, value_name = "DAYS", requires = "audit_log", default_value_t = 366)]
    audit_log_maxage: u32,
    /// Print each request.
    #[arg(long)]
    verbose: bool,
    /// Return when the cluster is ready, and leave it running.
    #[arg(long)]
    detach: bool,
    /// The same, seen from the inside.
    #[arg(long, hide = true)]
    detached: bool,
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone)]
enum Store {
    Embedded,
    Etcd(Vec<String>),
}

#[derive(Clone)]
enum Node {
    Fake,
    Process,
    Cri(PathBuf),
    None,
}

/// What is told when a cluster is ready.
#[derive(Serialize, Deserialize)]
struct Ready {
    #[serde(flatten)]
    record: Record,
    ms: u64,
}

/// As the first thread of a program has: expressions and schemas may be deep, and are walked on it.
const STACK_BYTES: usize = 8 << 20;

pub(crate) fn run(args: &Args, started: Instant) -> Result<ExitCode> {
    if args.detach {
        // What is wrong with it is told here, not by a process that nobody sees.
        audit(args)?;
        node(args)?;
        scheduler(args)?;
        return detach(args);
    }
    if args.detached {
        rustix::process::setsid().context("leave the terminal")?;
    }
    log(args.verbose);
    keep_pages_small();
    let options = options(args)?;
    runtime()?.block_on(run::run(options, |record| {
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ready = Ready { record: record.clone(), ms };
        let output = if args.detached { Output::Json } else { args.output };
        tell(&ready, output);
        if !args.detached && output == Output::Text {
            say!("Ctrl-C stops it. In another terminal: kubectl get namespaces");
        }
    }))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .context("start the runtime")
}

/// Runs this command again, on its own, and waits until its cluster is ready.
fn detach(args: &Args) -> Result<ExitCode> {
    let home = home()?;
    refuse_second(&home, &args.name)?;
    let dir = home.dir(&args.name)?;
    std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
    let log_path = dir.join("log");
    let log = File::create(&log_path).with_context(|| format!("make {}", log_path.display()))?;
    let again = std::env::args_os().skip(1).map(|arg| match arg == "--detach" {
        true => "--detached".into(),
        false => arg,
    });
    let mut child = Command::new(std::env::current_exe().context("find this program")?)
        .args(again)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("start in the background")?;
    let mut line = String::new();
    let output = child.stdout.take().context("hear from the cluster")?;
    BufReader::new(output).read_line(&mut line).context("hear from the cluster")?;
    if line.is_empty() {
        child.wait().context("wait for the cluster's end")?;
        let log = std::fs::read_to_string(&log_path).unwrap_or_default();
        let last = log.lines().last().unwrap_or("it said nothing");
        bail!("{}", last.strip_prefix("error: ").unwrap_or(last));
    }
    let ready: Ready = serde_json::from_str(&line).context("understand the cluster")?;
    tell(&ready, args.output);
    if args.output == Output::Text {
        say!("`kubewright down {}` stops it", ready.record.name);
    }
    Ok(ExitCode::SUCCESS)
}

fn refuse_second(home: &Home, name: &str) -> Result<()> {
    match home.find(name)? {
        Some(found) if found.running => Err(anyhow!(
            "cluster {name:?} is running: `kubewright down {name}` ends it, and --name gives you \
             another one"
        )),
        _ => Ok(()),
    }
}

fn tell(ready: &Ready, output: Output) {
    let Ready { record, ms } = ready;
    match output {
        Output::Json => {
            say!("{}", serde_json::to_string(ready).expect("a record is JSON"));
        }
        Output::Text => {
            say!("cluster {:?} is ready at {}, after {ms} ms", record.name, record.server);
            match &record.data_dir {
                Some(dir) => say!("  data        {} ({})", dir.display(), record.store),
                None => say!("  data        in memory"),
            }
            if let Some(path) = &record.kubeconfig {
                say!("  kubeconfig  {}, context {:?}", path.display(), record.name);
            }
            if let Some(url) = &record.ingress {
                say!("  Ingresses   {url}");
            }
        }
    }
    // Whoever waits for the line waits in another process.
    let _ = std::io::stdout().flush();
}

pub(crate) fn log(verbose: bool) {
    // `kubewright::request` is one line for each request.
    log_at(if verbose { "info" } else { "warn" });
}

/// Logs to standard error, at these levels unless a variable says otherwise.
pub(crate) fn log_at(usual: &str) {
    let filter = EnvFilter::try_from_env("KUBEWRIGHT_LOG").unwrap_or_else(|_| usual.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Most clusters are a few megabytes, which huge pages would make three times as many.
pub(crate) fn keep_pages_small() {
    // Where it cannot be helped, a cluster takes more memory and works all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn options(args: &Args) -> Result<Options> {
    let keep = match &args.store {
        _ if args.ephemeral => Keep::Nothing,
        Store::Embedded => Keep::Everything { dir: args.data_dir.clone() },
        Store::Etcd(endpoints) => {
            let mut config = etcd::Config::new(String::new());
            config.endpoints.clone_from(endpoints);
            config.tls = etcd_tls(
                args.etcd_cafile.as_deref(),
                args.etcd_certfile.as_deref(),
                args.etcd_keyfile.as_deref(),
            )?;
            Keep::Keys { dir: args.data_dir.clone(), etcd: Box::new(config) }
        }
    };
    let kubeconfig = match &args.kubeconfig {
        Some(path) => path.clone(),
        None => {
            let paths = kubeconfig::paths(std::env::var_os("KUBECONFIG"), std::env::home_dir());
            kubeconfig::choose(&paths)
                .context("find the kubeconfig: set HOME or KUBECONFIG, or give --kubeconfig")?
                .to_owned()
        }
    };
    Ok(Options {
        name: args.name.clone(),
        home: home()?,
        port: args.port,
        keep,
        kubeconfig: Some(kubeconfig),
        controllers: args.controllers.clone(),
        node: node(args)?,
        ingress_port: args.ingress_port,
        scheduler: scheduler(args)?,
        audit: audit(args)?,
    })
}

fn node(args: &Args) -> Result<run::Node> {
    let runs = match &args.node {
        Node::Fake => {
            run::Node::Fake { count: args.nodes, stages: stages(args.stages.as_deref())? }
        }
        Node::None => run::Node::None,
        Node::Process => run::Node::Process { shim: shim()? },
        Node::Cri(socket) => run::Node::Cri { socket: find_socket(socket, "--node")? },
    };
    if args.stages.is_some() && !matches!(runs, run::Node::Fake { .. }) {
        bail!("--stages is for --node fake: what runs does what it does");
    }
    let is_machine = matches!(runs, run::Node::Process { .. } | run::Node::Cri { .. });
    match args.ingress_port {
        Some(_) if !is_machine => {
            bail!("--ingress-port is for --node process and cri: nothing runs here")
        }
        _ if is_machine && args.nodes != 1 => {
            bail!("--nodes is for --node fake: this is one machine")
        }
        _ => Ok(runs),
    }
}

/// How pods are given to nodes, as a file says.
fn scheduler(args: &Args) -> Result<SchedulerConfig> {
    let Some(file) = &args.scheduler_config else { return Ok(SchedulerConfig::default()) };
    if matches!(args.node, Node::None) || args.nodes == 0 {
        bail!("--scheduler-config is for clusters with nodes: here pods wait for somebody else");
    }
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("read --scheduler-config {}", file.display()))?;
    let used = || format!("use --scheduler-config {}", file.display());
    let config = SchedulerConfig::parse(&text).with_context(used)?;
    config.check().with_context(used)?;
    Ok(config)
}

/// What simulated containers do, as a file says.
pub(crate) fn stages(file: Option<&Path>) -> Result<Vec<Stage>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("read --stages {}", file.display()))?;
    parse_stages(&text).map_err(|error| anyhow!("read --stages {}: {error}", file.display()))
}

/// Where a container runtime listens, wherever this is asked from. `flag` is what named it.
pub(crate) fn find_socket(socket: &Path, flag: &str) -> Result<PathBuf> {
    let socket = std::path::absolute(socket).context("find the container runtime")?;
    if !socket.exists() {
        bail!(
            "there is no container runtime at {}: start one, or give its socket as {flag} \
             cri=SOCKET (containerd's is usually /run/containerd/containerd.sock)",
            socket.display()
        );
    }
    Ok(socket)
}

/// The command of this program that stands over a process.
pub(crate) fn shim() -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("find this program")?;
    Ok(vec![program.into(), "shim".into()])
}

fn audit(args: &Args) -> Result<Option<audit::Config>> {
    let (Some(policy), Some(log)) = (&args.audit_policy, &args.audit_log) else { return Ok(None) };
    let output = match log.as_os_str() == "-" {
        true if args.detach || args.detached => {
            bail!("--audit-log - is no place for a cluster in the background: name a file")
        }
        true => audit::Output::Stdout,
        false => audit::Output::File {
            path: std::path::absolute(log).context("find the audit log")?,
            rotation: audit::Rotation {
                bytes_max: args.audit_log_maxsize << 20,
                kept_max: args.audit_log_maxbackup,
                age_max: Duration::from_hours(24 * u64::from(args.audit_log_maxage)),
            },
        },
    };
    let text = std::fs::read_to_string(policy)
        .with_context(|| format!("read the audit policy {}", policy.display()))?;
    let policy = audit::Policy::parse(&text)
        .with_context(|| format!("use the audit policy {}", policy.display()))?;
    Ok(Some(audit::Config { policy, output }))
}

/// From files in PEM, which are named by flags of these names.
pub(crate) fn etcd_tls(
    ca: Option<&Path>,
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<etcd::Tls>> {
    let read = |option: &str, path: &Path| {
        std::fs::read(path).with_context(|| format!("read {option} {}", path.display()))
    };
    let Some(ca) = ca else { return Ok(None) };
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(etcd::Identity {
            certificate_pem: read("--etcd-certfile", certificate)?,
            private_key_pem: read("--etcd-keyfile", key)?,
        }),
        _ => None,
    };
    Ok(Some(etcd::Tls { ca_pem: read("--etcd-cafile", ca)?, identity, server_name: None }))
}

fn parse_store(text: &str) -> Result<Store, String> {
    if text == "embedded" {
        return Ok(Store::Embedded);
    }
    let urls: Vec<String> = match text.strip_prefix("etcd=") {
        Some(urls) => urls.split(',').map(str::to_owned).collect(),
        None => return Err("use `embedded` or `etcd=URL[,URL...]`".to_owned()),
    };
    let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    match urls.iter().find(|url| !is_url(url)) {
        Some(url) => Err(format!("{url:?} is no URL of etcd: it begins with http:// or https://")),
        None => Ok(Store::Etcd(urls)),
    }
}

fn controllers_help() -> String {
    let names: String = NAMES.iter().map(|name| format!("\n  {name}")).collect();
    format!(
        "Which controllers run, as kube-controller-manager takes them: `*` is all, `-NAME` not \
         this one, `NAME` only those named, and an empty list none:{names}"
    )
}

pub(crate) fn parse_controllers(list: &str) -> Result<Names, String> {
    Names::parse(list).map_err(|error| format!("{error}: there are {}", NAMES.join(", ")))
}

fn parse_node(text: &str) -> Result<Node, String> {
    match text {
        "fake" => Ok(Node::Fake),
        "process" => Ok(Node::Process),
        "none" => Ok(Node::None),
        _ => match parse_socket(text) {
            Some(socket) => Ok(Node::Cri(socket)),
            None => Err("use `fake`, `process`, `cri=SOCKET` or `none`".to_owned()),
        },
    }
}

/// The socket in `cri=SOCKET`, which may be written as kubelet's flags have it.
pub(crate) fn parse_socket(text: &str) -> Option<PathBuf> {
    let socket = text.strip_prefix("cri=").filter(|socket| !socket.is_empty())?;
    Some(socket.strip_prefix("unix://").unwrap_or(socket).into())
}
