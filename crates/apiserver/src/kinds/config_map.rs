//! ConfigMaps: text and bytes by key, which may be frozen.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::Value;

use super::{Rules, check, typed};

/// What fits into etcd with room to spare.
const DATA_BYTES_MAX: usize = 1 << 20;

pub(super) const RULES: Rules = Rules { validate, validate_update, ..Rules::PLAIN };

fn validate(object: &Value) -> Vec<Error> {
    check(&typed(object))
}

fn check(map: &ConfigMap) -> Vec<Error> {
    let mut errors = Vec::new();
    let (text_at, bytes_at) = (Path::new("data"), Path::new("binaryData"));
    let texts = map.data.iter().flatten();
    let bytes = map.binary_data.iter().flatten();
    let mut total = 0;
    for (key, value) in texts {
        let at = text_at.key(key);
        errors.extend(check::invalid(&at, key, name::config_map_key(key)));
        if map.binary_data.as_ref().is_some_and(|bytes| bytes.contains_key(key)) {
            errors.push(Error::invalid(
                &at,
                key.as_str(),
                "duplicate of key present in binaryData",
            ));
        }
        total += value.len();
    }
    for (key, value) in bytes {
        let at = bytes_at.key(key);
        errors.extend(check::invalid(&at, key, name::config_map_key(key)));
        total += value.0.len();
    }
    if total > DATA_BYTES_MAX {
        // Upstream names no field here, since the sum is at fault.
        errors.push(Error::too_long(&Path::new(""), DATA_BYTES_MAX));
    }
    errors
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (ConfigMap, ConfigMap) = (typed(object), typed(old));
    let mut errors = Vec::new();
    if old.immutable == Some(true) {
        let frozen =
            |name| Error::forbidden(&Path::new(name), "field is immutable when `immutable` is set");
        if new.immutable != Some(true) {
            errors.push(frozen("immutable"));
        }
        if new.data != old.data {
            errors.push(frozen("data"));
        }
        if new.binary_data != old.binary_data {
            errors.push(frozen("binaryData"));
        }
    }
    errors.extend(check(&new));
    errors
}
