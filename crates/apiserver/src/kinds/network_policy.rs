//! NetworkPolicies: who may talk to whom.

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::{Context, Rules, check, edit, ip, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| edit::first_generation(object),
    prepare_update: |object: &mut Value, old: &Value, _: &Context<'_>| {
        edit::next_generation(object, old, "spec");
    },
    validate: |object| check(&typed(object), None),
    validate_update: |object, old| check(&typed(object), Some(&typed(old))),
    warnings: |object, _| warnings(&typed(object)),
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if edit::items(spec, "/policyTypes").is_empty() {
        spec["policyTypes"] = match edit::items(spec, "/egress").is_empty() {
            true => json!(["Ingress"]),
            false => json!(["Ingress", "Egress"]),
        };
    }
    for direction in ["ingress", "egress"] {
        for rule in edit::items(spec, &format!("/{direction}")) {
            for port in edit::items(rule, "/ports") {
                edit::fill(port, "protocol", "TCP");
            }
        }
    }
}

/// What an old policy is forgiven.
#[derive(Default)]
struct Forgiven {
    selectors: Leniency,
    cidrs: Vec<String>,
}

fn check(policy: &NetworkPolicy, old: Option<&NetworkPolicy>) -> Vec<Error> {
    let spec = policy.spec.clone().unwrap_or_default();
    let old = old.and_then(|old| old.spec.as_ref());
    let forgiven = old.map(Forgiven::of).unwrap_or_default();
    let at = Path::new("spec");
    let selector = spec.pod_selector.as_ref().map(check::label_selector).unwrap_or_default();
    let mut errors = selector.validate(forgiven.selectors, &at.child("podSelector"));
    for (direction, far_end, rules) in rules(&spec) {
        let rules_at = at.child(direction);
        for (index, (ports, peers)) in rules.into_iter().enumerate() {
            let at = rules_at.index(index);
            let ports_at = at.child("ports");
            for (index, port) in ports.iter().enumerate() {
                errors.extend(check_port(port, &ports_at.index(index)));
            }
            let peers_at = at.child(far_end);
            for (index, peer) in peers.iter().enumerate() {
                errors.extend(check_peer(peer, &forgiven, &peers_at.index(index)));
            }
        }
    }
    let types_at = at.child("policyTypes");
    let types = spec.policy_types.as_deref().unwrap_or_default();
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(Error::invalid(&types_at, check::shown_list(types), detail));
        return errors;
    }
    for (index, word) in types.iter().enumerate() {
        errors.extend(check::one_of(&types_at.index(index), word, &["Ingress", "Egress"]));
    }
    errors
}

type Rule<'a> = (&'a [NetworkPolicyPort], &'a [NetworkPolicyPeer]);

/// The rules of both directions, and what each calls the far end.
fn rules(spec: &NetworkPolicySpec) -> [(&'static str, &'static str, Vec<Rule<'_>>); 2] {
    let ingress = spec.ingress.iter().flatten().map(|rule| {
        (rule.ports.as_deref().unwrap_or_default(), rule.from.as_deref().unwrap_or_default())
    });
    let egress = spec.egress.iter().flatten().map(|rule| {
        (rule.ports.as_deref().unwrap_or_default(), rule.to.as_deref().unwrap_or_default())
    });
    [("ingress", "from", ingress.collect()), ("egress", "to", egress.collect())]
}

fn check_port(port: &NetworkPolicyPort, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(protocol) = &port.protocol {
        let known = ["TCP", "UDP", "SCTP"];
        errors.extend(check::one_of(&at.child("protocol"), protocol, &known));
    }
    let end_at = at.child("endPort");
    match (&port.port, port.end_port) {
        (Some(IntOrString::Int(number)), end) => {
            errors.extend(check::port(&at.child("port"), *number));
            if let Some(end) = end {
                if end < *number {
                    // Upstream shows the start of the range here, not its end.
                    let detail = "must be greater than or equal to `port`";
                    errors.push(Error::invalid(&end_at, *number, detail));
                }
                errors.extend(check::port(&end_at, end));
            }
        }
        (Some(IntOrString::String(text)), end) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(Error::invalid(&end_at, end, detail));
            }
            errors.extend(check::invalid(&at.child("port"), text, name::port_name(text)));
        }
        (None, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(Error::invalid(&end_at, end, detail));
        }
        (None, None) => {}
    }
    errors
}

