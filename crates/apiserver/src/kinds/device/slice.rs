//! Slices: the devices that a driver offers, some at a time.

use std::collections::HashSet;

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceTaint, ResourceSliceSpec};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::time::Time;
use serde_json::{Value, json};

use super::rule;
use crate::kinds::{Context, check, edit, typed};

const DEVICES_MAX: usize = 128;
/// Of devices with taints or counters, which cost more to look at.
const COSTLY_DEVICES_MAX: usize = 64;
const PROPERTIES_MAX: usize = 32;
const TEXT_BYTES_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
const BINDING_CONDITIONS_MAX: usize = 4;
/// What upstream has off by default.
const LIST_ATTRIBUTES: [&str; 4] = ["bools", "ints", "strings", "versions"];
const ALLOCATABLE: &str = "nodeAllocatableResourceMappings";

pub(super) fn default(object: &mut Value) {
    for device in edit::items(object, "/spec/devices") {
        let mappings = device.get_mut(ALLOCATABLE).and_then(Value::as_object_mut);
        for (_, mapping) in mappings.into_iter().flatten() {
            edit::fill(mapping, "allocationMultiplier", "1");
        }
    }
}

/// A taint that does not say since when it is there is there from now on.
pub(super) fn date_taints(object: &mut Value, context: &Context<'_>) {
    let now = Time::from_unix(context.now.as_second()).to_value();
    for device in edit::items(object, "/spec/devices") {
        for taint in edit::items(device, "/taints") {
            edit::fill(taint, "timeAdded", now.clone());
        }
    }
}

/// Drops what upstream has off by default, unless the old object already uses it.
pub(super) fn drop_disabled(object: &mut Value, old: Option<&Value>) {
    let devices =
        |object: &Value| object["spec"]["devices"].as_array().cloned().unwrap_or_default();
    let before = old.map(devices).unwrap_or_default();
    let uses_allocatable = before.iter().any(|device| device.get(ALLOCATABLE).is_some());
    let uses_lists = before.iter().any(|device| {
        let attributes = device["attributes"].as_object().into_iter().flatten();
        attributes.into_iter().any(|(_, attribute)| {
            LIST_ATTRIBUTES.iter().any(|field| attribute.get(field).is_some())
        })
    });
    for device in edit::items(object, "/spec/devices") {
        if !uses_allocatable {
            edit::remove(device, ALLOCATABLE);
        }
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for (_, attribute) in attributes.into_iter().flatten().filter(|_| !uses_lists) {
            for field in LIST_ATTRIBUTES {
                edit::remove(attribute, field);
            }
        }
    }
}

pub(super) fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let driver = edit::text(object, "/spec/driver");
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    vec![format!(
        "spec.driver: driver names should be lowercase; \"{driver}\" contains uppercase characters"
    )]
}

pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let spec: Option<ResourceSliceSpec> = typed(&object["spec"]);
    let spec = spec.unwrap_or_default();
    let before: Option<ResourceSliceSpec> = old.and_then(|old| typed(&old["spec"]));
    let at = Path::new("spec");
    let pool_at = at.child("pool");
    let mut errors = rule::check_driver(&spec.driver, &at.child("driver"));
    errors.extend(rule::check_pool(&spec.pool.name, &pool_at.child("name")));
    if spec.pool.resource_slice_count <= 0 {
        let (at, count) = (pool_at.child("resourceSliceCount"), spec.pool.resource_slice_count);
        errors.push(Error::invalid(&at, count, "must be greater than zero"));
    }
    if spec.pool.generation < 0 {
        let (at, generation) = (pool_at.child("generation"), spec.pool.generation);
        errors.push(Error::invalid(&at, generation, "must be greater than or equal to zero"));
    }
    if let Some(before) = &before {
        let kept = [
            check::immutable(&pool_at.child("name"), &spec.pool.name, &before.pool.name),
            check::immutable(&at.child("driver"), &spec.driver, &before.driver),
            check::immutable(&at.child("nodeName"), &spec.node_name, &before.node_name),
        ];
        errors.extend(kept.into_iter().flatten());
    }
    errors.extend(check_nodes(&spec, &at));
    let devices = spec.devices.as_deref().unwrap_or_default();
    let is_costly = |device: &Device| {
        let has = |length: Option<usize>| length.is_some_and(|length| length > 0);
        has(device.taints.as_ref().map(Vec::len))
            || has(device.consumes_counters.as_ref().map(Vec::len))
    };
    let max = if devices.iter().any(is_costly) { COSTLY_DEVICES_MAX } else { DEVICES_MAX };
    let old_taints = |name: &str| {
        let devices = before.iter().flat_map(|before| before.devices.iter().flatten());
        devices.into_iter().find(|device| device.name == name).map(|device| &device.taints)
    };
    let per_device = spec.per_device_node_selection == Some(true);
    errors.extend(rule::check_set(
        devices,
        max,
        &at.child("devices"),
        |device| device.name.clone(),
        |device, at| {
            let same_taints = old_taints(&device.name).is_some_and(|old| *old == device.taints);
            check_device(device, per_device, same_taints, at)
        },
    ));
    errors
}

