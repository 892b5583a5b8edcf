//! Whether a server can call webhooks at a URL, which is tried before it is told of any.
//!
//! A webhook that only refuses one object that nobody else makes is configured for a moment, and
//! that object is created, as a trial. So nobody's writes are refused while it is not known yet, and
//! it does not matter what the operator's own webhooks are asked about.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::{Client, Error};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use uuid::Uuid;

use super::Webhook;
use super::denied::Denied;
use super::registration::{Place, Purpose, Registration, Trust};
use super::review::{Operation, Response, Review};

/// What a server says when it has called.
const ANSWER: &str = "reached";
const LABEL: &str = "kubewright.dev/webhook-reach";
/// Servers hear of configurations a moment after they have stored them.
const ATTEMPTS: usize = 100;
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a server waits for who does not answer at all.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Reached,
    /// In the server's words.
    Unreached(String),
    /// Nobody may try, or nothing came of it.
    Unknown,
}

/// Refuses whatever it is asked about.
pub(super) fn webhook() -> Webhook {
    let registration = Registration {
        operations: vec![Operation::Create],
        timeout: ANSWER_MAX,
        ..Registration::new(Purpose::Validate, "/reach", "", "v1", "namespaces", "Namespace")
    };
    Webhook::new(registration, |_: &Review| Response::denied(Denied::new(ANSWER)))
}

/// Has the server call [`webhook`] at a place, until `stop`.
pub(crate) async fn ask(
    client: &Client,
    operator: &str,
    place: &Place,
    trust: &Trust,
    stop: &CancellationToken,
) -> Reach {
    // Another process may ask at the same time.
    let id = Uuid::new_v4().to_string();
    let metadata = ObjectMeta {
        name: Some(format!("{operator}-reach-{id}")),
        labels: Some([(LABEL.to_owned(), id.clone())].into_iter().collect()),
        ..ObjectMeta::default()
    };
    let mut registration = webhook().registration;
    registration.object_selector =
        Some(LabelSelector { match_labels: metadata.labels.clone(), ..LabelSelector::default() });
    let configuration = ValidatingWebhookConfiguration {
        metadata: metadata.clone(),
        webhooks: Some(vec![registration.validating(place, trust)]),
    };
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let params = PostParams::default();
    let create = configurations.create(&params, &configuration);
    match stop.run_until_cancelled(create).await {
        Some(Ok(_)) => {}
        Some(Err(error)) => {
            debug!(%error, "whether webhooks are reached is not tried");
            return Reach::Unknown;
        }
        None => return Reach::Unknown,
    }
    let object = Namespace { metadata, ..Namespace::default() };
    let tried = stop.run_until_cancelled(try_until_known(client, &registration.name, &object));
    let reach = tried.await.unwrap_or(Reach::Unknown);
    let name = configuration.metadata.name.unwrap_or_default();
    let params = DeleteParams::default();
    let deleted = tokio::time::timeout(ANSWER_MAX, configurations.delete(&name, &params)).await;
    if !deleted.is_ok_and(|deleted| deleted.is_ok()) {
        warn!(name, "a webhook configuration that nobody needs is left behind");
    }
    reach
}

async fn try_until_known(client: &Client, webhook: &str, object: &Namespace) -> Reach {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    for _ in 0..ATTEMPTS {
        match namespaces.create(&trial, object).await {
            // It has not heard of the configuration yet.
            Ok(_) => tokio::time::sleep(INTERVAL).await,
            Err(Error::Api(status)) => match verdict(&status.message, webhook) {
                Some(reach) => return reach,
                None => break,
            },
            Err(_) => break,
        }
    }
    Reach::Unknown
}

/// What a refusal says of a webhook, if it is about it.
fn verdict(message: &str, webhook: &str) -> Option<Reach> {
    let about = format!("webhook \"{webhook}\"");
    if !message.contains(&about) {
        return None;
    }
    match message.ends_with(&format!("denied the request: {ANSWER}")) {
        true => Some(Reach::Reached),
        false => Some(Reach::Unreached(message.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whether_the_webhook_was_reached() {
        let check = |message: &str, expected: Option<Reach>| {
            assert_eq!(verdict(message, "reach.webhook.kubewright"), expected);
        };
        let denied = "admission webhook \"reach.webhook.kubewright\" denied the request: reached";
        check(denied, Some(Reach::Reached));
        let failed = "Internal error occurred: failed calling webhook \"reach.webhook.kubewright\": \
                      failed to call webhook: Post \"https://127.0.0.1:1/reach?timeout=5s\": \
                      dial tcp 127.0.0.1:1: connect: connection refused";
        check(failed, Some(Reach::Unreached(failed.to_owned())));
        check("namespaces is forbidden: User \"me\" cannot create resource", None);
        check("admission webhook \"another\" denied the request: reached", None);
    }
}
