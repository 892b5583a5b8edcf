//! What a pod spec says when its author does not.
//!
//! Works on trees in normal form, in which a member that has its type's zero value is absent
//! unless that says something else than nothing.

use kubewright_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::image;

/// Permissions of files in volumes that the node fills: `rw-r--r--`.
const FILE_MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 60 * 60;
const GRACE_SECONDS: i64 = 30;
/// Amounts finer than this are rounded up.
const RESOURCE_EXPONENT_MIN: i32 = -3;

/// Fills in the spec of a `PodTemplateSpec`.
pub(in crate::kinds) fn default_template(template: &mut Value) {
    if let Some(annotations) = member(template, "metadata").and_then(|m| m.get_mut("annotations")) {
        drop_init_container_annotations(annotations);
    }
    if let Some(spec) = template.get_mut("spec") {
        default_pod_spec(spec);
    }
}

/// Fills in what all pod specs share; what only Pods have besides is theirs to do.
pub(in crate::kinds) fn default_pod_spec(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else { return };
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
    round_up(spec, "overhead");
    within(spec, "resources", round_up_resources);
}

/// Amounts of resources are kept in thousandths.
pub(in crate::kinds) fn round_up_resources(resources: &mut Map<String, Value>) {
    round_up(resources, "limits");
    round_up(resources, "requests");
}

/// Rounds one list of amounts by resource.
pub(in crate::kinds) fn round_up(parent: &mut Map<String, Value>, list: &str) {
    let Some(amounts) = parent.get_mut(list).and_then(Value::as_object_mut) else { return };
    for amount in amounts.values_mut() {
        let Ok(mut quantity) = Quantity::from_value(amount) else { continue };
        quantity.round_up(RESOURCE_EXPONENT_MIN);
        *amount = quantity.to_string().into();
    }
}

/// Annotations by which init containers were once declared. Nodes of old would believe them more
/// than the spec.
pub(in crate::kinds) fn drop_init_container_annotations(annotations: &mut Value) {
    let Some(annotations) = annotations.as_object_mut() else { return };
    for name in [
        "pod.beta.kubernetes.io/init-containers",
        "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses",
        "pod.alpha.kubernetes.io/init-container-statuses",
    ] {
        annotations.shift_remove(name);
    }
}

/// Sets a member unless it is there; Go prints some that are not as null.
pub(in crate::kinds) fn fill(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), value.into());
    }
}

/// Calls `f` with each object of a list.
pub(in crate::kinds) fn each(
    parent: &mut Map<String, Value>,
    list: &str,
    f: impl FnMut(&mut Map<String, Value>),
) {
    if let Some(items) = parent.get_mut(list).and_then(Value::as_array_mut) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(f);
    }
}

/// Calls `f` with a member that is an object, if it is there.
pub(in crate::kinds) fn within(
    parent: &mut Map<String, Value>,
    name: &str,
    f: impl FnOnce(&mut Map<String, Value>),
) {
    if let Some(object) = parent.get_mut(name).and_then(Value::as_object_mut) {
        f(object);
    }
}

fn member<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name)?.as_object_mut()
}

/// `serviceAccount` is the old name of `serviceAccountName`, and always says the same.
fn mirror_service_account(spec: &mut Map<String, Value>) {
    if let Some(old) = spec.get("serviceAccount").cloned() {
        fill(spec, "serviceAccountName", old);
    }
    if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|member| member == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    within(volume, "image", |image| {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = pull_policy(reference);
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

fn default_container(container: &mut Map<String, Value>) {
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or_default());
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

fn default_probe(probe: &mut Map<String, Value>) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    within(probe, "httpGet", default_http_get);
    within(probe, "grpc", |grpc| fill(grpc, "service", ""));
}

fn default_http_get(action: &mut Map<String, Value>) {
    fill(action, "path", "/");
    fill(action, "scheme", "HTTP");
}

fn default_field_ref(holder: &mut Map<String, Value>) {
    within(holder, "fieldRef", |field| fill(field, "apiVersion", "v1"));
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}
