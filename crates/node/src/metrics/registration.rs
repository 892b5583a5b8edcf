//! How the cluster's API server learns of this one, and this one of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Resource};
use kubewright::certificate::{Authority, Current};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Failure;

const NAMESPACE: &str = "kube-system";
/// As upstream's metrics-server is called, whose place is taken.
const SERVICE: &str = "metrics-server";
const API_SERVICE: &str = "v1beta1.metrics.k8s.io";
const ROLE: &str = "system:aggregated-metrics-reader";
/// Tells our objects from those of a metrics-server that somebody has installed.
const OURS: (&str, &str) = ("app.kubernetes.io/managed-by", "kubewright-node");
const LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);

/// Who may pass requests on.
pub(super) struct Proxies {
    pub(super) authorities: Vec<CertificateDer<'static>>,
    pub(super) allowed: Vec<String>,
}

impl Proxies {
    /// As the API server says.
    pub(super) async fn published(client: &Client) -> Result<Self, Failure> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let map = maps.get("extension-apiserver-authentication").await?;
        let data = map.data.unwrap_or_default();
        let text = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
        let pem = text("requestheader-client-ca-file");
        let authorities = CertificateDer::pem_slice_iter(pem.as_bytes());
        let authorities: Vec<_> = authorities.collect::<Result<_, _>>()?;
        if authorities.is_empty() {
            return Err("the API server has no certificate to pass requests on with".into());
        }
        let allowed = serde_json::from_str(text("requestheader-allowed-names")).unwrap_or_default();
        Ok(Proxies { authorities, allowed })
    }
}

/// What the API server is told.
pub(super) struct Registration {
    pub(super) certificate: Current,
    /// The authority behind it, in PEM.
    bundle: String,
}

impl Registration {
    pub(super) fn new(now: Timestamp) -> Result<Self, Failure> {
        let authority = Authority::new(SERVICE, LIFETIME, now)?;
        let pair = authority.issue(&[format!("{SERVICE}.{NAMESPACE}.svc")], LIFETIME, now)?;
        let certificate = Current::new();
        certificate.show(pair)?;
        Ok(Registration { certificate, bundle: authority.pair().certificate.clone() })
    }

    /// Has the API server pass requests on to a place. False if it does to somebody else's.
    pub(super) async fn apply(&self, client: &Client, place: SocketAddr) -> Result<bool, Failure> {
        let registrations: Api<APIService> = Api::all(client.clone());
        if registrations.get_opt(API_SERVICE).await?.is_some_and(|it| !is_ours(&it)) {
            return Ok(false);
        }
        let labels = BTreeMap::from([OURS]);
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        apply(
            &services,
            SERVICE,
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"labels": labels},
                "spec": {"type": "ExternalName", "externalName": place.ip().to_string()},
            }),
        )
        .await?;
        apply(
            &Api::<ClusterRole>::all(client.clone()),
            ROLE,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"labels": {
                    OURS.0: OURS.1,
                    "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                    "rbac.authorization.k8s.io/aggregate-to-edit": "true",
                    "rbac.authorization.k8s.io/aggregate-to-view": "true",
                }},
                "rules": [{
                    "apiGroups": ["metrics.k8s.io"], "resources": ["nodes", "pods"],
                    "verbs": ["get", "list", "watch"],
                }],
            }),
        )
        .await?;
        let bundle = k8s_openapi::ByteString(self.bundle.clone().into_bytes());
        apply(
            &registrations,
            API_SERVICE,
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"labels": labels},
                "spec": {
                    "group": "metrics.k8s.io", "version": "v1beta1",
                    "groupPriorityMinimum": 100, "versionPriority": 100,
                    "caBundle": bundle,
                    "service": {"namespace": NAMESPACE, "name": SERVICE, "port": place.port()},
                },
            }),
        )
        .await?;
        Ok(true)
    }
}

/// Takes off the API what an agent has registered, also one that was killed.
///
/// # Errors
/// The API server says no.
pub async fn withdraw(client: &Client) -> Result<(), kube::Error> {
    remove(&Api::<APIService>::all(client.clone()), API_SERVICE).await?;
    remove(&Api::<Service>::namespaced(client.clone(), NAMESPACE), SERVICE).await?;
    remove(&Api::<ClusterRole>::all(client.clone()), ROLE).await
}

async fn apply<K>(api: &Api<K>, name: &str, mut object: Value) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    object["metadata"]["name"] = json!(name);
    let manager = PatchParams::apply(OURS.1).force();
    api.patch(name, &manager, &Patch::Apply(object)).await.map(drop)
}

async fn remove<K>(api: &Api<K>, name: &str) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let Some(found) = api.get_opt(name).await?.filter(is_ours) else { return Ok(()) };
    let only = kube::api::Preconditions { uid: found.meta().uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        // Gone, or another's by now.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        deleted => deleted.map(drop),
    }
}

fn is_ours<K: Resource>(object: &K) -> bool {
    let labels = object.meta().labels.as_ref();
    labels.and_then(|labels| labels.get(OURS.0)).is_some_and(|by| by == OURS.1)
}
