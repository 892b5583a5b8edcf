//! What has the API server call the operator.

use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use serde_json::{Value, json};

use super::workload::{WEBHOOKS_PORT, selector};
use super::{Manifest, Package, Part, certificates};

pub(super) fn service(package: &Package) -> Vec<Manifest> {
    if !package.is_called() {
        return Vec::new();
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": package.names().webhook_service(), "namespace": package.namespace},
        "spec": {
            "selector": selector(package),
            "ports": [{"port": 443, "protocol": "TCP", "targetPort": WEBHOOKS_PORT}],
        },
    });
    vec![Manifest::new(Part::Webhooks, object)]
}

pub(super) fn configurations(package: &Package) -> Vec<Manifest> {
    let names = package.names();
    let configuration = |kind: &str, name: String, webhooks: Vec<Value>| {
        if webhooks.is_empty() {
            return None;
        }
        let mut object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": webhooks,
        });
        certificates::annotate(package, &mut object);
        Some(Manifest::new(Part::Webhooks, object))
    };
    // Mutating webhooks are called in the order in which they are configured, so it stays.
    let mutating = package.mutating.iter().cloned().map(|mut webhook| {
        webhook.client_config = called(package, &webhook.client_config);
        only_at_service(json!(webhook))
    });
    let validating = package.validating.iter().cloned().map(|mut webhook| {
        webhook.client_config = called(package, &webhook.client_config);
        only_at_service(json!(webhook))
    });
    let mutating = configuration(
        "MutatingWebhookConfiguration",
        names.mutating_configuration(),
        mutating.collect(),
    );
    let validating = configuration(
        "ValidatingWebhookConfiguration",
        names.validating_configuration(),
        validating.collect(),
    );
    mutating.into_iter().chain(validating).collect()
}

/// The same path, at the operator's Service.
fn called(package: &Package, config: &WebhookClientConfig) -> WebhookClientConfig {
    let path = config.service.as_ref().and_then(|service| service.path.clone());
    let service = ServiceReference {
        name: package.names().webhook_service(),
        namespace: package.namespace.clone(),
        path,
        port: None,
    };
    WebhookClientConfig { service: Some(service), url: None, ca_bundle: None }
}

/// What a run on a laptop has left goes: a webhook is called at a Service or elsewhere, not both.
fn only_at_service(mut webhook: Value) -> Value {
    webhook["clientConfig"]["url"] = Value::Null;
    webhook
}
