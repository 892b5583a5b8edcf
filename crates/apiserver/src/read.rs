//! GET and LIST.
//!
//! Reads answer from the image of the store. A version that is still to come is waited for, for a
//! while; a list at an exact version is the image with the younger changes undone. Pages are such
//! lists, all at the version of the first, so that they fit together.

mod list;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use kubewright_apimachinery::status::Status;
use kubewright_store::{At, Key, Query, Range, RangeError, Revision, Snapshot, Unavailable};

use self::list::List;
use self::token::Token;
use crate::body::Body;
use crate::encode::{Answer, Encoder, Renderer};
use crate::index::{Index, Store};
use crate::list_options::{GetOptions, ListOptions, VersionMatch, unexpected, version};
use crate::negotiate::Format;
use crate::resource::Resource;

/// Reads objects of one resource: of all namespaces, of one, or of none.
///
/// Every entry point answers, or fails with the status to send instead
/// ([`crate::encode::failure`], in [`crate::negotiate::Accept::failure`]'s encoding).
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub store: &'a Store,
    pub encoder: &'a Encoder,
    pub resource: &'a Arc<Resource>,
    pub namespace: Option<&'a str>,
    pub format: &'a Format,
}

/// How long a version that is still to come is waited for.
const WAIT: Duration = Duration::from_secs(3);

/// When to ask again for it, if it has not come by then.
const RETRY_AFTER_SECONDS: i32 = 1;

impl Reader<'_> {
    /// Answers with one object.
    pub async fn get(
        &self,
        name: &str,
        options: &GetOptions,
    ) -> Result<Response<Body>, Box<Status>> {
        let snapshot = match options.resource_version.as_str() {
            "" => self.latest("get").await?,
            text => {
                let asked = version(text).map_err(unexpected)?;
                not_older_than(self.store, asked).await?
            }
        };
        let key = self.resource.key(self.namespace, name);
        let found = snapshot.get(key.as_str());
        let rev = found.ok_or_else(|| Status::not_found(&self.resource.group_resource(), name))?;
        let shown = self.resource.shown_anew(rev).await?;
        let answer = Answer::Stored(&shown);
        Ok(self.encoder.answer(answer, self.resource, self.format, StatusCode::OK))
    }

    /// Answers with a list.
    pub async fn list(&self, options: &ListOptions) -> Result<Response<Body>, Box<Status>> {
        self.find(options).await?.respond(self.encoder, self.format)
    }

    /// Finds what a list is about.
    pub(crate) async fn find(&self, options: &ListOptions) -> Result<List, Box<Status>> {
        match self.single(options) {
            Some(key) => self.list_one(&key, options).await,
            None => self.list_range(options).await,
        }
    }

    /// The key of the only object that can be wanted, if it is known.
    pub(crate) fn single(&self, options: &ListOptions) -> Option<Key> {
        let name = options.selection.name().filter(|name| !name.is_empty())?;
        let namespace = self.narrowed(options);
        match self.resource.namespaced == namespace.is_some() {
            true => Some(self.resource.key(namespace, name)),
            false => None,
        }
    }

    /// The namespace of the request, or the one that the selection asks for.
    pub(crate) fn narrowed<'o>(&'o self, options: &'o ListOptions) -> Option<&'o str> {
        if !self.resource.namespaced {
            return None;
        }
        let selected = || options.selection.namespace().filter(|namespace| !namespace.is_empty());
        self.namespace.or_else(selected)
    }

    async fn list_one(&self, key: &Key, options: &ListOptions) -> Result<List, Box<Status>> {
        let asked = asked(options)?;
        let mut list = match options.version_match {
            Some(VersionMatch::Exact) => {
                let range = self.exactly(asked, key.as_str(), None)?;
                let found = range.iter().filter(|rev| rev.key == *key).cloned().collect();
                self.listed(Range::of(range.revision, self.resource.shown(found).await?))
            }
            _ => {
                let snapshot = match options.resource_version.as_str() {
                    "" => self.latest("list").await?,
                    _ => not_older_than(self.store, asked).await?,
                };
                let found = snapshot.get(key.as_str()).cloned().into_iter().collect();
                self.listed(Range::of(snapshot.revision(), self.resource.shown(found).await?))
            }
        };
        let List { renderer, items, .. } = &mut list;
        items.select(None, |rev| options.selection.matches(renderer, rev));
        Ok(list)
    }

    async fn list_range(&self, options: &ListOptions) -> Result<List, Box<Status>> {
        let prefix = self.resource.prefix_in(self.narrowed(options));
        let mut start = None;
        let moment = match options.continue_token.as_str() {
            "" => moment(options)?,
            text => {
                let token = Token::parse(text)
                    .map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))?;
                if !matches!(options.resource_version.as_str(), "" | "0") {
                    let why = "specifying resource version is not allowed when using continue";
                    return Err(Box::new(Status::bad_request(why)));
                }
                let moment = match u64::try_from(token.revision) {
                    Ok(revision) => Moment::Exactly(revision),
                    Err(_) => Moment::Latest,
                };
                start = Some(format!("{prefix}{}", token.start));
                moment
            }
        };
        // A token names the first key of the next page: that of the last object and a zero byte.
        let after = start.as_deref().and_then(|start| start.strip_suffix('\0'));
        let mut range = match moment {
            Moment::Latest => self.latest("list").await?.range(&prefix, after, None),
            Moment::NotOlderThan(asked) => {
                not_older_than(self.store, asked).await?.range(&prefix, after, None)
            }
            Moment::Exactly(asked) => {
                not_older_than(self.store, asked).await?;
                self.exactly(asked, &prefix, after).map_err(|refusal| {
                    match (&start, refusal.code) {
                        (Some(start), 410) => expired_page(&start[prefix.len()..]),
                        _ => refusal,
                    }
                })?
            }
        };
        if let Some(from) = &start {
            range.select(None, |rev| rev.key.as_str() >= from.as_str());
        }
        let behind = range.len();

        let limit = options.limit.filter(|_| options.resource_version != "0");
        if self.resource.is_converted() {
            // More than a page is converted only where nobody knows what will be selected.
            let is_everything = options.selection.is_everything();
            let wanted = limit.filter(|_| is_everything).unwrap_or(usize::MAX);
            let found = range.iter().take(wanted).cloned().collect();
            range = Range::of(range.revision, self.resource.shown(found).await?);
        }
        let mut list = self.listed(range);
        let List { renderer, items, .. } = &mut list;
        list.fetched = items.select(limit, |rev| options.selection.matches(renderer, rev));
        let seen = list.fetched;
        if let (Some(limit), Some(last)) = (limit, list.items.last())
            && seen < behind
        {
            let start = format!("/{}\0", &last.key.as_str()[prefix.len()..]);
            list.continue_token = Token { revision: list.items.revision.get(), start }.to_string();
            if options.selection.is_everything() {
                list.remaining = Some(behind - limit);
            }
        }
        Ok(list)
    }

    fn listed(&self, items: Range<Index>) -> List {
        let renderer = Renderer::new(self.resource);
        let fetched = items.len();
        List { renderer, items, fetched, continue_token: String::new(), remaining: None }
    }

    /// The state of a moment that has come.
    fn exactly(
        &self,
        asked: u64,
        prefix: &str,
        start_after: Option<&str>,
    ) -> Result<Range<Index>, Box<Status>> {
        let at = At::Exactly(revision(asked));
        let query = Query { prefix, start_after, limit: None, at };
        self.store.range(&query).map_err(|error| match error {
            RangeError::Future { current, .. } => too_large(asked, current, 0),
            RangeError::Compacted { .. } => {
                let why = "The resourceVersion for the provided list is too old.";
                Box::new(Status::expired(why))
            }
        })
    }

    pub(crate) async fn latest(&self, verb: &str) -> Result<Snapshot<Index>, Box<Status>> {
        let unavailable = |why: Unavailable| {
            tracing::warn!(error = &why as &dyn std::error::Error, "storage is not reached");
            Box::new(Status::server_timeout(&self.resource.group_resource(), verb, 2))
        };
        self.store.latest().await.map_err(unavailable)
    }
}

