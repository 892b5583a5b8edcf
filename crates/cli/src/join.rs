//! `kubewright node` and `kubewright scheduler`: parts of ours in a cluster that runs elsewhere.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Taint;
use kubewright_apimachinery::name;
use kubewright_cluster::Runtime;
use kubewright_cluster::join::{self, NodeOptions, SchedulerArgs, Serving};

use crate::cluster::home;
use crate::up::{find_socket, keep_pages_small, log, parse_socket, runtime, shim, stages};

#[derive(clap::Args)]
pub(crate) struct NodeArgs {
    /// The file that leads to the cluster [default: where kubectl looks].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// What the node is called, or what the names of several begin with [default: the name of this
    /// machine].
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
    /// What runs pods: `fake` has them live and end, and runs nothing; with `process` their
    /// containers are processes of this machine; with `cri=SOCKET` they are containers, of a
    /// runtime of this machine that speaks CRI, such as containerd.
    #[arg(long, value_parser = parse_engine, default_value = "fake")]
    runtime: Engine,
    /// How many nodes to be, with `--runtime fake`.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// What containers are said to do with `--runtime fake`, as a list of stages in YAML
    /// (docs/node.md).
    #[arg(long, value_name = "FILE")]
    stages: Option<PathBuf>,
    /// Labels of the node: `KEY=VALUE[,KEY=VALUE...]`.
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = parse_label)]
    node_labels: Vec<(String, String)>,
    /// Taints of the node when it is registered: `KEY[=VALUE]:EFFECT[,...]`.
    #[arg(long, value_name = "TAINTS", value_delimiter = ',', value_parser = parse_taint)]
    register_with_taints: Vec<Taint>,
    /// Where the API server reaches the node, for logs and commands [default: the address by which
    /// this machine reaches it].
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Where it is answered; 0 is any port that is free, which the node tells the API server.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Who vouches for those who ask, in PEM [default: whom the cluster publishes in the ConfigMap
    /// kube-system/extension-apiserver-authentication].
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Ask the cluster for the certificate that the node shows (signer kubernetes.io/kubelet-serving);
    /// until somebody approves that, and without this flag, it is of the node's own making.
    #[arg(long)]
    rotate_server_certificates: bool,
    /// Where what is known of processes and containers is kept, by which the next `kubewright node`
    /// adopts those that a killed one left [default: _nodes/NAME beside the clusters of this user].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Serve Ingresses at this port, with `--runtime process` and `cri`; 0 is any port that is free.
    #[arg(long, value_name = "PORT")]
    ingress_port: Option<u16>,
    /// Say what happens.
    #[arg(long)]
    verbose: bool,
}

