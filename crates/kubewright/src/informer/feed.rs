//! How an informer learns: what there is, then every change, for ever.
//!
//! The server is asked to stream what there is and go on from there; one that cannot is asked for
//! a list. A connection that ends is taken up where it ended; if that is too long ago, everything
//! is asked for again. What goes wrong is tried again, ever more slowly. Some of all namespaces are
//! followed one by one, each by itself.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use futures::future::join_all;
use http::header::ACCEPT;
use kube::{Client, Error};
use tokio::time::Instant;
use tracing::debug;

use super::kept::{Arrival, Kept, Misfit, Opener, Project, WriteText};
use super::shared::{Shared, Sink};
use super::wire::{Bare, Ended, Line, Page};
use super::{Object, Scope, State};
use crate::backoff::Backoff;
use crate::key::ObjectKey;
use crate::panics::Panics;
use crate::random;

/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long after its time a watch may end before the connection is taken for dead.
const GRACE: Duration = Duration::from_secs(10);

const BARE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const BARE_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What an informer follows.
pub struct Source<K: Object> {
    client: Client,
    /// One for each namespace in the order of their names, or one for all.
    paths: Vec<String>,
    kind: String,
    scope: Scope,
    project: Option<Project<K>>,
    write: Option<WriteText<K>>,
    /// Only metadata is asked for.
    is_bare: bool,
    is_text: bool,
}

impl<K: Object> Source<K> {
    /// The objects of a kind that are in `scope`.
    pub fn new(client: Client, dynamic: K::DynamicType, scope: Scope) -> Self {
        let paths = match scope.namespaces.is_empty() {
            true => vec![K::url_path(&dynamic, None)],
            false => {
                let namespaces = scope.namespaces.iter();
                namespaces.map(|namespace| K::url_path(&dynamic, Some(namespace))).collect()
            }
        };
        let kind = match K::group(&dynamic) {
            group if group.is_empty() => K::kind(&dynamic).into_owned(),
            group => format!("{}.{group}", K::kind(&dynamic)),
        };
        let (project, write) = (None, None);
        Source { client, paths, kind, scope, project, write, is_bare: false, is_text: false }
    }

    /// Lets each object lose what nobody will read, before it is kept; of one that is kept
    /// [as text](Source::as_text), whenever it is read.
    pub fn project(self, project: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        Source { project: Some(Arc::new(project)), ..self }
    }

    /// Writes texts of what is left of objects, and does not keep those that came.
    pub(crate) fn written(self, write: WriteText<K>) -> Self {
        Source { write: Some(write), ..self }
    }

    /// Asks the server for no more than metadata. `K` must be content with it, as
    /// [`PartialObjectMeta`](kube::core::PartialObjectMeta) is.
    pub fn metadata_only(self) -> Self {
        Source { is_bare: true, ..self }
    }

    /// Keeps objects as the texts they come in, without their `managedFields` and what they have in
    /// common, and reads them whenever somebody looks.
    pub fn as_text(self) -> Self {
        Source { is_text: true, ..self }
    }

    pub(super) fn opener(&self) -> Opener<K> {
        let (kind, project) = (self.kind.as_str().into(), self.project.clone());
        let (texts, panics) = (self.is_text.then(Arc::default), Panics::of(&self.kind));
        Opener { kind, project, write: self.write, texts, panics }
    }

    pub(super) fn namespaces(&self) -> &BTreeSet<String> {
        &self.scope.namespaces
    }

    fn request(&self, path: &str, more: &[(&str, &str)]) -> Result<http::Request<Vec<u8>>, Error> {
        let mut query = form_urlencoded::Serializer::new(format!("{path}?"));
        let scope = [("labelSelector", &self.scope.labels), ("fieldSelector", &self.scope.fields)];
        for (name, value) in scope {
            query.extend_pairs(value.iter().map(|value| (name, value)));
        }
        query.extend_pairs(more);
        let mut request = http::Request::get(query.finish());
        if self.is_bare {
            let is_watch = more.iter().any(|(name, _)| *name == "watch");
            request = request.header(ACCEPT, if is_watch { BARE } else { BARE_LIST });
        }
        request.body(Vec::new()).map_err(Error::HttpError)
    }
}

