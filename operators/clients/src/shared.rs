//! A shared informer: two consumers, one connection.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright::cache::Cache;
use kubewright::informer::{Change, Informer, NotReady, Scope, Subscription};

/// How often consumers are shown everything again, unless they say otherwise.
pub const RESYNC: Duration = Duration::from_secs(30 * 60);
/// How long the first list may take.
const SYNC_MAX: Duration = Duration::from_secs(30);

/// The pods of a namespace, of which a cache has one watch, however many ask for it.
pub fn pods(cache: &Cache, namespace: &str) -> Informer<Pod> {
    cache.informer(&Scope::within([namespace]))
}

/// Waits until all that there was is known, and then has a consumer see it, and every change. It
/// ends when the subscription is dropped.
///
/// # Errors
/// The pods cannot be listed; it says why.
pub async fn consume(
    pods: &Informer<Pod>,
    see: impl Fn(&Change<Pod>) + Send + Sync + 'static,
) -> Result<Subscription, NotReady> {
    pods.synced(SYNC_MAX).await?;
    Ok(pods.subscribe(see))
}

/// Shows everything again, each time so much time has passed. It asks nothing of the server: this
/// is for consumers whose own world may have changed.
pub async fn resync(pods: &Informer<Pod>, every: Duration, see: impl Fn(&Arc<Pod>)) {
    loop {
        tokio::time::sleep(every).await;
        pods.list().unwrap_or_default().iter().for_each(&see);
    }
}
