//! Endpoints that lead to a node or a pod: logs, commands, forwarded ports, proxies.
//!
//! Nothing is dialled from here. All that upstream finds wrong before it would connect is said in
//! its words; where nothing is, the client is told that there is nobody to connect to.

use std::net::IpAddr;

use bytes::Bytes;
use http::{Response, StatusCode, Uri};
use kubewright_apimachinery::field::{self, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupResource};
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::time::{self, Time};
use serde_json::{Map, Value, json};

use crate::index::{self, Store};
use crate::meta;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::target::ResourceTarget;

/// Where a client wants to be connected to.
#[derive(Clone, Copy)]
pub(crate) enum Connect {
    Log,
    /// `exec` or `attach`, which are about one container.
    Stream,
    PortForward,
    Proxy,
}

impl Connect {
    /// None if a part of an object leads nowhere.
    pub(crate) fn of(part: &str) -> Option<Self> {
        match part {
            "log" => Some(Connect::Log),
            "exec" | "attach" => Some(Connect::Stream),
            "portforward" => Some(Connect::PortForward),
            "proxy" => Some(Connect::Proxy),
            _ => None,
        }
    }

    /// What becomes of the attempt.
    ///
    /// # Errors
    /// Nearly always.
    pub(crate) fn answer(
        self,
        store: &Store,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &Value,
    ) -> Result<Response<Bytes>, Refusal> {
        let find = |name: &str| {
            let found = store.get(resource.key(namespace, name).as_str());
            let found = found.and_then(|found| index::object(&found));
            found.ok_or_else(|| Box::new(Status::not_found(&resource.group_resource(), name)))
        };
        match (self, resource.gvk.kind.as_str()) {
            (Connect::Proxy, "Service") => {
                let host = host("service", name)?;
                find(host)?;
                Err(to_service(store, namespace.unwrap_or_default(), host))
            }
            (Connect::Proxy, "Node") => {
                let host = host("node", name)?;
                find(host)?;
                Err(unreachable(host))
            }
            (Connect::Proxy, _) => Err(to_pod(&find(host("pod", name)?)?)),
            (Connect::Log | Connect::Stream | Connect::PortForward, _) => {
                self.to_node_of(store, &find(name)?, options["container"].as_str())
            }
        }
    }

    /// How a client wants to be connected. Refuses what makes no sense, whether or not there is
    /// anything to connect to.
    pub(crate) fn options(self, target: &ResourceTarget, uri: &Uri) -> Result<Value, Refusal> {
        let query = Query::parse(uri.query());
        let mut options = Map::new();
        let mut add = |field: &str, value: Value| options.insert(field.to_owned(), value);
        match self {
            Connect::Log => {
                check_log_options(&target.name, &query)?;
                if let Some(container) = query.get("container") {
                    add("container", container.into());
                }
            }
            Connect::Stream => {
                for field in ["stdin", "stdout", "stderr", "tty"] {
                    if query.flag(field) == Some(true) {
                        add(field, true.into());
                    }
                }
                if let Some(container) = query.get("container").filter(|name| !name.is_empty()) {
                    add("container", container.into());
                }
                let command: Vec<&str> = query.all("command").collect();
                if target.subresource == "exec" {
                    add("command", json!(command));
                }
            }
            Connect::PortForward => {
                let ports: Result<Vec<u16>, Refusal> = query.all("ports").map(port).collect();
                let ports = ports?;
                if !ports.is_empty() {
                    add("ports", json!(ports));
                }
            }
            Connect::Proxy => {
                let mut path = target.rest.join("/");
                if !path.is_empty() {
                    path.insert(0, '/');
                }
                if uri.path().ends_with('/') && !path.ends_with('/') {
                    path.push('/');
                }
                if !path.is_empty() {
                    add("path", path.into());
                }
            }
        }
        Ok(options.into())
    }

    /// Whether admission has a say. A log is read.
    pub(crate) fn is_admitted(self) -> bool {
        !matches!(self, Connect::Log)
    }

    /// By way of the node that a pod is on.
    fn to_node_of(
        self,
        store: &Store,
        pod: &Value,
        container: Option<&str>,
    ) -> Result<Response<Bytes>, Refusal> {
        if !matches!(self, Connect::PortForward) {
            check_container(pod, container)?;
        }
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        match self {
            // It has said nothing yet.
            Connect::Log if node.is_empty() => {
                let mut nothing = Response::new(Bytes::new());
                *nothing.status_mut() = StatusCode::NO_CONTENT;
                return Ok(nothing);
            }
            _ if node.is_empty() => {
                let name = meta::text(pod, "name");
                let why = format!("pod {name} does not have a host assigned");
                return Err(Box::new(Status::bad_request(why)));
            }
            _ => {}
        }
        match store.get(&format!("/registry/minions/{node}")) {
            Some(_) => Err(unreachable(node)),
            // Upstream takes the node for what was asked for.
            None => Err(Box::new(Status::not_found(&GroupResource::new("", "pods"), node))),
        }
    }
}

