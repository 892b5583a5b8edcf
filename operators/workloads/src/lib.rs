//! A program that uses the API, and is no operator: it runs a service in a namespace of its own,
//! waits until it is there, shows its logs, and leaves nothing behind.
//!
//! [`objects`] is what it makes, [`run`] how.

mod logs;
pub mod objects;

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kubewright::ObjectKey;
use kubewright::informer::{Informer, Scope, Source};
use tokio::sync::watch;

use objects::NAME;

/// Where lines go. A clone is another handle on the same place.
#[derive(Clone)]
pub struct Show(Arc<dyn Fn(&str) + Send + Sync>);

impl Show {
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Show(Arc::new(show))
    }

    fn line(&self, line: &str) {
        (self.0)(line);
    }
}

/// Runs the service in a namespace that it makes, until it is interrupted; then the namespace goes,
/// also if something went wrong.
///
/// # Errors
/// The cluster refuses something; or whatever `interrupted` says.
pub async fn run(
    client: &Client,
    namespace: &str,
    show: Show,
    interrupted: impl Future<Output = Result<()>>,
) -> Result<()> {
    show.line(&format!("Creating namespace {namespace:?}."));
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.create(&PostParams::default(), &objects::namespace(namespace)).await;
    made.with_context(|| format!("create namespace {namespace}"))?;
    let ran = tokio::select! {
        ran = serve(client, namespace, &show) => ran,
        interrupted = interrupted => interrupted,
    };
    show.line(&format!("Deleting namespace {namespace:?}."));
    let deleted = namespaces.delete(namespace, &DeleteParams::default()).await;
    ran.and(deleted.map(drop).with_context(|| format!("delete namespace {namespace}")))
}

/// Makes all there is to make, and then shows logs for ever.
async fn serve(client: &Client, namespace: &str, show: &Show) -> Result<()> {
    let params = PostParams::default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let made = deployments.create(&params, &objects::deployment()).await;
    made.context("create the Deployment")?;
    show.line(&format!("Waiting for ready replicas in: {NAME:?}"));
    wait(client, namespace, show).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    services.create(&params, &objects::service()).await.context("create the Service")?;
    let ingresses: Api<Ingress> = Api::namespaced(client.clone(), namespace);
    ingresses.create(&params, &objects::ingress()).await.context("create the Ingress")?;
    show.line("You can now see your running service: http://localhost:8080/hello");
    logs::show(client, namespace, show).await
}

/// Waits until all replicas are ready, and tells how far it is whenever that changes.
async fn wait(client: &Client, namespace: &str, show: &Show) -> Result<()> {
    let scope =
        Scope { fields: Some(format!("metadata.name={NAME}")), ..Scope::within([namespace]) };
    let source = Source::new(client.clone(), (), scope);
    let (deployments, run) = Informer::<Deployment>::new(source);
    let (tell, mut told) = watch::channel(());
    let _subscription = deployments.subscribe(move |_| {
        tell.send_replace(());
    });
    let key = ObjectKey::new(Some(namespace), NAME);
    let waiting = async {
        let mut last = None;
        while told.changed().await.is_ok() {
            let deployment = deployments.get(&key)?;
            let deployment = deployment.ok_or_else(|| anyhow!("the Deployment was deleted"))?;
            let (ready, wanted) = objects::progress(&deployment);
            if ready == wanted {
                show.line("replicas are ready!");
                return Ok(());
            }
            if last.replace(ready) != Some(ready) {
                show.line(&format!("replicas are not ready yet. {ready}/{wanted}"));
            }
        }
        Err(anyhow!("nobody tells of the Deployment any more"))
    };
    tokio::select! {
        () = run => Err(anyhow!("nobody tells of the Deployment any more")),
        waited = waiting => waited,
    }
}
