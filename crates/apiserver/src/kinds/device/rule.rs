//! What is asked of the parts that devices, claims and classes are described with.

use std::collections::HashSet;
use std::hash::Hash;

use k8s_openapi::api::resource::v1::{DeviceSelector, DeviceToleration, OpaqueDeviceConfiguration};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::{json, name};
use serde_json::Value;

use crate::kinds::check;

pub(super) const CONFIG_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 << 10;
const PARAMETERS_BYTES_MAX: usize = 10 << 10;
const DRIVER_BYTES_MAX: usize = 63;
const IDENTIFIER_BYTES_MAX: usize = 32;
pub(super) const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const OPERATORS: [&str; 2] = ["Equal", "Exists"];

/// Each item of a list, unless there are too many to look at.
pub(super) fn check_list<T>(
    items: &[T],
    items_max: usize,
    at: &Path<'_>,
    check: impl Fn(&T, &Path<'_>) -> Vec<Error>,
) -> Vec<Error> {
    if items.len() > items_max {
        return vec![Error::too_many(at, items.len(), items_max)];
    }
    items.iter().enumerate().flat_map(|(index, item)| check(item, &at.index(index))).collect()
}

/// As [`check_list`], of items that must differ in their keys.
pub(super) fn check_set<T, K: Eq + Hash + Clone + Into<Value>>(
    items: &[T],
    items_max: usize,
    at: &Path<'_>,
    key: impl Fn(&T) -> K,
    check: impl Fn(&T, &Path<'_>) -> Vec<Error>,
) -> Vec<Error> {
    let mut errors = check_list(items, items_max, at, check);
    if items.len() > items_max {
        return errors;
    }
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        if !seen.insert(key.clone()) {
            errors.push(Error::duplicate(&at.index(index), key));
        }
    }
    errors
}

pub(super) fn check_label(text: &str, at: &Path<'_>) -> Vec<Error> {
    check::dns_label(at, text)
}

pub(super) fn check_driver(driver: &str, at: &Path<'_>) -> Vec<Error> {
    if driver.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    if driver.len() > DRIVER_BYTES_MAX {
        errors.push(Error::too_long(at, DRIVER_BYTES_MAX));
    }
    errors.extend(check::invalid(at, driver, name::dns1123_subdomain(&driver.to_lowercase())));
    errors
}

pub(super) fn check_pool(pool: &str, at: &Path<'_>) -> Vec<Error> {
    if pool.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    if pool.len() > name::SUBDOMAIN_BYTES_MAX {
        errors.push(Error::too_long(at, name::SUBDOMAIN_BYTES_MAX));
    }
    for part in pool.split('/') {
        errors.extend(check::dns_subdomain(at, part));
    }
    errors
}

/// An identifier, perhaps with the domain of who defined it.
pub(super) fn check_qualified(text: &str, at: &Path<'_>) -> Vec<Error> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [identifier] => check_identifier(identifier, at),
        [domain, identifier] => {
            let mut errors = match *domain {
                "" => vec![Error::invalid(at, "", "the domain must not be empty")],
                domain => check_driver(domain, at),
            };
            errors.extend(match *identifier {
                "" => vec![Error::invalid(at, "", "the name must not be empty")],
                identifier => check_identifier(identifier, at),
            });
            errors
        }
        _ => Vec::new(),
    }
}

pub(super) fn check_fully_qualified(text: &str, at: &Path<'_>) -> Vec<Error> {
    let mut errors = check_qualified(text, at);
    if !text.contains('/') {
        let problem = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(Error::invalid(at, text, problem));
    }
    errors
}

fn check_identifier(text: &str, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if text.len() > IDENTIFIER_BYTES_MAX {
        errors.push(Error::too_long(at, IDENTIFIER_BYTES_MAX));
    }
    errors.extend(check::invalid(at, text, name::c_identifier(text)));
    errors
}

pub(super) fn check_selectors(selectors: &[DeviceSelector], at: &Path<'_>) -> Vec<Error> {
    check_list(selectors, SELECTORS_MAX, at, |selector, at| {
        let at = at.child("cel");
        match &selector.cel {
            None => vec![Error::required(&at, "")],
            Some(cel) if cel.expression.len() > EXPRESSION_BYTES_MAX => {
                vec![Error::too_long(&at.child("expression"), EXPRESSION_BYTES_MAX)]
            }
            Some(_) => Vec::new(),
        }
    })
}

/// Configuration that only its driver understands.
pub(super) fn check_opaque(
    config: Option<&OpaqueDeviceConfiguration>,
    at: &Path<'_>,
) -> Vec<Error> {
    let at = at.child("opaque");
    let Some(config) = config else { return vec![Error::required(&at, "")] };
    let mut errors = check_driver(&config.driver, &at.child("driver"));
    errors.extend(check_raw(&config.parameters.0, &at.child("parameters")));
    errors
}

fn check_raw(value: &Value, at: &Path<'_>) -> Option<Error> {
    match value {
        Value::Null => Some(Error::required(at, "")),
        value if json::to_string(value).len() > PARAMETERS_BYTES_MAX => {
            Some(Error::too_long(at, PARAMETERS_BYTES_MAX))
        }
        Value::Object(_) => None,
        _ => Some(Error::invalid(at, "<value omitted>", "must be a valid JSON object")),
    }
}

pub(super) fn check_toleration(toleration: &DeviceToleration, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (key, value) = (text(&toleration.key), text(&toleration.value));
    if !key.is_empty() {
        errors.extend(check::qualified_name(&at.child("key"), &key));
    }
    let (operator_at, value_at) = (at.child("operator"), at.child("value"));
    match text(&toleration.operator).as_str() {
        "Exists" if !value.is_empty() => {
            errors.push(Error::invalid(&value_at, value, "must be empty for operator `Exists`"));
        }
        "Exists" => {}
        "Equal" => errors.extend(check::invalid(&value_at, &value, name::label_value(&value))),
        "" => errors.push(Error::required(&operator_at, "")),
        unknown => errors.push(Error::not_supported(&operator_at, unknown, &OPERATORS)),
    }
    let effect = text(&toleration.effect);
    if !effect.is_empty() && !EFFECTS.contains(&effect.as_str()) {
        errors.push(Error::not_supported(&at.child("effect"), effect, &EFFECTS));
    }
    errors
}
