//! What the feed of an informer writes and its readers read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use kube::api::ObjectMeta;
use tokio::sync::{Notify, watch};
use tracing::warn;

use super::kept::{Arrival, Kept, Opener};
use super::objects::{Objects, Values};
use super::progress::{Feed, Progress};
use super::{NotReady, Object, Report, State, version};
use crate::key::ObjectKey;
use crate::panics::Panics;

/// What changed.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// An object is there, as it is now.
    Applied {
        object: Arc<K>,
        /// As it was before; none if it was not there.
        old: Option<Arc<K>>,
        /// It was there when this began to look, so it may be old news. What is found when
        /// everything is listed again came or changed meanwhile, and is news.
        initial: bool,
    },
    /// An object is gone. This is how it was last seen.
    Deleted(Arc<K>),
}

/// Is told of an object, by its key.
pub(super) type Observe<K> = Box<dyn Fn(&ObjectKey, &Change<K>) + Send + Sync>;

pub(super) struct Shared<K> {
    opener: Opener<K>,
    objects: RwLock<Objects<K>>,
    /// Held while something changes and all are told, so that whoever comes later neither misses
    /// it nor hears of it twice.
    observers: Mutex<Observers<K>>,
    progress: watch::Sender<Progress>,
    expected: Mutex<Expected>,
    /// One for each feed.
    wake: Vec<Notify>,
}

/// What was written and must come back before readers may believe what they see.
#[derive(Default, Clone)]
struct Expected {
    written: BTreeMap<ObjectKey, Written>,
    /// Objects that were deleted, by uid.
    gone: Vec<(ObjectKey, String)>,
}

/// The newest version of an object, and which feed will tell of it.
#[derive(Clone, Copy)]
struct Written {
    feed: usize,
    version: u64,
}

/// Who waits for what was written: a reader of one object, or of any.
#[derive(Clone, Copy)]
enum Reader<'k> {
    Of(&'k ObjectKey),
    OfAll,
}

struct Observers<K> {
    all: Vec<(u64, Observe<K>)>,
    /// How many there have been.
    count: u64,
}

/// What one feed of an informer writes.
pub(super) struct Sink<'a, K> {
    shared: &'a Shared<K>,
    number: usize,
}

impl<K: Object> Shared<K> {
    pub(super) fn new(opener: Opener<K>, namespaces: &BTreeSet<String>) -> Self {
        let progress = Progress::new(namespaces);
        Shared {
            objects: RwLock::new(Objects::new(opener.clone())),
            opener,
            observers: Mutex::new(Observers { all: Vec::new(), count: 0 }),
            wake: progress.feeds().iter().map(|_| Notify::new()).collect(),
            progress: watch::Sender::new(progress),
            expected: Mutex::default(),
        }
    }