/// Which state is listed.
enum Moment {
    Latest,
    NotOlderThan(u64),
    Exactly(u64),
}

fn moment(options: &ListOptions) -> Result<Moment, Box<Status>> {
    let asked = asked(options)?;
    Ok(match options.version_match {
        Some(VersionMatch::Exact) => Moment::Exactly(asked),
        Some(VersionMatch::NotOlderThan) => Moment::NotOlderThan(asked),
        // Before one could say which of the two is meant, a limit meant this.
        None if options.limit.is_some() && asked > 0 => Moment::Exactly(asked),
        None if options.resource_version.is_empty() => Moment::Latest,
        None => Moment::NotOlderThan(asked),
    })
}

fn asked(options: &ListOptions) -> Result<u64, Box<Status>> {
    version(&options.resource_version).map_err(|error| {
        Box::new(Status::bad_request(format!("invalid resource version: {error}")))
    })
}

/// The state that readers see, if it is not older than what was asked for within a while.
pub(crate) async fn not_older_than(
    store: &Store,
    asked: u64,
) -> Result<Snapshot<Index>, Box<Status>> {
    let wanted = revision(asked);
    if store.revision() < wanted {
        let waited = tokio::time::timeout(WAIT, store.wait_for(wanted)).await;
        if !matches!(waited, Ok(Ok(()))) {
            return Err(too_large(asked, store.revision(), RETRY_AFTER_SECONDS));
        }
    }
    Ok(store.snapshot())
}

pub(crate) fn revision(asked: u64) -> Revision {
    Revision::new(i64::try_from(asked).unwrap_or(i64::MAX))
}

fn too_large(asked: u64, current: Revision, retry_after_seconds: i32) -> Box<Status> {
    let current = current.get().unsigned_abs();
    Box::new(Status::resource_version_too_large(asked, current, retry_after_seconds))
}

/// The version of a page is no longer kept; the client may go on with what is there now.
fn expired_page(start: &str) -> Box<Status> {
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    );
    let token = Token { revision: -1, start: start.to_owned() };
    status.metadata.continue_token = token.to_string();
    Box::new(status)
}
