//! Pods. Once there, a pod hardly changes: what it runs may be replaced, what it may use may be
//! resized, containers may be added to debug it, and the rest is its status.

mod defaults;
mod ephemeral_containers;
mod prepare;
mod qos;
mod resize;
mod status;
mod update;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::Value;

use super::pod_spec::validate::{annotation, container};
use super::{Field, Rules, pod_spec, typed};

pub(super) const RULES: Rules = Rules {
    default: defaults::default,
    prepare_create: prepare::create,
    prepare_update: prepare::update,
    validate,
    validate_update: update::validate,
    warnings,
    parts: &[
        ("status", status::PART),
        ("ephemeralcontainers", ephemeral_containers::PART),
        ("resize", resize::PART),
    ],
    reset: &["status"],
    fields: &[
        Field::At("spec.nodeName"),
        // The node once was the host.
        Field::Made("spec.host", |pod| text(&pod["spec"]["nodeName"])),
        Field::At("spec.restartPolicy"),
        Field::At("spec.schedulerName"),
        Field::At("spec.serviceAccountName"),
        Field::Made("spec.hostNetwork", |pod| {
            pod["spec"]["hostNetwork"].as_bool().unwrap_or_default().to_string()
        }),
        Field::At("status.phase"),
        Field::At("status.podIP"),
        // Can be asked for, but no pod has any.
        Field::Made("status.podIPs", |_| String::new()),
        Field::At("status.nominatedNodeName"),
    ],
    ..Rules::PLAIN
};

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn validate(object: &Value) -> Vec<Error> {
    let Pod { metadata, spec, .. } = typed(object);
    let spec = spec.unwrap_or_default();
    let path = Path::new("spec");
    let mut errors = check(&metadata, &spec, None);
    if spec.ephemeral_containers.is_some() {
        errors
            .push(Error::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if spec.node_name.is_some() && spec.scheduling_gates.is_some() {
        let problem = "cannot be set until all schedulingGates have been cleared";
        errors.push(Error::forbidden(&path.child("nodeName"), problem));
    }
    let annotations = metadata.annotations.unwrap_or_default();
    errors.extend(annotation::validate_agreement(&annotations, &spec, &path));
    errors
}

/// What makes sense in a pod at any time.
fn check(metadata: &ObjectMeta, spec: &PodSpec, old: Option<&Pod>) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = check_annotations(metadata, spec, old);
    let old_spec = old.and_then(|old| old.spec.as_ref());
    errors.extend(pod_spec::validate_pod_spec(spec, old_spec, metadata, &path));
    if spec.service_account_name.is_none() {
        let volumes_path = path.child("volumes");
        for (index, volume) in spec.volumes.iter().flatten().enumerate() {
            let path = volumes_path.index(index);
            let path = path.child("projected");
            let path = path.child("sources");
            let projected = volume.projected.iter().flat_map(|p| p.sources.iter().flatten());
            for (index, source) in projected.enumerate() {
                if source.service_account_token.is_some() {
                    let path = path.index(index);
                    let problem = "must not be specified when serviceAccountName is not set";
                    errors.push(Error::forbidden(&path.child("serviceAccountToken"), problem));
                }
            }
        }
    }
    let lists = [
        ("containers", spec.containers.as_slice()),
        ("initContainers", spec.init_containers.as_deref().unwrap_or_default()),
    ];
    for (list, containers) in lists {
        let path = path.child(list);
        for (index, container) in containers.iter().enumerate() {
            errors.extend(container::validate_image_of_pod(container, &path.index(index)));
        }
    }
    errors
}

fn check_annotations(metadata: &ObjectMeta, spec: &PodSpec, old: Option<&Pod>) -> Vec<Error> {
    let none = annotation::Annotations::new();
    let annotations = metadata.annotations.as_ref().unwrap_or(&none);
    let old_annotations = old.and_then(|old| old.metadata.annotations.as_ref());
    let any_deletion_cost = old_annotations.is_some_and(annotation::has_unsound_deletion_cost);
    let path = Path::new("metadata");
    annotation::validate(annotations, spec, any_deletion_cost, &path.child("annotations"))
}

/// Nobody is there to read them on updates, which are many.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let Pod { metadata, spec, .. } = typed(object);
    let mut warnings = Vec::new();
    let problems = name::dns1123_label(metadata.name.as_deref().unwrap_or_default());
    if !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [{}]",
            problems.join(" ")
        ));
    }
    warnings.extend(pod_spec::pod_warnings(&spec.unwrap_or_default(), &metadata));
    warnings
}
