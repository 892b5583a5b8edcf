//! Which pods stand behind which port, host and path.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{HTTPIngressPath, Ingress, IngressBackend};

/// What goes where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) fronts: BTreeMap<Front, Vec<SocketAddr>>,
    /// The most specific first.
    pub(super) routes: Vec<Route>,
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

impl Table {
    pub(super) fn of(
        services: &[Arc<Service>],
        slices: &[Arc<EndpointSlice>],
        ingresses: &[Arc<Ingress>],
    ) -> Self {
        let cluster = Cluster { services, slices };
        let mut table = Table::default();
        for service in services {
            for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
                let backends = cluster.endpoints(service, port.name.as_deref());
                for front in fronts(service, port) {
                    table.fronts.insert(front, backends.clone());
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
        let fronts = self.fronts.values_mut();
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
                self.fronts.entry(front).or_insert_with(|| vec![SocketAddr::new(address, to)]);
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
                    self.fronts.insert(front, vec![place]);
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

struct Cluster<'a> {
    services: &'a [Arc<Service>],
    slices: &'a [Arc<EndpointSlice>],
}

impl Cluster<'_> {
    /// The pods that are ready behind a port of a Service, in order.
    fn endpoints(&self, service: &Service, port: Option<&str>) -> Vec<SocketAddr> {
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
                let conditions = endpoint.conditions.as_ref();
                if conditions.and_then(|conditions| conditions.ready) == Some(false) {
                    continue;
                }
                let addresses = endpoint.addresses.iter();
                let addresses = addresses.filter_map(|address| address.parse().ok());
                found.extend(addresses.map(|address| SocketAddr::new(address, port)));
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
        port.map(|port| self.endpoints(service, port.name.as_deref())).unwrap_or_default()
    }
}
