//! A watch, with all that can come of it. Programs have informers for this; here is what these do.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

/// How long to wait before a watch that has ended goes on.
const PAUSE: Duration = Duration::from_secs(1);

/// What is seen of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Added(String),
    Modified(String),
    Deleted(String),
    /// Nothing of interest has happened up to here: a watch can go on from this version.
    Bookmark,
    /// The server does not remember that far back: all is listed again.
    Expired,
    /// The server, or the network, has ended the watch: it goes on where it was.
    Closed,
}

/// Sees what becomes of pods until `see` has seen enough.
///
/// # Errors
/// The server refuses, and not only because it has forgotten.
pub async fn follow(
    pods: &Api<Pod>,
    mut see: impl FnMut(Seen) -> ControlFlow<()>,
) -> Result<(), kube::Error> {
    loop {
        let list = pods.list(&ListParams::default()).await?;
        for pod in &list.items {
            if see(Seen::Added(pod.name_any())).is_break() {
                return Ok(());
            }
        }
        let mut version = list.metadata.resource_version.unwrap_or_default();
        loop {
            let ended = follow_from(pods, &mut version, &mut see).await?;
            let ControlFlow::Continue(ended) = ended else { return Ok(()) };
            let is_expired = ended == Seen::Expired;
            if see(ended).is_break() {
                return Ok(());
            }
            if is_expired {
                break;
            }
            // A server that ends every watch at once is not asked all the time.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// One watch, to its end: how it ended, unless enough was seen.
async fn follow_from(
    pods: &Api<Pod>,
    version: &mut String,
    see: &mut impl FnMut(Seen) -> ControlFlow<()>,
) -> Result<ControlFlow<(), Seen>, kube::Error> {
    let events = match pods.watch(&WatchParams::default(), version).await {
        Ok(events) => events,
        Err(kube::Error::Api(status)) if status.code == 410 => {
            return Ok(ControlFlow::Continue(Seen::Expired));
        }
        Err(error) => return Err(error),
    };
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let (pod, seen): (_, fn(String) -> Seen) = match event {
            Ok(WatchEvent::Added(pod)) => (pod, Seen::Added),
            Ok(WatchEvent::Modified(pod)) => (pod, Seen::Modified),
            Ok(WatchEvent::Deleted(pod)) => (pod, Seen::Deleted),
            Ok(WatchEvent::Bookmark(bookmark)) => {
                *version = bookmark.metadata.resource_version;
                if see(Seen::Bookmark).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            Ok(WatchEvent::Error(status)) if status.code == 410 => {
                return Ok(ControlFlow::Continue(Seen::Expired));
            }
            Ok(WatchEvent::Error(status)) => return Err(kube::Error::Api(status)),
            // The connection is gone, and nothing is known of the server.
            Err(_) => break,
        };
        *version = pod.resource_version().unwrap_or_default();
        if see(seen(pod.name_any())).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(Seen::Closed))
}
