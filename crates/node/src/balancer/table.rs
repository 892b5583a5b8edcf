//! Which pods stand behind which port, host and path.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{HTTPIngressPath, Ingress, IngressBackend};

/// For how long a client is led to the same pod where its Service does not say.
const AFFINITY: Duration = Duration::from_secs(10_800);

/// What goes where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) fronts: BTreeMap<Front, Behind>,
    /// The most specific first.
    pub(super) routes: Vec<Route>,
}

/// Who stands behind a front.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Behind {
    pub(super) all: Vec<SocketAddr>,
    /// Those to whom clients of other machines are led, if that makes a difference.
    pub(super) for_others: Option<Vec<SocketAddr>>,
    /// For how long a client that comes again is led to the same pod, if it is.
    pub(super) affinity: Option<Duration>,
}

/// Where a port of a Service is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Front {
    pub(super) place: Place,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// At the address of the node.
    Node,
    /// At an address that the machine has.
    Host(IpAddr),
    /// At an address of its own.
    Service(Ipv4Addr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// Where requests for a host and a path go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// None for any; `*.example.com` for any one name before it.
    pub(super) host: Option<String>,
    pub(super) path: String,
    pub(super) is_exact: bool,
    pub(super) backends: Vec<SocketAddr>,
}

impl Behind {
    pub(super) fn only(all: Vec<SocketAddr>) -> Self {
        Behind { all, ..Behind::default() }
    }

    /// Those to whom a client is led that comes to a place of this machine.
    pub(super) fn for_client(&self, client: IpAddr, place: IpAddr) -> &[SocketAddr] {
        match &self.for_others {
            Some(backends) if client != place && !client.is_loopback() => backends,
            _ => &self.all,
        }
    }
}

impl Table {
    /// `nodes` are those that this machine is.
    pub(super) fn of(
        services: &[Arc<Service>],
        slices: &[Arc<EndpointSlice>],
        ingresses: &[Arc<Ingress>],
        nodes: &[String],
    ) -> Self {
        let cluster = Cluster { services, slices, nodes };
        let mut table = Table::default();
        for service in services {
            for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
                let endpoints = cluster.endpoints(service, port.name.as_deref());
                for front in fronts(service, port) {
                    table.fronts.insert(front, behind(service, front.place, &endpoints));
                }
            }
        }
        for ingress in ingresses {
            cluster.routes(ingress, &mut table.routes);
        }
        // Hosts before any host, exact paths before prefixes, long ones before short ones.
        table.routes.sort_by_key(|route| {
            let host = match &route.host {
                Some(host) if host.starts_with("*.") => 1,
                Some(_) => 0,
                None => 2,
            };
            (host, !route.is_exact, usize::MAX - route.path.len())
        });
        table
    }

    /// Leads to where pods are, from where they are shown.
    pub(super) fn reach(&mut self, reach: impl Fn(SocketAddr) -> SocketAddr) {
        let fronts = self
            .fronts
            .values_mut()
            .flat_map(|behind| std::iter::once(&mut behind.all).chain(behind.for_others.as_mut()));
        let routes = self.routes.iter_mut().map(|route| &mut route.backends);
        for backend in fronts.chain(routes).flatten() {
            *backend = reach(*backend);
        }
    }

    /// Leads ports of the machine to those pods that want them. A Service that is there keeps its
    /// own.
    pub(super) fn place_host_ports(&mut self, pods: &[Arc<Pod>]) {
        for pod in pods {
            let (Some(spec), Some(status)) = (&pod.spec, &pod.status) else { continue };
            let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
            let address = status.pod_ip.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok());
            // Those on the machine's own network have its ports anyway.
            let address = address.filter(|_| !is_over && spec.host_network != Some(true));
            let Some(address) = address else { continue };
            let sidecars = spec.init_containers.iter().flatten();
            let sidecars = sidecars.filter(|it| it.restart_policy.as_deref() == Some("Always"));
            let containers = spec.containers.iter().chain(sidecars);
            for wanted in containers.flat_map(|container| container.ports.iter().flatten()) {
                let Some(protocol) = Protocol::named(wanted.protocol.as_deref()) else { continue };
                let number = |port: i32| u16::try_from(port).ok().filter(|port| *port != 0);
                let (Some(port), Some(to)) =
                    (wanted.host_port.and_then(number), number(wanted.container_port))
                else {
                    continue;
                };
                let own = wanted.host_ip.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok());
                let own = own.filter(|ip| !ip.is_unspecified());
                let place = own.map_or(Place::Node, Place::Host);
                let front = Front { place, protocol, port };
                let behind = || Behind::only(vec![SocketAddr::new(address, to)]);
                self.fronts.entry(front).or_insert_with(behind);
            }
        }
    }

    /// Leads to the API server at a place that its Service does not tell.
    pub(super) fn place_server(&mut self, services: &[Arc<Service>], place: SocketAddr) {
        let is_server = |service: &&Arc<Service>| {
            let metadata = &service.metadata;
            metadata.namespace.as_deref() == Some("default")
                && metadata.name.as_deref() == Some("kubernetes")
        };
        for service in services.iter().filter(is_server) {
            for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
                for front in fronts(service, port) {
                    self.fronts.insert(front, Behind::only(vec![place]));
                }
            }
        }
    }

    /// Who answers a request; none if nobody is to.
    pub(super) fn route(&self, host: &str, path: &str) -> Option<&Route> {
        let name = host.split(':').next().unwrap_or_default();
        self.routes.iter().find(|route| route.takes_host(name) && route.takes_path(path))
    }
}

