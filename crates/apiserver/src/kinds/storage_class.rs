//! StorageClasses, which say how volumes come to be, and VolumeAttributesClasses, which say how
//! volumes that exist can be changed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySelectorTerm;
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttributesClass};
use kubewright_apimachinery::field::{Error, Path};

use super::persistent_volume::label_deprecation;
use super::{Rules, check, edit, typed};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 << 10;

pub(super) const RULES: Rules = Rules {
    default: |object| {
        edit::fill(object, "reclaimPolicy", "Delete");
        edit::fill(object, "volumeBindingMode", "Immediate");
    },
    validate: |object| check(&typed(object)),
    validate_update: |object, old| check_update(&typed(object), &typed(old)),
    warnings: |object, _| warnings(&typed(object)),
    ..Rules::PLAIN
};

pub(super) const ATTRIBUTES: Rules = Rules {
    validate: |object| check_attributes(&typed(object)),
    validate_update: |object, old| {
        let (new, old): (VolumeAttributesClass, VolumeAttributesClass) =
            (typed(object), typed(old));
        let changed = [
            ("driverName", new.driver_name != old.driver_name),
            ("parameters", new.parameters != old.parameters),
        ];
        let changed = changed.iter().filter(|(_, changed)| *changed).map(|(field, _)| {
            Error::forbidden(&Path::new(field), format!("updates to {field} are forbidden."))
        });
        changed.chain(check_attributes(&new)).collect()
    },
    ..Rules::PLAIN
};

fn check(class: &StorageClass) -> Vec<Error> {
    let mut errors = check_provisioner(&class.provisioner, &Path::new("provisioner"));
    errors.extend(check_parameters(class.parameters.as_ref()));
    if let Some(policy) = class.reclaim_policy.as_deref().filter(|policy| !policy.is_empty()) {
        let at = Path::new("reclaimPolicy");
        errors.extend(check::one_of(&at, policy, &["Delete", "Retain"]));
    }
    let at = Path::new("volumeBindingMode");
    match &class.volume_binding_mode {
        None => errors.push(Error::required(&at, "")),
        Some(mode) => {
            errors.extend(check::one_of(&at, mode, &["Immediate", "WaitForFirstConsumer"]));
        }
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    errors.extend(check_topologies(topologies, &Path::new("allowedTopologies")));
    errors
}

fn check_update(new: &StorageClass, old: &StorageClass) -> Vec<Error> {
    let mut errors = check(new);
    let at = Path::new;
    errors.extend(check::immutable(&at("parameters"), &new.parameters, &old.parameters));
    errors.extend(check::immutable(&at("provisioner"), &new.provisioner, &old.provisioner));
    let (policy, old_policy) = (&new.reclaim_policy, &old.reclaim_policy);
    errors.extend(check::immutable(&at("reclaimPolicy"), policy, old_policy));
    let (mode, old_mode) = (&new.volume_binding_mode, &old.volume_binding_mode);
    errors.extend(check::immutable(&at("volumeBindingMode"), mode, old_mode));
    errors
}

fn check_attributes(class: &VolumeAttributesClass) -> Vec<Error> {
    let mut errors = check_provisioner(&class.driver_name, &Path::new("driverName"));
    errors.extend(check_parameters(class.parameters.as_ref()));
    if class.parameters.as_ref().is_none_or(BTreeMap::is_empty) {
        let detail = "must contain at least one key/value pair";
        errors.push(Error::required(&Path::new("parameters"), detail));
    }
    errors
}

fn check_provisioner(provisioner: &str, at: &Path<'_>) -> Vec<Error> {
    match provisioner {
        "" => vec![Error::required(at, "")],
        provisioner => check::qualified_name(at, &provisioner.to_lowercase()),
    }
}

fn check_parameters(parameters: Option<&BTreeMap<String, String>>) -> Vec<Error> {
    let at = Path::new("parameters");
    let parameters = parameters.into_iter().flatten();
    if parameters.clone().count() > PARAMETERS_MAX {
        return vec![Error::too_long(&at, PARAMETERS_MAX)];
    }
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in parameters {
        if key.is_empty() {
            errors.push(Error::invalid(&at, "", "field can not be empty."));
        }
        bytes += key.len() + value.len();
    }
    if bytes > PARAMETERS_BYTES_MAX {
        errors.push(Error::too_long(&at, PARAMETERS_BYTES_MAX));
    }
    errors
}

fn check_topologies(terms: &[TopologySelectorTerm], at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let term_at = at.index(index);
        let at = term_at.child("matchLabelExpressions");
        let mut values_of = BTreeMap::new();
        for (index, expression) in term.match_label_expressions.iter().flatten().enumerate() {
            let at = at.index(index);
            let values_at = at.child("values");
            if expression.values.is_empty() {
                errors.push(Error::required(&values_at, ""));
            }
            for (index, value) in expression.values.iter().enumerate() {
                if expression.values[..index].contains(value) {
                    errors.push(Error::duplicate(&values_at.index(index), value.as_str()));
                }
            }
            errors.extend(check::qualified_name(&at.child("key"), &expression.key));
            let values = expression.values.iter().map(String::as_str).collect();
            if values_of.insert(expression.key.as_str(), values).is_some() {
                errors.push(Error::duplicate(&at.child("key"), expression.key.as_str()));
            }
        }
        // Upstream compares with as many empty terms as there are terms before it comes to those
        // that it has seen.
        let n_empty = if values_of.is_empty() { terms.len() } else { 0 };
        let n_same = seen.iter().filter(|other| **other == values_of).count();
        errors.extend((0..n_empty + n_same).map(|_| Error::duplicate(&at, "")));
        seen.push(values_of);
    }
    errors
}

fn warnings(class: &StorageClass) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, term) in class.allowed_topologies.iter().flatten().enumerate() {
        for (position, expression) in term.match_label_expressions.iter().flatten().enumerate() {
            if let Some(words) = label_deprecation(&expression.key) {
                warnings.push(format!(
                    "allowedTopologies[{index}].matchLabelExpressions[{position}].key: {words}"
                ));
            }
        }
    }
    warnings
}
