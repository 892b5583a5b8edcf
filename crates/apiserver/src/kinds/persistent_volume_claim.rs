//! PersistentVolumeClaims: how much of what kind of storage somebody wants.

mod validity;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::json::go_quote;
use serde_json::{Value, json};

pub(super) use validity::{Forgiven, check_access_modes, check_amount, check_positive, check_spec};

use super::{Context, Part, Rules, check, edit, resource_name, typed};

/// Where the class was once asked for.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
pub(super) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        object["status"] = json!({"phase": "Pending"});
        settle_data_source(object, None);
    },
    prepare_update: |object, old, _| {
        edit::restore(object, old, "status");
        settle_data_source(object, Some(old));
    },
    validate: |object| validity::check(&typed(object), None),
    validate_update: |object, old| validity::check_update(&typed(object), &typed(old)),
    warnings: |object, _| warnings(&typed(object)),
    parts: &[("status", STATUS)],
    reset: &["status"],
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    prepare_update: |object, old, _: &Context<'_>| edit::restore(object, old, "spec"),
    validate_update: |object, _| validity::check_status(&typed(object)),
    reset: &["spec"],
    ..Part::PLAIN
};

fn default(object: &mut Value) {
    if let Some(status) = object.get_mut("status") {
        edit::fill_text(status, "phase", "Pending");
    }
    if let Some(spec) = object.get_mut("spec") {
        edit::fill(spec, "volumeMode", "Filesystem");
    }
    for amounts in [
        "/spec/resources/limits",
        "/spec/resources/requests",
        "/status/capacity",
        "/status/allocatedResources",
    ] {
        resource_name::round_amounts(object.pointer_mut(amounts));
    }
}

/// Keeps the two fields for what a volume starts with in step. The old one silently ignores what
/// it has never been able to say.
fn settle_data_source(object: &mut Value, old: Option<&Value>) {
    let old = old.map(|old| &old["spec"]);
    let has = |spec: &Value, name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let had = |name: &str| old.is_some_and(|old| has(old, name));
    let (had_source, had_reference) = (had("dataSource"), had("dataSourceRef"));
    let Some(spec) = object.get_mut("spec") else { return };

    let is_elsewhere = |spec: &Value| !edit::text(spec, "/dataSourceRef/namespace").is_empty();
    if is_elsewhere(spec) && !had_reference {
        // Sources in other namespaces are an alpha feature.
        edit::remove(spec, "dataSourceRef");
    }
    let known = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    let source = |spec: &Value| {
        let text = |name| edit::text(spec, name).to_owned();
        (text("/dataSource/apiGroup"), text("/dataSource/kind"))
    };
    let (group, kind) = source(spec);
    if !had_source
        && !had_reference
        && !has(spec, "dataSourceRef")
        && !known.contains(&(group.as_str(), kind.as_str()))
    {
        edit::remove(spec, "dataSource");
    }
    match (has(spec, "dataSource"), has(spec, "dataSourceRef")) {
        (true, false) => spec["dataSourceRef"] = spec["dataSource"].clone(),
        (false, true) if !is_elsewhere(spec) => {
            let mut source = spec["dataSourceRef"].clone();
            edit::remove(&mut source, "namespace");
            spec["dataSource"] = source;
        }
        _ => {}
    }
}

fn warnings(claim: &PersistentVolumeClaim) -> Vec<String> {
    let mut warnings = Vec::new();
    if claim.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(BETA_CLASS)) {
        warnings.push(format!(
            "metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use \"storageClassName\" \
             attribute instead"
        ));
    }
    if let Some(spec) = &claim.spec {
        warnings.extend(spec_warnings(spec, &Path::new("spec")));
    }
    warnings
}

/// What to tell about the spec of a claim, also of one that is a template of claims.
pub(super) fn spec_warnings(spec: &PersistentVolumeClaimSpec, at: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let resources = spec.resources.as_ref();
    let resources_at = at.child("resources");
    for (name, amounts) in [
        ("requests", resources.and_then(|resources| resources.requests.as_ref())),
        ("limits", resources.and_then(|resources| resources.limits.as_ref())),
    ] {
        let Some(amount) = amounts.and_then(|amounts| amounts.get("storage")) else { continue };
        let amount = check::quantity(amount);
        if amount.milli_value() % 1000 != 0 {
            let at = resources_at.child(name);
            let amount = go_quote(&amount.to_string());
            warnings.push(format!(
                "{}: fractional byte value {amount} is invalid, must be an integer",
                at.key("storage")
            ));
        }
    }
    warnings
}
