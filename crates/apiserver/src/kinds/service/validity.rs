//! When a Service is valid.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::json;

use super::super::{check, ip};
use super::addresses::{
    check_addresses, check_addresses_change, check_families_change, is_headless,
};
use super::{TOPOLOGY_HINTS, TOPOLOGY_MODE, is_external};

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const AFFINITY_SECONDS_MAX: i32 = 86400;
const BALANCED_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn check_update(new: &Service, old: &Service) -> Vec<Error> {
    let (default, old_default) = (ServiceSpec::default(), ServiceSpec::default());
    let new_spec = new.spec.as_ref().unwrap_or(&default);
    let old_spec = old.spec.as_ref().unwrap_or(&old_default);
    let mut errors = check_addresses_change(new_spec, old_spec);
    errors.extend(check_families_change(new_spec, old_spec));

    let at = Path::new("spec");
    if kind(new_spec) == "LoadBalancer"
        && kind(old_spec) == "LoadBalancer"
        && new_spec.load_balancer_class != old_spec.load_balancer_class
    {
        let class = new_spec.load_balancer_class.as_deref();
        errors.push(Error::invalid(
            &at.child("loadBalancerClass"),
            class,
            "may not change once set",
        ));
    }
    // Upstream checks the class once as part of the change and once as part of the whole.
    errors.extend(check_class(new_spec));
    if needs_health_check(new_spec)
        && needs_health_check(old_spec)
        && new_spec.health_check_node_port != old_spec.health_check_node_port
    {
        errors.push(Error::forbidden(&at.child("healthCheckNodePort"), "field is immutable"));
    }
    errors.extend(check(new, Some(old)));
    errors
}

pub(super) fn check(service: &Service, old: Option<&Service>) -> Vec<Error> {
    let default = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&default);
    let old_spec = old.and_then(|old| old.spec.as_ref());
    let mut errors: Vec<Error> = check_topology(service).into_iter().collect();
    errors.extend(check_type(spec));
    errors.extend(check_ports(spec));
    errors.extend(check_selector(spec));
    errors.extend(check_affinity(spec));
    errors.extend(check_addresses(spec, old_spec));
    errors.extend(check_external_ips(spec, old_spec));

    let at = Path::new("spec");
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    errors.extend(check::required_one_of(&at.child("type"), kind(spec), &types));
    errors.extend(check_port_numbers(spec));
    errors.extend(check_source_ranges(service, old));

    let allocate = spec.allocate_load_balancer_node_ports;
    match (allocate, kind(spec)) {
        (None, "LoadBalancer") => {
            errors.push(Error::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
        }
        (Some(_), other) if other != "LoadBalancer" => {
            let at = at.child("allocateLoadBalancerNodePorts");
            errors.push(Error::forbidden(&at, BALANCED_ONLY));
        }
        _ => {}
    }
    errors.extend(check_class(spec));
    errors.extend(check_external_traffic(spec));
    errors.extend(check_internal_traffic(spec));
    if let Some(distribution) = &spec.traffic_distribution {
        let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        errors.extend(check::one_of(&at.child("trafficDistribution"), distribution, &known));
    }
    errors
}

pub(super) fn check_status(new: &Service, old: &Service) -> Vec<Error> {
    let ingress_of = |service: &Service| {
        let status = service.status.clone().unwrap_or_default();
        status.load_balancer.unwrap_or_default().ingress.unwrap_or_default()
    };
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    let ingress = ingress_of(new);
    if new.spec.as_ref().is_none_or(|spec| kind(spec) != "LoadBalancer") && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![Error::forbidden(&at, detail)];
    }
    let kept: Vec<String> = ingress_of(old).into_iter().filter_map(|ingress| ingress.ip).collect();
    let mut errors = Vec::new();
    for (index, ingress) in ingress.iter().enumerate() {
        let at = at.index(index);
        let text = ingress.ip.as_deref().unwrap_or_default();
        let mode_at = at.child("ipMode");
        if !text.is_empty() {
            errors.extend(ip::check_legacy(&at.child("ip"), text, &kept));
        }
        match (&ingress.ip_mode, text.is_empty()) {
            (None, true) => {}
            (None, false) => {
                errors.push(Error::required(&mode_at, "must be specified when `ip` is set"));
            }
            (Some(_), true) => {
                let detail = "may not be specified when `ip` is not set";
                errors.push(Error::forbidden(&mode_at, detail));
            }
            (Some(mode), false) => {
                errors.extend(check::one_of(&mode_at, mode, &["Proxy", "VIP"]));
            }
        }
        if let Some(host) = ingress.hostname.as_deref().filter(|host| !host.is_empty()) {
            let at = at.child("hostname");
            errors.extend(check::dns_subdomain(&at, host));
            if ip::parse(host).is_some() {
                errors.push(Error::invalid(&at, host, "must be a DNS name, not an IP address"));
            }
        }
    }
    errors
}

