//! Claims on devices, and templates of them.

use std::collections::HashSet;

use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceClaimConfiguration, DeviceConstraint, DeviceRequest, DeviceSelector,
    DeviceToleration, ResourceClaimConsumerReference, ResourceClaimSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::rule;
use crate::kinds::pod_spec::validate::validate_claim_metadata;
use crate::kinds::{check, edit, internal, typed};

const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const RESERVED_MAX: usize = 256;
const MODES: [&str; 2] = ["All", "ExactCount"];

/// Fills in the requests of the claim's spec at this pointer.
pub(super) fn default(object: &mut Value, spec: &str) {
    for request in edit::items(object, &format!("{spec}/devices/requests")) {
        if let Some(exactly) = request.get_mut("exactly").filter(|exactly| exactly.is_object()) {
            default_request(exactly);
        }
        for alternative in edit::items(request, "/firstAvailable") {
            default_request(alternative);
        }
    }
}

pub(super) fn default_status(object: &mut Value) {
    for result in edit::items(object, "/status/allocation/devices/results") {
        default_tolerations(result);
    }
}

fn default_request(request: &mut Value) {
    edit::fill_text(request, "allocationMode", "ExactCount");
    let is_counted = edit::text(request, "/allocationMode") == "ExactCount";
    if is_counted && request["count"].as_i64().unwrap_or_default() == 0 {
        request["count"] = json!(1);
    }
    default_tolerations(request);
}

fn default_tolerations(parent: &mut Value) {
    for toleration in edit::items(parent, "/tolerations") {
        edit::fill_text(toleration, "operator", "Equal");
    }
}

/// What is wrong with a claim's spec.
pub(super) fn check(spec: &Value, at: &Path<'_>) -> Vec<Error> {
    let spec: Option<ResourceClaimSpec> = typed(spec);
    let claim = spec.and_then(|spec| spec.devices).unwrap_or_default();
    let names = Names::of(&claim);
    let DeviceClaim { config, constraints, requests } = claim;
    let at = at.child("devices");
    let mut errors = rule::check_set(
        &requests.unwrap_or_default(),
        REQUESTS_MAX,
        &at.child("requests"),
        |request| request.name.clone(),
        check_request,
    );
    let constraints = constraints.unwrap_or_default();
    errors.extend(rule::check_list(
        &constraints,
        CONSTRAINTS_MAX,
        &at.child("constraints"),
        |constraint, at| check_constraint(constraint, &names, at),
    ));
    let config = config.unwrap_or_default();
    errors.extend(rule::check_list(
        &config,
        rule::CONFIG_MAX,
        &at.child("config"),
        |config, at| check_config(config, &names, at),
    ));
    errors
}

/// What requests are called, alone and with each of their alternatives.
struct Names(HashSet<String>);

impl Names {
    fn of(claim: &DeviceClaim) -> Self {
        let requests = claim.requests.iter().flatten();
        Names(
            requests
                .flat_map(|request| {
                    let alternatives = request.first_available.iter().flatten();
                    let alternatives =
                        alternatives.map(|one| format!("{}/{}", request.name, one.name));
                    std::iter::once(request.name.clone()).chain(alternatives)
                })
                .collect(),
        )
    }

    fn check(&self, reference: &str, at: &Path<'_>) -> Vec<Error> {
        let problem = "must be the name of a request in the claim or the name of a request and a \
                       subrequest separated by '/'";
        let parts: Vec<&str> = reference.split('/').collect();
        let mut errors = Vec::new();
        if parts.len() <= 2 {
            errors.extend(parts.iter().flat_map(|part| rule::check_label(part, at)));
        }
        if !self.0.contains(reference) {
            errors.push(Error::invalid(at, reference, problem));
        }
        errors
    }

    fn check_all(&self, references: &[String], at: &Path<'_>) -> Vec<Error> {
        rule::check_set(references, REQUESTS_MAX, at, String::clone, |reference, at| {
            self.check(reference, at)
        })
    }
}

