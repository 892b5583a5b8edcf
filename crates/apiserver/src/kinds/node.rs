//! Nodes: the machines that pods run on, as their agents report them.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{
    ConfigMapNodeConfigSource, Node, NodeConfigSource, NodeSpec, NodeStatus, Taint,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::{self, go_quote};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Field, Part, Rules, check, edit, ip, resource_name, typed};

const TAINTS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update: |object, old| {
        let mut errors = validate(object);
        errors.extend(check_update(object, old));
        errors
    },
    warnings,
    parts: &[(
        "status",
        Part {
            prepare_update: prepare_status,
            validate_update: check_update,
            reset: &["spec"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    fields: &[Field::Made("spec.unschedulable", |node| {
        node["spec"]["unschedulable"].as_bool().unwrap_or_default().to_string()
    })],
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    join_cidrs(object);
    let Some(status) = object.get_mut("status").filter(|status| status.is_object()) else { return };
    let capacity = status["capacity"].clone();
    if capacity.is_object() {
        edit::fill(status, "allocatable", capacity);
    }
    resource_name::round_amounts(status.get_mut("capacity"));
    resource_name::round_amounts(status.get_mut("allocatable"));
}

/// `podCIDR` is the first of `podCIDRs`, and wins over it.
fn join_cidrs(object: &mut Value) {
    let first = edit::text(object, "/spec/podCIDR").to_owned();
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let listed = edit::text(spec, "/podCIDRs/0").to_owned();
    if first.is_empty() && !listed.is_empty() {
        spec["podCIDR"] = listed.into();
    } else if first != listed {
        spec["podCIDRs"] = json!([first]);
    }
}

/// Unlike others, a node may come with a status. Dynamic configuration is no more.
fn prepare_create(object: &mut Value, _: &Context<'_>) {
    remove(object, "/spec", "configSource");
    remove(object, "/status", "config");
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "status");
    if old["spec"]["configSource"].is_null() {
        remove(object, "/spec", "configSource");
    }
}

fn prepare_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "spec");
    if old["status"]["config"].is_null() {
        remove(object, "/status", "config");
    }
}

fn remove(object: &mut Value, parent: &str, field: &str) {
    if let Some(parent) = object.pointer_mut(parent) {
        edit::remove(parent, field);
    }
}

fn validate(object: &Value) -> Vec<Error> {
    let node: Node = typed(object);
    let metadata = Path::new("metadata");
    let spec = node.spec.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    let mut errors = check_annotations(&node);
    // Upstream looks for taints in the metadata.
    errors.extend(check_taints(taints(&spec), &metadata.child("taints")));
    errors.extend(check_amounts(&status));
    let swap = status.node_info.as_ref().and_then(|info| info.swap.as_ref());
    if let Some(capacity) = swap.and_then(|swap| swap.capacity).filter(|bytes| *bytes <= 0) {
        let at = metadata.child("nodeSwapStatus");
        errors.push(Error::invalid(&at.child("capacity"), capacity, "must be greater than zero"));
    }
    errors.extend(check_features(&status));
    errors.extend(check_cidrs(spec.pod_cidrs.as_deref().unwrap_or_default()));
    errors
}

fn taints(spec: &NodeSpec) -> &[Taint] {
    spec.taints.as_deref().unwrap_or_default()
}

fn check_annotations(node: &Node) -> Vec<Error> {
    let metadata = Path::new("metadata");
    let at = metadata.child("annotations");
    let annotations = node.metadata.annotations.as_ref();
    let get = |key: &str| {
        annotations.and_then(|all| all.get(key)).map(String::as_str).filter(|text| !text.is_empty())
    };
    let mut errors = Vec::new();
    if let Some(text) = get(TAINTS_ANNOTATION) {
        match parse::<Vec<Taint>>(text) {
            Ok(taints) => errors.extend(check_taints(&taints, &at.child(TAINTS_ANNOTATION))),
            Err(problem) => errors.push(Error::invalid(&at, TAINTS_ANNOTATION, problem)),
        }
    }
    if let Some(text) = get(AVOID_PODS_ANNOTATION) {
        match parse::<Value>(text) {
            Ok(avoided) => errors.extend(check_avoided(&avoided, &at)),
            Err(problem) => {
                let at = at.child("AvoidPods");
                errors.push(Error::invalid(&at, AVOID_PODS_ANNOTATION, problem));
            }
        }
    }
    errors
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = json::decode(text.as_bytes()).map_err(|error| error.to_string())?.value;
    serde_json::from_value(value).map_err(|error| format!("json: {error}"))
}

/// Which pods a node would rather not have, by what controls them.
fn check_avoided(avoided: &Value, at: &Path<'_>) -> Vec<Error> {
    let at = at.child(AVOID_PODS_ANNOTATION);
    let mut errors = Vec::new();
    for (index, entry) in avoided["preferAvoidPods"].as_array().into_iter().flatten().enumerate() {
        let at = at.index(index);
        let at = at.child("PodSignature");
        let controller = &entry["podSignature"]["podController"];
        if controller.is_null() {
            errors.push(Error::required(&at, ""));
        } else if controller["controller"].as_bool() == Some(false) {
            let at = at.child("PodController");
            let at = at.child("Controller");
            errors.push(Error::invalid(&at, false, "must point to a controller"));
        }
    }
    errors
}

