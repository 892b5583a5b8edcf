//! How far the feeds of an informer are: one for all namespaces, or one for each of some.

use std::collections::BTreeSet;

use super::{NotReady, State};

/// All feeds. They do not wait for each other: what one namespace lacks, the others need not.
pub(super) struct Progress(Vec<Feed>);

pub(super) struct Feed {
    /// None if it feeds from all namespaces, or the kind is in none.
    pub(super) namespace: Option<String>,
    pub(super) state: State,
    /// Whether there was ever something to read.
    pub(super) synced: bool,
    /// The newest version seen.
    pub(super) version: u64,
    /// How often everything was listed, and how often following failed.
    pub(super) lists: u64,
    pub(super) failures: u64,
}

impl Progress {
    pub(super) fn new(namespaces: &BTreeSet<String>) -> Self {
        let feed = |namespace| Feed {
            namespace,
            state: State::Listing,
            synced: false,
            version: 0,
            lists: 0,
            failures: 0,
        };
        Progress(match namespaces.is_empty() {
            true => vec![feed(None)],
            false => namespaces.iter().cloned().map(Some).map(feed).collect(),
        })
    }

    pub(super) fn feeds(&self) -> &[Feed] {
        &self.0
    }

    pub(super) fn feed_mut(&mut self, number: usize) -> &mut Feed {
        &mut self.0[number]
    }

    /// The feed that tells of a namespace, or of what is in none.
    pub(super) fn find(&self, namespace: Option<&str>) -> Option<usize> {
        self.0
            .iter()
            .position(|feed| feed.namespace.is_none() || feed.namespace.as_deref() == namespace)
    }

    /// How it is with the feed that is worst off.
    pub(super) fn state(&self) -> &State {
        let states = self.0.iter().map(|feed| &feed.state);
        states.max_by_key(|state| rank(state)).expect("there is a feed")
    }

    /// Why not everything can be read, if so.
    pub(super) fn ready(&self, kind: &str) -> Result<(), NotReady> {
        let unready = self.0.iter().filter(|feed| feed.ready(kind).is_err());
        unready.max_by_key(|feed| rank(&feed.state)).map_or(Ok(()), |feed| feed.ready(kind))
    }

    /// Why a namespace cannot be read, if so.
    pub(super) fn ready_in(&self, kind: &str, namespace: Option<&str>) -> Result<(), NotReady> {
        match self.find(namespace) {
            Some(number) => self.0[number].ready(kind),
            None => Err(NotReady::Unwatched {
                kind: kind.to_owned(),
                namespace: namespace.unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Whether all feeds are synced, and know what there is.
    pub(super) fn is_live(&self) -> bool {
        self.0.iter().all(|feed| feed.synced && feed.state == State::Live)
    }
}

impl Feed {
    pub(super) fn ready(&self, kind: &str) -> Result<(), NotReady> {
        let kind = || kind.to_owned();
        match &self.state {
            State::Missing => Err(NotReady::Missing { kind: kind() }),
            State::Forbidden(why) => Err(NotReady::Forbidden { kind: kind(), why: why.clone() }),
            _ if self.synced => Ok(()),
            _ => Err(NotReady::Listing { kind: kind() }),
        }
    }
}

/// What a person has to look after ranks higher.
fn rank(state: &State) -> u8 {
    match state {
        State::Live => 0,
        State::Listing => 1,
        State::Stale(_) => 2,
        State::Missing => 3,
        State::Forbidden(_) => 4,
    }
}