    /// Where a feed writes to, by its number: the namespaces have those of their order.
    pub(super) fn sink(&self, number: usize) -> Sink<'_, K> {
        Sink { shared: self, number }
    }

    pub(super) fn kind(&self) -> &str {
        &self.opener.kind
    }

    pub(super) fn state(&self) -> State {
        self.progress.borrow().state().clone()
    }

    /// Why not everything can be read, if so.
    pub(super) fn ready(&self) -> Result<(), NotReady> {
        self.progress.borrow().ready(self.kind())
    }

    pub(super) async fn synced(&self) {
        let mut progress = self.progress.subscribe();
        // The sender is here, so it cannot be gone.
        let _ = progress.wait_for(Progress::is_live).await;
    }

    pub(super) async fn caught_up(&self, seen: &ObjectMeta, timeout: Duration) -> bool {
        let Ok(version) = version(seen).parse::<u64>() else { return false };
        let Some(number) = self.progress.borrow().find(seen.namespace.as_deref()) else {
            return false;
        };
        let mut progress = self.progress.subscribe();
        let passed = progress.wait_for(|progress| progress.feeds()[number].version >= version);
        tokio::time::timeout(timeout, passed).await.is_ok()
    }

    /// Waits for a state, or for what follows to end.
    pub(super) async fn until(&self, is_so: impl FnMut(&State) -> bool) {
        let (mut progress, mut is_so) = (self.progress.subscribe(), is_so);
        // The sender is here, so it cannot be gone.
        let _ = progress.wait_for(|progress| is_so(progress.state())).await;
    }

    pub(super) fn expect(&self, written: &ObjectMeta) {
        let Ok(version) = version(written).parse::<u64>() else { return };
        let progress = self.progress.borrow();
        // What is not watched is never seen.
        let Some(feed) = progress.find(written.namespace.as_deref()) else { return };
        let mut expected = self.expected();
        expected.written.retain(|_, written| !self.is_seen(&progress, written));
        let new = Written { feed, version };
        let known = expected.written.entry(ObjectKey::of(written)).or_insert(new);
        known.version = version.max(known.version);
    }

    pub(super) fn expect_gone(&self, key: ObjectKey, uid: &str) {
        self.expected().gone.push((key, uid.to_owned()));
    }

    pub(super) fn report(&self) -> Report {
        // One lock after the other: whoever waits to be fresh has them in the other order.
        let (objects, bytes) = {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            (objects.len(), objects.bytes())
        };
        let progress = self.progress.borrow();
        let sum = |count: fn(&Feed) -> u64| progress.feeds().iter().map(count).sum();
        Report {
            kind: self.kind().to_owned(),
            state: progress.state().clone(),
            is_needed: true,
            objects,
            bytes,
            lists: sum(|feed| feed.lists),
            failures: sum(|feed| feed.failures),
            panics: self.panics().count(),
        }
    }

    fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the objects that are found.
    pub(super) fn read(
        &self,
        find: impl FnOnce(&Objects<K>) -> Vec<Kept<K>>,
    ) -> Result<Vec<Arc<K>>, NotReady> {
        self.ready()?;
        Ok(self.open(find))
    }

    /// Reads what is in one namespace, or in none: that of others may not be known.
    pub(super) fn read_in<T: FromIterator<Arc<K>>, F: IntoIterator<Item = Kept<K>>>(
        &self,
        namespace: Option<&str>,
        find: impl FnOnce(&Objects<K>) -> F,
    ) -> Result<T, NotReady> {
        self.progress.borrow().ready_in(self.kind(), namespace)?;
        Ok(self.open(find))
    }

    /// Reads what can be read.
    pub(super) fn readable(&self) -> Vec<Arc<K>> {
        let places: Vec<Option<String>> = {
            let progress = self.progress.borrow();
            let ready = progress.feeds().iter().filter(|feed| feed.ready(self.kind()).is_ok());
            ready.map(|feed| feed.namespace.clone()).collect()
        };
        let mut found = Vec::new();
        for place in places {
            let there: Vec<Arc<K>> = self.open(|objects| match &place {
                Some(namespace) => objects.in_namespace(namespace),
                None => objects.all(),
            });
            found.extend(there);
        }
        found
    }

    /// Reading may take a while, so nobody waits for it.
    pub(super) fn open<T: FromIterator<Arc<K>>, F: IntoIterator<Item = Kept<K>>>(
        &self,
        find: impl FnOnce(&Objects<K>) -> F,
    ) -> T {
        let found = find(&self.objects.read().unwrap_or_else(PoisonError::into_inner));
        found.into_iter().filter_map(|kept| self.opener.open(&kept)).collect()
    }

    pub(super) fn index(&self, name: &str, values: Values<K>) {
        self.write(|objects| objects.add_index(name, values));
    }

    pub(super) fn has_index(&self, name: &str) -> bool {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).has_index(name)
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).has(key)
    }

    /// Gives the number by which the observer can be taken away again.
    pub(super) fn subscribe(&self, observe: Observe<K>) -> u64 {
        let mut observers = self.observers();
        let there = self.objects.read().unwrap_or_else(PoisonError::into_inner).entries();
        for (key, kept) in there {
            if let Some(object) = self.opener.open(&kept) {
                let change = Change::Applied { object, old: None, initial: true };
                self.panics().caught("a subscriber", || observe(&key, &change));
            }
        }
        observers.count += 1;
        let number = observers.count;
        observers.all.push((number, observe));
        number
    }

    pub(super) fn unsubscribe(&self, number: u64) {
        self.observers().all.retain(|(known, _)| *known != number);
    }

    pub(super) fn wake(&self) {
        self.wake.iter().for_each(Notify::notify_one);
    }

    pub(super) fn project(&self, object: &mut K) {
        if let Some(project) = &self.opener.project {
            self.panics().caught("a projection", || project(object));
        }
    }

    /// Calls what authors have written.
    pub(super) fn panics(&self) -> &Panics {
        &self.opener.panics
    }

    /// Tells all of a change. Who panics has spoilt only its own notes.
    fn tell(&self, observers: &Observers<K>, key: &ObjectKey, change: &Change<K>) {
        for (_, observe) in &observers.all {
            self.panics().caught("a subscriber", || observe(key, change));
        }
    }

    fn observers(&self) -> MutexGuard<'_, Observers<K>> {
        // Nothing that holds it panics half-way.
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, change: impl FnOnce(&mut Objects<K>) -> T) -> T {
        change(&mut self.objects.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all that was expected has been seen, for so long at most.
    pub(super) async fn fresh(&self, timeout: Duration) {
        self.fresh_for(Reader::OfAll, timeout).await;
    }

    /// The same for whoever reads no other object than this one.
    pub(super) async fn fresh_of(&self, key: &ObjectKey, timeout: Duration) {
        self.fresh_for(Reader::Of(key), timeout).await;
    }

    async fn fresh_for(&self, reader: Reader<'_>, timeout: Duration) {
        if self.is_fresh(&self.progress.borrow(), reader) {
            return;
        }
        let awaited = self.expected().awaited(reader);
        let mut progress = self.progress.subscribe();
        let fresh = progress.wait_for(|progress| self.is_fresh(progress, reader));
        if tokio::time::timeout(timeout, fresh).await.is_err() {
            // It may never come: an object that is not selected any more is not told of.
            self.give_up(&awaited);
            warn!(
                kind = self.kind(),
                ?timeout,
                "what was written has not been seen: it is not waited for any more"
            );
        }
    }

    /// Expects no more what somebody has waited for in vain; what was written since may still come.
    fn give_up(&self, awaited: &Expected) {
        let mut expected = self.expected();
        expected.written.retain(|key, written| {
            awaited.written.get(key).is_none_or(|awaited| awaited.version < written.version)
        });
        expected.gone.retain(|gone| !awaited.gone.contains(gone));
        drop(expected);
        // Others may have waited for nothing else.
        self.progress.send_modify(|_| ());
    }

    fn is_fresh(&self, progress: &Progress, reader: Reader<'_>) -> bool {
        let mut expected = self.expected();
        if !expected.holds_up(reader) {
            return true;
        }
        expected.written.retain(|_, written| !self.is_seen(progress, written));
        if !expected.gone.is_empty() {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            let is_ready = |number| self.is_readable(progress, number);
            expected.gone.retain(|(key, uid)| {
                let found = objects.get(key).and_then(|kept| self.opener.open(&kept));
                progress.find(key.namespace()).is_some_and(is_ready)
                    && found.is_some_and(|object| {
                        let metadata = object.meta();
                        metadata.uid.as_ref() == Some(uid) && metadata.deletion_timestamp.is_none()
                    })
            });
        }
        !expected.holds_up(reader)
    }

    /// Whether a version has been seen. Of what cannot be read nothing will be.
    fn is_seen(&self, progress: &Progress, written: &Written) -> bool {
        let Written { feed, version } = *written;
        progress.feeds()[feed].version >= version || !self.is_readable(progress, feed)
    }

    fn is_readable(&self, progress: &Progress, feed: usize) -> bool {
        progress.feeds()[feed].ready(self.kind()).is_ok()
    }

    /// Tells all of an object that was put in the place of an older one, if there was any.
    fn tell_of(
        &self,
        observers: &Observers<K>,
        key: &ObjectKey,
        kept: &Kept<K>,
        old: Option<Kept<K>>,
        initial: bool,
    ) {
        if observers.all.is_empty() {
            return;
        }
        let old = old.and_then(|old| self.opener.open(&old));
        let Some(object) = self.opener.open(kept) else {
            let gone = old.map(Change::Deleted);
            return gone.iter().for_each(|gone| self.tell(observers, key, gone));
        };
        if let Some(old) = &old {
            // Listed again, and the same.
            if version(old.meta()) == version(object.meta()) && old.meta().uid == object.meta().uid
            {
                return;
            }
            // Another one of the same name: the first is gone, though nobody said so.
            if old.meta().uid != object.meta().uid {
                self.tell(observers, key, &Change::Deleted(Arc::clone(old)));
                return self.tell(observers, key, &Change::Applied { object, old: None, initial });
            }
        }
        self.tell(observers, key, &Change::Applied { object, old, initial });
    }

    fn take(&self, observers: &Observers<K>, key: &ObjectKey) {
        let last = self.write(|objects| objects.remove(key));
        if let Some(last) = last.and_then(|last| self.opener.open(&last)) {
            self.tell(observers, key, &Change::Deleted(last));
        }
    }
}

impl Reader<'_> {
    fn reads(self, key: &ObjectKey) -> bool {
        match self {
            Reader::Of(own) => own == key,
            Reader::OfAll => true,
        }
    }
}

