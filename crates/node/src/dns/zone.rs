//! The names of a cluster: those of Services, of the pods behind them, and of addresses. Pure.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::message::{A, AAAA, ANY, Answer, CNAME, Code, Data, Record};

/// How long answers may be believed.
const SECONDS: u32 = 5;
/// So many names may lead to each other.
const NAMES_MAX: usize = 8;
/// The version of what Kubernetes says of names.
const VERSION: &str = "1.1.0";

/// All names of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Zone {
    domain: String,
    /// What is known of each name.
    names: BTreeMap<String, Vec<Data>>,
    /// Namespaces, in which pods have names too.
    namespaces: BTreeSet<String>,
}

impl Zone {
    pub(super) fn new(
        domain: &str,
        services: &[Arc<Service>],
        slices: &[Arc<EndpointSlice>],
    ) -> Self {
        let mut zone = Zone { domain: domain.to_owned(), ..Zone::default() };
        zone.add(&format!("dns-version.{domain}"), Data::Txt(VERSION.to_owned()));
        for service in services {
            let (Some(name), Some(namespace)) =
                (&service.metadata.name, &service.metadata.namespace)
            else {
                continue;
            };
            zone.namespaces.insert(namespace.clone());
            let own = slices.iter().filter(|slice| {
                let labels = slice.metadata.labels.as_ref();
                slice.metadata.namespace.as_ref() == Some(namespace)
                    && labels.and_then(|it| it.get("kubernetes.io/service-name")) == Some(name)
            });
            zone.add_service(&format!("{name}.{namespace}.svc.{domain}"), service, own);
        }
        zone
    }

