//! LimitRanger: what the containers of a namespace need unless they say so, and how much anybody
//! may ask for.

use std::fmt::Display;

use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::pod::{self, Side};
use kubewright_apimachinery::resources::{Amounts, amounts};
use kubewright_apimachinery::status;
use serde_json::{Value, json};

use super::{Attributes, Operation, Scene, items, text};
use crate::meta;
use crate::refusal::Refusal;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Above this, a number of thousandths does not fit.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Fills in what containers do not say.
pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    for range in ranges(scene, attributes) {
        fill(pod, &range);
    }
    Ok(())
}

/// Holds a pod or a claim to the bounds of its namespace.
pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<(), Refusal> {
    let is_pod = attributes.resource.gvr.resource == "pods";
    for range in ranges(scene, attributes) {
        let limits = items(&range["spec"]["limits"]).iter();
        let problems: Vec<String> = limits
            .flat_map(|limit| match (is_pod, text(&limit["type"])) {
                (true, "Container") => check_containers(limit, object),
                (true, "Pod") => check_pod(limit, object),
                (false, "PersistentVolumeClaim") => check_claim(limit, object),
                _ => Vec::new(),
            })
            .collect();
        if !problems.is_empty() {
            return Err(attributes.forbid(Some(object), status::aggregate(&problems)));
        }
    }
    Ok(())
}

/// The ranges that apply, in order of their names.
fn ranges(scene: &Scene<'_>, attributes: &Attributes<'_>) -> Vec<Value> {
    let is_pod = attributes.resource.gvr.resource == "pods";
    let applies = match (attributes.operation, attributes.part) {
        (Operation::Create, None) => true,
        (Operation::Update, None) => !is_pod,
        (Operation::Update, Some("resize")) => is_pod,
        _ => false,
    };
    if !applies || attributes.old.is_some_and(meta::is_deleting) {
        return Vec::new();
    }
    let namespace = attributes.namespace.unwrap_or_default();
    scene.list(&format!("/registry/limitranges/{namespace}/"))
}

fn fill(pod: &mut Value, range: &Value) {
    let defaults = |field: &str| {
        let limits = items(&range["spec"]["limits"]).iter();
        let mut defaults = serde_json::Map::new();
        for limit in limits.filter(|limit| limit["type"] == "Container") {
            defaults.extend(
                limit[field]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, amount)| (name.clone(), amount.clone())),
            );
        }
        defaults
    };
    let (requests, limits) = (defaults("defaultRequest"), defaults("default"));
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let mut told = Vec::new();
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let limits = fill_container(container, Side::Limits, &limits);
            let requests = fill_container(container, Side::Requests, &requests);
            for (set, word) in [(requests, "request"), (limits, "limit")] {
                if !set.is_empty() {
                    let name = text(&container["name"]);
                    told.push(format!("{} {word} for {called} {name}", set.join(", ")));
                }
            }
        }
    }
    if !told.is_empty() {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        meta::put(pod, "annotations", ANNOTATION, &text);
    }
}

/// Which resources were filled in, in order.
fn fill_container(
    container: &mut Value,
    side: Side,
    defaults: &serde_json::Map<String, Value>,
) -> Vec<String> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let resources = &mut container["resources"][side.field()];
    if !resources.is_object() {
        *resources = json!({});
    }
    let resources = resources.as_object_mut().expect("it was made an object");
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if !resources.contains_key(name) {
            resources.insert(name.clone(), amount.clone());
            set.push(name.clone());
        }
    }
    resources.sort_keys();
    set.sort();
    set
}

fn check_containers(limit: &Value, pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let containers = items(&spec["containers"]).iter().chain(items(&spec["initContainers"]));
    containers
        .flat_map(|container| {
            let usage = Usage {
                kind: "Container",
                requests: Side::Requests.of(container),
                limits: Side::Limits.of(container),
            };
            usage.check(limit)
        })
        .collect()
}

fn check_pod(limit: &Value, pod: &Value) -> Vec<String> {
    let whole = |side: Side| {
        let mut amounts = pod::of_containers(pod, |container| side.of(container));
        let is_supported = |name: &str| matches!(name, "cpu" | "memory");
        pod::override_with_pod_level(&mut amounts, pod, side, is_supported);
        amounts
    };
    let (requests, limits) = (whole(Side::Requests), whole(Side::Limits));
    Usage { kind: "Pod", requests, limits }.check(limit)
}