impl Expected {
    fn holds_up(&self, reader: Reader<'_>) -> bool {
        let gone = self.gone.iter().map(|(key, _)| key);
        self.written.keys().chain(gone).any(|key| reader.reads(key))
    }

    /// What a reader waits for.
    fn awaited(&self, reader: Reader<'_>) -> Self {
        let mut awaited = self.clone();
        awaited.written.retain(|key, _| reader.reads(key));
        awaited.gone.retain(|(key, _)| reader.reads(key));
        awaited
    }
}

impl<K> Clone for Sink<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Sink<'_, K> {}

impl<K: Object> Sink<'_, K> {
    /// What takes objects as they come.
    pub(super) fn opener(&self) -> &Opener<K> {
        &self.shared.opener
    }

    pub(super) fn kind(&self) -> &str {
        self.shared.kind()
    }

    /// Whether somebody looks at what comes.
    pub(super) fn is_observed(&self) -> bool {
        !self.shared.observers().all.is_empty()
    }

    /// Waits until somebody wants the feed to try again.
    pub(super) async fn woken(&self) {
        self.shared.wake[self.number].notified().await;
    }

    /// Takes note of how it is.
    pub(super) fn is(&self, state: State) {
        self.shared.progress.send_if_modified(|progress| {
            let feed = progress.feed_mut(self.number);
            feed.failures += u64::from(!matches!(state, State::Live | State::Listing));
            let is_new = feed.state != state;
            feed.state = state;
            is_new
        });
    }

    /// Takes note of a failure that leaves it as it is: it is taken up at once.
    pub(super) fn failed(&self) {
        self.shared.progress.send_if_modified(|progress| {
            progress.feed_mut(self.number).failures += 1;
            // Nobody waits for that.
            false
        });
    }

    /// A version has been seen, and all before it.
    pub(super) fn passed(&self, version: &str) {
        let Ok(version) = version.parse::<u64>() else { return };
        self.shared.progress.send_if_modified(|progress| {
            let feed = progress.feed_mut(self.number);
            let is_newer = version > feed.version;
            feed.version = feed.version.max(version);
            is_newer
        });
    }

    /// Takes what there is for all there is: what is not among it is gone.
    pub(super) fn replace(&self, all: Vec<(ObjectKey, Kept<K>)>, version: &str) {
        let observers = self.shared.observers();
        let (namespace, initial) = {
            let progress = self.shared.progress.borrow();
            let feed = &progress.feeds()[self.number];
            (feed.namespace.clone(), !feed.synced)
        };
        let mut gone = self.shared.write(|objects| objects.keys(namespace.as_deref()));
        let before = self.shared.write(|objects| objects.set_all(&all));
        for ((key, kept), old) in all.iter().zip(before) {
            gone.remove(key);
            self.shared.tell_of(&observers, key, kept, old, initial);
        }
        for key in gone {
            self.shared.take(&observers, &key);
        }
        self.passed(version);
        self.shared.progress.send_modify(|progress| {
            let feed = progress.feed_mut(self.number);
            feed.synced = true;
            feed.state = State::Live;
            feed.lists += 1;
        });
    }

    pub(super) fn applied(&self, arrival: Arrival<K>) {
        let Arrival { key, version, kept } = arrival;
        let observers = self.shared.observers();
        let old = self.shared.write(|objects| objects.set(&key, kept.clone()));
        self.shared.tell_of(&observers, &key, &kept, old, false);
        drop(observers);
        self.passed(&version);
    }

    pub(super) fn deleted(&self, key: &ObjectKey, version: &str) {
        self.shared.take(&self.shared.observers(), key);
        self.passed(version);
    }
}
