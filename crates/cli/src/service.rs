//! `kubewright service NAME --url`: where on this machine a Service answers.

#[cfg(test)]
mod tests;
mod way;

use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Client;
use kube::api::{Api, ListParams};
use kubewright::connect;
use kubewright_cluster::home::{DEFAULT_NAME, Found};
use kubewright_cluster::run;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use self::way::{Way, ways};
use crate::cluster::{find, home, parse_name};
use crate::up::runtime;

/// How often it is looked whether somebody answers.
const LOOK: Duration = Duration::from_millis(200);
/// Longer than anything on this machine takes.
const CONNECT_MAX: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of the Service.
    #[arg(value_name = "NAME")]
    service: String,
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Print URLs and nothing else, one for each port.
    #[arg(long)]
    url: bool,
    /// The cluster.
    #[arg(long, value_name = "CLUSTER", value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
    /// How many seconds to wait until a pod behind it is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let home = home()?;
    let Found { record, running } = find(&home, &args.name)?;
    let name = &record.name;
    if !running {
        bail!("cluster {name:?} is not running: `kubewright up --name {name}` first");
    }
    let Some(ingress) = &record.ingress else {
        bail!(
            "nothing runs in cluster {name:?}, so nothing answers: \
             `kubewright up --node process` has pods run on this machine"
        );
    };
    let kubeconfig = run::kubeconfig_path(&home.dir(name)?);
    let found = runtime()?.block_on(async {
        let client = client(&kubeconfig).await?;
        let limit = Instant::now() + Duration::from_secs(args.wait);
        urls(&client, &args.namespace, &args.service, ingress, limit).await
    })?;
    for (port, url) in found {
        match args.url {
            true => say!("{url}"),
            false => say!("{}/{}\t{port}\t{url}", args.namespace, args.service),
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let connection = connect::find(Some(kubeconfig), |_: &str| None).await?;
    Ok(connection.client(&connect::Options::default())?)
}

/// The ports of a Service that answer, each with its URL.
async fn urls(
    client: &Client,
    namespace: &str,
    name: &str,
    ingress: &str,
    limit: Instant,
) -> Result<Vec<(String, String)>> {
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let service = services.get_opt(name).await.context("ask for the Service")?;
    let service = service.ok_or_else(|| {
        anyhow!(
            "there is no Service {name:?} in namespace {namespace:?}: --namespace names another"
        )
    })?;
    let ingresses: Api<Ingress> = Api::namespaced(client.clone(), namespace);
    let ingresses = ingresses.list(&ListParams::default()).await.context("ask for Ingresses")?;
    let ways = ways(&service, &ingresses.items, ingress);
    let mut found = Vec::new();
    let mut hint = None;
    for way in ways {
        match reachable(&way).await {
            true => found.push((way.port.clone(), way.url())),
            false => hint = hint.or_else(|| way.hint()),
        }
    }
    // One way for each port is enough, and the first is the best.
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    if found.is_empty() {
        let hint = hint.unwrap_or_else(|| {
            format!(
                "`kubectl patch service {name} -p '{{\"spec\":{{\"type\":\"NodePort\"}}}}'` opens \
                 one, and `kubectl port-forward service/{name} :PORT` does without"
            )
        });
        bail!("Service {namespace}/{name} cannot be reached from outside: {hint}");
    }
    wait_for_pods(client, namespace, name, limit).await?;
    Ok(found)
}

/// Whether somebody listens where a way leads.
async fn reachable(way: &Way) -> bool {
    let place = (way.host.as_str(), way.number);
    let Ok(mut addresses) = place.to_socket_addrs() else { return false };
    let Some(address) = addresses.find(|it| it.is_ipv4()) else { return false };
    matches!(timeout(CONNECT_MAX, TcpStream::connect(address)).await, Ok(Ok(_)))
}

async fn wait_for_pods(client: &Client, namespace: &str, name: &str, limit: Instant) -> Result<()> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let of_it = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    loop {
        let found = slices.list(&of_it).await.context("ask for its endpoints")?;
        let mut endpoints = found.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        let is_ready = endpoints
            .any(|endpoint| endpoint.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true));
        if is_ready {
            return Ok(());
        }
        if Instant::now() > limit {
            bail!(
                "no pod behind Service {namespace}/{name} is ready: `kubectl get pods` says why, \
                 and --wait waits longer"
            );
        }
        sleep(LOOK).await;
    }
}
