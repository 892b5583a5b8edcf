//! Versions of groups and who answers for them: this server, or another one behind it.
//!
//! An APIService registers each. Most are this server's own and of no consequence; those that name
//! a Service are answered by whoever is there: requests are passed on, and what is told of the API
//! as a whole (discovery, OpenAPI) is put together from what all servers tell.

mod attend;
mod availability;
pub(crate) mod front;
mod inquiry;
pub(crate) mod proxy;
pub(crate) mod registration;
mod roster;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use kubewright_apimachinery::builtin::Priority;
use kubewright_store::{Revision, Snapshot, Start, WatchError};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::crd::DEFINITIONS;
use crate::index::{self, Index, Store};
use crate::outbound::Line;
use crate::server::Inner;

pub use crate::outbound::Identity;
use roster::Entry;
pub(crate) use roster::UPKEEP_LABEL;
pub use roster::{Freshness, Lesson, Registration, Remote, Roster};

/// Where APIServices are kept.
pub(crate) const SERVICES: &str = "/registry/apiregistration.k8s.io/apiservices/";

/// How versions of custom resources rank.
pub(crate) const CUSTOM: Priority = Priority { group: 1000, version: 100 };

/// What was read of the APIServices, and what was heard from the servers that they name.
pub(crate) struct Registry {
    store: Store,
    /// Who this server is to the others.
    identity: Option<Identity>,
    /// By key, while the revision is this.
    read: HashMap<String, (Revision, Option<Arc<Registration>>)>,
    /// By the names of APIServices.
    lessons: HashMap<String, Arc<Lesson>>,
    /// The ways to servers, by the names of APIServices, for as long as these say the same.
    lines: HashMap<String, (Remote, Arc<Line>)>,
}

impl Registry {
    pub(crate) fn new(store: Store, identity: Option<Identity>) -> Self {
        let (read, lessons, lines) = Default::default();
        Registry { store, identity, read, lessons, lines }
    }

    /// Reads the APIServices again that have changed. True if any has.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot<Index>) -> bool {
        let stored = snapshot.range(SERVICES, None, None);
        let mut known = std::mem::take(&mut self.read);
        let mut changed = false;
        for rev in stored.iter() {
            let key = rev.key.as_str();
            let same = known.remove(key).filter(|(revision, _)| *revision == rev.revision);
            changed |= same.is_none();
            let read = || index::object(rev).and_then(|object| Registration::read(&object));
            let entry = same.unwrap_or_else(|| (rev.revision, read().map(Arc::new)));
            self.read.insert(key.to_owned(), entry);
        }
        changed |= !known.is_empty();
        if changed {
            self.connect();
        }
        changed
    }

    /// Has a way to each server, and forgets what is no server's any more.
    fn connect(&mut self) {
        let mut known = std::mem::take(&mut self.lines);
        for (_, registration) in self.read.values() {
            let Some(registration) = registration else { continue };
            let Some(remote) = &registration.remote else { continue };
            // Whether it was there when it was last asked does not change the way.
            let remote = Remote { is_available: false, ..remote.clone() };
            let same = known.remove(&registration.name).filter(|(known, _)| *known == remote);
            let line = same.unwrap_or_else(|| {
                let line = remote.line(self.store.clone(), self.identity.as_ref());
                (remote, Arc::new(line))
            });
            self.lines.insert(registration.name.clone(), line);
        }
        self.lessons.retain(|name, _| self.lines.contains_key(name));
    }

    /// Keeps what the server of an APIService has told. True if it is news.
    pub(crate) fn learn(&mut self, name: &str, lesson: Lesson) -> bool {
        let is_news = self.lessons.get(name).is_none_or(|known| **known != lesson);
        if is_news {
            self.lessons.insert(name.to_owned(), Arc::new(lesson));
        }
        is_news
    }

    pub(crate) fn roster(&self) -> Roster {
        Roster::new(self.registrations().map(|registration| Entry {
            registration: Arc::clone(registration),
            line: self.lines.get(&registration.name).map(|(_, line)| Arc::clone(line)),
            lesson: self.lessons.get(&registration.name).cloned(),
        }))
    }

    fn registrations(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.read.values().filter_map(|(_, read)| read.as_ref())
    }
}

/// Looks after APIServices and the servers they name until `shutdown`; returns when everything it
/// started has ended.
pub(crate) async fn run(server: Arc<Inner>, shutdown: CancellationToken) {
    let mut attended = Attended::default();
    let follow = async {
        loop {
            let watches = (
                server.store.watch(DEFINITIONS, Start::Now),
                server.store.watch(SERVICES, Start::Now),
            );
            let (Ok(mut definitions), Ok(mut services)) = watches else { return };
            loop {
                server.shelf.refresh();
                registration::settle(&server).await;
                attended.follow(&server);
                let events = tokio::select! {
                    events = definitions.next() => events,
                    events = services.next() => events,
                };
                match events {
                    Ok(_) => {}
                    Err(WatchError::Closed) => return,
                    // Read too late: what is stored tells everything.
                    Err(_) => break,
                }
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = shutdown.cancelled() => {}
    }
    attended.tasks.shutdown().await;
}

/// The servers that are looked after.
#[derive(Default)]
struct Attended {
    tasks: JoinSet<()>,
    /// By the names of APIServices: the task, what it is told by, and what it knows.
    known: HashMap<String, (AbortHandle, Arc<Notify>, Arc<Registration>)>,
}

impl Attended {
    /// Looks after those servers that are registered now, and tells of changes.
    fn follow(&mut self, server: &Arc<Inner>) {
        while self.tasks.try_join_next().is_some() {}
        let roster = Arc::clone(&server.shelf.catalog().roster);
        let mut known = std::mem::take(&mut self.known);
        for registration in roster.iter().filter(|found| found.remote.is_some()) {
            let name = &registration.name;
            let attended = match known.remove(name) {
                Some((task, changed, told)) if !task.is_finished() => {
                    // Read anew, because it was written.
                    if !Arc::ptr_eq(&told, registration) {
                        changed.notify_one();
                    }
                    (task, changed, Arc::clone(registration))
                }
                _ => {
                    let changed = Arc::new(Notify::new());
                    let attend =
                        attend::attend(Arc::clone(server), name.clone(), Arc::clone(&changed));
                    (self.tasks.spawn(attend), changed, Arc::clone(registration))
                }
            };
            self.known.insert(name.clone(), attended);
        }
        for (task, ..) in known.into_values() {
            task.abort();
        }
    }
}
