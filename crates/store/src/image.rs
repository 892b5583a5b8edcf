//! The latest state and the recent past, as readers see them.
//!
//! There is one publisher at a time (a committer, or the watch on etcd). It changes the latest
//! snapshot in place, copying only what readers still hold, under a lock that keeps readers out
//! for the microseconds this takes. Histories grow before the revision does, so whoever looks at
//! the revision first finds them complete up to there. Nobody who holds the lock of a history
//! waits for that of the snapshot.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use crate::engine::{Head, Latest, Record};
use crate::expiry::Deadlines;
use crate::history::{Floor, Resource};
use crate::sorted::{Position, Slice, Sorted};
use crate::{
    At, Config, Event, Key, Query, RangeError, Rev, Revision, Unavailable, WatchError, dump,
};

/// The state at one revision. Holding one is cheap and delays nobody.
pub struct Snapshot<I> {
    revision: Revision,
    sorted: Sorted<I>,
}

/// What a [`Query`] found: shared slices of the image, in order of key.
pub struct Range<I> {
    /// The state listed.
    pub revision: Revision,
    /// How many more a limit left out.
    pub remaining: usize,
    slices: Vec<Slice<I>>,
}

/// Goes through a range, which it keeps as long.
pub struct Walk<I> {
    range: Range<I>,
    slice: usize,
    /// Behind what was given of the slice.
    given: usize,
}

pub(crate) struct Image<I> {
    config: Config<I>,
    /// Its revision once more, for those who need nothing else.
    revision: AtomicI64,
    snapshot: RwLock<Snapshot<I>>,
    resources: RwLock<Resources<I>>,
    progress: watch::Sender<Progress>,
    deadlines: Deadlines,
    /// Which revision was current when, oldest first: the first one at the end of the window or
    /// before, the others within it.
    marks: Mutex<VecDeque<(Duration, Revision)>>,
    closed: AtomicBool,
}

/// A change to publish. Revisions never fall; changes of one revision are published together.
pub(crate) struct Changed<I> {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    /// None for a deletion.
    pub(crate) current: Option<Arc<Rev<I>>>,
    /// About where the key is or would be, if somebody looked.
    pub(crate) near: Option<Position>,
}

/// A value as it comes from disk or from etcd.
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) created: Revision,
    pub(crate) deadline: Option<Duration>,
    pub(crate) value: Bytes,
}

struct Resources<I> {
    by_name: HashMap<Box<str>, Arc<Resource<I>>>,
    /// Where the history of a resource starts that nothing was published to yet.
    floor: Floor,
}

#[derive(Clone)]
struct Progress {
    revision: Revision,
    halted: Option<Unavailable>,
}

impl Stored {
    pub(crate) fn record(&self) -> Record<'_> {
        let Stored { key, revision, created, deadline, value } = self;
        let head = Head { revision: *revision, created: *created, deadline: *deadline };
        Record { key, held: Some((head, value)) }
    }
}

impl<I> Snapshot<I> {
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn get(&self, key: &str) -> Option<&Arc<Rev<I>>> {
        self.sorted.get(key)
    }

    /// Where `key` is or would be, and what it holds.
    pub(crate) fn find(&self, key: &str) -> (Position, Option<&Arc<Rev<I>>>) {
        self.sorted.find(key)
    }

    /// The keys that begin with `prefix`, behind `start_after` if given, at most `limit`.
    pub fn range(&self, prefix: &str, start_after: Option<&str>, limit: Option<usize>) -> Range<I> {
        Range::limited(self.revision, self.sorted.range(prefix, start_after), limit)
    }

    /// The keys from `start` on, to below `end` or else to the last.
    pub(crate) fn between(&self, start: &[u8], end: Option<&[u8]>) -> Range<I> {
        Range::limited(self.revision, self.sorted.between(start, end), None)
    }

    /// How many keys begin with `prefix`; no key is looked at.
    pub fn count(&self, prefix: &str) -> usize {
        self.range(prefix, None, None).len()
    }
}