/// Why a watch is over.
enum Over {
    /// As all are at some time.
    Ended,
    /// In the middle of it.
    Broken,
    /// What it was to go on from is too long ago.
    Expired,
    /// The server does not stream what there is.
    Unsupported,
    Failed(State),
}

/// Follows all that there is to follow, for ever.
pub(super) async fn follow<K: Object>(source: Source<K>, shared: &Shared<K>) {
    let feeds = source.paths.iter().enumerate();
    let feeds = feeds.map(|(number, path)| follow_one(&source, path, shared.sink(number)));
    join_all(feeds).await;
}

async fn follow_one<K: Object>(source: &Source<K>, path: &str, sink: Sink<'_, K>) {
    let mut backoff = Backoff::default();
    let mut streams = true;
    let mut version: Option<String> = None;
    loop {
        if version.is_none() && !streams {
            match list(source, path, sink.opener()).await {
                Ok((objects, newest)) => {
                    sink.replace(objects, &newest);
                    version = Some(newest);
                }
                Err(error) => {
                    fail(sink, state_of(&error), &mut backoff).await;
                    continue;
                }
            }
        }
        let begun = Instant::now();
        let over = watch(source, path, sink, &mut version).await;
        if matches!(over, Over::Broken | Over::Expired) {
            sink.failed();
        }
        let is_short = begun.elapsed() < Duration::from_secs(1);
        match over {
            // A server that ends every watch at once is not asked in a tight circle.
            Over::Ended | Over::Broken if is_short => backoff.wait().await,
            Over::Ended | Over::Broken => backoff.reset(),
            Over::Expired => {
                version = None;
                backoff.wait().await;
            }
            Over::Unsupported => streams = false,
            Over::Failed(state) => fail(sink, state, &mut backoff).await,
        }
    }
}

/// Takes note of a failure, and waits until it is worth while to try again.
async fn fail<K: Object>(sink: Sink<'_, K>, state: State, backoff: &mut Backoff) {
    debug!(kind = sink.kind(), ?state, "cannot follow");
    sink.is(state);
    tokio::select! {
        () = backoff.wait() => {}
        () = sink.woken() => backoff.reset(),
    }
}

/// What there is, and in which version that was so.
type Listed<K> = (Vec<(ObjectKey, Kept<K>)>, String);

async fn list<K: Object>(
    source: &Source<K>,
    path: &str,
    opener: &Opener<K>,
) -> Result<Listed<K>, Error> {
    let limit = PAGE.to_string();
    let (mut objects, mut next) = (Vec::new(), String::new());
    loop {
        let mut query = vec![("limit", limit.as_str())];
        if !next.is_empty() {
            query.push(("continue", &next));
        }
        let text = source.client.request_text(source.request(path, &query)?).await;
        let text = match text {
            // It took too long to read; from the start, then.
            Err(Error::Api(status)) if status.code == 410 && !next.is_empty() => {
                objects.clear();
                next.clear();
                continue;
            }
            text => text?,
        };
        let page: Page<'_> = serde_json::from_str(&text).map_err(Error::SerdeError)?;
        let arrivals = page.items.iter().filter_map(|item| opener.take(item.get(), false).ok());
        objects.extend(arrivals.map(|Arrival { key, kept, .. }| (key, kept)));
        if page.metadata.next.is_empty() {
            return Ok((objects, page.metadata.resource_version));
        }
        next = page.metadata.next;
    }
}

