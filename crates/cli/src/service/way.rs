//! The ways to a Service from outside its cluster. Pure.

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::networking::v1::{Ingress, IngressBackend};

/// Where node ports are served.
const NODE: &str = "127.0.0.1";

/// A way to one port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// The port's name, or else its number.
    pub(super) port: String,
    scheme: &'static str,
    pub(super) host: String,
    pub(super) number: u16,
    path: String,
}

impl Way {
    pub(super) fn url(&self) -> String {
        format!("{}://{}:{}{}", self.scheme, self.host, self.number, self.path)
    }

    /// What to do about a name that leads elsewhere.
    pub(super) fn hint(&self) -> Option<String> {
        let is_name = self.host.parse::<std::net::IpAddr>().is_err();
        is_name.then(|| {
            format!(
                "its Ingress is for {host:?}, which leads elsewhere; \
                 `curl --header 'Host: {host}' http://{NODE}:{}{}` does not mind",
                self.number,
                self.path,
                host = self.host,
            )
        })
    }
}

/// All ways to a Service, the ports in their order and for each the best way first: a port of the
/// node, an Ingress (they are served at `ingress`), and its own address, which not every machine
/// can have.
pub(super) fn ways(service: &Service, ingresses: &[Ingress], ingress: &str) -> Vec<Way> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let ports = spec.ports.iter().flatten();
    let ports = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    let mut ways = Vec::new();
    for port in ports {
        let label = port.name.clone().unwrap_or_else(|| port.port.to_string());
        let way = |host: &str, number: i32| {
            let number = u16::try_from(number).ok()?;
            let scheme = scheme(port);
            Some(Way {
                port: label.clone(),
                scheme,
                host: host.to_owned(),
                number,
                path: String::new(),
            })
        };
        ways.extend(port.node_port.and_then(|number| way(NODE, number)));
        if spec.type_.as_deref() == Some("LoadBalancer") {
            ways.extend(way(NODE, port.port));
        }
        ways.extend(routed(service, port, ingresses, ingress));
        let addresses = spec.cluster_ips.iter().flatten();
        let addresses = addresses.filter(|ip| ip.parse::<std::net::Ipv4Addr>().is_ok());
        ways.extend(addresses.filter_map(|address| way(address, port.port)));
    }
    ways
}

/// The ways by Ingresses, those for any host first.
fn routed(service: &Service, port: &ServicePort, ingresses: &[Ingress], at: &str) -> Vec<Way> {
    let Some((host, number)) = at.rsplit('/').next().and_then(|it| it.rsplit_once(':')) else {
        return Vec::new();
    };
    let Ok(number) = number.parse() else { return Vec::new() };
    let label = port.name.clone().unwrap_or_else(|| port.port.to_string());
    let way = |name: Option<&str>, path: &str| Way {
        port: label.clone(),
        scheme: "http",
        host: name.unwrap_or(host).to_owned(),
        number,
        path: path.to_owned(),
    };
    let is_it = |backend: &IngressBackend| {
        backend.service.as_ref().is_some_and(|it| {
            let wanted = it.port.as_ref();
            let by_name = wanted.and_then(|it| it.name.as_ref());
            let by_number = wanted.and_then(|it| it.number);
            Some(&it.name) == service.metadata.name.as_ref()
                && (by_number == Some(port.port)
                    || (by_name.is_some() && by_name == port.name.as_ref()))
        })
    };
    let mut found = Vec::new();
    for spec in ingresses.iter().filter_map(|ingress| ingress.spec.as_ref()) {
        if spec.default_backend.as_ref().is_some_and(is_it) {
            found.push(way(None, "/"));
        }
        for rule in spec.rules.iter().flatten() {
            let name = rule.host.as_deref().filter(|name| !name.is_empty());
            // Nobody can know which of the many names of a wildcard is meant.
            if name.is_some_and(|name| name.starts_with('*')) {
                continue;
            }
            let paths = rule.http.iter().flat_map(|http| &http.paths);
            let paths = paths.filter(|path| is_it(&path.backend));
            found.extend(paths.map(|path| way(name, path.path.as_deref().unwrap_or("/"))));
        }
    }
    found.sort_by_key(|way| way.host != host);
    found
}

fn scheme(port: &ServicePort) -> &'static str {
    let is_https = |text: &Option<String>| text.as_deref() == Some("https");
    match is_https(&port.name) || is_https(&port.app_protocol) || port.port == 443 {
        true => "https",
        false => "http",
    }
}