fn check_peer(peer: &NetworkPolicyPeer, forgiven: &Forgiven, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let selectors =
        [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
    let mut n_selectors = 0;
    for (field, selector) in selectors {
        if let Some(selector) = selector {
            n_selectors += 1;
            let selector = check::label_selector(selector);
            errors.extend(selector.validate(forgiven.selectors, &at.child(field)));
        }
    }
    match (&peer.ip_block, n_selectors) {
        (None, 0) => errors.push(Error::required(at, "must specify a peer")),
        (None, _) => {}
        (Some(block), n_selectors) => {
            errors.extend(check_block(block, forgiven, &at.child("ipBlock")));
            if n_selectors > 0 {
                let detail = "may not specify both ipBlock and another peer";
                errors.push(Error::forbidden(at, detail));
            }
        }
    }
    errors
}

fn check_block(block: &IPBlock, forgiven: &Forgiven, at: &Path<'_>) -> Vec<Error> {
    let cidr_at = at.child("cidr");
    if block.cidr.is_empty() {
        return vec![Error::required(&cidr_at, "")];
    }
    let mut errors = ip::check_cidr_legacy(&cidr_at, &block.cidr, &forgiven.cidrs);
    let Some(cidr) = ip::Cidr::parse(&block.cidr) else { return errors };
    let except_at = at.child("except");
    for (index, text) in block.except.iter().flatten().enumerate() {
        let at = except_at.index(index);
        errors.extend(ip::check_cidr_legacy(&at, text, &forgiven.cidrs));
        if let Some(except) = ip::Cidr::parse(text)
            && (!cidr.contains(except.network()) || cidr.bits >= except.bits)
        {
            let detail = "must be a strict subset of `cidr`";
            errors.push(Error::invalid(&at, text.as_str(), detail));
        }
    }
    errors
}

impl Forgiven {
    fn of(old: &NetworkPolicySpec) -> Self {
        let selector = old.pod_selector.as_ref().map(check::label_selector).unwrap_or_default();
        let is_unsound = !selector.validate(Leniency::default(), &Path::ROOT).is_empty();
        let peers = rules(old).into_iter().flat_map(|(_, _, rules)| rules);
        let blocks = peers.flat_map(|(_, peers)| peers).filter_map(|peer| peer.ip_block.as_ref());
        let cidrs = blocks.flat_map(|block| {
            std::iter::once(block.cidr.clone()).chain(block.except.iter().flatten().cloned())
        });
        Forgiven {
            selectors: Leniency { invalid_values: is_unsound, ..Leniency::default() },
            cidrs: cidrs.collect(),
        }
    }
}

fn warnings(policy: &NetworkPolicy) -> Vec<String> {
    let spec = policy.spec.clone().unwrap_or_default();
    let at = Path::new("spec");
    let mut warnings = Vec::new();
    for (direction, far_end, rules) in rules(&spec) {
        let rules_at = at.child(direction);
        for (index, (_, peers)) in rules.into_iter().enumerate() {
            let rule_at = rules_at.index(index);
            let peers_at = rule_at.child(far_end);
            for (index, peer) in peers.iter().enumerate() {
                let Some(block) = &peer.ip_block else { continue };
                let peer_at = peers_at.index(index);
                let at = peer_at.child("ipBlock");
                warnings.extend(ip::cidr_warnings(&at.child("cidr"), &block.cidr));
                let except_at = at.child("except");
                for (index, text) in block.except.iter().flatten().enumerate() {
                    warnings.extend(ip::cidr_warnings(&except_at.index(index), text));
                }
            }
        }
    }
    warnings
}