#[derive(clap::Args)]
pub(crate) struct SchedulerCommand {
    #[command(flatten)]
    args: SchedulerArgs,
    /// Say what happens.
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Engine {
    Fake,
    Process,
    Cri(PathBuf),
}

pub(crate) fn node(args: NodeArgs) -> Result<ExitCode> {
    log(args.verbose);
    keep_pages_small();
    let options = options(args)?;
    runtime()?.block_on(join::node(options, |joined| {
        let names = match &joined.names[..] {
            [one] => format!("node {one:?}"),
            [first, .., last] => format!("nodes {first:?} to {last:?}"),
            [] => "no node".to_owned(),
        };
        say!("{names} joins {}, and is asked at https://{}", joined.server, joined.address);
        say!("Ctrl-C ends it. In another terminal: kubectl get nodes");
    }))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn scheduler(command: &SchedulerCommand) -> Result<ExitCode> {
    log(command.verbose);
    keep_pages_small();
    runtime()?.block_on(join::scheduler(&command.args, |scheduling| {
        let names = scheduling.names.join(", ");
        say!("scheduling on {} for pods that want {names}", scheduling.server);
        if let Some(lease) = &scheduling.lease {
            say!("It works while it holds the lease {lease}; --leader-elect=false does without.");
        }
        say!("Ctrl-C ends it.");
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: NodeArgs) -> Result<NodeOptions> {
    let is_fake = args.runtime == Engine::Fake;
    if !is_fake && args.nodes != 1 {
        bail!("--nodes is for --runtime fake: this is one machine");
    }
    if !is_fake && args.stages.is_some() {
        bail!("--stages is for --runtime fake: what runs does what it does");
    }
    if is_fake && args.ingress_port.is_some() {
        bail!("--ingress-port is for --runtime process and cri: nothing runs here");
    }
    let names = match (&args.name, args.nodes) {
        (Some(name), 1) => vec![name.clone()],
        (None, 1) => Vec::new(),
        (name, count) => {
            let name = name.as_deref().unwrap_or("fake");
            (1..=count).map(|number| format!("{name}-{number}")).collect()
        }
    };
    let directory = || {
        let directory = match args.data_dir {
            Some(directory) => directory,
            None => home()?.node_dir(args.name.as_deref().unwrap_or("this-machine")),
        };
        std::path::absolute(directory).context("find the data directory")
    };
    let runtime = match args.runtime {
        Engine::Fake => Runtime::Fake { stages: stages(args.stages.as_deref())? },
        Engine::Process => Runtime::Process {
            directory: directory()?,
            shim: shim()?,
            hidden: home().map(|home| home.path().to_owned()).into_iter().collect(),
        },
        // The pods are in a cluster that goes on: what has ended here is to be told there.
        Engine::Cri(socket) => Runtime::Cri {
            socket: find_socket(&socket, "--runtime")?,
            directory: directory()?,
            is_kept: true,
        },
    };
    let serving = match args.rotate_server_certificates {
        true => Serving::Requested,
        false => Serving::SelfMade,
    };
    let here = IpAddr::from([127, 0, 0, 1]);
    Ok(NodeOptions {
        kubeconfig: args.kubeconfig,
        names,
        runtime,
        labels: args.node_labels.into_iter().collect::<BTreeMap<_, _>>(),
        taints: args.register_with_taints,
        address: args.address,
        port: args.port,
        client_ca: args.client_ca_file,
        serving,
        ingress: args.ingress_port.map(|port| SocketAddr::new(here, port)),
    })
}

fn parse_engine(text: &str) -> Result<Engine, String> {
    match text {
        "fake" => Ok(Engine::Fake),
        "process" => Ok(Engine::Process),
        _ => match parse_socket(text) {
            Some(socket) => Ok(Engine::Cri(socket)),
            None => Err("use `fake`, `process` or `cri=SOCKET`".to_owned()),
        },
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    match name::dns1123_subdomain(text).into_iter().next() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(text.to_owned()),
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    let problems = name::label_key(key).into_iter().chain(name::label_value(value));
    match problems.into_iter().next() {
        Some(problem) => Err(problem.to_string()),
        None => Ok((key.to_owned(), value.to_owned())),
    }
}

fn parse_taint(text: &str) -> Result<Taint, String> {
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let (rest, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    if !effects.contains(&effect) {
        return Err(format!("a taint is KEY[=VALUE]:EFFECT, and an effect is one of {effects:?}"));
    }
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let (key, value) = parse_label(&format!("{key}={value}"))?;
    let value = Some(value).filter(|value| !value.is_empty());
    Ok(Taint { key, value, effect: effect.to_owned(), time_added: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_written_as_kubectl_writes_them() {
        let check = |text: &str, expected: Result<(&str, Option<&str>, &str), &str>| {
            let found = parse_taint(text);
            let found = found.as_ref().map(|it| (&*it.key, it.value.as_deref(), &*it.effect));
            assert_eq!(found.map_err(|why| why.split(',').next().unwrap_or_default()), expected);
        };
        check("dedicated=db:NoSchedule", Ok(("dedicated", Some("db"), "NoSchedule")));
        check("gone:NoExecute", Ok(("gone", None, "NoExecute")));
        check("gone", Err("a taint is KEY[=VALUE]:EFFECT"));
        check("gone:Never", Err("a taint is KEY[=VALUE]:EFFECT"));
        assert!(parse_taint("a b:NoExecute").is_err());
    }
}
