//! Pods.

mod defaults;

use k8s_openapi::api::core::v1::Pod;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Rules, pod_spec, typed};

pub(super) const RULES: Rules = Rules { default: defaults::default, validate, ..Rules::PLAIN };

fn validate(object: &Value) -> Vec<Error> {
    let Pod { metadata, spec, .. } = typed(object);
    let spec = spec.unwrap_or_default();
    pod_spec::validate_pod_spec(&spec, None, Some(&metadata), &Path::new("spec"))
}
