//! Requests go when nobody will look at them any more.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kubewright::{Action, Context, Controller, Error, Reconciler};
use x509_parser::pem::Pem;

use crate::part;

/// How long one stays that was answered.
const ANSWERED: SignedDuration = SignedDuration::from_hours(1);
/// How long one stays that nobody has answered, though it may be approved.
const UNANSWERED: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn controller() -> Controller<CertificateSigningRequest, Cleaner> {
    part::controller("certificate-controller", Cleaner)
}

/// The controller of old requests.
pub(crate) struct Cleaner;

impl Reconciler<CertificateSigningRequest> for Cleaner {
    async fn reconcile(
        &self,
        asked: &mut CertificateSigningRequest,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let Some(until) = until(asked) else { return Ok(Action::Done) };
        let left = until.duration_since(ctx.now());
        if left.is_positive() {
            return Ok(Action::RequeueAfter(Duration::try_from(left).unwrap_or_default()));
        }
        ctx.delete(asked).await?;
        Ok(Action::Done)
    }
}

/// Until when a request stays: the first of all reasons to go counts.
fn until(asked: &CertificateSigningRequest) -> Option<Timestamp> {
    let status = asked.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let certificate = status.certificate.filter(|certificate| !certificate.0.is_empty());
    if conditions.is_empty() {
        let made = asked.metadata.creation_timestamp.as_ref()?.0;
        return made.checked_add(UNANSWERED).ok();
    }
    let mut ends = Vec::new();
    for condition in &conditions {
        let stays = match (condition.type_.as_str(), &certificate) {
            ("Denied" | "Failed", _) | ("Approved", Some(_)) => ANSWERED,
            ("Approved", None) => UNANSWERED,
            _ => continue,
        };
        let decided = condition.last_update_time.as_ref().map(|time| time.0);
        ends.extend(decided.and_then(|decided| decided.checked_add(stays).ok()));
        if condition.type_ == "Approved" {
            ends.extend(certificate.as_ref().and_then(|certificate| end_of(&certificate.0)));
        }
    }
    ends.into_iter().min()
}

/// When a certificate in PEM ends.
fn end_of(pem: &[u8]) -> Option<Timestamp> {
    let block = Pem::iter_from_buffer(pem).next()?.ok()?;
    let end = block.parse_x509().ok()?.validity().not_after.timestamp();
    Timestamp::from_second(end).ok()
}
