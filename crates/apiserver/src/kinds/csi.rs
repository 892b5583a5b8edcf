//! Storage drivers: what they are like, on which nodes they run, and how much they can still give.

use k8s_openapi::api::storage::v1::{
    CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, CSIStorageCapacity, TokenRequest,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::persistent_volume::{check_driver, label_deprecation};
use super::{Context, Rules, check, edit, typed};

const NODE_ID_BYTES_MAX: usize = 256;
const TOKEN_SECONDS_MIN: i64 = 600;
const UPDATE_SECONDS_MIN: i64 = 10;
const TOKENS_AT_RISK: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI \
                              driver, set to true to prevent possible logging of tokens in volume \
                              attributes";

pub(super) const DRIVER: Rules = Rules {
    default: default_driver,
    prepare_create: |object, _| drop_alpha(object, None),
    prepare_update: prepare_driver_update,
    validate: |object| check_driver_spec(&typed::<CSIDriver>(object).spec),
    validate_update: |object, old| check_driver_update(&typed(object), &typed(old)),
    warnings: |object, old| {
        let old: Option<CSIDriver> = old.map(typed);
        driver_warnings(&typed(object), old.as_ref())
    },
    unconditional_update: false,
    ..Rules::PLAIN
};

pub(super) const NODE: Rules = Rules {
    validate: |object| check_node(&typed(object)),
    validate_update: |object, old| check_node_update(&typed(object), &typed(old)),
    unconditional_update: false,
    ..Rules::PLAIN
};

pub(super) const CAPACITY: Rules = Rules {
    validate: |object| check_capacity(&typed(object), Leniency::default()),
    validate_update: |object, old| check_capacity_update(&typed(object), &typed(old)),
    warnings: |object, _| capacity_warnings(&typed(object)),
    unconditional_update: false,
    ..Rules::PLAIN
};

fn default_driver(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    let defaults: [(&str, Value); 6] = [
        ("attachRequired", true.into()),
        ("podInfoOnMount", false.into()),
        ("storageCapacity", false.into()),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType".into()),
        ("requiresRepublish", false.into()),
        ("seLinuxMount", false.into()),
    ];
    for (field, value) in defaults {
        edit::fill(spec, field, value);
    }
    if edit::items(spec, "/volumeLifecycleModes").is_empty() {
        spec["volumeLifecycleModes"] = json!(["Persistent"]);
    }
}

/// A field of an alpha feature, which only those keep that have it.
fn drop_alpha(object: &mut Value, old: Option<&Value>) {
    const FIELD: &str = "preventPodSchedulingIfMissing";
    if old.is_none_or(|old| old["spec"].get(FIELD).is_none())
        && let Some(spec) = object.get_mut("spec")
    {
        edit::remove(spec, FIELD);
    }
}

fn prepare_driver_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    drop_alpha(object, Some(old));
    // Unlike elsewhere, a new driver has no generation.
    let changed = !edit::same(object, old, &["spec"]);
    let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + i64::from(changed);
    if generation > 0 {
        object["metadata"]["generation"] = generation.into();
    }
}

fn check_driver_spec(spec: &CSIDriverSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let required = [
        ("attachedRequired", spec.attach_required),
        ("podInfoOnMount", spec.pod_info_on_mount),
        ("storageCapacity", spec.storage_capacity),
    ];
    let missing = required.iter().filter(|(_, value)| value.is_none());
    let mut errors: Vec<Error> =
        missing.map(|(field, _)| Error::required(&at.child(field), "")).collect();
    if let Some(policy) = &spec.fs_group_policy {
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        errors.extend(check::one_of(&at.child("fsGroupPolicy"), policy, &policies));
    }
    let requests = spec.token_requests.as_deref().unwrap_or_default();
    errors.extend(check_token_requests(requests, &at.child("tokenRequests")));
    let modes_at = at.child("volumeLifecycleModes");
    for mode in spec.volume_lifecycle_modes.iter().flatten() {
        errors.extend(check::one_of(&modes_at, mode, &["Persistent", "Ephemeral"]));
    }
    if spec.se_linux_mount.is_none() {
        errors.push(Error::required(&at.child("seLinuxMount"), ""));
    }
    let period = spec.node_allocatable_update_period_seconds;
    if let Some(period) = period.filter(|period| *period < UPDATE_SECONDS_MIN) {
        let detail = "must be greater than or equal to 10 seconds";
        let at = at.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(Error::invalid(&at, period, detail));
    }
    if let Some(in_secrets) = spec.service_account_token_in_secrets
        && requests.is_empty()
    {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(Error::invalid(&at.child("serviceAccountTokenInSecrets"), in_secrets, detail));
    }
    errors
}

fn check_token_requests(requests: &[TokenRequest], at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let at = at.index(index);
        if requests[..index].iter().any(|other| other.audience == request.audience) {
            errors.push(Error::duplicate(&at.child("audience"), request.audience.as_str()));
            continue;
        }
        let Some(seconds) = request.expiration_seconds else { continue };
        let at = at.child("expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            let detail = "may not specify a duration less than 10 minutes";
            errors.push(Error::invalid(&at, seconds, detail));
        }
        if seconds > 1 << 32 {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.push(Error::invalid(&at, seconds, detail));
        }
    }
    errors
}