/// Watches from `version` on, or streams what there is first; keeps `version` at what was seen.
async fn watch<K: Object>(
    source: &Source<K>,
    path: &str,
    sink: Sink<'_, K>,
    version: &mut Option<String>,
) -> Over {
    let seconds = 300 + random::below(300);
    let timeout = seconds.to_string();
    let mut query =
        vec![("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", &timeout)];
    match version.as_deref() {
        Some(version) => query.push(("resourceVersion", version)),
        None => {
            query.push(("sendInitialEvents", "true"));
            query.push(("resourceVersionMatch", "NotOlderThan"));
        }
    }
    let request = match source.request(path, &query) {
        Ok(request) => request,
        Err(error) => return Over::Failed(state_of(&error)),
    };
    let lines = match source.client.request_stream(request).await {
        Ok(lines) => lines,
        Err(Error::Api(status)) if status.code == 410 => return Over::Expired,
        Err(Error::Api(status)) if version.is_none() && matches!(status.code, 400 | 422) => {
            return Over::Unsupported;
        }
        Err(error) => return Over::Failed(state_of(&error)),
    };
    // What there is, until all of it is known.
    let mut initial = version.is_none().then(Vec::new);
    if initial.is_none() {
        sink.is(State::Live);
    }
    let mut lines = pin!(lines);
    let deadline = Instant::now() + Duration::from_secs(seconds) + GRACE;
    let mut line = Vec::new();
    loop {
        line.clear();
        match tokio::time::timeout_at(deadline, lines.read_until(b'\n', &mut line)).await {
            Ok(Ok(0)) => return Over::Ended,
            Err(_) => return Over::Broken,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                debug!(kind = source.kind, %error, "a watch broke off");
                return Over::Broken;
            }
        }
        let Ok(Line { event, object }) = serde_json::from_slice(&line) else {
            // Cut off in the middle.
            return Over::Broken;
        };
        let object = object.get();
        match (&*event, &mut initial) {
            ("BOOKMARK", initial) => {
                let bookmark: Bare = serde_json::from_str(object).unwrap_or_default();
                if bookmark.ends_initial_events()
                    && let Some(all) = initial.take()
                {
                    sink.replace(all, bookmark.version());
                }
                if initial.is_none() {
                    sink.passed(bookmark.version());
                    *version = Some(bookmark.version().to_owned());
                }
            }
            ("ERROR", _) => return over(object),
            ("DELETED", None) => {
                let last: Bare = serde_json::from_str(object).unwrap_or_default();
                sink.deleted(&ObjectKey::of(&last.metadata), last.version());
                *version = Some(last.version().to_owned());
            }
            ("DELETED", Some(all)) => {
                let last: Bare = serde_json::from_str(object).unwrap_or_default();
                let key = ObjectKey::of(&last.metadata);
                all.retain(|(known, _): &(ObjectKey, Kept<K>)| *known != key);
            }
            (_, Some(all)) => {
                // Only the last version counts, which the bookmark has.
                match sink.opener().take(object, false) {
                    Ok(Arrival { key, kept, .. }) => all.push((key, kept)),
                    Err(Misfit { key, .. }) => all.retain(|(known, _)| *known != key),
                }
            }
            (_, None) => match sink.opener().take(object, sink.is_observed()) {
                Ok(arrival) => {
                    *version = Some(arrival.version.clone());
                    sink.applied(arrival);
                }
                // What it was is not there any more, and what it is nobody can read.
                Err(Misfit { key, version: seen }) => {
                    sink.deleted(&key, &seen);
                    *version = Some(seen);
                }
            },
        }
    }
}

/// What a watch says when it ends before its time.
fn over(status: &str) -> Over {
    match serde_json::from_str::<Ended>(status) {
        Ok(ended) if matches!(ended.code, 410 | 504) => Over::Expired,
        Ok(ended) => Over::Failed(State::Stale(ended.message)),
        Err(error) => Over::Failed(State::Stale(error.to_string())),
    }
}

fn state_of(error: &Error) -> State {
    match error {
        Error::Api(status) if status.code == 404 => State::Missing,
        Error::Api(status) if matches!(status.code, 401 | 403) => {
            State::Forbidden(status.message.clone())
        }
        Error::Api(status) => State::Stale(status.message.clone()),
        error => State::Stale(error.to_string()),
    }
}