/// Which nodes the devices are for, said in one way.
fn check_nodes(spec: &ResourceSliceSpec, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut said = Vec::new();
    let node_at = at.child("nodeName");
    match spec.node_name.as_deref() {
        None => {}
        Some("") => {
            let problem = "must be either unset or set to a non-empty string";
            errors.push(Error::invalid(&node_at, "", problem));
        }
        Some(node) => {
            said.push("`nodeName`");
            errors.extend(check::dns_subdomain(&node_at, node));
        }
    }
    if spec.node_selector.is_some() {
        said.push("`nodeSelector`");
    }
    let switches = [
        (spec.all_nodes, "allNodes", "`allNodes`"),
        (spec.per_device_node_selection, "perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ];
    for (switch, field, quoted) in switches {
        match switch {
            None => {}
            Some(true) => said.push(quoted),
            Some(false) => {
                let problem = "must be either unset or set to true";
                errors.push(Error::invalid(&at.child(field), false, problem));
            }
        }
    }
    let problem = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` \
                   is required";
    match said.as_slice() {
        [] => errors.push(Error::required(at, problem)),
        [_] => {}
        several => {
            let shown = format!("{{{}}}", several.join(", "));
            let problem = format!("{problem}, but multiple fields are set");
            errors.push(Error::invalid(at, shown, problem));
        }
    }
    if spec.shared_counters.is_some() && spec.devices.is_some() {
        let problem = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(Error::invalid(at, "", problem));
    }
    errors
}

fn check_device(device: &Device, per_device: bool, same_taints: bool, at: &Path<'_>) -> Vec<Error> {
    let mut errors = rule::check_label(&device.name, &at.child("name"));
    let attributes = device.attributes.iter().flatten();
    let capacities = device.capacity.iter().flatten();
    let count = attributes.clone().count() + capacities.clone().count();
    if count > PROPERTIES_MAX {
        let problem = format!(
            "the total number of attributes and capacities must not exceed {PROPERTIES_MAX}"
        );
        errors.push(Error::invalid(at, count, problem));
    }
    let (attributes_at, capacity_at) = (at.child("attributes"), at.child("capacity"));
    for (name, attribute) in attributes {
        errors.extend(rule::check_qualified(name, &attributes_at));
        errors.extend(check_attribute(attribute, &attributes_at.key(name)));
    }
    for (name, capacity) in capacities {
        errors.extend(rule::check_qualified(name, &capacity_at));
        if device.allow_multiple_allocations != Some(true) && capacity.request_policy.is_some() {
            let at = capacity_at.key(name);
            let problem = "allowMultipleAllocations must be true";
            errors.push(Error::forbidden(&at.child("requestPolicy"), problem));
        }
    }
    if !same_taints {
        let taints = device.taints.as_deref().unwrap_or_default();
        errors.extend(rule::check_list(taints, TAINTS_MAX, &at.child("taints"), check_taint));
    }
    errors.extend(check_device_nodes(device, per_device, at));
    errors.extend(check_binding(device, at));
    errors
}

fn check_attribute(attribute: &DeviceAttribute, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if attribute.string.as_ref().is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
        errors.push(Error::too_long(&at.child("string"), TEXT_BYTES_MAX));
    }
    if let Some(version) = &attribute.version {
        let at = at.child("version");
        if !is_semantic_version(version) {
            let problem = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(Error::invalid(&at, version.as_str(), problem));
        }
        if version.len() > TEXT_BYTES_MAX {
            errors.push(Error::too_long(&at, TEXT_BYTES_MAX));
        }
    }
    let said = [
        attribute.bool.is_some(),
        attribute.int.is_some(),
        attribute.string.is_some(),
        attribute.version.is_some(),
    ];
    let problem = "exactly one value must be specified";
    match said.into_iter().filter(|is_said| *is_said).count() {
        0 => errors.push(Error::invalid(at, "", problem)),
        1 => {}
        _ => {
            let shown = json!({
                "IntValue": attribute.int,
                "BoolValue": attribute.bool,
                "StringValue": attribute.string,
                "VersionValue": attribute.version,
                "IntValues": null,
                "BoolValues": null,
                "StringValues": null,
                "VersionValues": null,
            });
            errors.push(Error::invalid(at, shown, problem));
        }
    }
    errors
}

/// `1.2.3-rc.1+build.5`
fn is_semantic_version(text: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let (text, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, release) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.into_iter().all(is_number)
        && release.is_none_or(|release| {
            release.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn check_taint(taint: &DeviceTaint, at: &Path<'_>) -> Vec<Error> {
    let mut errors: Vec<Error> = check::qualified_name(&at.child("key"), &taint.key);
    let value = taint.value.as_deref().unwrap_or_default();
    errors.extend(check::invalid(&at.child("value"), value, name::label_value(value)));
    let effect_at = at.child("effect");
    if taint.effect.is_empty() {
        errors.push(Error::required(&effect_at, ""));
    } else if !rule::EFFECTS.contains(&taint.effect.as_str()) {
        errors.push(Error::not_supported(&effect_at, taint.effect.as_str(), &rule::EFFECTS));
    }
    errors
}

fn check_device_nodes(device: &Device, per_device: bool, at: &Path<'_>) -> Vec<Error> {
    let any =
        device.node_name.is_some() || device.node_selector.is_some() || device.all_nodes.is_some();
    if !per_device {
        let problem = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        return any.then(|| Error::invalid(at, Value::Null, problem)).into_iter().collect();
    }
    let mut errors = Vec::new();
    let mut said = Vec::new();
    let node_at = at.child("nodeName");
    match device.node_name.as_deref() {
        None => {}
        Some("") => errors.push(Error::invalid(&node_at, "", "must not be empty")),
        Some(node) => {
            said.push("`nodeName`");
            errors.extend(check::dns_subdomain(&node_at, node));
        }
    }
    if device.node_selector.is_some() {
        said.push("`nodeSelector`");
    }
    match device.all_nodes {
        None => {}
        Some(true) => said.push("`allNodes`"),
        Some(false) => {
            let problem = "must be either unset or set to true";
            errors.push(Error::invalid(&at.child("allNodes"), false, problem));
        }
    }
    let problem = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match said.as_slice() {
        [] => errors.push(Error::required(at, problem)),
        [_] => {}
        several => {
            let shown = format!("{{{}}}", several.join(", "));
            errors.push(Error::invalid(at, shown, problem));
        }
    }
    errors
}

/// Conditions under which a device is ready or has failed, which come together.
fn check_binding(device: &Device, at: &Path<'_>) -> Vec<Error> {
    let ready = device.binding_conditions.as_deref().unwrap_or_default();
    let failed = device.binding_failure_conditions.as_deref().unwrap_or_default();
    let (ready_at, failed_at) =
        (at.child("bindingConditions"), at.child("bindingFailureConditions"));
    let check_names = |names: &[String], at: &Path<'_>| {
        rule::check_list(names, BINDING_CONDITIONS_MAX, at, |one, at| {
            check::qualified_name(at, one)
        })
    };
    let mut errors = check_names(ready, &ready_at);
    errors.extend(check_names(failed, &failed_at));
    for (names, at) in [(ready, &ready_at), (failed, &failed_at)] {
        let mut seen = HashSet::new();
        for (index, one) in names.iter().enumerate().filter(|(_, one)| !seen.insert(*one)) {
            errors.push(Error::duplicate(&at.index(index), one.as_str()));
        }
    }
    for (index, one) in failed.iter().enumerate().filter(|(_, one)| ready.contains(one)) {
        let problem = "bindingFailureConditions must not overlap with bindingConditions";
        errors.push(Error::invalid(&failed_at.index(index), one.as_str(), problem));
    }
    if ready.is_empty() && !failed.is_empty() {
        let problem = "bindingConditions are required to use bindingFailureConditions";
        errors.push(Error::invalid(&ready_at, Value::Null, problem));
    }
    if failed.is_empty() && !ready.is_empty() {
        let problem = "bindingFailureConditions are required to use bindingConditions";
        errors.push(Error::invalid(&failed_at, Value::Null, problem));
    }
    errors
}