fn check_driver_update(new: &CSIDriver, old: &CSIDriver) -> Vec<Error> {
    let mut errors = check_driver_spec(&new.spec);
    let at = Path::new("spec");
    let (required, old_required) = (&new.spec.attach_required, &old.spec.attach_required);
    errors.extend(check::immutable(&at.child("attachedRequired"), required, old_required));
    let (modes, old_modes) = (&new.spec.volume_lifecycle_modes, &old.spec.volume_lifecycle_modes);
    errors.extend(check::immutable(&at.child("volumeLifecycleModes"), modes, old_modes));
    errors
}

fn driver_warnings(new: &CSIDriver, old: Option<&CSIDriver>) -> Vec<String> {
    let requests = |driver: &CSIDriver| driver.spec.token_requests.clone().unwrap_or_default();
    let is_at_risk = !requests(new).is_empty()
        && old.is_none_or(|old| requests(old) != requests(new))
        && new.spec.service_account_token_in_secrets.is_none();
    is_at_risk.then(|| TOKENS_AT_RISK.to_owned()).into_iter().collect()
}

fn check_node(node: &CSINode) -> Vec<Error> {
    let spec = Path::new("spec");
    let at = spec.child("drivers");
    let drivers = &node.spec.drivers;
    let mut errors = Vec::new();
    for (index, driver) in drivers.iter().enumerate() {
        let at = at.index(index);
        errors.extend(check_node_driver(driver, &at));
        if drivers[..index].iter().any(|other| other.name == driver.name) {
            errors.push(Error::duplicate(&at.child("name"), driver.name.as_str()));
        }
    }
    errors
}

fn check_node_driver(driver: &CSINodeDriver, at: &Path<'_>) -> Vec<Error> {
    let mut errors = check_driver(&driver.name, &at.child("name"));
    let id_at = at.child("nodeID");
    if driver.node_id.is_empty() {
        errors.push(Error::required(&id_at, ""));
    } else if driver.node_id.len() > NODE_ID_BYTES_MAX {
        let detail = format!("must be {NODE_ID_BYTES_MAX} characters or less");
        errors.push(Error::invalid(&id_at, driver.node_id.as_str(), detail));
    }
    if let Some(count) = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count) {
        let allocatable = at.child("allocatable");
        errors.extend(check::non_negative(&allocatable.child("count"), count));
    }
    let keys = driver.topology_keys.as_deref().unwrap_or_default();
    for (index, key) in keys.iter().enumerate() {
        if key.is_empty() {
            errors.push(Error::required(at, ""));
        }
        if keys[..index].contains(key) {
            errors.push(Error::duplicate(at, key.as_str()));
        }
        errors.extend(check::qualified_name(at, key));
    }
    errors
}

/// A driver on a node stays what it is, but how many volumes it can take may change.
fn check_node_update(new: &CSINode, old: &CSINode) -> Vec<Error> {
    let mut errors = check_node(new);
    let spec = Path::new("spec");
    let at = spec.child("drivers");
    for old in &old.spec.drivers {
        for new in new.spec.drivers.iter().filter(|new| new.name == old.name) {
            if (&new.node_id, &new.topology_keys) != (&old.node_id, &old.topology_keys) {
                // Upstream shows the driver of its own type.
                let shown = json!({
                    "Name": new.name,
                    "NodeID": new.node_id,
                    "TopologyKeys": new.topology_keys,
                    "Allocatable": null,
                });
                errors.push(Error::invalid(&at, shown, "field is immutable"));
            }
        }
    }
    errors
}

fn check_capacity(capacity: &CSIStorageCapacity, leniency: Leniency) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(topology) = &capacity.node_topology {
        let topology = check::label_selector(topology);
        errors.extend(topology.validate(leniency, &Path::new("nodeTopology")));
    }
    let class_at = Path::new("storageClassName");
    errors.extend(check::dns_subdomain(&class_at, &capacity.storage_class_name));
    if let Some(amount) = &capacity.capacity {
        let amount = check::quantity(amount);
        errors.extend(amount.validate_non_negative(&Path::new("capacity")));
    }
    errors
}

fn check_capacity_update(new: &CSIStorageCapacity, old: &CSIStorageCapacity) -> Vec<Error> {
    let old_topology = old.node_topology.as_ref().map(check::label_selector).unwrap_or_default();
    let is_unsound = !old_topology.validate(Leniency::default(), &Path::ROOT).is_empty();
    let leniency = Leniency { invalid_values: is_unsound, ..Leniency::default() };
    let mut errors = check_capacity(new, leniency);
    let at = Path::new("nodeTopology");
    if new.node_topology != old.node_topology {
        // By way of a type that has its fields in Go's order.
        let topology = new.node_topology.as_ref().map(check::label_selector);
        errors.push(Error::invalid(&at, check::shown(&topology), "field is immutable"));
    }
    let (class, old_class) = (&new.storage_class_name, &old.storage_class_name);
    errors.extend(check::immutable(&Path::new("storageClassName"), class, old_class));
    errors
}

fn capacity_warnings(capacity: &CSIStorageCapacity) -> Vec<String> {
    let Some(topology) = &capacity.node_topology else { return Vec::new() };
    let mut warnings = Vec::new();
    for (index, expression) in topology.match_expressions.iter().flatten().enumerate() {
        if let Some(words) = label_deprecation(&expression.key) {
            let key = &expression.key;
            warnings.push(format!("nodeTopology.matchExpressions[{index}].key: {key} is {words}"));
        }
    }
    for key in topology.match_labels.iter().flat_map(|labels| labels.keys()) {
        if let Some(words) = label_deprecation(key) {
            warnings.push(format!("nodeTopology.matchLabels.{key}: {words}"));
        }
    }
    warnings
}