    fn add_service<'a>(
        &mut self,
        name: &str,
        service: &Service,
        slices: impl Iterator<Item = &'a Arc<EndpointSlice>>,
    ) {
        let Some(spec) = &service.spec else { return };
        if spec.type_.as_deref() == Some("ExternalName") {
            let target = spec.external_name.clone().unwrap_or_default();
            self.add(name, Data::Cname(target.trim_end_matches('.').to_ascii_lowercase()));
            return;
        }
        let addresses = spec.cluster_ips.clone().or(spec.cluster_ip.clone().map(|ip| vec![ip]));
        let addresses: Vec<IpAddr> =
            addresses.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
        if addresses.is_empty() {
            self.add_headless(name, service, slices);
            return;
        }
        for address in &addresses {
            self.add(name, address_data(*address));
            self.add(&reverse(*address), Data::Ptr(name.to_owned()));
        }
        for port in spec.ports.iter().flatten() {
            let protocol = port.protocol.as_deref();
            self.add_port(name, port.name.as_deref(), protocol, port.port, name);
        }
    }

    fn add_headless<'a>(
        &mut self,
        name: &str,
        service: &Service,
        slices: impl Iterator<Item = &'a Arc<EndpointSlice>>,
    ) {
        // It is a name also while nobody is behind it.
        self.names.entry(name.to_owned()).or_default();
        let spec = service.spec.as_ref();
        let takes_all = spec.and_then(|spec| spec.publish_not_ready_addresses) == Some(true);
        for slice in slices {
            for endpoint in slice.endpoints.iter().flatten() {
                let is_ready = endpoint.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true);
                if !is_ready && !takes_all {
                    continue;
                }
                for address in endpoint.addresses.iter().filter_map(|it| it.parse().ok()) {
                    let own = match &endpoint.hostname {
                        Some(hostname) => format!("{hostname}.{name}"),
                        None => format!("{}.{name}", dashed(address)),
                    };
                    self.add(name, address_data(address));
                    self.add(&own, address_data(address));
                    if endpoint.hostname.is_some() {
                        self.add(&reverse(address), Data::Ptr(own.clone()));
                    }
                    for port in slice.ports.iter().flatten() {
                        if let Some(number) = port.port {
                            let protocol = port.protocol.as_deref();
                            self.add_port(name, port.name.as_deref(), protocol, number, &own);
                        }
                    }
                }
            }
        }
    }

    fn add_port(
        &mut self,
        service: &str,
        name: Option<&str>,
        protocol: Option<&str>,
        port: i32,
        target: &str,
    ) {
        // Only ports with names have names.
        let Some(name) = name.filter(|name| !name.is_empty()) else { return };
        let protocol = protocol.unwrap_or("TCP").to_ascii_lowercase();
        let port = u16::try_from(port).unwrap_or_default();
        let data = Data::Srv { weight: 100, port, target: target.to_owned() };
        self.add(&format!("_{name}._{protocol}.{service}"), data);
    }

    fn add(&mut self, name: &str, data: Data) {
        let known = self.names.entry(name.to_ascii_lowercase()).or_default();
        if !known.contains(&data) {
            known.push(data);
        }
    }

    /// What this zone says of a name; none if others are to be asked.
    pub(super) fn answer(&self, name: &str, kind: u16) -> Option<Answer> {
        let is_within = name == self.domain || name.ends_with(&format!(".{}", self.domain));
        if !is_within && !self.names.contains_key(name) {
            return None;
        }
        let pod = self.pod(name).map(|address| vec![address_data(address)]);
        let Some(known) = self.names.get(name).or(pod.as_ref()) else {
            let suffix = format!(".{name}");
            let has_below = name == self.domain
                || self.names.keys().any(|known| known.ends_with(&suffix))
                || self.is_namespace(name);
            let code = if has_below { Code::Success } else { Code::NoName };
            return Some(Answer { code, authority: Some(self.authority()), ..Answer::default() });
        };
        let record = |name: &str, data: &Data| Record {
            name: name.to_owned(),
            seconds: SECONDS,
            data: data.clone(),
        };
        let fits = |data: &&Data| data.kind() == kind || kind == ANY || data.kind() == CNAME;
        let mut records: Vec<Record> =
            known.iter().filter(fits).map(|data| record(name, data)).collect();
        // Resolvers of pods do not follow a name that leads to another.
        let mut elsewhere = None;
        while let Some(Record { data: Data::Cname(target), .. }) = records.last() {
            if matches!(kind, CNAME | ANY) || records.len() > NAMES_MAX {
                break;
            }
            let target = target.clone();
            let Some(known) = self.names.get(&target) else {
                let is_within = target.ends_with(&format!(".{}", self.domain));
                elsewhere = (!is_within).then_some(target);
                break;
            };
            let more: Vec<Record> =
                known.iter().filter(fits).map(|data| record(&target, data)).collect();
            if more.is_empty() {
                break;
            }
            records.extend(more);
        }
        let mut more = Vec::new();
        for found in &records {
            if let Data::Srv { target, .. } = &found.data {
                let addresses = self.names.get(target).into_iter().flatten();
                let addresses = addresses.filter(|data| matches!(data.kind(), A | AAAA));
                more.extend(addresses.map(|data| record(target, data)));
            }
        }
        let authority = records.is_empty().then(|| self.authority());
        Some(Answer { code: Code::Success, records, authority, more, elsewhere })
    }

    /// Whether a name is that of all Services or pods of a namespace, or of all of either.
    fn is_namespace(&self, name: &str) -> bool {
        let Some(rest) = name.strip_suffix(&format!(".{}", self.domain)) else { return false };
        match rest.rsplit_once('.') {
            None => matches!(rest, "svc" | "pod"),
            Some((namespace, "svc" | "pod")) => self.namespaces.contains(namespace),
            Some(_) => false,
        }
    }

    /// The address in the name of a pod: `10-1-2-3.NAMESPACE.pod`.
    fn pod(&self, name: &str) -> Option<IpAddr> {
        let rest = name.strip_suffix(&format!(".pod.{}", self.domain))?;
        let (address, namespace) = rest.split_once('.')?;
        if namespace.contains('.') || !self.namespaces.contains(namespace) {
            return None;
        }
        let v4 = address.replace('-', ".").parse().map(IpAddr::V4);
        v4.or_else(|_| address.replace('-', ":").parse().map(IpAddr::V6)).ok()
    }

    fn authority(&self) -> Record {
        let data = Data::Soa {
            server: format!("ns.dns.{}", self.domain),
            mailbox: format!("hostmaster.{}", self.domain),
            seconds: SECONDS,
        };
        Record { name: self.domain.clone(), seconds: SECONDS, data }
    }
}

fn address_data(address: IpAddr) -> Data {
    match address {
        IpAddr::V4(address) => Data::A(address),
        IpAddr::V6(address) => Data::Aaaa(address),
    }
}

fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

/// The name of an address.
fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = address.octets().into_iter().rev();
            let digits = digits.map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4));
            format!("{}ip6.arpa", digits.collect::<String>())
        }
    }
}
