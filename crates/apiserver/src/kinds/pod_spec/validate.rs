//! When a pod spec makes sense.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};

/// What is wrong with a template. What was wrong with the `old` one already may stay.
pub(in crate::kinds) fn validate_template(
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
    path: &Path<'_>,
) -> Vec<Error> {
    let spec = template.spec.clone().unwrap_or_default();
    let old = old.and_then(|old| old.spec.as_ref());
    validate_pod_spec(&spec, old, template.metadata.as_ref(), &path.child("spec"))
}

/// What is wrong with a spec, given the metadata of the pod that it is of, if there is one.
pub(in crate::kinds) fn validate_pod_spec(
    spec: &PodSpec,
    _old: Option<&PodSpec>,
    _metadata: Option<&ObjectMeta>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if spec.containers.is_empty() {
        errors.push(Error::required(&path.child("containers"), ""));
    }
    errors
}