fn check_taints(taints: &[Taint], at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = at.index(index);
        let key_at = at.child("key");
        errors.extend(check::qualified_name(&key_at, &taint.key));
        let value = taint.value.as_deref().unwrap_or_default();
        let problems = name::label_value(value);
        if !problems.is_empty() {
            errors.push(Error::invalid(&at.child("value"), value, problems.join(";")));
        }
        let effect_at = at.child("effect");
        if taint.effect.is_empty() {
            errors.push(Error::required(&effect_at, ""));
        } else if !TAINT_EFFECTS.contains(&taint.effect.as_str()) {
            let effect = taint.effect.as_str();
            errors.push(Error::not_supported(&effect_at, effect, &TAINT_EFFECTS));
        }
        if !seen.insert((&taint.effect, &taint.key)) {
            let mut error = Error::duplicate(&at, shown_taint(taint));
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
    errors
}

/// A taint with the names that upstream's Go type has, as its errors show it.
fn shown_taint(taint: &Taint) -> Value {
    json!({
        "Key": taint.key,
        "Value": taint.value.as_deref().unwrap_or_default(),
        "Effect": taint.effect,
        "TimeAdded": taint.time_added,
    })
}

fn check_amounts(status: &NodeStatus) -> Vec<Error> {
    let root = Path::new("status");
    let mut errors = Vec::new();
    for (list, field) in [(&status.capacity, "capacity"), (&status.allocatable, "allocatable")] {
        let at = root.child(field);
        for (resource, amount) in list.iter().flatten() {
            errors.extend(resource_name::validate_amount(
                resource,
                &check::quantity(amount),
                &at.child(resource),
            ));
        }
    }
    errors
}

/// What the node's agent can do, told in order.
fn check_features(status: &NodeStatus) -> Vec<Error> {
    let root = Path::new("status");
    let at = root.child("declaredFeatures");
    let features = status.declared_features.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    for (index, feature) in features.iter().enumerate() {
        let one_at = at.index(index);
        errors.extend(
            feature_problem(feature).map(|problem| Error::invalid(&one_at, &**feature, problem)),
        );
        let Some(next) = features.get(index + 1) else { continue };
        let next_at = at.index(index + 1);
        if feature == next {
            errors.push(Error::duplicate(&next_at, next.as_str()));
        } else if feature > next {
            let problem = "list must be sorted alphabetically";
            errors.push(Error::invalid(&next_at, next.as_str(), problem));
        }
    }
    errors
}

fn feature_problem(feature: &str) -> Option<String> {
    let quoted = go_quote(feature);
    let max = name::SUBDOMAIN_BYTES_MAX;
    if feature.len() > max {
        return Some(format!(
            "invalid feature name {quoted}: must be no more than {max} characters"
        ));
    }
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let is_name =
        feature.starts_with(|c: char| c.is_ascii_uppercase()) && feature.split('/').all(is_segment);
    (!is_name).then(|| {
        format!(
            "invalid feature name {quoted}: must start with an UpperCamelCase segment, with \
             subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and \
             contain only alphanumeric characters and slashes"
        )
    })
}

/// Where the node's pods get their addresses: one network for each family.
fn check_cidrs(cidrs: &[String]) -> Vec<Error> {
    let spec = Path::new("spec");
    let at = spec.child("podCIDRs");
    let mut errors: Vec<Error> = cidrs
        .iter()
        .enumerate()
        .flat_map(|(index, cidr)| ip::check_cidr_legacy(&at.index(index), cidr, &[]))
        .collect();
    if cidrs.len() > 1 {
        let parsed = cidrs.iter().map_while(|cidr| ip::Cidr::parse(cidr));
        let parsed: Vec<ip::Cidr> = parsed.collect();
        if let Some(wrong) = cidrs.get(parsed.len()) {
            let index = parsed.len();
            let problem = format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid \
                 CIDR[{index}]: <nil> (invalid CIDR address: {wrong})"
            );
            errors.push(Error::internal(&at, problem));
        }
        let has =
            |is_ipv6| parsed.iter().any(|cidr| cidr.address.to_canonical().is_ipv6() == is_ipv6);
        let is_pair = parsed.len() == 2 && has(true) && has(false);
        if !is_pair || cidrs.len() > 2 {
            let problem = "may specify no more than one CIDR for each IP family";
            errors.push(Error::invalid(&at, json!(cidrs), problem));
        }
    }
    errors
}

