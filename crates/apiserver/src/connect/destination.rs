//! Where a client is connected to, or what is wrong with that.

use std::net::IpAddr;

use form_urlencoded::Serializer;
use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use super::Connect;
use super::kubelet::{Address, Kubelets};
use crate::index::{self, Store};
use crate::outbound::Line;
use crate::refusal::Refusal;
use crate::resource::Resource;

/// What there is to find somebody by.
pub(crate) struct Scene<'a> {
    pub(crate) store: &'a Store,
    pub(crate) kubelets: &'a Kubelets,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    /// Of the object; of a proxy perhaps with a scheme and a port.
    pub(crate) name: &'a str,
    /// `exec`, or another part of the object.
    pub(crate) part: &'a str,
    pub(crate) options: &'a Value,
}

/// Where a client is connected to.
pub(super) struct Destination {
    pub(super) line: Line,
    pub(super) way: Way,
}

/// How.
pub(super) enum Way {
    /// A log is read, at a path with a query.
    Log(String),
    /// The connection leaves HTTP, at a path with a query.
    Stream(String),
    /// Requests are passed on, below a path without escapes.
    Proxy { path: String, guard: Guard },
}

/// Whether names may lead anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    Open,
    /// Not to this machine and its neighbours.
    Global,
}

impl Scene<'_> {
    /// None if there is nothing to connect to yet, which is no mistake.
    pub(super) fn find(&self, connect: Connect) -> Result<Option<Destination>, Refusal> {
        match (connect, self.resource.gvk.kind.as_str()) {
            (Connect::Proxy, "Service") => self.service().map(Some),
            (Connect::Proxy, "Node") => self.node().map(Some),
            (Connect::Proxy, _) => self.pod().map(Some),
            (Connect::Log, _) => self.log(),
            (Connect::Stream, _) => self.stream().map(Some),
            (Connect::PortForward, _) => self.port_forward().map(Some),
        }
    }

    fn log(&self) -> Result<Option<Destination>, Refusal> {
        let pod = self.object(self.name)?;
        let container = self.container(&pod)?;
        if node_of(&pod).is_empty() {
            return Ok(None);
        }
        let mut query = Serializer::new(String::new());
        // In the order of their names, as Go writes them.
        for field in [
            "follow",
            "limitBytes",
            "previous",
            "sinceSeconds",
            "sinceTime",
            "tailLines",
            "timestamps",
        ] {
            match &self.options[field] {
                Value::Null => {}
                Value::String(text) => drop(query.append_pair(field, text)),
                other => drop(query.append_pair(field, &other.to_string())),
            }
        }
        let path = format!("/containerLogs/{}/{}/{container}", self.namespace(), self.name);
        let is_verified = self.options["insecureSkipTLSVerifyBackend"] != true;
        let line = self.line_to_node_of(&pod, is_verified)?;
        Ok(Some(Destination { line, way: Way::Log(with_query(path, &query.finish())) }))
    }

    fn stream(&self) -> Result<Destination, Refusal> {
        let pod = self.object(self.name)?;
        let container = self.container(&pod)?;
        let line = self.line_to_node_of(&pod, true)?;
        let mut query = Serializer::new(String::new());
        for command in self.options["command"].as_array().into_iter().flatten() {
            query.append_pair("command", command.as_str().unwrap_or_default());
        }
        for (field, name) in
            [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")]
        {
            if self.options[field] == true {
                query.append_pair(name, "1");
            }
        }
        let path = format!("/{}/{}/{}/{container}", self.part, self.namespace(), self.name);
        Ok(Destination { line, way: Way::Stream(with_query(path, &query.finish())) })
    }

    fn port_forward(&self) -> Result<Destination, Refusal> {
        let pod = self.object(self.name)?;
        let line = self.line_to_node_of(&pod, true)?;
        let ports = self.options["ports"].as_array().into_iter().flatten();
        let ports: Vec<String> = ports.map(ToString::to_string).collect();
        let mut query = Serializer::new(String::new());
        if !ports.is_empty() {
            query.append_pair("port", &ports.join(","));
        }
        let path = format!("/portForward/{}/{}", self.namespace(), self.name);
        Ok(Destination { line, way: Way::Stream(with_query(path, &query.finish())) })
    }

    /// The container that is meant. Refuses one that a pod does not have, or none where there are
    /// several.
    fn container(&self, pod: &Value) -> Result<String, Refusal> {
        let names = |list: &str| {
            let containers = pod["spec"][list].as_array().into_iter().flatten();
            containers.filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
        };
        let main = names("containers");
        let all = [names("initContainers"), main.clone(), names("ephemeralContainers")].concat();
        let why = match (self.options["container"].as_str(), main.as_slice()) {
            (None, [only]) => return Ok((*only).to_owned()),
            (Some(name), _) if all.contains(&name) => return Ok(name.to_owned()),
            (Some(name), _) => format!("container {name} is not valid for pod {}", self.name),
            (None, _) => format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                self.name,
                all.join(" ")
            ),
        };
        Err(Box::new(Status::bad_request(why)))
    }

    fn line_to_node_of(&self, pod: &Value, is_verified: bool) -> Result<Line, Refusal> {
        let name = node_of(pod);
        if name.is_empty() {
            let why = format!("pod {} does not have a host assigned", self.name);
            return Err(Box::new(Status::bad_request(why)));
        }
        let Some(node) = self.stored(&format!("/registry/minions/{name}")) else {
            // Upstream takes the node for what was asked for.
            return Err(Box::new(Status::not_found(&GroupResource::new("", "pods"), name)));
        };
        let address = self.kubelets.address(&node)?;
        Ok(self.kubelets.line(self.store, address, is_verified))
    }

    fn node(&self) -> Result<Destination, Refusal> {
        let asked = Name::parse("node", self.name)?;
        let address = self.kubelets.address(&self.object(asked.host)?)?;
        let line = match asked.port.filter(|port| **port != *address.port.to_string()) {
            None => self.kubelets.line(self.store, address, true),
            Some(port) => {
                let port = number(port)?;
                self.kubelets.stranger(self.store, Address { port, ..address }, asked.is_secure)
            }
        };
        Ok(self.proxy(line, Guard::Global))
    }

    fn pod(&self) -> Result<Destination, Refusal> {
        let asked = Name::parse("pod", self.name)?;
        let pod = self.object(asked.host)?;
        let host = pod["status"]["podIP"].as_str().unwrap_or_default();
        if !host.parse().is_ok_and(is_global) {
            return Err(Box::new(Status::bad_request("address not allowed")));
        }
        let port = match asked.port {
            Some(port) => number(port)?,
            None => first_port(&pod).unwrap_or(if asked.is_secure { 443 } else { 80 }),
        };
        let address = Address { host: host.to_owned(), port };
        Ok(self.proxy(self.kubelets.stranger(self.store, address, asked.is_secure), Guard::Open))
    }

    fn service(&self) -> Result<Destination, Refusal> {
        let asked = Name::parse("service", self.name)?;
        let service = self.object(asked.host)?;
        let quoted = json::go_quote(asked.host);
        let mut port = asked.port.unwrap_or_default();
        if let Ok(number) = port.parse::<i64>() {
            let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let Some(found) = ports.find(|port| port["port"] == number) else {
                let why = format!("no service port {number} found for service {quoted}");
                return Err(Box::new(Status::service_unavailable(why)));
            };
            port = found["name"].as_str().unwrap_or_default();
        }
        let key = format!("/registry/services/endpoints/{}/{}", self.namespace(), asked.host);
        let Some(endpoints) = self.stored(&key) else {
            let services = GroupResource::new("", "services");
            return Err(Box::new(Status::not_found(&services, asked.host)));
        };
        let subsets = endpoints["subsets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(address) = subsets.iter().find_map(|subset| self.endpoint(subset, port)) else {
            let of = if subsets.is_empty() { quoted } else { json::go_quote(self.name) };
            let why = format!("no endpoints available for service {of}");
            return Err(Box::new(Status::service_unavailable(why)));
        };
        Ok(self.proxy(self.kubelets.stranger(self.store, address, asked.is_secure), Guard::Open))
    }

    /// A pod that has a port of this name, among those of a subset of endpoints.
    fn endpoint(&self, subset: &Value, port: &str) -> Option<Address> {
        let mut ports = subset["ports"].as_array()?.iter();
        let port = ports.find(|found| found["name"].as_str().unwrap_or_default() == port)?;
        let port = u16::try_from(port["port"].as_u64()?).ok()?;
        let mut addresses = subset["addresses"].as_array()?.iter();
        let address = addresses.find(|address| self.is_pod(address))?;
        Some(Address { host: address["ip"].as_str()?.to_owned(), port })
    }

    /// Whether an address is one of a pod. Others may be anywhere, so nobody is let through to
    /// them.
    fn is_pod(&self, address: &Value) -> bool {
        let target = &address["targetRef"];
        let name = target["name"].as_str().unwrap_or_default();
        if target["namespace"] != *self.namespace() || name.is_empty() {
            return false;
        }
        let pod = self.stored(&format!("/registry/pods/{}/{name}", self.namespace()));
        let addresses = pod.as_ref().and_then(|pod| pod["status"]["podIPs"].as_array());
        addresses.into_iter().flatten().any(|own| own["ip"] == address["ip"])
    }

    fn proxy(&self, line: Line, guard: Guard) -> Destination {
        let path = self.options["path"].as_str().unwrap_or_default().to_owned();
        Destination { line, way: Way::Proxy { path, guard } }
    }

    fn namespace(&self) -> &str {
        self.namespace.unwrap_or_default()
    }

    fn object(&self, name: &str) -> Result<Value, Refusal> {
        let key = self.resource.key(self.namespace, name);
        let found = self.stored(key.as_str());
        found.ok_or_else(|| Box::new(Status::not_found(&self.resource.group_resource(), name)))
    }

    fn stored(&self, key: &str) -> Option<Value> {
        self.store.get(key).and_then(|found| index::object(&found))
    }
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