/// Refuses a container that a pod does not have, or no container where there are several.
fn check_container(pod: &Value, wanted: Option<&str>) -> Result<(), Refusal> {
    let names = |list: &str| {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
    };
    let main = names("containers");
    let all = [names("initContainers"), main.clone(), names("ephemeralContainers")].concat();
    let pod = meta::text(pod, "name");
    let why = match wanted {
        None if main.len() == 1 => return Ok(()),
        Some(name) if all.contains(&name) => return Ok(()),
        Some(name) => format!("container {name} is not valid for pod {pod}"),
        None => format!(
            "a container name must be specified for pod {pod}, choose one of: [{}]",
            all.join(" ")
        ),
    };
    Err(Box::new(Status::bad_request(why)))
}

/// Which part of a log is wanted.
fn check_log_options(pod: &str, query: &Query) -> Result<(), Refusal> {
    let since_seconds = query.number("sinceSeconds")?;
    let since_time = query.get("sinceTime").filter(|text| *text != "null");
    let bad_request = |error: time::ParseError| Box::new(Status::bad_request(error.to_string()));
    since_time.map(Time::parse).transpose().map_err(bad_request)?;
    let tail_lines = query.number("tailLines")?;
    let limit_bytes = query.number("limitBytes")?;

    let mut errors = Vec::new();
    let mut at_least = |field: &str, number: Option<i64>, least: i64, why: &str| {
        if let Some(number) = number.filter(|number| *number < least) {
            errors.push(field::Error::invalid(&Path::new(field), number, why));
        }
    };
    at_least("tailLines", tail_lines, 0, "must be greater than or equal to 0");
    at_least("limitBytes", limit_bytes, 1, "must be greater than 0");
    match (since_seconds, query.all("sinceTime").next()) {
        (Some(_), Some(_)) => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            // So upstream shows a field without a name.
            errors.push(field::Error::forbidden(&Path::new("[]"), why));
        }
        _ => at_least("sinceSeconds", since_seconds, 1, "must be greater than 0"),
    }
    if query.all("stream").next().is_some() {
        errors.push(field::Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    match errors.is_empty() {
        true => Ok(()),
        false => {
            let kind = GroupKind::new("", "PodLogOptions");
            Err(Box::new(Status::invalid(&kind, pod, &errors)))
        }
    }
}

fn port(text: &str) -> Result<u16, Refusal> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let why = match text.parse::<u16>() {
        Ok(port) if is_digits => return Ok(port),
        _ if is_digits => "value out of range",
        _ => "invalid syntax",
    };
    let text = json::go_quote(text);
    let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {text}: {why}");
    Err(Box::new(Status::bad_request(why)))
}

/// A proxy's name for where it leads: `name`, `name:port` or `scheme:name:port`.
fn host<'a>(kind: &str, name: &'a str) -> Result<&'a str, Refusal> {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [host] | [host, _] | ["" | "http" | "https", host, _] if !host.is_empty() => Ok(host),
        _ => {
            let why = format!("invalid {kind} request {}", json::go_quote(name));
            Err(Box::new(Status::bad_request(why)))
        }
    }
}

fn to_pod(pod: &Value) -> Refusal {
    let address = pod["status"]["podIP"].as_str().unwrap_or_default();
    let is_global = address.parse::<IpAddr>().is_ok_and(|address| {
        let is_local = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !is_local && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
    });
    match is_global {
        true => unreachable(address),
        false => Box::new(Status::bad_request("address not allowed")),
    }
}

fn to_service(store: &Store, namespace: &str, name: &str) -> Refusal {
    let endpoints = store.get(&format!("/registry/services/endpoints/{namespace}/{name}"));
    let Some(endpoints) = endpoints.and_then(|endpoints| index::object(&endpoints)) else {
        return Box::new(Status::not_found(&GroupResource::new("", "services"), name));
    };
    let mut subsets = endpoints["subsets"].as_array().into_iter().flatten();
    let addresses = subsets.find_map(|subset| subset["addresses"].as_array()?.first());
    match addresses.and_then(|address| address["ip"].as_str()) {
        Some(address) => unreachable(address),
        None => {
            let why = format!("no endpoints available for service {}", json::go_quote(name));
            Box::new(Status::service_unavailable(why))
        }
    }
}

fn unreachable(host: &str) -> Refusal {
    let why = format!("{host} cannot be reached: this server does not connect to nodes or pods");
    Box::new(Status::service_unavailable(why))
}

#[cfg(test)]
mod tests;