fn check_request(request: &DeviceRequest, at: &Path<'_>) -> Vec<Error> {
    let mut errors = rule::check_label(&request.name, &at.child("name"));
    let alternatives = request.first_available.as_deref().unwrap_or_default();
    match (&request.exactly, alternatives) {
        (None, []) => {
            let problem = "exactly one of `exactly` or `firstAvailable` is required";
            errors.push(Error::required(at, problem));
        }
        (Some(exactly), []) => errors.extend(
            Wanted {
                class: &exactly.device_class_name,
                selectors: exactly.selectors.as_deref().unwrap_or_default(),
                mode: exactly.allocation_mode.as_deref().unwrap_or_default(),
                count: exactly.count.unwrap_or_default(),
                tolerations: exactly.tolerations.as_deref().unwrap_or_default(),
            }
            .check(&at.child("exactly")),
        ),
        (None, alternatives) => errors.extend(rule::check_set(
            alternatives,
            ALTERNATIVES_MAX,
            &at.child("firstAvailable"),
            |one| one.name.clone(),
            |one, at| {
                let mut errors = rule::check_label(&one.name, &at.child("name"));
                let wanted = Wanted {
                    class: &one.device_class_name,
                    selectors: one.selectors.as_deref().unwrap_or_default(),
                    mode: one.allocation_mode.as_deref().unwrap_or_default(),
                    count: one.count.unwrap_or_default(),
                    tolerations: one.tolerations.as_deref().unwrap_or_default(),
                };
                errors.extend(wanted.check(at));
                errors
            },
        )),
        (Some(_), _) => {
            let problem = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                           fields are set";
            errors.push(Error::invalid(at, Value::Null, problem));
        }
    }
    errors
}

/// What a request or one of its alternatives asks for.
struct Wanted<'a> {
    class: &'a str,
    selectors: &'a [DeviceSelector],
    mode: &'a str,
    count: i64,
    tolerations: &'a [DeviceToleration],
}

impl Wanted<'_> {
    fn check(&self, at: &Path<'_>) -> Vec<Error> {
        let class_at = at.child("deviceClassName");
        let mut errors: Vec<Error> = match self.class {
            "" => vec![Error::required(&class_at, "")],
            class => check::dns_subdomain(&class_at, class),
        };
        errors.extend(rule::check_selectors(self.selectors, &at.child("selectors")));
        let count_at = at.child("count");
        match self.mode {
            "All" if self.count != 0 => {
                let problem = "must not be specified when allocationMode is 'All'";
                errors.push(Error::invalid(&count_at, self.count, problem));
            }
            "ExactCount" if self.count <= 0 => {
                errors.push(Error::invalid(&count_at, self.count, "must be greater than zero"));
            }
            "All" | "ExactCount" => {}
            unknown => {
                let at = at.child("allocationMode");
                errors.push(Error::not_supported(&at, unknown, &MODES));
            }
        }
        let tolerations_at = at.child("tolerations");
        for (index, toleration) in self.tolerations.iter().enumerate() {
            errors.extend(rule::check_toleration(toleration, &tolerations_at.index(index)));
        }
        errors
    }
}

fn check_constraint(constraint: &DeviceConstraint, names: &Names, at: &Path<'_>) -> Vec<Error> {
    let requests = constraint.requests.as_deref().unwrap_or_default();
    let mut errors = names.check_all(requests, &at.child("requests"));
    if let Some(attribute) = &constraint.match_attribute {
        errors.extend(rule::check_fully_qualified(attribute, &at.child("matchAttribute")));
    } else if let Some(attribute) = &constraint.distinct_attribute {
        errors.extend(rule::check_fully_qualified(attribute, &at.child("distinctAttribute")));
    } else {
        // Upstream says the opposite of what it means.
        let problem = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
                       multiple fields are set";
        errors.push(Error::required(at, problem));
    }
    errors
}

fn check_config(config: &DeviceClaimConfiguration, names: &Names, at: &Path<'_>) -> Vec<Error> {
    let requests = config.requests.as_deref().unwrap_or_default();
    let mut errors = names.check_all(requests, &at.child("requests"));
    errors.extend(rule::check_opaque(config.opaque.as_ref(), at));
    errors
}

