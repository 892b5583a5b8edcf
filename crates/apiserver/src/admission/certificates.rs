//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may decide about
//! requests for certificates, and what nobody may ask for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apimachinery::json::go_quote;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

use super::{Attributes, Operation, Scene, items, text};
use crate::authz::{self, Decision};
use crate::refusal::Refusal;
use crate::user::MASTERS;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub(super) fn judge_approval(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    request: &Value,
) -> Result<(), Refusal> {
    let Some(old) = attributes.old else { return Ok(()) };
    if attributes.operation != Operation::Update || attributes.part != Some("approval") {
        return Ok(());
    }
    require(scene, attributes, request, "approve", old)
}

pub(super) fn judge_signing(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    request: &Value,
) -> Result<(), Refusal> {
    let Some(old) = attributes.old else { return Ok(()) };
    if attributes.operation != Operation::Update || attributes.part != Some("status") {
        return Ok(());
    }
    let (new, before) = (&request["status"], &old["status"]);
    let same_certificate = text(&new["certificate"]) == text(&before["certificate"]);
    if same_certificate && items(&new["conditions"]) == items(&before["conditions"]) {
        return Ok(());
    }
    require(scene, attributes, request, "sign", old)
}

pub(super) fn judge_subject(
    _scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    request: &Value,
) -> Result<(), Refusal> {
    if !attributes.creates() || request["spec"]["signerName"] != CLIENT_SIGNER {
        return Ok(());
    }
    let organizations = organizations(text(&request["spec"]["request"]));
    let why = match organizations {
        Ok(names) if names.iter().any(|name| name == MASTERS) => {
            format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
        }
        Ok(_) => return Ok(()),
        Err(why) => format!("failed to parse CSR: {why}"),
    };
    Err(attributes.forbid(Some(request), why))
}

/// Whether the user may do this for the signer of a request, or for all of its domain.
fn require(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    request: &Value,
    verb: &str,
    old: &Value,
) -> Result<(), Refusal> {
    let signer = text(&old["spec"]["signerName"]);
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    let may = [signer, &domain].into_iter().any(|name| {
        let group = "certificates.k8s.io";
        let of = authz::Resource { group, resource: "signers", name, ..Default::default() };
        let asked = authz::Attributes::resource(verb, of);
        matches!(scene.authorizer.decide(attributes.user, &asked), Decision::Allowed(_))
    });
    if may {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {}", go_quote(signer));
    Err(attributes.forbid(Some(request), why))
}

const UNREAD: &str = "asn1: structure error: not a certificate request";

/// The organizations of a subject. What cannot be read is no reason to let it pass.
fn organizations(request: &str) -> Result<Vec<String>, &'static str> {
    of_subject(request, |subject| {
        let names = subject.iter_organization();
        names.map(|name| name.as_str().map(str::to_owned).map_err(|_| UNREAD)).collect()
    })
}

/// The name of a subject, of which the last one counts.
pub(super) fn common_name(request: &str) -> Result<String, &'static str> {
    of_subject(request, |subject| match subject.iter_common_name().last() {
        Some(name) => name.as_str().map(str::to_owned).map_err(|_| UNREAD),
        None => Ok(String::new()),
    })
}

fn of_subject<T>(
    request: &str,
    read: impl FnOnce(&X509Name<'_>) -> Result<T, &'static str>,
) -> Result<T, &'static str> {
    let pem = STANDARD.decode(request).map_err(|_| UNREAD)?;
    let block = Pem::iter_from_buffer(&pem).find_map(Result::ok);
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let parsed = X509CertificationRequest::from_der(&block.contents);
    let (_, parsed) = parsed.map_err(|_| UNREAD)?;
    read(&parsed.certification_request_info.subject)
}
