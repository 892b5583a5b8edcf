//! Asking one webhook.

use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Status;
use tokio::time::Instant;
use uuid::Uuid;

use super::Failed;
use super::configuration::{Hook, Role};
use super::review::{self, Verdict};
use crate::admission::Attributes;
use crate::admission::criteria::Aspect;
use crate::admission::shown::Shown;
use crate::outbound;
use crate::outbound::ConfigError;

impl Hook {
    /// Asks the webhook about a request.
    pub(super) async fn ask(
        &self,
        role: Role,
        aspect: &Aspect,
        attributes: &Attributes<'_>,
        shown: &Shown,
    ) -> Result<Verdict, Failed> {
        if attributes.dry_run && !self.is_harmless {
            let name = json::go_quote(&self.name);
            let why = format!("admission webhook {name} does not support dry run");
            return Err(Failed::Refused(Box::new(Status::bad_request(why))));
        }
        let Some(version) = self.review else {
            let why = "could not create admission objects: webhook does not accept known \
                       AdmissionReview versions (v1, v1beta1)";
            return Err(self.unanswered(why, 400));
        };
        let line = self.line.as_ref().map_err(|error| {
            let why = match error {
                ConfigError::Bundle => error.to_string(),
                _ => format!("failed calling webhook {}: {error}", json::go_quote(&self.name)),
            };
            self.unanswered(format_args!("could not get REST client: {why}"), 500)
        })?;
        let uid = Uuid::new_v4().to_string();
        let question = review::question(version, &uid, aspect, attributes, shown);
        let left = attributes.deadline.saturating_duration_since(Instant::now());
        let timeout = self.timeout.map_or(left, |timeout| timeout.min(left));
        let answer = outbound::review::post(line, &question, timeout).await.map_err(|error| {
            self.unanswered(format_args!("failed to call webhook: {error}"), error.code)
        })?;
        review::verify(&answer, version, role, &uid).map_err(|why| {
            self.unanswered(format_args!("received invalid webhook response: {why}"), 503)
        })
    }

    /// The webhook gave no verdict; `code` is what metrics count it as.
    pub(super) fn unanswered(&self, why: impl std::fmt::Display, code: i32) -> Failed {
        let why = format!("failed calling webhook {}: {why}", json::go_quote(&self.name));
        Failed::Unanswered { why, code }
    }
}
