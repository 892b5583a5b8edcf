//! Tells the API server whom to believe.

use std::fmt::Debug;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::info;

use crate::manifest::Names;
use crate::webhook::{Purpose, Registration};

/// How often an object that changes meanwhile is looked at anew.
const ATTEMPTS_MAX: usize = 5;

/// Where a `caBundle` is kept in step. What is not there needs none yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// Names of MutatingWebhookConfigurations.
    pub mutating: Vec<String>,
    /// Names of ValidatingWebhookConfigurations.
    pub validating: Vec<String>,
    /// Names of CustomResourceDefinitions whose objects are converted.
    pub definitions: Vec<String>,
}

/// Why the server was not told whom to believe.
#[derive(Debug, thiserror::Error)]
#[error("put the authority into {kind} {name}")]
pub struct InjectError {
    kind: String,
    name: String,
    #[source]
    source: kube::Error,
}

impl Targets {
    /// Those of an operator, under the names that its manifests have.
    pub fn of<'a>(
        operator: &str,
        registrations: impl IntoIterator<Item = &'a Registration>,
    ) -> Self {
        let (mut targets, own) = (Targets::default(), Names::of(operator));
        for registration in registrations {
            let (names, name) = match registration.purpose {
                Purpose::Mutate => (&mut targets.mutating, own.mutating_configuration()),
                Purpose::Validate => (&mut targets.validating, own.validating_configuration()),
                Purpose::Convert => (&mut targets.definitions, registration.definition()),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        targets
    }

    /// Has the server believe those whom `bundle` vouches for. Writes only where it does not yet.
    ///
    /// # Errors
    /// If the server refuses; what could be told is told.
    pub async fn inject(&self, client: &Client, bundle: &str) -> Result<(), InjectError> {
        let mut first = Ok(());
        let mut note = |result: Result<(), InjectError>| {
            if first.is_ok() {
                first = result;
            }
        };
        for name in &self.mutating {
            note(tell::<MutatingWebhookConfiguration>(client, name, bundle).await);
        }
        for name in &self.validating {
            note(tell::<ValidatingWebhookConfiguration>(client, name, bundle).await);
        }
        for name in &self.definitions {
            note(tell::<CustomResourceDefinition>(client, name, bundle).await);
        }
        first
    }
}

/// An object that says whom to believe.
trait Believer: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {
    /// What is to change, if anything.
    fn change(&self, bundle: &str) -> Option<Patch<Value>>;
}

async fn tell<K: Believer>(client: &Client, name: &str, bundle: &str) -> Result<(), InjectError> {
    let failed = |source| InjectError { kind: K::kind(&()).into(), name: name.to_owned(), source };
    let api: Api<K> = Api::all(client.clone());
    for attempt in 1.. {
        let Some(object) = api.get_opt(name).await.map_err(failed)? else { return Ok(()) };
        let Some(patch) = object.change(bundle) else { return Ok(()) };
        match api.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => {
                info!(kind = %K::kind(&()), name, "authority put in");
                return Ok(());
            }
            Err(kube::Error::Api(status))
                if status.code == 409 && attempt < ATTEMPTS_MAX || status.code == 404 => {}
            Err(source) => return Err(failed(source)),
        }
    }
    Ok(())
}

impl Believer for MutatingWebhookConfiguration {
    fn change(&self, bundle: &str) -> Option<Patch<Value>> {
        let webhooks = self.webhooks.iter().flatten();
        let configs = webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config));
        change_webhooks(self.meta().resource_version.as_deref(), configs, bundle)
    }
}

impl Believer for ValidatingWebhookConfiguration {
    fn change(&self, bundle: &str) -> Option<Patch<Value>> {
        let webhooks = self.webhooks.iter().flatten();
        let configs = webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config));
        change_webhooks(self.meta().resource_version.as_deref(), configs, bundle)
    }
}

impl Believer for CustomResourceDefinition {
    fn change(&self, bundle: &str) -> Option<Patch<Value>> {
        let conversion = self.spec.conversion.as_ref()?;
        let config = conversion.webhook.as_ref()?.client_config.as_ref();
        let bundle = ByteString(bundle.into());
        let differs = config.and_then(|config| config.ca_bundle.as_ref()) != Some(&bundle);
        differs.then(|| {
            Patch::Merge(json!({
                "metadata": { "resourceVersion": self.meta().resource_version },
                "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": bundle } } } },
            }))
        })
    }
}

/// The server knows the webhooks of a configuration by name, so a strategic patch changes them in
/// their places.
fn change_webhooks<'a>(
    version: Option<&str>,
    configs: impl Iterator<Item = (&'a str, &'a WebhookClientConfig)>,
    bundle: &str,
) -> Option<Patch<Value>> {
    let bundle = ByteString(bundle.into());
    let webhooks: Vec<Value> = configs
        .filter(|(_, config)| config.ca_bundle.as_ref() != Some(&bundle))
        .map(|(name, _)| json!({ "name": name, "clientConfig": { "caBundle": bundle } }))
        .collect();
    (!webhooks.is_empty()).then(|| {
        Patch::Strategic(json!({
            "metadata": { "resourceVersion": version }, "webhooks": webhooks,
        }))
    })
}