impl Route {
    fn takes_host(&self, name: &str) -> bool {
        match &self.host {
            None => true,
            Some(host) => match host.strip_prefix("*.") {
                Some(rest) => name.split_once('.').is_some_and(|(_, after)| after == rest),
                None => host.eq_ignore_ascii_case(name),
            },
        }
    }

    fn takes_path(&self, path: &str) -> bool {
        if self.is_exact {
            return path == self.path;
        }
        // Whole parts: `/hello` is no prefix of `/helloworld`.
        let prefix = self.path.trim_end_matches('/');
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Protocol {
    /// Those that are passed on.
    fn named(name: Option<&str>) -> Option<Self> {
        match name.unwrap_or("TCP") {
            "TCP" => Some(Protocol::Tcp),
            "UDP" => Some(Protocol::Udp),
            _ => None,
        }
    }
}

/// Where a port of a Service is to be served.
fn fronts(service: &Service, port: &ServicePort) -> Vec<Front> {
    let Some(protocol) = Protocol::named(port.protocol.as_deref()) else { return Vec::new() };
    let front = |place, port: i32| {
        let port = u16::try_from(port).ok().filter(|port| *port != 0);
        port.map(|port| Front { place, protocol, port })
    };
    let spec = service.spec.as_ref();
    let addresses = spec.iter().flat_map(|spec| spec.cluster_ips.iter().flatten());
    let addresses = addresses.filter_map(|ip| ip.parse().ok());
    let own = addresses.filter_map(|ip| front(Place::Service(ip), port.port));
    let on_node = port.node_port.and_then(|port| front(Place::Node, port));
    // The machine itself is the load balancer.
    let type_ = spec.and_then(|spec| spec.type_.as_deref());
    let balanced = Some(port.port).filter(|_| type_ == Some("LoadBalancer"));
    let balanced = balanced.and_then(|port| front(Place::Node, port));
    own.chain(on_node).chain(balanced).collect()
}

/// A pod behind a port of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    address: SocketAddr,
    is_ready: bool,
    /// It is ending, and serves until it has.
    is_leaving: bool,
    /// It is on this machine.
    is_here: bool,
}

/// Those of some pods that can be led to: who is ready, or else who serves until it ends.
fn usable(endpoints: &[Endpoint], is_meant: impl Fn(&Endpoint) -> bool) -> Vec<SocketAddr> {
    let of = |has: fn(&Endpoint) -> bool| -> Vec<SocketAddr> {
        let found = endpoints.iter().filter(|it| is_meant(it) && has(it));
        found.map(|endpoint| endpoint.address).collect()
    };
    let ready = of(|it| it.is_ready);
    if ready.is_empty() { of(|it| it.is_leaving) } else { ready }
}

/// Who stands behind a place of a Service, as its policies say.
fn behind(service: &Service, place: Place, endpoints: &[Endpoint]) -> Behind {
    let spec = service.spec.as_ref();
    let is_local = |policy: Option<&String>| policy.is_some_and(|policy| policy == "Local");
    let everywhere = || usable(endpoints, |_| true);
    let here = || usable(endpoints, |endpoint| endpoint.is_here);
    let (all, for_others) = match place {
        Place::Service(_) if is_local(spec.and_then(|it| it.internal_traffic_policy.as_ref())) => {
            (here(), None)
        }
        // Who is on this machine itself may go anywhere.
        Place::Node | Place::Host(_)
            if is_local(spec.and_then(|it| it.external_traffic_policy.as_ref())) =>
        {
            (everywhere(), Some(here()))
        }
        _ => (everywhere(), None),
    };
    Behind { all, for_others, affinity: affinity(service) }
}

fn affinity(service: &Service) -> Option<Duration> {
    let spec = service.spec.as_ref()?;
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let config = spec.session_affinity_config.as_ref();
    let seconds = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Some(seconds.map_or(AFFINITY, Duration::from_secs))
}

struct Cluster<'a> {
    services: &'a [Arc<Service>],
    slices: &'a [Arc<EndpointSlice>],
    /// Those that this machine is.
    nodes: &'a [String],
}

