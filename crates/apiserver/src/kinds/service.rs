//! Services: one address for many pods.
//!
//! Addresses and node ports are given out before any of this runs, by [`crate::allocate`].

mod addresses;
mod validity;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Field, Part, Rules, edit, ip, typed};

pub(crate) use addresses::check_addresses;

const AFFINITY_SECONDS: i32 = 10800;
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(super) const RULES: Rules = Rules {
    default,
    name: name::Rule::Label,
    prepare_create,
    prepare_update,
    validate: |object| validity::check(&typed(object), None),
    validate_update: |object, old| validity::check_update(&typed(object), &typed(old)),
    warnings: |object, _| warnings(&typed(object)),
    parts: &[("status", STATUS)],
    reset: &["status"],
    fields: &[Field::At("spec.clusterIP"), Field::At("spec.type")],
    create_on_update: true,
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    prepare_update: |object, old, _| edit::restore(object, old, "spec"),
    validate_update: |object, old| validity::check_status(&typed(object), &typed(old)),
    warnings: |object, _| status_warnings(&typed(object)),
    reset: &["spec"],
};

fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    edit::fill_text(spec, "sessionAffinity", "None");
    match edit::text(spec, "/sessionAffinity") {
        "None" => edit::remove(spec, "sessionAffinityConfig"),
        "ClientIP" => {
            let timeout = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds");
            if timeout.is_none_or(Value::is_null) {
                spec["sessionAffinityConfig"] =
                    json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
            }
        }
        _ => {}
    }
    edit::fill_text(spec, "type", "ClusterIP");
    for port in edit::items(spec, "/ports") {
        edit::fill_text(port, "protocol", "TCP");
        if port.get("targetPort").is_none_or(|target| target == 0 || target == "") {
            port["targetPort"] = port.get("port").cloned().unwrap_or_else(|| 0.into());
        }
    }
    let traits = Traits::of(spec);
    if traits.external {
        edit::fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(edit::text(spec, "/type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        edit::fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if traits.balanced {
        edit::fill(spec, "allocateLoadBalancerNodePorts", true);
        for ingress in edit::items(object, "/status/loadBalancer/ingress") {
            if !edit::text(ingress, "/ip").is_empty() {
                edit::fill(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({"loadBalancer": {}});
    forget_internal_traffic(object);
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "status");
    drop_outlived_fields(object, old);
    forget_internal_traffic(object);
}

/// A name elsewhere has no traffic within the cluster. Upstream keeps the field and does not show
/// it.
fn forget_internal_traffic(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    let is_known = matches!(edit::text(spec, "/internalTrafficPolicy"), "Cluster" | "Local");
    if is_known && edit::text(spec, "/type") == "ExternalName" {
        edit::remove(spec, "internalTrafficPolicy");
    }
}

/// Clears what only the old type needed and the client has not touched: most likely the server
/// itself filled it in, and the client sent it back.
fn drop_outlived_fields(object: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (object.get_mut("spec"), old.get("spec")) else { return };
    let same = |new: &Value, name: &str| new.get(name) == old.get(name);
    let was = Traits::of(old);
    let is = Traits::of(new);

    if was.addresses && !is.addresses {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            edit::remove(new, "clusterIP");
            edit::remove(new, "clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, name) {
                edit::remove(new, name);
            }
        }
    }
    if was.node_ports && !is.node_ports {
        let old_ports = node_ports(old);
        if node_ports(new).iter().all(|port| old_ports.contains(port)) {
            for port in edit::items(new, "/ports") {
                edit::remove(port, "nodePort");
            }
        }
    }
    let outlived = [
        ("healthCheckNodePort", was.health_check && !is.health_check),
        ("allocateLoadBalancerNodePorts", was.balanced && !is.balanced),
        ("loadBalancerClass", was.balanced && !is.balanced),
        ("externalTrafficPolicy", was.external && !is.external),
    ];
    for (name, outlived) in outlived {
        if outlived && same(new, name) {
            edit::remove(new, name);
        }
    }
    if !is.balanced && object.get("status").is_some() {
        object["status"]["loadBalancer"] = json!({});
    }
}

/// What a Service of its type has.
#[expect(clippy::struct_excessive_bools, reason = "each is a question that upstream asks")]
struct Traits {
    addresses: bool,
    node_ports: bool,
    balanced: bool,
    health_check: bool,
    external: bool,
}

impl Traits {
    fn of(spec: &Value) -> Self {
        let kind = edit::text(spec, "/type");
        let balanced = kind == "LoadBalancer";
        let external_ips = spec.get("externalIPs").and_then(Value::as_array).map_or(0, Vec::len);
        Traits {
            addresses: kind != "ExternalName",
            node_ports: balanced || kind == "NodePort",
            balanced,
            health_check: balanced && edit::text(spec, "/externalTrafficPolicy") == "Local",
            external: is_external(kind, external_ips),
        }
    }
}

fn node_ports(spec: &Value) -> Vec<i64> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| port.get("nodePort")?.as_i64()).filter(|port| *port != 0).collect()
}

/// Whether traffic comes from outside the cluster, so that its policy matters.
fn is_external(kind: &str, n_external_ips: usize) -> bool {
    matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && n_external_ips > 0)
}