fn first_port(pod: &Value) -> Option<u16> {
    let mut containers = pod["spec"]["containers"].as_array()?.iter();
    let port = containers.find_map(|container| container["ports"].as_array()?.first())?;
    u16::try_from(port["containerPort"].as_u64()?).ok()
}

fn with_query(path: String, query: &str) -> String {
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

fn number(port: &str) -> Result<u16, Refusal> {
    let why = || format!("invalid port {}", json::go_quote(port));
    port.parse().map_err(|_| Box::new(Status::bad_request(why())))
}

/// A proxy's name for where it leads: `name`, `name:port` or `scheme:name:port`.
struct Name<'a> {
    host: &'a str,
    port: Option<&'a str>,
    is_secure: bool,
}

impl<'a> Name<'a> {
    fn parse(kind: &str, name: &'a str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = name.split(':').collect();
        let (scheme, host, port) = match parts[..] {
            [host] if !host.is_empty() => ("", host, ""),
            [host, port] if !host.is_empty() => ("", host, port),
            [scheme @ ("" | "http" | "https"), host, port] if !host.is_empty() => {
                (scheme, host, port)
            }
            _ => {
                let why = format!("invalid {kind} request {}", json::go_quote(name));
                return Err(Box::new(Status::bad_request(why)));
            }
        };
        let port = Some(port).filter(|port| !port.is_empty());
        Ok(Name { host, port, is_secure: scheme == "https" })
    }
}

/// Whether an address is of one machine only, and not of this one.
pub(super) fn is_global(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_local && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
}
