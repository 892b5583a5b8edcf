//! Bindings of roles, and certificates.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, NAME, age, of, text};

// Roles themselves are shown with their name and creation time only.
pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("rbac.authorization.k8s.io", "RoleBinding", ROLE_BINDING, binding),
    printer_of("rbac.authorization.k8s.io", "ClusterRoleBinding", CLUSTER_ROLE_BINDING, binding),
    printer_of(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        SIGNING_REQUEST,
        signing_request,
    ),
    printer_of("certificates.k8s.io", "ClusterTrustBundle", TRUST_BUNDLE, trust_bundle),
    printer_of("certificates.k8s.io", "PodCertificateRequest", POD_CERTIFICATE, pod_certificate),
];

const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", of("rbac/v1.RoleBinding", "roleRef")),
    AGE,
    text("Users", Text("Users in the roleBinding")).wide(),
    text("Groups", Text("Groups in the roleBinding")).wide(),
    text("ServiceAccounts", Text("ServiceAccounts in the roleBinding")).wide(),
];

const CLUSTER_ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", of("rbac/v1.ClusterRoleBinding", "roleRef")),
    AGE,
    text("Users", Text("Users in the clusterRoleBinding")).wide(),
    text("Groups", Text("Groups in the clusterRoleBinding")).wide(),
    text("ServiceAccounts", Text("ServiceAccounts in the clusterRoleBinding")).wide(),
];

fn binding(object: Fields<'_>) -> Value {
    let subjects = |kind: &str| {
        let subjects: Vec<String> = object
            .items("subjects")
            .filter(|subject| subject.text("kind") == kind)
            .map(|subject| match kind {
                "ServiceAccount" => {
                    format!("{}/{}", subject.text("namespace"), subject.text("name"))
                }
                _ => subject.text("name").to_owned(),
            })
            .collect();
        subjects.join(", ")
    };
    json!([
        object.name(),
        format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name")),
        object.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ])
}

const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    text("SignerName", of("certificates/v1.CertificateSigningRequestSpec", "signerName")),
    text("Requestor", of("certificates/v1.CertificateSigningRequestSpec", "request")),
    text(
        "RequestedDuration",
        of("certificates/v1.CertificateSigningRequestSpec", "expirationSeconds"),
    ),
    text("Condition", of("certificates/v1.CertificateSigningRequestStatus", "conditions")),
];

fn signing_request(object: Fields<'_>) -> Value {
    let duration = match object.has("spec.expirationSeconds") {
        true => age::human(SignedDuration::from_secs(object.number("spec.expirationSeconds"))),
        false => "<none>".to_owned(),
    };
    let has = |ty: &str| object.condition("status.conditions", ty).is_some();
    let mut status = match () {
        _ if has("Denied") => "Denied",
        _ if has("Approved") => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !object.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    json!([
        object.name(),
        object.age(),
        object.text_or("spec.signerName", "<none>"),
        object.text("spec.username"),
        duration,
        status,
    ])
}

const TRUST_BUNDLE: &[Column] =
    &[NAME, text("SignerName", of("certificates/v1beta1.ClusterTrustBundleSpec", "signerName"))];

fn trust_bundle(object: Fields<'_>) -> Value {
    json!([object.name(), object.text_or("spec.signerName", "<none>")])
}

const POD_CERTIFICATE: &[Column] = &[
    NAME,
    text("PodName", of("certificates/v1beta1.PodCertificateRequestSpec", "podName")),
    text(
        "ServiceAccountName",
        of("certificates/v1beta1.PodCertificateRequestSpec", "serviceAccountName"),
    ),
    text("NodeName", of("certificates/v1beta1.PodCertificateRequestSpec", "nodeName")),
    text("SignerName", of("certificates/v1beta1.PodCertificateRequestSpec", "signerName")),
    text("State", Text("Is the request Pending, Issued, Denied, or Failed?")),
    text(
        "UnverifiedUserAnnotations",
        of("certificates/v1beta1.PodCertificateRequestSpec", "unverifiedUserAnnotations"),
    ),
];

fn pod_certificate(object: Fields<'_>) -> Value {
    let state = object
        .items("status.conditions")
        .map(|condition| condition.text("type"))
        .rfind(|ty| matches!(*ty, "Issued" | "Denied" | "Failed"));
    json!([
        object.name(),
        object.text("spec.podName"),
        object.text("spec.serviceAccountName"),
        object.text("spec.nodeName"),
        object.text("spec.signerName"),
        state.unwrap_or("Pending"),
        object.labels("spec.unverifiedUserAnnotations"),
    ])
}