/// A claim never changes.
pub(super) fn check_same(object: &Value, old: &Value) -> Vec<Error> {
    if object["spec"] == old["spec"] {
        return Vec::new();
    }
    let shown = internal::shown("k8s.io/api/resource/v1.ResourceClaimSpec", &object["spec"]);
    vec![Error::invalid(&Path::new("spec"), shown, "field is immutable")]
}

pub(super) fn check_template(object: &Value) -> Vec<Error> {
    let root = Path::new("spec");
    let mut errors = Vec::new();
    let metadata: Option<ObjectMeta> = typed(&object["spec"]["metadata"]);
    if let Some(metadata) = metadata {
        errors.extend(validate_claim_metadata(&metadata, &root.child("metadata")));
    }
    errors.extend(check(&object["spec"]["spec"], &root.child("spec")));
    errors
}

pub(super) fn check_same_template(object: &Value, old: &Value) -> Vec<Error> {
    if object["spec"] == old["spec"] {
        return Vec::new();
    }
    let type_name = "k8s.io/api/resource/v1.ResourceClaimTemplateSpec";
    let shown = internal::shown(type_name, &object["spec"]);
    vec![Error::invalid(&Path::new("spec"), shown, "field is immutable")]
}

/// What the driver told of devices goes with their allocation.
pub(super) fn drop_released(object: &mut Value, old: &Value) {
    let ids = |status: &Value| -> HashSet<String> {
        let results = status["allocation"]["devices"]["results"].as_array();
        results.into_iter().flatten().map(device_id).collect()
    };
    let kept = ids(&object["status"]);
    let mut released = ids(&old["status"]);
    released.retain(|id| !kept.contains(id));
    if let Some(devices) = object["status"].get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|device| !released.contains(&device_id(device)));
        if devices.is_empty() {
            edit::remove(&mut object["status"], "devices");
        }
    }
}

fn device_id(device: &Value) -> String {
    let parts = ["driver", "pool", "device", "shareID"];
    parts.map(|part| device[part].as_str().unwrap_or_default()).join("/")
}

pub(super) fn check_status(object: &Value, old: &Value) -> Vec<Error> {
    let status = &object["status"];
    let root = Path::new("status");
    let at = root.child("reservedFor");
    let reserved: Option<Vec<ResourceClaimConsumerReference>> = typed(&status["reservedFor"]);
    let reserved = reserved.unwrap_or_default();
    let mut errors = rule::check_set(
        &reserved,
        RESERVED_MAX,
        &at,
        |consumer| consumer.uid.clone(),
        |consumer, at| {
            let texts = [
                (&consumer.resource, "resource"),
                (&consumer.name, "name"),
                (&consumer.uid, "uid"),
            ];
            let missing = texts.into_iter().filter(|(text, _)| text.is_empty());
            missing.map(|(_, field)| Error::required(&at.child(field), "")).collect()
        },
    );
    let allocation = &status["allocation"];
    if !reserved.is_empty() && allocation.is_null() {
        errors.push(Error::forbidden(&at, "may not be specified when `allocated` is not set"));
    } else if !object["metadata"]["deletionTimestamp"].is_null() {
        let before: Option<Vec<ResourceClaimConsumerReference>> =
            typed(&old["status"]["reservedFor"]);
        let before = before.unwrap_or_default();
        if reserved.iter().any(|consumer| !before.contains(consumer)) {
            let problem = "new entries may not be added while `deallocationRequested` or \
                           `deletionTimestamp` are set";
            errors.push(Error::forbidden(&at, problem));
        }
    }
    let before = &old["status"]["allocation"];
    if !allocation.is_null() && !before.is_null() && allocation != before {
        let shown = internal::shown("k8s.io/api/resource/v1.AllocationResult", allocation);
        errors.push(Error::invalid(&root.child("allocation"), shown, "field is immutable"));
    }
    errors
}