impl<I> Range<I> {
    /// What somebody has put together, in order of key.
    pub fn of(revision: Revision, revs: Vec<Arc<Rev<I>>>) -> Self {
        let slices = if revs.is_empty() { Vec::new() } else { vec![Slice::of(revs)] };
        Self { revision, remaining: 0, slices }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rev<I>>> {
        self.slices.iter().flat_map(Slice::revs)
    }

    pub fn len(&self) -> usize {
        self.slices.iter().map(|slice| slice.end - slice.start).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    pub fn last(&self) -> Option<&Arc<Rev<I>>> {
        self.slices.last().and_then(|slice| slice.revs().last())
    }

    /// Keeps what is wanted, as far as there may be more; returns how many were looked at.
    ///
    /// No count of anything is touched but those of whole chunks: with thousands of revisions that
    /// are in no cache, it is the counting that would take the time.
    pub fn select(
        &mut self,
        limit: Option<usize>,
        mut is_wanted: impl FnMut(&Rev<I>) -> bool,
    ) -> usize {
        let mut room = limit.unwrap_or(usize::MAX);
        let mut seen = 0;
        let mut kept = Vec::with_capacity(self.slices.len());
        for slice in &self.slices {
            let mut keep = |start: usize, end: usize| {
                if start < end {
                    kept.push(Slice { chunk: Arc::clone(&slice.chunk), start, end });
                }
            };
            let mut start = slice.start;
            let mut end = slice.end;
            for (index, rev) in (slice.start..).zip(slice.revs()) {
                if room == 0 {
                    end = index;
                    break;
                }
                seen += 1;
                if is_wanted(rev) {
                    room -= 1;
                } else {
                    keep(start, index);
                    start = index + 1;
                }
            }
            keep(start, end);
        }
        self.slices = kept;
        seen
    }

    pub fn walk(self) -> Walk<I> {
        let given = self.slices.first().map_or(0, |slice| slice.start);
        Walk { range: self, slice: 0, given }
    }

    fn limited(revision: Revision, mut slices: Vec<Slice<I>>, limit: Option<usize>) -> Self {
        let mut room = limit.unwrap_or(usize::MAX);
        let mut remaining = 0;
        slices.retain_mut(|slice| {
            let len = slice.end - slice.start;
            let taken = len.min(room);
            room -= taken;
            remaining += len - taken;
            slice.end = slice.start + taken;
            taken > 0
        });
        Self { revision, remaining, slices }
    }
}

impl<I> Walk<I> {
    /// The next revision; not an [`Iterator`], since it is lent.
    #[expect(clippy::should_implement_trait, reason = "what an iterator gives is not lent")]
    pub fn next(&mut self) -> Option<&Arc<Rev<I>>> {
        let slices = &self.range.slices;
        if self.given == slices.get(self.slice)?.end {
            self.slice += 1;
            self.given = slices.get(self.slice)?.start;
        }
        self.given += 1;
        slices[self.slice].rev(self.given - 1)
    }
}

impl<I: Send + Sync + 'static> Image<I> {
    /// An image of what `stored` holds, in any order, at `revision`; `floor` is where watches
    /// may resume.
    pub(crate) fn new(
        config: Config<I>,
        stored: Vec<Stored>,
        revision: Revision,
        floor: Floor,
    ) -> Arc<Self> {
        let sorted = load(config.extract, stored);
        let deadlines = Deadlines::new(sorted.iter().map(|rev| &**rev));
        Arc::new(Self {
            config,
            revision: AtomicI64::new(revision.get()),
            snapshot: RwLock::new(Snapshot { revision, sorted }),
            resources: RwLock::new(Resources { by_name: HashMap::new(), floor }),
            progress: watch::Sender::new(Progress { revision, halted: None }),
            deadlines,
            marks: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn config(&self) -> &Config<I> {
        &self.config
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision::new(self.revision.load(Ordering::Acquire))
    }

    pub(crate) fn snapshot(&self) -> Snapshot<I> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Rev<I>>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(crate) fn range(&self, query: &Query<'_>) -> Result<Range<I>, RangeError> {
        let snapshot = self.snapshot();
        let Query { prefix, start_after, limit, at } = *query;
        let At::Exactly(requested) = at else {
            return Ok(snapshot.range(prefix, start_after, limit));
        };
        let current = snapshot.revision;
        if requested > current {
            return Err(RangeError::Future { requested, current });
        }
        if let Some(oldest) = self.compacted().filter(|oldest| requested < *oldest) {
            return Err(RangeError::Compacted { requested, oldest });
        }
        let resource = self.resource(prefix);
        let held = {
            let ring = resource.ring();
            let since = ring
                .floor()
                .resolve(requested)
                .map_err(|oldest| RangeError::Compacted { requested, oldest })?;
            ring.undone(prefix, since, current)
        };
        let slices = snapshot.sorted.range(prefix, start_after);
        let slices = if held.is_empty() { slices } else { restored(&slices, held, start_after) };
        Ok(Range::limited(requested, slices, limit))
    }

    /// The history that `key_or_prefix` belongs to.
    pub(crate) fn resource(&self, key_or_prefix: &str) -> Arc<Resource<I>> {
        let name = (self.config.resource)(key_or_prefix);
        let known = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(resource) = known.by_name.get(name) {
            return Arc::clone(resource);
        }
        drop(known);
        let mut resources = self.resources.write().unwrap_or_else(PoisonError::into_inner);
        let floor = resources.floor;
        let resource =
            resources.by_name.entry(name.into()).or_insert_with(|| Arc::new(Resource::new(floor)));
        Arc::clone(resource)
    }

    /// Makes `changes` visible, and `revision` the current one.
    ///
    /// Changes that are not younger than the image are ignored, so a watch on etcd may overlap
    /// with what was already seen.
    pub(crate) fn publish(&self, changes: Vec<Changed<I>>, revision: Revision) {
        let now = self.config.clock.now();
        let mut grown: Vec<Arc<Resource<I>>> = Vec::new();
        let mut latest = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let seen = latest.revision;
        for Changed { key, revision, current, near } in changes {
            if revision <= seen {
                continue;
            }
            let previous = match &current {
                Some(rev) => latest.sorted.insert(Arc::clone(rev), near),
                None => latest.sorted.remove(key.as_str(), near),
            };
            if current.is_none() && previous.is_none() {
                continue;
            }
            self.deadlines.replace(previous.as_deref(), current.as_deref());
            let resource = self.resource(key.as_str());
            let event = Arc::new(Event::new(key, revision, current, previous));
            resource.ring_mut().push(now, event, self.config.history);
            if !grown.iter().any(|known| Arc::ptr_eq(known, &resource)) {
                grown.push(resource);
            }
        }
        latest.revision = seen.max(revision);
        self.mark(now, latest.revision);
        self.announce(latest);
        for resource in grown {
            resource.ring_bell();
        }
    }

    /// Replaces everything, as after changes that nobody told us. Every watch is compacted.
    pub(crate) fn reset(&self, stored: Vec<Stored>, revision: Revision) {
        let sorted = load(self.config.extract, stored);
        self.deadlines.reset(sorted.iter().map(|rev| &**rev));
        let floor = Floor::at(revision);
        let resources: Vec<_> = {
            let mut resources = self.resources.write().unwrap_or_else(PoisonError::into_inner);
            resources.floor = floor;
            resources.by_name.values().cloned().collect()
        };
        for resource in &resources {
            resource.ring_mut().reset(floor);
            resource.recent().clear();
        }
        let mut latest = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        *latest = Snapshot { revision, sorted };
        self.announce(latest);
        for resource in resources {
            resource.ring_bell();
        }
    }

    /// Says that there will be no more changes, and why. Watches end when the store is closed.
    pub(crate) fn halt(&self, why: Unavailable) {
        let closed = matches!(why, Unavailable::Closed);
        self.progress.send_modify(|progress| progress.halted = Some(why));
        if closed {
            self.closed.store(true, Ordering::Release);
            for resource in self.all_resources() {
                resource.ring_bell();
            }
        }
    }

    /// Why there will be no more changes, if so.
    pub(crate) fn halted(&self) -> Option<Unavailable> {
        self.progress.borrow().halted.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns when `revision` is visible, or with the reason why it never will be.
    pub(crate) async fn wait_for(&self, revision: Revision) -> Result<(), Unavailable> {
        let mut progress = self.progress.subscribe();
        let seen = progress
            .wait_for(|progress| progress.revision >= revision || progress.halted.is_some())
            .await
            .map_err(|_| Unavailable::Closed)?;
        match &seen.halted {
            Some(why) if seen.revision < revision => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// What was current when the window of the history began. What is older is not listed any
    /// more, even where nothing has changed since: no list goes on for ever at one revision.
    fn compacted(&self) -> Option<Revision> {
        let begin = self.config.clock.now().checked_sub(self.config.history.window)?;
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.iter().take_while(|(at, _)| *at <= begin).last().map(|(_, revision)| *revision)
    }

    /// Notes that a revision is current, if the last note is old enough.
    fn mark(&self, now: Duration, revision: Revision) {
        let window = self.config.history.window;
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.back().is_some_and(|(at, _)| now.saturating_sub(*at) < window / 32) {
            return;
        }
        marks.push_back((now, revision));
        while marks.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= window) {
            marks.pop_front();
        }
    }

    /// Drops the history that is older than its window.
    pub(crate) fn trim(&self) {
        let now = self.config.clock.now();
        for resource in self.all_resources() {
            resource.ring_mut().trim(now, self.config.history);
            // Whoever keeps pace has taken them by now.
            resource.recent().clear();
        }
    }

    /// Drops the history before `revision`, whatever its age.
    pub(crate) fn compact(&self, revision: Revision) {
        for resource in self.all_resources() {
            resource.ring_mut().compact(revision);
        }
    }

    /// Checks that a watch can start after `requested`; returns the revision to start from.
    pub(crate) fn resume(&self, floor: Floor, requested: Revision) -> Result<Revision, WatchError> {
        let current = self.revision();
        if requested > current {
            return Err(WatchError::Future { requested, current });
        }
        floor.resolve(requested).map_err(|oldest| WatchError::Compacted { requested, oldest })
    }

    /// Lets readers at the latest snapshot, and tells those who wait for its revision.
    fn announce(&self, latest: RwLockWriteGuard<'_, Snapshot<I>>) {
        let revision = latest.revision;
        self.revision.store(revision.get(), Ordering::Release);
        drop(latest);
        self.progress.send_modify(|progress| progress.revision = revision);
    }

    fn all_resources(&self) -> Vec<Arc<Resource<I>>> {
        let resources = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        resources.by_name.values().cloned().collect()
    }
}

impl<I: Send + Sync + 'static> Latest for Image<I> {
    fn dump(&self, out: &mut dyn io::Write) -> io::Result<()> {
        dump::write(out, &self.snapshot())
    }
}

impl<I> Clone for Snapshot<I> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, sorted: self.sorted.clone() }
    }
}

/// Builds the sorted list. What the owner extracts is most of the time it takes to open a store,
/// so all cores share the work.
fn load<I: Send + Sync>(extract: fn(&Key, &Bytes) -> I, mut stored: Vec<Stored>) -> Sorted<I> {
    const SHARE_MIN: usize = 4096;

    stored.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let rev = |Stored { key, revision, created, deadline, value }: Stored| {
        let extracted = extract(&key, &value);
        Arc::new(Rev::new(key, Head { revision, created, deadline }, value, extracted))
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let share = stored.len().div_ceil(cores).max(SHARE_MIN);
    let mut shares = Vec::new();
    while stored.len() > share {
        shares.push(stored.split_off(stored.len() - share));
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().map(rev).collect::<Vec<_>>()))
            .collect();
        let mut revs: Vec<_> = stored.into_iter().map(rev).collect();
        // Shares were cut off the end, so the last one cut comes first.
        for other in others.into_iter().rev() {
            revs.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Sorted::from_sorted(revs)
    })
}

/// `slices` with the keys in `held` as they were before.
fn restored<I>(
    slices: &[Slice<I>],
    held: BTreeMap<Key, Option<Arc<Rev<I>>>>,
    start_after: Option<&str>,
) -> Vec<Slice<I>> {
    let mut revs: Vec<Arc<Rev<I>>> = slices
        .iter()
        .flat_map(Slice::revs)
        .filter(|rev| !held.contains_key(&rev.key))
        .cloned()
        .collect();
    revs.extend(
        held.into_values()
            .flatten()
            .filter(|rev| start_after.is_none_or(|start_after| rev.key.as_str() > start_after)),
    );
    revs.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    vec![Slice::of(revs)]
}
