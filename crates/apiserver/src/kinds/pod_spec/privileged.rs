//! Privileged containers, for clusters that allow none.
//!
//! Upstream knows of them where it validates a container, from a setting that the whole process
//! shares. Here they are looked for beside the other rules, which know of no settings; where an
//! object has other mistakes, too, these come last.

use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

/// The privileged containers of an object of a built-in kind, as errors.
pub(crate) fn privileged_containers(kind: &str, object: &Value) -> Vec<Error> {
    let steps: &[&str] = match kind {
        "Pod" => &["spec"],
        "PodTemplate" => &["template", "spec"],
        "ReplicationController"
        | "ReplicaSet"
        | "Deployment"
        | "DaemonSet"
        | "StatefulSet"
        | "Job" => &["spec", "template", "spec"],
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return Vec::new(),
    };
    let spec = steps.iter().fold(object, |value, step| &value[*step]);
    let root = steps.join(".");
    let root = Path::new(&root);
    let mut errors = Vec::new();
    // In the order in which upstream validates them.
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        let list = root.child(field);
        for (index, container) in spec[field].as_array().into_iter().flatten().enumerate() {
            if container["securityContext"]["privileged"] == true {
                let one = list.index(index);
                let context = one.child("securityContext");
                let path = context.child("privileged");
                errors.push(Error::forbidden(&path, "disallowed by cluster policy"));
            }
        }
    }
    errors
}