fn warnings(service: &Service) -> Vec<String> {
    let default = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&default);
    let at = Path::new("spec");
    let kind = spec.type_.as_deref().unwrap_or_default();
    let external_ips = spec.external_ips.as_deref().unwrap_or_default();
    let cluster_ip = spec.cluster_ip.as_deref().unwrap_or_default();
    let headless = kind == "ClusterIP" && cluster_ip == "None";
    let mut warnings = Vec::new();

    let annotations = service.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(TOPOLOGY_HINTS)) {
        warnings.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    if !cluster_ip.is_empty() && cluster_ip != "None" {
        let at = at.child("clusterIPs");
        for (index, text) in spec.cluster_ips.iter().flatten().enumerate() {
            warnings.extend(ip::warnings(&at.index(index), text));
        }
    }
    if headless {
        let ignored = [
            ("loadBalancerIP", spec.load_balancer_ip.as_ref().is_some_and(|ip| !ip.is_empty())),
            ("externalIPs", !external_ips.is_empty()),
            ("SessionAffinity", spec.session_affinity.as_deref() != Some("None")),
        ];
        warnings.extend(
            ignored
                .iter()
                .filter(|(_, given)| *given)
                .map(|(name, _)| format!("spec.{name} is ignored for headless services")),
        );
    }
    let external_at = at.child("externalIPs");
    for (index, text) in external_ips.iter().enumerate() {
        warnings.extend(ip::warnings(&external_at.index(index), text));
    }
    if !external_ips.is_empty() && !headless && kind != "ExternalName" {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    if let Some(text) = spec.load_balancer_ip.as_deref().filter(|text| !text.is_empty()) {
        warnings.extend(ip::warnings(&at.child("loadBalancerIP"), text));
    }
    let ranges_at = at.child("loadBalancerSourceRanges");
    for (index, text) in spec.load_balancer_source_ranges.iter().flatten().enumerate() {
        warnings.extend(ip::cidr_warnings(&ranges_at.index(index), text));
    }
    if kind == "ExternalName" && !external_ips.is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && spec.external_name.as_ref().is_some_and(|name| !name.is_empty()) {
        warnings
            .push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.traffic_distribution.as_deref() == Some("PreferClose") {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
    warnings
}

fn status_warnings(service: &Service) -> Vec<String> {
    let status = service.status.as_ref();
    let ingress = status.and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    let status_at = Path::new("status");
    let balancer = status_at.child("loadBalancer");
    let at = balancer.child("ingress");
    let mut warnings = Vec::new();
    for (index, ingress) in ingress.into_iter().flatten().enumerate() {
        if let Some(text) = ingress.ip.as_deref().filter(|text| !text.is_empty()) {
            warnings.extend(ip::warnings(&at.index(index), text));
        }
    }
    warnings
}
