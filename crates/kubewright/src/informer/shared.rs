//! What the feed of an informer writes and its readers read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::objects::{Objects, Values};
use super::{NotReady, Object, Report, State, version};
use crate::key::ObjectKey;

/// What changed.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// An object is there, as it is now.
    Applied {
        object: Arc<K>,
        /// As it was before; none if it was not there.
        old: Option<Arc<K>>,
        /// It was there when this began to look, so it may be old news.
        initial: bool,
    },
    /// An object is gone. This is how it was last seen.
    Deleted(Arc<K>),
}

/// An object, and how long the text was that it was read from.
pub(super) struct Read<K> {
    pub(super) object: K,
    pub(super) bytes: usize,
}

type Observe<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

pub(super) struct Shared<K> {
    kind: String,
    objects: RwLock<Objects<K>>,
    /// Held while something changes and all are told, so that whoever comes later neither misses
    /// it nor hears of it twice.
    observers: Mutex<Observers<K>>,
    state: watch::Sender<Seen>,
    expected: Mutex<Expected>,
    wake: Notify,
}

/// What was written and must come back before readers may believe what they see.
#[derive(Default)]
struct Expected {
    version: u64,
    /// Objects that were deleted, by uid.
    gone: Vec<(ObjectKey, String)>,
}

struct Observers<K> {
    all: Vec<(u64, Observe<K>)>,
    /// How many there have been.
    count: u64,
}

struct Seen {
    state: State,
    /// Whether there was ever something to read.
    synced: bool,
    /// The newest version seen.
    version: u64,
    /// How often everything was listed, and how often following failed.
    lists: u64,
    failures: u64,
}

impl<K> Shared<K> {
    pub(super) fn new(kind: String) -> Self {
        let seen = Seen { state: State::Listing, synced: false, version: 0, lists: 0, failures: 0 };
        Shared {
            kind,
            objects: RwLock::new(Objects::new()),
            observers: Mutex::new(Observers { all: Vec::new(), count: 0 }),
            state: watch::Sender::new(seen),
            expected: Mutex::default(),
            wake: Notify::new(),
        }
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().state.clone()
    }

    /// Why nothing can be read, if so.
    pub(super) fn ready(&self) -> Result<(), NotReady> {
        let seen = self.state.borrow();
        let kind = || self.kind.clone();
        match &seen.state {
            State::Missing => Err(NotReady::Missing { kind: kind() }),
            State::Forbidden(why) => Err(NotReady::Forbidden { kind: kind(), why: why.clone() }),
            _ if seen.synced => Ok(()),
            _ => Err(NotReady::Listing { kind: kind() }),
        }
    }

    pub(super) async fn synced(&self) {
        let mut states = self.state.subscribe();
        // The sender is here, so it cannot be gone.
        let _ = states.wait_for(|seen| seen.synced && seen.state == State::Live).await;
    }

    pub(super) async fn caught_up(&self, version: &str, timeout: Duration) -> bool {
        let Ok(version) = version.parse::<u64>() else { return false };
        let mut states = self.state.subscribe();
        let passed = states.wait_for(|seen| seen.version >= version);
        tokio::time::timeout(timeout, passed).await.is_ok()
    }

    /// Waits for a state, or for what follows to end.
    pub(super) async fn until(&self, is_so: impl FnMut(&State) -> bool) {
        let (mut states, mut is_so) = (self.state.subscribe(), is_so);
        // The sender is here, so it cannot be gone.
        let _ = states.wait_for(|seen| is_so(&seen.state)).await;
    }

    pub(super) fn expect(&self, version: &str) {
        let Ok(version) = version.parse::<u64>() else { return };
        let mut expected = self.expected();
        expected.version = expected.version.max(version);
    }

    pub(super) fn expect_gone(&self, key: ObjectKey, uid: &str) {
        self.expected().gone.push((key, uid.to_owned()));
    }

    pub(super) fn report(&self) -> Report {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let seen = self.state.borrow();
        Report {
            kind: self.kind.clone(),
            state: seen.state.clone(),
            objects: objects.len(),
            bytes: objects.bytes(),
            lists: seen.lists,
            failures: seen.failures,
        }
    }

    fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Objects<K>) -> T) -> Result<T, NotReady> {
        self.ready()?;
        Ok(look(&self.objects.read().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(super) fn index(&self, name: &str, values: Values<K>) {
        self.write(|objects| objects.add_index(name, values));
    }

    /// Gives the number by which the observer can be taken away again.
    pub(super) fn subscribe(&self, observe: Observe<K>) -> u64 {
        let mut observers = self.observers();
        let there = self.objects.read().unwrap_or_else(PoisonError::into_inner).all();
        for object in there {
            observe(&Change::Applied { object, old: None, initial: true });
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
        self.wake.notify_one();
    }

    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Takes note of how it is.
    pub(super) fn is(&self, state: State) {
        self.state.send_if_modified(|seen| {
            seen.failures += u64::from(!matches!(state, State::Live | State::Listing));
            let is_new = seen.state != state;
            seen.state = state;
            is_new
        });
    }

    /// A version has been seen, and all before it.
    pub(super) fn passed(&self, version: &str) {
        let Ok(version) = version.parse::<u64>() else { return };
        self.state.send_if_modified(|seen| {
            let is_newer = version > seen.version;
            seen.version = seen.version.max(version);
            is_newer
        });
    }

    fn observers(&self) -> MutexGuard<'_, Observers<K>> {
        // An observer that panics has spoilt only its own notes.
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, change: impl FnOnce(&mut Objects<K>) -> T) -> T {
        change(&mut self.objects.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K: Object> Shared<K> {
    /// Waits until all that was expected has been seen, for so long at most.
    pub(super) async fn fresh(&self, timeout: Duration) {
        if self.is_fresh(self.state.borrow().version) || self.ready().is_err() {
            return;
        }
        let mut states = self.state.subscribe();
        let fresh = states.wait_for(|seen| self.is_fresh(seen.version));
        if tokio::time::timeout(timeout, fresh).await.is_err() {
            // It may never come: an object that is not selected any more is not told of.
            *self.expected() = Expected::default();
        }
    }

    fn is_fresh(&self, version: u64) -> bool {
        let mut expected = self.expected();
        if !expected.gone.is_empty() {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            expected.gone.retain(|(key, uid)| {
                let found = objects.get(key);
                found.is_some_and(|object| {
                    let metadata = object.meta();
                    metadata.uid.as_ref() == Some(uid) && metadata.deletion_timestamp.is_none()
                })
            });
        }
        expected.version <= version && expected.gone.is_empty()
    }

    /// Takes what there is for all there is: what is not among it is gone.
    pub(super) fn replace(&self, all: Vec<Read<K>>, version: &str) {
        let observers = self.observers();
        let mut gone = self.write(|objects| objects.keys());
        for object in all {
            let key = ObjectKey::of(object.object.meta());
            gone.remove(&key);
            self.put(&observers, key, object, true);
        }
        for key in gone {
            self.take(&observers, &key);
        }
        self.passed(version);
        self.state.send_modify(|seen| {
            seen.synced = true;
            seen.state = State::Live;
            seen.lists += 1;
        });
    }

    pub(super) fn applied(&self, object: Read<K>) {
        let newest = version(object.object.meta()).to_owned();
        self.put(&self.observers(), ObjectKey::of(object.object.meta()), object, false);
        self.passed(&newest);
    }

    pub(super) fn deleted(&self, key: &ObjectKey, version: &str) {
        self.take(&self.observers(), key);
        self.passed(version);
    }

    fn put(&self, observers: &Observers<K>, key: ObjectKey, object: Read<K>, initial: bool) {
        let Read { object, bytes } = object;
        let object = Arc::new(object);
        let old = self.write(|objects| objects.set(&key, Arc::clone(&object), bytes));
        if let Some(old) = &old {
            // Listed again, and the same.
            if version(old.meta()) == version(object.meta()) && old.meta().uid == object.meta().uid
            {
                return;
            }
            // Another one of the same name: the first is gone, though nobody said so.
            if old.meta().uid != object.meta().uid {
                tell(observers, &Change::Deleted(Arc::clone(old)));
                return tell(observers, &Change::Applied { object, old: None, initial });
            }
        }
        tell(observers, &Change::Applied { object, old, initial });
    }

    fn take(&self, observers: &Observers<K>, key: &ObjectKey) {
        if let Some(last) = self.write(|objects| objects.remove(key)) {
            tell(observers, &Change::Deleted(last));
        }
    }
}

fn tell<K>(observers: &Observers<K>, change: &Change<K>) {
    for (_, observe) in &observers.all {
        observe(change);
    }
}
