//! Reaching pods from this machine: ports of nodes and of pods on them, addresses of Services, and a
//! router for Ingresses, over EndpointSlices.
//!
//! It needs no rights but to listen; addresses of Services (cluster IPs) are served where they can
//! be given to this machine. What goes where is a value (`table`, pure), made anew when something
//! changes; connections look it up when they come.

mod affinity;
mod publish;
mod router;
mod table;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Client;
use kubewright::controller::Surroundings;
use kubewright::event::Recorder;
use kubewright::informer::{Informer, NotReady, Object, Scope, State, Subscription};
use kubewright::{Cache, Clock};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use self::publish::withdraw_ingresses;
use self::table::{Front, Place, Protocol, Table};
use crate::local::LocalAddresses;
use crate::runtime::Runtime;

/// How often a place is asked for that somebody else has.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// After a connection that could not be taken: the next would fail as well, for want of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long the cache may take before it is told that somebody waits for it.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// Where the balancer listens.
pub struct BalancerConfig {
    /// Of node ports, at each of these.
    pub addresses: Vec<IpAddr>,
    /// Where Ingresses are served; none for nowhere.
    pub ingress: Option<TcpListener>,
    /// Gives addresses of Services to this machine; without it they lead nowhere.
    pub locals: Option<Arc<LocalAddresses>>,
    /// Knows where pods are.
    pub runtime: Arc<dyn Runtime>,
    /// Where the API server is, if only this machine knows: one that listens at a loopback address
    /// cannot say so to the cluster.
    pub server: Option<SocketAddr>,
    /// The nodes that this machine is, whose pods are near.
    pub nodes: Vec<String>,
    /// The node whose pods have ports of this machine (`hostPort`); none where whatever runs them sees
    /// to that.
    pub node: Option<String>,
    /// Says in the API where Ingresses are served, as somebody who may.
    pub client: Client,
    pub clock: Clock,
}

/// Passes connections on until `shutdown`; returns when everything it started has ended.
pub async fn balance(cache: &Cache, config: BalancerConfig, shutdown: CancellationToken) {
    let BalancerConfig { addresses, ingress, locals, client, clock, .. } = config;
    let near = Near {
        runtime: config.runtime,
        server: config.server,
        nodes: config.nodes,
        node: config.node,
    };
    let (tell, table) = watch::channel(Arc::new(Table::default()));
    let mut tasks = JoinSet::new();
    if let Some(listener) = ingress {
        match listener.local_addr() {
            Ok(place) => publish(place, cache, client, clock, &mut tasks, &shutdown),
            Err(error) => warn!(%error, "Ingresses do not say where they are served"),
        }
        tasks.spawn(router::run(listener, table.clone(), shutdown.clone()));
    }
    let fronts = Fronts { addresses, locals, given: BTreeSet::new(), refused: BTreeSet::new() };
    tasks.spawn(fronts.run(table, shutdown.clone()));
    shutdown.run_until_cancelled(follow(cache, &near, &tell)).await;
    while tasks.join_next().await.is_some() {}
}

/// Has Ingresses say that they are served at a place.
fn publish(
    place: SocketAddr,
    cache: &Cache,
    client: Client,
    clock: Clock,
    tasks: &mut JoinSet<()>,
    shutdown: &CancellationToken,
) {
    let controller = publish::controller(place);
    let (recorder, scribe) =
        Recorder::counting(client.clone(), controller.name(), None, clock.clone());
    tasks.spawn(scribe);
    let around = Surroundings {
        client,
        cache: cache.clone(),
        recorder,
        clock,
        metrics: Arc::default(),
        namespaces: BTreeSet::new(),
        ring: None,
        revoked: CancellationToken::new(),
        sync_max: SYNC_MAX,
    };
    let stop = shutdown.clone();
    tasks.spawn(async move { controller.run(&around, &stop).await });
}

/// What of the cluster is on this machine.
struct Near {
    runtime: Arc<dyn Runtime>,
    server: Option<SocketAddr>,
    nodes: Vec<String>,
    node: Option<String>,
}