fn check_topology(service: &Service) -> Option<Error> {
    let annotations = service.metadata.annotations.as_ref()?;
    let (hints, mode) = (annotations.get(TOPOLOGY_HINTS)?, annotations.get(TOPOLOGY_MODE)?);
    (hints != mode).then(|| {
        let metadata = Path::new("metadata");
        Error::invalid(
            &metadata.child("annotations").key(TOPOLOGY_MODE),
            mode.as_str(),
            format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"),
        )
    })
}

fn check_type(spec: &ServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let mut errors = Vec::new();
    let kind = kind(spec);
    if spec.ports.as_deref().unwrap_or_default().is_empty()
        && !is_headless(spec)
        && kind != "ExternalName"
    {
        errors.push(Error::required(&at.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&at.child("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => {
            let given = [
                ("clusterIPs", spec.cluster_ips.as_ref().is_some_and(|ips| !ips.is_empty())),
                ("ipFamilies", spec.ip_families.as_ref().is_some_and(|list| !list.is_empty())),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ];
            for (name, _) in given.iter().filter(|(_, given)| *given) {
                let detail = "may not be set for ExternalName services";
                errors.push(Error::forbidden(&at.child(name), detail));
            }
            let name = spec.external_name.as_deref().unwrap_or_default();
            // A trailing dot says that the name is complete.
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(Error::required(&at.child("externalName"), "")),
                name => errors.extend(check::dns_subdomain(&at.child("externalName"), name)),
            }
        }
        _ => {}
    }
    errors
}

fn check_ports(spec: &ServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let ports_at = at.child("ports");
    let ports = spec.ports.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = ports_at.index(index);
        match port.name.as_deref().unwrap_or_default() {
            "" if ports.len() > 1 => errors.push(Error::required(&at.child("name"), "")),
            "" => {}
            name => {
                errors.extend(check::dns_label(&at.child("name"), name));
                if ports[..index].iter().any(|other| other.name.as_deref() == Some(name)) {
                    errors.push(Error::duplicate(&at.child("name"), name));
                }
            }
        }
        errors.extend(check::port(&at.child("port"), port.port));
        let protocol = port.protocol.as_deref().unwrap_or_default();
        errors.extend(check::required_one_of(&at.child("protocol"), protocol, &check::PROTOCOLS));
        if let Some(target) = &port.target_port {
            errors.extend(check::port_or_name(&at.child("targetPort"), target));
        }
        if let Some(protocol) = &port.app_protocol {
            errors.extend(check::qualified_name(&at.child("appProtocol"), protocol));
        }
    }
    errors
}

fn check_selector(spec: &ServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let at = at.child("selector");
    let mut errors = Vec::new();
    for (key, value) in spec.selector.iter().flatten() {
        errors.extend(check::qualified_name(&at, key));
        errors.extend(check::invalid(&at, value.as_str(), name::label_value(value)));
    }
    errors
}

fn check_affinity(spec: &ServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let affinity = spec.session_affinity.as_deref().unwrap_or_default();
    let known = ["ClientIP", "None"];
    let mut errors: Vec<Error> =
        check::required_one_of(&at.child("sessionAffinity"), affinity, &known)
            .into_iter()
            .collect();
    let config_at = at.child("sessionAffinityConfig");
    let config = spec.session_affinity_config.as_ref();
    match (affinity, config) {
        ("None", Some(_)) => errors
            .push(Error::forbidden(&config_at, "must not be set when session affinity is None")),
        ("ClientIP", config) => {
            let client_at = config_at.child("clientIP");
            let missing = "when session affinity type is ClientIP";
            let timeout_at = client_at.child("timeoutSeconds");
            match config
                .map(|config| config.client_ip.as_ref().map(|client| client.timeout_seconds))
            {
                None => errors.push(Error::required(&config_at, missing)),
                Some(None) => errors.push(Error::required(&client_at, missing)),
                Some(Some(None)) => errors.push(Error::required(&timeout_at, missing)),
                Some(Some(Some(timeout))) if !(1..=AFFINITY_SECONDS_MAX).contains(&timeout) => {
                    let detail =
                        format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                    errors.push(Error::invalid(&timeout_at, timeout, detail));
                }
                Some(Some(Some(_))) => {}
            }
        }
        _ => {}
    }
    errors
}

fn check_external_ips(spec: &ServiceSpec, old: Option<&ServiceSpec>) -> Vec<Error> {
    let at = Path::new("spec");
    let at = at.child("externalIPs");
    let kept = old.and_then(|old| old.external_ips.as_deref()).unwrap_or_default();
    let mut errors = Vec::new();
    for (index, text) in spec.external_ips.iter().flatten().enumerate() {
        let at = at.index(index);
        match ip::check_legacy(&at, text, kept) {
            found if found.is_empty() => errors.extend(ip::check_endpoint(&at, text)),
            found => errors.extend(found),
        }
    }
    errors
}