fn check_claim(limit: &Value, claim: &Value) -> Vec<String> {
    let requests = Side::Requests.of(&claim["spec"]);
    let usage = Usage { kind: "PersistentVolumeClaim", requests, limits: Amounts::new() };
    let least = amounts(limit.get("min"));
    let most = amounts(limit.get("max"));
    let least = least.iter().filter_map(|(name, bound)| usage.check_least(name, bound).err());
    let most =
        most.iter().filter_map(|(name, bound)| usage.check_most_requested(name, bound).err());
    least.chain(most).collect()
}

/// What something asks for.
struct Usage {
    kind: &'static str,
    requests: Amounts,
    limits: Amounts,
}

impl Usage {
    fn check(&self, limit: &Value) -> Vec<String> {
        let bounds = |field: &str| amounts(limit.get(field));
        let mut problems = Vec::new();
        for (name, bound) in &bounds("min") {
            problems.extend(self.check_least(name, bound).err());
        }
        for (name, bound) in &bounds("max") {
            problems.extend(self.check_most(name, bound).err());
        }
        for (name, bound) in &bounds("maxLimitRequestRatio") {
            problems.extend(self.check_ratio(name, bound).err());
        }
        problems
    }

    fn check_least(&self, name: &str, bound: &Quantity) -> Result<(), String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, held, least] = comparable([request, limit, Some(bound)]);
        let begin = format!("minimum {name} usage per {} is {bound}", self.kind);
        match (request, limit) {
            (None, _) => Err(format!("{begin}.  No request is specified")),
            (Some(request), _) if asked < least => Err(but(&begin, "request", request)),
            (_, Some(limit)) if held < least => Err(but(&begin, "limit", limit)),
            _ => Ok(()),
        }
    }

    fn check_most(&self, name: &str, bound: &Quantity) -> Result<(), String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, held, most] = comparable([request, limit, Some(bound)]);
        let begin = format!("maximum {name} usage per {} is {bound}", self.kind);
        match (limit, request) {
            (None, _) => Err(format!("{begin}.  No limit is specified")),
            (Some(limit), _) if held > most => Err(but(&begin, "limit", limit)),
            (_, Some(request)) if asked > most => Err(but(&begin, "request", request)),
            _ => Ok(()),
        }
    }

    fn check_most_requested(&self, name: &str, bound: &Quantity) -> Result<(), String> {
        let request = self.requests.get(name);
        let [asked, most] = comparable([request, Some(bound)]);
        let begin = format!("maximum {name} usage per {} is {bound}", self.kind);
        match request {
            None => Err(format!("{begin}.  No request is specified")),
            Some(request) if asked > most => Err(but(&begin, "request", request)),
            Some(_) => Ok(()),
        }
    }

    fn check_ratio(&self, name: &str, bound: &Quantity) -> Result<(), String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, held, _] = comparable([request, limit, Some(bound)]);
        let begin = format!("{name} max limit to request ratio per {} is {bound}", self.kind);
        if request.is_none() || asked == 0 {
            return Err(format!("{begin}, but no request is specified or request is 0"));
        }
        if limit.is_none() || held == 0 {
            return Err(format!("{begin}, but no limit is specified or limit is 0"));
        }
        let ratio = held as f64 / asked as f64;
        let (scaled, most) = match bound.value() <= MILLI_MAX {
            true => (ratio * 1000.0, bound.milli_value() as f64),
            false => (ratio, bound.value() as f64),
        };
        match scaled > most {
            true => Err(format!("{begin}, but provided ratio is {ratio:.6}")),
            false => Ok(()),
        }
    }
}

fn but(begin: &str, what: &str, amount: impl Display) -> String {
    format!("{begin}, but {what} is {amount}")
}

/// Numbers that can be compared: in thousandths, if all of them fit.
fn comparable<const N: usize>(amounts: [Option<&Quantity>; N]) -> [i64; N] {
    let value = |amount: Option<&Quantity>| amount.map_or(0, Quantity::value);
    let milli = |amount: Option<&Quantity>| amount.map_or(0, Quantity::milli_value);
    match amounts.iter().all(|amount| value(*amount) <= MILLI_MAX) {
        true => amounts.map(milli),
        false => amounts.map(value),
    }
}