/// Keeps the table as the cluster is.
async fn follow(cache: &Cache, near: &Near, tell: &watch::Sender<Arc<Table>>) {
    let everywhere = Scope::default();
    let services: Informer<Service> = cache.informer(&everywhere);
    let slices: Informer<EndpointSlice> = cache.informer(&everywhere);
    let ingresses: Informer<Ingress> = cache.informer(&everywhere);
    let pods = near.node.as_ref().map(|node| {
        let fields = Some(format!("spec.nodeName={node}"));
        cache.informer::<Pod>(&Scope { fields, ..Scope::default() })
    });
    let changed = Arc::new(Notify::new());
    let _heard = (
        listen(&services, &changed),
        listen(&slices, &changed),
        listen(&ingresses, &changed),
        pods.as_ref().map(|pods| listen(pods, &changed)),
    );
    let make = || -> Result<Table, NotReady> {
        let (services, slices) = (services.list()?, slices.list()?);
        let mut table = Table::of(&services, &slices, &ingresses.list()?, &near.nodes);
        if let Some(pods) = &pods {
            table.place_host_ports(&pods.list()?);
        }
        table.reach(|shown| near.runtime.reach(shown));
        if let Some(server) = near.server {
            table.place_server(&services, server);
        }
        Ok(table)
    };
    // Nothing is passed on before all are listed, and kinds without objects never tell of any.
    services.until(|state| *state == State::Live).await;
    slices.until(|state| *state == State::Live).await;
    ingresses.until(|state| *state == State::Live).await;
    if let Some(pods) = &pods {
        pods.until(|state| *state == State::Live).await;
    }
    loop {
        if let Ok(table) = make() {
            tell.send_if_modified(|known| {
                let is_new = **known != table;
                *known = Arc::new(table);
                is_new
            });
        }
        changed.notified().await;
    }
}

fn listen<K: Object>(informer: &Informer<K>, changed: &Arc<Notify>) -> Subscription {
    let changed = Arc::clone(changed);
    informer.subscribe(move |_| changed.notify_one())
}

/// Listens where Services are to be found.
struct Fronts {
    /// The node's.
    addresses: Vec<IpAddr>,
    locals: Option<Arc<LocalAddresses>>,
    /// Addresses of Services that are this machine's.
    given: BTreeSet<Ipv4Addr>,
    /// Those that cannot be, which is told once.
    refused: BTreeSet<Ipv4Addr>,
}

impl Fronts {
    async fn run(mut self, mut table: watch::Receiver<Arc<Table>>, shutdown: CancellationToken) {
        let mut listening: BTreeMap<Front, CancellationToken> = BTreeMap::new();
        let mut tasks = JoinSet::new();
        loop {
            let wanted = Arc::clone(&table.borrow_and_update());
            listening.retain(|front, stop| {
                let is_wanted = wanted.fronts.contains_key(front);
                if !is_wanted {
                    stop.cancel();
                }
                is_wanted
            });
            self.withdraw(&wanted);
            for front in wanted.fronts.keys() {
                if listening.contains_key(front) {
                    continue;
                }
                let places = self.places(front);
                if places.is_empty() {
                    continue;
                }
                let stop = shutdown.child_token();
                for ip in places {
                    let place = SocketAddr::new(ip, front.port);
                    tasks.spawn(serve(*front, place, table.clone(), stop.clone()));
                }
                listening.insert(*front, stop);
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = tasks.join_next() => {}
                changed = table.changed() => if changed.is_err() { break },
            }
        }
        while tasks.join_next().await.is_some() {}
        self.withdraw(&Table::default());
    }

    /// At which addresses to listen; none if that is not possible.
    fn places(&mut self, front: &Front) -> Vec<IpAddr> {
        match front.place {
            Place::Node => self.addresses.clone(),
            Place::Host(ip) => vec![ip],
            Place::Service(ip) => self.give(ip).then_some(ip.into()).into_iter().collect(),
        }
    }

    /// Gives the address of a Service to this machine, or tells once why not.
    fn give(&mut self, ip: Ipv4Addr) -> bool {
        let Some(locals) = self.locals.as_ref().filter(|_| !self.refused.contains(&ip)) else {
            return false;
        };
        if let Err(error) = locals.add(ip) {
            warn!(%ip, %error, "a Service is not served at its address");
            self.refused.insert(ip);
            return false;
        }
        self.given.insert(ip);
        true
    }

    /// Gives up addresses that no Service has any more.
    fn withdraw(&mut self, table: &Table) {
        let is_wanted =
            |ip: &Ipv4Addr| table.fronts.keys().any(|front| front.place == Place::Service(*ip));
        let locals = self.locals.as_ref();
        self.given.retain(|ip| {
            let stays = is_wanted(ip);
            if let (Some(locals), false) = (locals, stays) {
                locals.remove(*ip);
            }
            stays
        });
        self.refused.retain(is_wanted);
    }
}

/// Passes on what comes to one place, until nobody stands behind it any more.
async fn serve(
    front: Front,
    place: SocketAddr,
    table: watch::Receiver<Arc<Table>>,
    stop: CancellationToken,
) {
    let behind = move || table.borrow().fronts.get(&front).cloned().unwrap_or_default();
    let protocol = front.protocol;
    let mut is_told = false;
    loop {
        let served = match protocol {
            Protocol::Tcp => tcp::serve(place, &behind, stop.clone()).await,
            Protocol::Udp => udp::serve(place, &behind, stop.clone()).await,
        };
        let Err(error) = served else {
            return info!(%place, ?protocol, "a Service is no longer served");
        };
        if !is_told {
            warn!(%place, ?protocol, %error, "a Service is not served yet");
            is_told = true;
        }
        // Whoever has the place may leave it, and does not say so.
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_EVERY)).await.is_none() {
            return;
        }
    }
}