/// What is asked of an update through either endpoint. An update of the node itself is asked some
/// of it twice, as upstream does.
fn check_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (Node, Node) = (typed(object), typed(old));
    let mut errors = check_annotations(&new);
    let (spec, before) = (new.spec.unwrap_or_default(), old.spec.unwrap_or_default());
    let status = new.status.unwrap_or_default();
    let (metadata, spec_at) = (Path::new("metadata"), Path::new("spec"));
    errors.extend(check_amounts(&status));
    errors.extend(check_features(&status));
    errors.extend(check_addresses(&status));
    errors.extend(check_same_cidrs(&spec, &before));
    let was_given = before.provider_id.as_ref().is_some_and(|id| !id.is_empty());
    if was_given && spec.provider_id != before.provider_id {
        let problem = "node updates may not change providerID except from \"\" to valid";
        errors.push(Error::forbidden(&spec_at.child("providerID"), problem));
    }
    if let Some(source) = &spec.config_source {
        errors.extend(check_config_source(source, Written::InSpec, &spec_at.child("configSource")));
    }
    errors.extend(check_config_status(&status));
    errors.extend(check_taints(taints(&spec), &metadata.child("taints")));
    if spec.external_id != before.external_id {
        errors.push(Error::forbidden(&spec_at.child("externalID"), "may not be updated"));
    }
    errors
}

fn check_addresses(status: &NodeStatus) -> Vec<Error> {
    let root = Path::new("status");
    let at = root.child("addresses");
    let mut seen = HashSet::new();
    let addresses = status.addresses.iter().flatten().enumerate();
    addresses
        .filter(|(_, address)| !seen.insert((&address.type_, &address.address)))
        .map(|(index, address)| {
            let shown = json!({ "Type": address.type_, "Address": address.address });
            Error::duplicate(&at.index(index), shown)
        })
        .collect()
}

fn check_same_cidrs(spec: &NodeSpec, before: &NodeSpec) -> Vec<Error> {
    let (new, old) = (
        spec.pod_cidrs.as_deref().unwrap_or_default(),
        before.pod_cidrs.as_deref().unwrap_or_default(),
    );
    let changes = match old.len() {
        0 => 0,
        length if length != new.len() => 1,
        _ => new.iter().zip(old).filter(|(new, old)| new != old).count(),
    };
    let at = Path::new("spec");
    let problem = "node updates may not change podCIDR except from \"\" to valid";
    (0..changes).map(|_| Error::forbidden(&at.child("podCIDRs"), problem)).collect()
}

/// Where a source of configuration stands decides whether it says which version it means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    InSpec,
    InStatus,
}

fn check_config_status(status: &NodeStatus) -> Vec<Error> {
    let Some(config) = &status.config else { return Vec::new() };
    let root = Path::new("status");
    let at = root.child("config");
    let sources = [
        (&config.assigned, "assigned"),
        (&config.active, "active"),
        (&config.last_known_good, "lastKnownGood"),
    ];
    let given = sources.into_iter().filter_map(|(source, field)| Some((source.as_ref()?, field)));
    given
        .flat_map(|(source, field)| {
            check_config_source(source, Written::InStatus, &at.child(field))
        })
        .collect()
}

fn check_config_source(source: &NodeConfigSource, written: Written, at: &Path<'_>) -> Vec<Error> {
    match &source.config_map {
        Some(map) => check_config_map(map, written, &at.child("configMap")),
        None => {
            let shown = json!({ "ConfigMap": null });
            vec![Error::invalid(at, shown, "exactly one reference subfield must be non-nil")]
        }
    }
}

fn check_config_map(
    map: &ConfigMapNodeConfigSource,
    written: Written,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (text, field) in [(&map.uid, "uid"), (&map.resource_version, "resourceVersion")] {
        let at = at.child(field);
        let is_said = text.as_ref().is_some_and(|text| !text.is_empty());
        match (written, is_said) {
            (Written::InSpec, true) => {
                errors.push(Error::forbidden(&at, format!("{field} must not be set in spec")));
            }
            (Written::InStatus, false) => errors.push(Error::required(&at, "")),
            _ => {}
        }
    }
    let names = [
        (&map.namespace, "namespace", name::dns1123_label(&map.namespace)),
        (&map.name, "name", name::dns1123_subdomain(&map.name)),
        (
            &map.kubelet_config_key,
            "kubeletConfigKey",
            name::config_map_key(&map.kubelet_config_key),
        ),
    ];
    for (text, field, problems) in names {
        let at = at.child(field);
        if text.is_empty() {
            errors.push(Error::required(&at, ""));
        } else {
            errors.extend(check::invalid(&at, text, problems));
        }
    }
    errors
}

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let node: Node = typed(object);
    let spec = node.spec.unwrap_or_default();
    let mut warnings = Vec::new();
    if spec.config_source.is_some() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if spec.external_id.is_some_and(|id| !id.is_empty()) {
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(warning.to_owned());
    }
    let root = Path::new("spec");
    let at = root.child("podCIDRs");
    for (index, cidr) in spec.pod_cidrs.iter().flatten().enumerate() {
        warnings.extend(ip::cidr_warnings(&at.index(index), cidr));
    }
    warnings
}
