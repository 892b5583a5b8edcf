//! One collection, followed: listed once, then watched, for as long as anybody wants to know.
//!
//! Who listens says how much of each object travels, usually its metadata. A watch that ends is taken up where it ended; if that is too long ago the
//! collection is listed again. Who listens sees states, never gaps.

use std::pin::pin;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{Api, DynamicObject, ListParams, ObjectList, ObjectMeta, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::{Error, Resource};
use tracing::debug;

use crate::answer::Refusal as _;
use crate::backoff::Backoff;

/// What a feed tells.
pub(crate) enum Seen<P> {
    /// All objects there are; what was seen before and is not among them is gone.
    Listed(Vec<P>),
    Applied(P),
    Deleted(P),
    /// The collection cannot be listed for now.
    Unreadable,
}

/// How much of an object travels.
pub(crate) trait Portion: Sized {
    /// What the server sends.
    type Sent: Resource + Clone;

    fn read(sent: Self::Sent) -> Self;

    fn list(
        api: &Api<DynamicObject>,
    ) -> impl Future<Output = Result<ObjectList<Self::Sent>, Error>> + Send;

    fn watch<'a>(
        api: &'a Api<DynamicObject>,
        version: &str,
    ) -> impl Future<Output = Result<Events<'a, Self::Sent>, Error>> + Send;
}

type Events<'a, K> = BoxStream<'a, Result<WatchEvent<K>, Error>>;

/// Follows a collection until dropped.
pub(crate) async fn follow<P: Portion>(api: Api<DynamicObject>, mut see: impl FnMut(Seen<P>)) {
    let mut backoff = Backoff::default();
    loop {
        let list = match P::list(&api).await {
            Ok(list) => list,
            Err(error) => {
                debug!(url = api.resource_url(), error = %error.text(), "list failed");
                see(Seen::Unreadable);
                backoff.wait().await;
                continue;
            }
        };
        let mut version = list.metadata.resource_version.unwrap_or_default();
        see(Seen::Listed(list.items.into_iter().map(P::read).collect()));
        while watch(&api, &mut version, &mut backoff, &mut see).await == Next::Resume {}
        backoff.wait().await;
    }
}

#[derive(PartialEq)]
enum Next {
    Resume,
    ListAgain,
}

async fn watch<P: Portion>(
    api: &Api<DynamicObject>,
    version: &mut String,
    backoff: &mut Backoff,
    see: &mut impl FnMut(Seen<P>),
) -> Next {
    let events = match P::watch(api, version).await {
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
        let (object, seen): (_, fn(P) -> Seen<P>) = match event {
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
        if let Some(newer) = &object.meta().resource_version {
            version.clone_from(newer);
        }
        see(seen(P::read(object)));
    }
    // A server that ends every watch at once is not asked in a tight circle.
    if progress {
        backoff.reset()
    } else {
        backoff.wait().await
    }
    Next::Resume
}

impl Portion for ObjectMeta {
    type Sent = PartialObjectMeta<DynamicObject>;

    /// Who manages which field is of no interest, and is most of the bytes.
    fn read(sent: Self::Sent) -> Self {
        ObjectMeta { managed_fields: None, ..sent.metadata }
    }

    async fn list(api: &Api<DynamicObject>) -> Result<ObjectList<Self::Sent>, Error> {
        api.list_metadata(&ListParams::default()).await
    }

    async fn watch<'a>(
        api: &'a Api<DynamicObject>,
        version: &str,
    ) -> Result<Events<'a, Self::Sent>, Error> {
        Ok(api.watch_metadata(&WatchParams::default(), version).await?.boxed())
    }
}

impl Portion for DynamicObject {
    type Sent = DynamicObject;

    fn read(sent: Self::Sent) -> Self {
        sent
    }

    async fn list(api: &Api<DynamicObject>) -> Result<ObjectList<Self::Sent>, Error> {
        api.list(&ListParams::default()).await
    }

    async fn watch<'a>(
        api: &'a Api<DynamicObject>,
        version: &str,
    ) -> Result<Events<'a, Self::Sent>, Error> {
        Ok(api.watch(&WatchParams::default(), version).await?.boxed())
    }
}
