//! Tells a server of webhooks.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::registration::{Configurations, Place, Purpose, Registration, Trust};

/// Why a server was not told of webhooks.
#[derive(Debug, thiserror::Error)]
#[error("write {kind} {name}")]
pub struct InstallError {
    kind: String,
    name: String,
    #[source]
    source: kube::Error,
}

impl InstallError {
    /// Whether a definition is not there, or not yet.
    pub fn is_missing(&self) -> bool {
        matches!(&self.source, kube::Error::Api(status) if status.code == 404)
    }
}

/// Has a server call these webhooks of an operator: applies configurations under the names that its
/// manifests have, and sets the conversion of the definitions, which must be there.
///
/// Configurations need a cluster's administrator; where manifests are applied by one, the operator
/// itself needs none of this.
///
/// # Errors
/// If the server refuses.
pub async fn install(
    client: &Client,
    operator: &str,
    registrations: impl IntoIterator<Item = &Registration>,
    place: &Place,
    trust: &Trust,
) -> Result<(), InstallError> {
    let registrations: Vec<Registration> = registrations.into_iter().cloned().collect();
    // Objects that are judged may have to be converted to be.
    for it in registrations.iter().filter(|it| it.purpose == Purpose::Convert) {
        let mut conversion = it.conversion(place, trust);
        if let Some(config) = conversion["webhook"]["clientConfig"].as_object_mut() {
            // It may have been somewhere else before.
            for place in ["service", "url"] {
                config.entry(place).or_insert(Value::Null);
            }
        }
        let patch = json!({
            "metadata": { "annotations": annotations(trust) },
            "spec": { "conversion": conversion },
        });
        let (patch, params) = (Patch::Merge(patch), PatchParams::default());
        set::<CustomResourceDefinition>(client, &it.definition(), &patch, &params).await?;
    }
    let Configurations { mutating, validating } =
        Configurations::new(operator, &registrations, place, trust);
    let params = PatchParams::apply(operator).force();
    if let Some(it) = mutating {
        let name = it.metadata.name.clone().unwrap_or_default();
        let patch = Patch::Apply(only_there(json!(it)));
        set::<MutatingWebhookConfiguration>(client, &name, &patch, &params).await?;
    }
    if let Some(it) = validating {
        let name = it.metadata.name.clone().unwrap_or_default();
        let patch = Patch::Apply(only_there(json!(it)));
        set::<ValidatingWebhookConfiguration>(client, &name, &patch, &params).await?;
    }
    Ok(())
}

/// Has each webhook be called in one place only, whoever said another one before.
fn only_there(mut configuration: Value) -> Value {
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(config) = webhook["clientConfig"].as_object_mut() {
            for place in ["service", "url"] {
                config.entry(place).or_insert(Value::Null);
            }
        }
    }
    configuration
}

fn annotations(trust: &Trust) -> Value {
    trust.annotation().map_or_else(|| json!({}), |from| json!({ super::INJECT_CA_FROM: from }))
}

async fn set<K>(
    client: &Client,
    name: &str,
    patch: &Patch<impl Serialize + Debug>,
    params: &PatchParams,
) -> Result<(), InstallError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let set = api.patch(name, params, patch).await;
    let kind = K::kind(&()).into_owned();
    set.map(drop).map_err(|source| InstallError { kind, name: name.to_owned(), source })
}
