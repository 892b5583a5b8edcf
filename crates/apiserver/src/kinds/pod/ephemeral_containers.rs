//! `ephemeralcontainers`: containers are added to a pod that runs, to look into it.

use k8s_openapi::api::core::v1::{EphemeralContainer, Pod};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;
use serde_json::{Value, json};

use super::update;
use crate::kinds::pod_spec::validate::annotation;
use crate::kinds::{Context, Part, edit, internal, pod_spec, typed};

pub(super) const PART: Part = Part { prepare_update, validate_update, reset: RESET, ..Part::PLAIN };

const FIELD: &str = "ephemeralContainers";
const TYPE: &str = "k8s.io/api/core/v1.EphemeralContainer";
/// Everything but the field that this is for.
const RESET: &[&str] = &[
    "metadata",
    "status",
    "spec.activeDeadlineSeconds",
    "spec.affinity",
    "spec.automountServiceAccountToken",
    "spec.containers",
    "spec.dnsConfig",
    "spec.dnsPolicy",
    "spec.enableServiceLinks",
    "spec.hostAliases",
    "spec.hostIPC",
    "spec.hostNetwork",
    "spec.hostPID",
    "spec.hostUsers",
    "spec.hostname",
    "spec.hostnameOverride",
    "spec.imagePullSecrets",
    "spec.initContainers",
    "spec.nodeName",
    "spec.nodeSelector",
    "spec.os",
    "spec.overhead",
    "spec.preemptionPolicy",
    "spec.priority",
    "spec.priorityClassName",
    "spec.readinessGates",
    "spec.resourceClaims",
    "spec.resources",
    "spec.restartPolicy",
    "spec.runtimeClassName",
    "spec.schedulerName",
    "spec.schedulingGates",
    "spec.schedulingGroup",
    "spec.securityContext",
    "spec.serviceAccount",
    "spec.serviceAccountName",
    "spec.setHostnameAsFQDN",
    "spec.shareProcessNamespace",
    "spec.subdomain",
    "spec.terminationGracePeriodSeconds",
    "spec.tolerations",
    "spec.topologySpreadConstraints",
    "spec.volumes",
];

/// Metadata that is not for this to change.
pub(super) const METADATA: &[&str] = &[
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
];

fn prepare_update(pod: &mut Value, old: &Value, _: &Context<'_>) {
    let containers = pod["spec"].get(FIELD).cloned();
    edit::restore(pod, old, "spec");
    edit::restore(pod, old, "status");
    edit::restore_meta(pod, old, METADATA);
    match containers {
        Some(containers) => pod["spec"][FIELD] = containers,
        None => edit::remove(&mut pod["spec"], FIELD),
    }
    pod_spec::drop_disabled_fields(&mut pod["spec"], old.get("spec"));
    edit::next_generation(pod, old, "spec");
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (pod, old): (Pod, Pod) = (typed(object), typed(old));
    let mut errors = super::check(&pod.metadata, &pod.spec.clone().unwrap_or_default(), Some(&old));
    errors.extend(update::annotation_changes(&pod, &old));
    let annotations = old.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(annotation::MIRROR)) {
        let problem = "static pods do not support ephemeral containers";
        return vec![Error::forbidden(&Path::new(""), problem)];
    }
    let path = Path::new("spec");
    let path = path.child(FIELD);
    let new = containers(&pod);
    for old in containers(&old) {
        let quoted = go_quote(&old.name);
        match new.iter().rfind(|new| new.name == old.name) {
            None => {
                let problem =
                    format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(Error::forbidden(&path, problem));
            }
            Some(new) if new != &old => {
                let diff = internal::diff(TYPE, &json!(old), &json!(new));
                let problem =
                    format!("existing ephemeral containers {quoted} may not be changed\n{diff}");
                errors.push(Error::forbidden(&path, problem));
            }
            Some(_) => {}
        }
    }
    errors
}

fn containers(pod: &Pod) -> Vec<EphemeralContainer> {
    pod.spec.as_ref().and_then(|spec| spec.ephemeral_containers.clone()).unwrap_or_default()
}