impl Cluster<'_> {
    /// The pods behind a port of a Service, in order.
    fn endpoints(&self, service: &Service, port: Option<&str>) -> Vec<Endpoint> {
        let metadata = &service.metadata;
        let is_its = |slice: &&Arc<EndpointSlice>| {
            let labels = slice.metadata.labels.as_ref();
            let name = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            slice.metadata.namespace == metadata.namespace && name == metadata.name.as_ref()
        };
        let mut found = Vec::new();
        for slice in self.slices.iter().filter(is_its) {
            let mut ports = slice.ports.iter().flatten();
            let wanted = port.unwrap_or_default();
            let port = ports.find(|port| port.name.as_deref().unwrap_or_default() == wanted);
            let Some(port) = port.and_then(|port| u16::try_from(port.port?).ok()) else { continue };
            for endpoint in slice.endpoints.iter().flatten() {
                let conditions = endpoint.conditions.clone().unwrap_or_default();
                let is_ready = conditions.ready.unwrap_or(true);
                let is_leaving = conditions.serving.unwrap_or(is_ready)
                    && conditions.terminating.unwrap_or(false);
                let is_here = endpoint.node_name.as_ref().is_some_and(|it| self.nodes.contains(it));
                let addresses = endpoint.addresses.iter();
                let addresses = addresses.filter_map(|address| address.parse().ok());
                found.extend(addresses.map(|address| {
                    let address = SocketAddr::new(address, port);
                    Endpoint { address, is_ready, is_leaving, is_here }
                }));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn routes(&self, ingress: &Ingress, routes: &mut Vec<Route>) {
        let Some(spec) = &ingress.spec else { return };
        let namespace = ingress.metadata.namespace.as_ref();
        if let Some(backend) = &spec.default_backend {
            let backends = self.backends(namespace, backend);
            routes.push(Route { host: None, path: "/".to_owned(), is_exact: false, backends });
        }
        for rule in spec.rules.iter().flatten() {
            let host = rule.host.clone().filter(|host| !host.is_empty());
            for path in rule.http.iter().flat_map(|http| &http.paths) {
                let HTTPIngressPath { backend, path, path_type } = path;
                routes.push(Route {
                    host: host.clone(),
                    path: path.clone().unwrap_or_else(|| "/".to_owned()),
                    is_exact: path_type == "Exact",
                    backends: self.backends(namespace, backend),
                });
            }
        }
    }

    fn backends(&self, namespace: Option<&String>, backend: &IngressBackend) -> Vec<SocketAddr> {
        let Some(backend) = &backend.service else { return Vec::new() };
        let service = self.services.iter().find(|service| {
            service.metadata.namespace.as_ref() == namespace
                && service.metadata.name.as_ref() == Some(&backend.name)
        });
        let (Some(service), Some(wanted)) = (service, &backend.port) else { return Vec::new() };
        let mut ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        let port = ports.find(|port| match &wanted.name {
            Some(name) => port.name.as_ref() == Some(name),
            None => Some(port.port) == wanted.number,
        });
        let endpoints = port.map(|port| self.endpoints(service, port.name.as_deref()));
        usable(&endpoints.unwrap_or_default(), |_| true)
    }
}
