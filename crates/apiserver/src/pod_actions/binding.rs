//! Bindings: a pod is put on a node, once.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupResource, GroupVersionKind};
use kubewright_apimachinery::status::{Reason, Status};
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::conditions;
use crate::meta;
use crate::refusal::{self, Refusal};
use crate::write::{Revise, Write};

/// Puts the pod on the node that the binding names.
pub(crate) async fn bind(write: &Write<'_>, binding: Value) -> Result<(), Refusal> {
    let below = write.resource.below(GroupVersionKind::new("", "v1", "Binding"));
    let binding = Write { resource: &below, ..*write }.track(None, binding);
    let admitted = write.admit_action(binding, |binding| check(binding, write.name)).await?;
    let bind = Bind { binding: admitted.object(), now: meta::time(write.now) };
    let pod = Write { resource: Catalog::pods(), part: None, ..*write };
    pod.amend(&bind).await.map(|_| ())
}

fn check(binding: &Value, name: &str) -> Result<(), Refusal> {
    if meta::text(binding, "name") != name {
        let why = "name in URL does not match name in Binding object";
        return Err(Box::new(Status::bad_request(why)));
    }
    let path = Path::new("target");
    let mut errors = Vec::new();
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(Error::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if binding["target"]["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    // Upstream does not make a refusal of what is wrong, so that it looks like a failure.
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [text] => Err(Box::new(Status::failure(500, Reason::Unknown, text))),
        texts => {
            let why = format!("[{}]", texts.join(", "));
            Err(Box::new(Status::failure(500, Reason::Unknown, why)))
        }
    }
}

struct Bind<'a> {
    binding: &'a Value,
    now: String,
}

impl Revise for Bind<'_> {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        self.check_version(write, live)?;
        let name = meta::text(live, "name");
        let conflict = |why: String| {
            let bindings = GroupResource::new("", "pods/binding");
            Err(Box::new(Status::conflict(&bindings, name, why)))
        };
        if meta::is_deleting(live) {
            return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let node = live["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            return conflict(format!("pod {name} is already assigned to node \"{node}\""));
        }
        if live["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        let mut pod = live.clone();
        pod["spec"]["nodeName"] = self.binding["target"]["name"].clone();
        for map in ["annotations", "labels"] {
            self.take_over(&mut pod, map);
        }
        if let Some(status) = pod["status"].as_object_mut() {
            // Whoever was to make room for the pod need not any more.
            status.shift_remove("nominatedNodeName");
        }
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": self.now,
        });
        conditions::set(&mut pod["status"], scheduled);
        Ok(pod)
    }

    fn expected_uid(&self) -> Option<&str> {
        Some(meta::text(self.binding, "uid")).filter(|uid| !uid.is_empty())
    }
}

impl Bind<'_> {
    fn check_version(&self, write: &Write<'_>, live: &Value) -> Result<(), Refusal> {
        let expected = meta::text(self.binding, "resourceVersion");
        let found = meta::text(live, "resourceVersion");
        if expected.is_empty() || expected == found {
            return Ok(());
        }
        let key = write.resource.key(write.namespace, write.name);
        let pods = write.resource.group_resource();
        Err(refusal::precondition(
            &pods,
            write.name,
            key.as_str(),
            "ResourceVersion",
            expected,
            found,
        ))
    }

    /// A map of the binding's metadata goes over that of the pod.
    fn take_over(&self, pod: &mut Value, map: &str) {
        let Some(more) = self.binding["metadata"][map].as_object() else { return };
        let entries = meta::of(pod).entry(map).or_insert_with(|| json!({}));
        if let Some(entries) = entries.as_object_mut() {
            entries.extend(more.clone());
            entries.sort_keys();
        }
    }
}
