//! What a pod spec says when its author does not.
//!
//! Works on trees in normal form, in which a member that has its type's zero value is absent
//! unless that says something else than nothing.

use serde_json::{Value, json};

use super::image;
use crate::kinds::edit::{each, fill, remove, text, within};
use crate::kinds::resource_name;

/// Permissions of files in volumes that the node fills: `rw-r--r--`.
const FILE_MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 60 * 60;
const GRACE_SECONDS: i64 = 30;

/// Fills in the spec of a `PodTemplateSpec`.
pub(in crate::kinds) fn default_template(template: &mut Value) {
    within(template, "metadata", drop_init_container_annotations);
    within(template, "spec", default_pod_spec);
}

/// Fills in what all pod specs share; what only Pods have besides is theirs to do.
pub(in crate::kinds) fn default_pod_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", GRACE_SECONDS);
    fill(spec, "schedulerName", "default-scheduler");
    mirror_service_account(spec);
    each(spec, "volumes", default_volume);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, default_container);
    }
    resource_name::round_amounts(spec.get_mut("overhead"));
    within(spec, "resources", round_up_resources);
}

/// Amounts of resources are kept in thousandths.
pub(in crate::kinds) fn round_up_resources(resources: &mut Value) {
    resource_name::round_amounts(resources.get_mut("limits"));
    resource_name::round_amounts(resources.get_mut("requests"));
}

/// Annotations by which init containers were once declared. Nodes of old would believe them more
/// than the spec.
pub(in crate::kinds) fn drop_init_container_annotations(metadata: &mut Value) {
    within(metadata, "annotations", |annotations| {
        for name in [
            "pod.beta.kubernetes.io/init-containers",
            "pod.alpha.kubernetes.io/init-containers",
            "pod.beta.kubernetes.io/init-container-statuses",
            "pod.alpha.kubernetes.io/init-container-statuses",
        ] {
            remove(annotations, name);
        }
    });
}

/// `serviceAccount` is the old name of `serviceAccountName`, and always says the same.
fn mirror_service_account(spec: &mut Value) {
    if let Some(old) = spec.get("serviceAccount").cloned() {
        fill(spec, "serviceAccountName", old);
    }
    if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec["serviceAccount"] = name;
    }
}

fn default_volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|volume| volume.keys().all(|field| field == "name")) {
        volume["emptyDir"] = json!({});
    }
    within(volume, "image", |image| {
        let policy = pull_policy(text(image, "/reference"));
        fill(image, "pullPolicy", policy);
    });
    within(volume, "hostPath", |path| fill(path, "type", ""));
    within(volume, "secret", |secret| fill(secret, "defaultMode", FILE_MODE));
    within(volume, "configMap", |map| fill(map, "defaultMode", FILE_MODE));
    within(volume, "downwardAPI", |downward| {
        fill(downward, "defaultMode", FILE_MODE);
        each(downward, "items", default_field_ref);
    });
    within(volume, "projected", |projected| {
        fill(projected, "defaultMode", FILE_MODE);
        each(projected, "sources", |source| {
            within(source, "downwardAPI", |downward| each(downward, "items", default_field_ref));
            within(source, "serviceAccountToken", |token| {
                fill(token, "expirationSeconds", TOKEN_SECONDS);
            });
        });
    });
    within(volume, "ephemeral", |ephemeral| {
        within(ephemeral, "volumeClaimTemplate", |template| {
            within(template, "spec", |claim| {
                fill(claim, "volumeMode", "Filesystem");
                within(claim, "resources", round_up_resources);
            });
        });
    });
    within(volume, "iscsi", |iscsi| fill(iscsi, "iscsiInterface", "default"));
    within(volume, "rbd", |rbd| {
        fill(rbd, "pool", "rbd");
        fill(rbd, "user", "admin");
        fill(rbd, "keyring", "/etc/ceph/keyring");
    });
    within(volume, "azureDisk", |disk| {
        fill(disk, "cachingMode", "ReadWrite");
        fill(disk, "fsType", "ext4");
        fill(disk, "readOnly", false);
        fill(disk, "kind", "Shared");
    });
    within(volume, "scaleIO", |scale_io| {
        fill(scale_io, "storageMode", "ThinProvisioned");
        fill(scale_io, "fsType", "xfs");
    });
}

fn default_container(container: &mut Value) {
    let policy = pull_policy(text(container, "/image"));
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| fill(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        within(variable, "valueFrom", |source| {
            default_field_ref(source);
            within(source, "fileKeyRef", |key| fill(key, "optional", false));
        });
    });
    within(container, "resources", round_up_resources);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, probe, default_probe);
    }
    within(container, "lifecycle", |lifecycle| {
        for hook in ["postStart", "preStop"] {
            within(lifecycle, hook, |hook| within(hook, "httpGet", default_http_get));
        }
    });
}

fn default_probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    within(probe, "httpGet", default_http_get);
    within(probe, "grpc", |grpc| fill(grpc, "service", ""));
}

fn default_http_get(action: &mut Value) {
    fill(action, "path", "/");
    fill(action, "scheme", "HTTP");
}

fn default_field_ref(holder: &mut Value) {
    within(holder, "fieldRef", |field| fill(field, "apiVersion", "v1"));
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}
