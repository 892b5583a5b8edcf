//! NamespaceLifecycle: nothing is created in a namespace that is not there or is going away, and
//! three namespaces stay.

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::{Cause, Status};
use serde_json::Value;

use super::{Attributes, Operation, Scene};
use crate::catalog::Catalog;
use crate::refusal::Refusal;
use crate::selection;

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<(), Refusal> {
    let gvr = &attributes.resource.gvr;
    let is_namespace = gvr.group.is_empty() && gvr.resource == "namespaces";
    if is_namespace {
        let immortal = IMMORTAL.contains(&attributes.name);
        if attributes.operation == Operation::Delete && immortal {
            return Err(attributes.forbid(object, "this namespace may not be deleted"));
        }
        return Ok(());
    }
    let Some(namespace) = attributes.namespace else { return Ok(()) };
    // Saying more about a namespace in a review of access would be telling whether it is there.
    let is_review = gvr.resource == "localsubjectaccessreviews";
    if attributes.operation == Operation::Delete || is_review {
        return Ok(());
    }
    let Some(found) = scene.store.get(&format!("/registry/namespaces/{namespace}")) else {
        return Err(Box::new(Status::not_found(&GroupResource::new("", "namespaces"), namespace)));
    };
    let phase = || selection::field(Catalog::namespaces(), &found, "status.phase");
    let is_terminating = || phase() == Some("Terminating");
    if attributes.operation != Operation::Create || !is_terminating() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = attributes.forbid(object, why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(status)
}
