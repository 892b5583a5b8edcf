//! One collection, followed: listed once, then watched, for as long as anybody wants to know.
//!
//! Only metadata travels. A watch that ends is taken up where it ended; if that is too long ago the
//! collection is listed again. Who listens sees states, never gaps.

use std::pin::pin;

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use tracing::debug;

use crate::answer::Refusal as _;
use crate::backoff::Backoff;

/// What a feed tells.
pub(crate) enum Seen {
    /// All objects there are; what was seen before and is not among them is gone.
    Listed(Vec<ObjectMeta>),
    Applied(ObjectMeta),
    Deleted(ObjectMeta),
    /// The collection cannot be listed for now.
    Unreadable,
}

/// Follows a collection until dropped.
pub(crate) async fn follow(api: Api<DynamicObject>, mut see: impl FnMut(Seen)) {
    let mut backoff = Backoff::default();
    loop {
        let list = match api.list_metadata(&ListParams::default()).await {
            Ok(list) => list,
            Err(error) => {
                debug!(url = api.resource_url(), error = %error.text(), "list failed");
                see(Seen::Unreadable);
                backoff.wait().await;
                continue;
            }
        };
        let mut version = list.metadata.resource_version.unwrap_or_default();
        see(Seen::Listed(list.items.into_iter().map(metadata).collect()));
        while watch(&api, &mut version, &mut backoff, &mut see).await == Next::Resume {}
        backoff.wait().await;
    }
}

#[derive(PartialEq)]
enum Next {
    Resume,
    ListAgain,
}

async fn watch(
    api: &Api<DynamicObject>,
    version: &mut String,
    backoff: &mut Backoff,
    see: &mut impl FnMut(Seen),
) -> Next {
    let events = match api.watch_metadata(&WatchParams::default(), version).await {
        Ok(events) => events,
        // Whatever the server has against this version, it will have it again.
        Err(error) if error.code().is_some_and(|code| code < 500 && code != 429) => {
            return Next::ListAgain;
        }
        Err(error) => {
            debug!(url = api.resource_url(), error = %error.text(), "watch failed");
            backoff.wait().await;
            return Next::Resume;
        }
    };
    let mut events = pin!(events);
    let mut progress = false;
    while let Some(event) = events.next().await {
        let (object, seen): (_, fn(ObjectMeta) -> Seen) = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, Seen::Applied),
            Ok(WatchEvent::Deleted(object)) => (object, Seen::Deleted),
            Ok(WatchEvent::Bookmark(bookmark)) => {
                progress = true;
                version.clone_from(&bookmark.metadata.resource_version);
                continue;
            }
            Ok(WatchEvent::Error(_)) => return Next::ListAgain,
            Err(error) => {
                debug!(url = api.resource_url(), error = %error.text(), "watch broke off");
                break;
            }
        };
        progress = true;
        let object = metadata(object);
        if let Some(newer) = &object.resource_version {
            version.clone_from(newer);
        }
        see(seen(object));
    }
    // A server that ends every watch at once is not asked in a tight circle.
    if progress {
        backoff.reset()
    } else {
        backoff.wait().await
    }
    Next::Resume
}

/// What controllers look at; who manages which field is not among it, and is most of the bytes.
fn metadata(object: PartialObjectMeta<DynamicObject>) -> ObjectMeta {
    ObjectMeta { managed_fields: None, ..object.metadata }
}
