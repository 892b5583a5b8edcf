//! Signs what is approved.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::judge::{self, Verdict};
use super::request::Request;
use super::{Order, SharedSigner};
use crate::part;

pub(crate) fn controller(signer: &SharedSigner) -> Controller<CertificateSigningRequest, Signing> {
    part::controller("certificate-controller", Signing { signer: SharedSigner::clone(signer) })
}

/// The controller of requests that are approved.
pub(crate) struct Signing {
    signer: SharedSigner,
}

impl Reconciler<CertificateSigningRequest> for Signing {
    async fn reconcile(
        &self,
        asked: &mut CertificateSigningRequest,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let is_issued = asked.status.as_ref().is_some_and(|status| status.certificate.is_some());
        if is_issued || !is_approved(asked) || has(asked, "Denied") || has(asked, "Failed") {
            return Ok(Action::Done);
        }
        let request = Request::read(&asked.spec.request.0).map_err(Error::terminal)?;
        let usages = asked.spec.usages.clone().unwrap_or_default();
        match judge::judge(&asked.spec.signer_name, &usages, &request) {
            Verdict::NotOurs => {}
            Verdict::Refuse(why) => {
                let conditions =
                    asked.status.get_or_insert_default().conditions.get_or_insert_default();
                conditions.push(CertificateSigningRequestCondition {
                    type_: "Failed".to_owned(),
                    status: "True".to_owned(),
                    reason: Some("SignerValidationFailure".to_owned()),
                    message: Some(why),
                    last_update_time: Some(Time(ctx.now())),
                    ..CertificateSigningRequestCondition::default()
                });
            }
            Verdict::Sign => {
                let lifetime = judge::lifetime(asked.spec.expiration_seconds);
                let order = Order { request: &request.der, usages: &usages, lifetime };
                let certificate = self.signer.sign(&order)?;
                let status = asked.status.get_or_insert_default();
                status.certificate = Some(ByteString(certificate.into_bytes()));
            }
        }
        Ok(Action::Done)
    }
}

pub(super) fn is_approved(asked: &CertificateSigningRequest) -> bool {
    has(asked, "Approved")
}

pub(super) fn has(asked: &CertificateSigningRequest, kind: &str) -> bool {
    let mut conditions = asked.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == kind && condition.status == "True")
}
