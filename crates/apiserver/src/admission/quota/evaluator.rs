//! How much an object counts, and for what.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubewright_apimachinery::quantity::{Format, Quantity};
use serde_json::Value;

use super::super::pod_resources::Side;
use super::super::{Attributes, Operation, default_class, items, text};
use super::{Scope, pod};
use crate::kinds::pod_spec::resources::{Amounts, amounts};
use crate::resource::Resource;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIM_COUNT: &str = "persistentvolumeclaims";
const CLAIM_STORAGE: &str = "requests.storage";
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// What a request for all devices of a class counts as: as many as a claim can hold.
const DEVICES_MAX: i64 = 32;

/// Counts the objects of a resource.
pub(super) enum Evaluator {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// By number only, under these names.
    Objects(Vec<String>),
}

impl Evaluator {
    /// `None` for what is never counted: questions, and Events, which come and go.
    pub(super) fn of(resource: &Resource) -> Option<Evaluator> {
        let gvr = &resource.gvr;
        Some(match (gvr.group.as_str(), gvr.resource.as_str()) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::Claims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::DeviceClaims,
            ("", "bindings" | "componentstatuses" | "events") | ("events.k8s.io", "events") => {
                return None;
            }
            ("authentication.k8s.io" | "authorization.k8s.io", _) => return None,
            (
                "",
                name @ ("configmaps" | "replicationcontrollers" | "resourcequotas" | "secrets"),
            ) => Evaluator::Objects(vec![format!("count/{name}"), name.to_owned()]),
            ("", name) => Evaluator::Objects(vec![format!("count/{name}")]),
            (group, name) => Evaluator::Objects(vec![format!("count/{name}.{group}")]),
        })
    }

    /// Whether a write changes what is used.
    pub(super) fn handles(&self, attributes: &Attributes<'_>, object: &Value) -> bool {
        let creates = attributes.creates();
        let updates = attributes.operation == Operation::Update;
        match (self, attributes.part) {
            (Evaluator::Pods, None) if updates => {
                let old = attributes.old.unwrap_or(&Value::Null);
                pod::is_terminating(old) != pod::is_terminating(object)
            }
            (Evaluator::Pods, Some("resize")) => updates,
            (Evaluator::Claims, Some("status")) => updates,
            (Evaluator::Services | Evaluator::Claims | Evaluator::DeviceClaims, None) => {
                creates || updates
            }
            (Evaluator::Pods | Evaluator::Objects(_), _) => creates,
            _ => false,
        }
    }

    /// Whether a quota for this is about such objects.
    pub(super) fn counts(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => pod::counts(name),
            Evaluator::Services => matches!(
                name,
                "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
            ),
            Evaluator::Claims => {
                let by_class = || name.rsplit_once(STORAGE_CLASS).map(|(_, rest)| rest);
                let own = [CLAIM_COUNT, CLAIM_STORAGE];
                name == "count/persistentvolumeclaims"
                    || own.contains(&name)
                    || by_class().is_some_and(|rest| own.contains(&rest))
            }
            Evaluator::DeviceClaims => {
                name == "count/resourceclaims.resource.k8s.io" || name.ends_with(DEVICE_CLASS)
            }
            Evaluator::Objects(names) => names.iter().any(|own| own == name),
        }
    }

    /// Whether an object says what is needed to count it.
    pub(super) fn check(&self, restricted: &[&str], object: &Value) -> Result<(), String> {
        match self {
            Evaluator::Pods => pod::check(restricted, object),
            _ => Ok(()),
        }
    }

    pub(super) fn is_in(&self, scope: &Scope<'_>, object: &Value) -> bool {
        match self {
            Evaluator::Pods => pod::is_in(scope, object),
            Evaluator::Claims if scope.name == "VolumeAttributesClass" => {
                let classes = attributes_classes(object);
                match classes.is_empty() {
                    true => scope.selects(""),
                    false => classes.into_iter().any(|class| scope.selects(class)),
                }
            }
            _ => false,
        }
    }

    pub(super) fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        match self {
            Evaluator::Pods => pod::usage(object, now),
            Evaluator::Services => service_usage(object),
            Evaluator::Claims => claim_usage(object),
            Evaluator::DeviceClaims => device_usage(object),
            Evaluator::Objects(names) => {
                names.iter().map(|name| (name.clone(), count(1))).collect()
            }
        }
    }
}

/// A number of things.
pub(super) fn count(number: i64) -> Quantity {
    Quantity::new(number, 0, Format::DecimalSi)
}

fn service_usage(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    let with_node_port = || ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0);
    let (node_ports, balancers) = match text(&spec["type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
            (with_node_port().count(), 1)
        }
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    let usage = [
        ("count/services", 1),
        ("services", 1),
        ("services.loadbalancers", balancers),
        ("services.nodeports", node_ports),
    ];
    usage.into_iter().map(|(name, number)| (name.to_owned(), count(number))).collect()
}

fn claim_usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::new();
    let class = default_class::of_claim(claim);
    let mut put = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{STORAGE_CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    };
    put(CLAIM_COUNT, count(1));
    if let Some(storage) = storage(claim) {
        put(CLAIM_STORAGE, storage);
    }
    usage.insert("count/persistentvolumeclaims".to_owned(), count(1));
    usage
}

/// What a claim asks for, or was given already if that is more; in whole bytes.
fn storage(claim: &Value) -> Option<Quantity> {
    let mut asked = Side::Requests.of(&claim["spec"]).remove("storage")?;
    asked.round_up(0);
    let given = amounts(claim["status"].get("allocatedResources")).remove("storage");
    Some(match given {
        Some(mut given) if given > asked => {
            given.round_up(0);
            given
        }
        _ => asked,
    })
}

/// The classes of attributes that a claim has, had or will have.
fn attributes_classes(claim: &Value) -> BTreeSet<&str> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let classes = [
        &spec["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    classes.into_iter().map(text).filter(|class| !class.is_empty()).collect()
}

fn device_usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::new();
    usage.insert("count/resourceclaims.resource.k8s.io".to_owned(), count(1));
    for request in items(&claim["spec"]["devices"]["requests"]) {
        // Of alternatives, the largest of each class counts.
        let mut most = Amounts::new();
        let alternatives = items(&request["firstAvailable"]).iter();
        let exactly = request.get("exactly").filter(|_| alternatives.len() == 0);
        for one in alternatives.chain(exactly) {
            let number = match text(&one["allocationMode"]) {
                "ExactCount" => one["count"].as_i64().unwrap_or_default(),
                "All" => DEVICES_MAX,
                _ => 0,
            };
            let name = format!("{}{DEVICE_CLASS}", text(&one["deviceClassName"]));
            let most = most.entry(name).or_default();
            *most = count(number).max(most.clone());
        }
        for (name, amount) in most {
            usage.entry(name).or_default().add(&amount);
        }
    }
    usage
}