/// Node ports where there may be none, and pairs of protocol and number that come twice.
fn check_port_numbers(spec: &ServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let ports_at = at.child("ports");
    let ports = spec.ports.as_deref().unwrap_or_default();
    let node_port = |port: &ServicePort| port.node_port.filter(|number| *number != 0);
    let mut errors = Vec::new();
    if kind(spec) == "ClusterIP" {
        let detail = "may not be used when `type` is 'ClusterIP'";
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
            errors.push(Error::forbidden(&ports_at.index(index).child("nodePort"), detail));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let is_same = |other: &ServicePort| {
            node_port(other) == node_port(port) && other.protocol == port.protocol
        };
        if let Some(number) = node_port(port)
            && ports[..index].iter().any(is_same)
        {
            errors.push(Error::duplicate(&ports_at.index(index).child("nodePort"), number));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let is_same =
            |other: &ServicePort| other.port == port.port && other.protocol == port.protocol;
        if ports[..index].iter().any(is_same) {
            // Upstream shows its own type, of which it has filled in two fields.
            let shown = json!({
                "Name": "",
                "Protocol": port.protocol,
                "AppProtocol": null,
                "Port": port.port,
                "TargetPort": 0,
                "NodePort": 0,
            });
            errors.push(Error::duplicate(&ports_at.index(index), shown));
        }
    }
    errors
}

fn check_source_ranges(service: &Service, old: Option<&Service>) -> Vec<Error> {
    let default = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&default);
    let ranges = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if !ranges.is_empty() {
        let at = Path::new("spec");
        let at = at.child("LoadBalancerSourceRanges");
        if kind(spec) != "LoadBalancer" {
            errors.push(Error::forbidden(&at, BALANCED_ONLY));
        }
        let old_spec = old.and_then(|old| old.spec.as_ref());
        let old_ranges = old_spec.and_then(|spec| spec.load_balancer_source_ranges.as_ref());
        let kept: Vec<String> =
            old_ranges.into_iter().flatten().map(|text| text.trim().to_owned()).collect();
        for (index, text) in ranges.iter().enumerate() {
            errors.extend(ip::check_cidr_legacy(&at.index(index), text.trim(), &kept));
        }
        return errors;
    }
    let annotation = |service: &Service| {
        service.metadata.annotations.as_ref().and_then(|all| all.get(SOURCE_RANGES).cloned())
    };
    let Some(text) = annotation(service) else { return errors };
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let at = annotations.key(SOURCE_RANGES);
    if kind(spec) != "LoadBalancer" {
        errors.push(Error::forbidden(&at, BALANCED_ONLY));
    }
    if old.and_then(annotation).as_ref() != Some(&text) && !text.trim().is_empty() {
        for text in text.trim().split(',') {
            errors.extend(ip::check_cidr_legacy(&at, text.trim(), &[]));
        }
    }
    errors
}

fn check_class(spec: &ServiceSpec) -> Vec<Error> {
    let Some(class) = &spec.load_balancer_class else { return Vec::new() };
    let at = Path::new("spec");
    let at = at.child("loadBalancerClass");
    match kind(spec) {
        "LoadBalancer" => check::qualified_name(&at, class),
        _ => vec![Error::forbidden(&at, BALANCED_ONLY)],
    }
}

fn check_external_traffic(spec: &ServiceSpec) -> Vec<Error> {
    let spec_at = Path::new("spec");
    let at = spec_at.child("externalTrafficPolicy");
    let policy = spec.external_traffic_policy.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if is_external(kind(spec), spec.external_ips.as_ref().map_or(0, Vec::len)) {
        errors.extend(check::required_one_of(&at, policy, &["Cluster", "Local"]));
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(Error::invalid(&at, policy, detail));
    }
    let at = spec_at.child("healthCheckNodePort");
    match (spec.health_check_node_port.unwrap_or(0), needs_health_check(spec)) {
        (0, true) => errors.push(Error::required(&at, "")),
        (port, true) => errors.extend(check::port(&at, port)),
        (0, false) => {}
        (port, false) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and \
                          `externalTrafficPolicy` is 'Local'";
            errors.push(Error::invalid(&at, port, detail));
        }
    }
    errors
}

fn check_internal_traffic(spec: &ServiceSpec) -> Option<Error> {
    let at = Path::new("spec");
    let at = at.child("internalTrafficPolicy");
    match &spec.internal_traffic_policy {
        Some(policy) => check::one_of(&at, policy, &["Cluster", "Local"]),
        None => matches!(kind(spec), "NodePort" | "LoadBalancer" | "ClusterIP")
            .then(|| Error::required(&at, "")),
    }
}

fn needs_health_check(spec: &ServiceSpec) -> bool {
    kind(spec) == "LoadBalancer" && spec.external_traffic_policy.as_deref() == Some("Local")
}

fn kind(spec: &ServiceSpec) -> &str {
    spec.type_.as_deref().unwrap_or_default()
}
