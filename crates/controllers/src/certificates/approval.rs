//! Approves what nodes ask for, if they may.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kube::api::{Api, PostParams};
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::judge;
use super::request::Request;
use super::signing::{has, is_approved};
use crate::part;
use crate::part::text;

pub(crate) fn controller() -> Controller<CertificateSigningRequest, Approval> {
    part::controller("certificate-controller", Approval)
}

/// The controller of requests that wait for approval.
pub(crate) struct Approval;

impl Reconciler<CertificateSigningRequest> for Approval {
    async fn reconcile(
        &self,
        asked: &mut CertificateSigningRequest,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let is_issued = asked.status.as_ref().is_some_and(|status| status.certificate.is_some());
        if is_issued || is_approved(asked) || has(asked, "Denied") {
            return Ok(Action::Done);
        }
        let request = Request::read(&asked.spec.request.0).map_err(Error::terminal)?;
        for (right, message) in judge::self_approval(asked, &request) {
            if !may(ctx, asked, right).await? {
                continue;
            }
            let mut approved = asked.clone();
            let conditions =
                approved.status.get_or_insert_default().conditions.get_or_insert_default();
            conditions.push(CertificateSigningRequestCondition {
                type_: "Approved".to_owned(),
                status: "True".to_owned(),
                reason: Some("AutoApproved".to_owned()),
                message: Some(message.to_owned()),
                ..CertificateSigningRequestCondition::default()
            });
            let api: Api<CertificateSigningRequest> = Api::all(ctx.client().clone());
            let name = text(&asked.metadata.name);
            let params = PostParams::default();
            api.replace_subresource("approval", name, &params, &approved).await?;
            return Ok(Action::Done);
        }
        Ok(Action::Done)
    }
}

/// Whether whoever asks may have such requests approved.
async fn may(ctx: &Context, asked: &CertificateSigningRequest, right: &str) -> Result<bool, Error> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: asked.spec.username.clone(),
            uid: asked.spec.uid.clone(),
            groups: asked.spec.groups.clone(),
            extra: asked.spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".to_owned()),
                version: Some("*".to_owned()),
                resource: Some("certificatesigningrequests".to_owned()),
                subresource: Some(right.to_owned()),
                verb: Some("create".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(ctx.client().clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
