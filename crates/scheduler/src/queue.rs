//! Pods that wait for a node, and whose turn it is.
//!
//! A pod is *ready*, by priority and then by age; or *backs off* after a failed attempt; or *waits*
//! for a change that may help it; or is *gated*. Pure: the time is an argument.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::pod::Pod;
use crate::profile::PluginSet;

/// A pod that no change has helped is tried again all the same.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// A configuration may ask for any pause, and a clock cannot be added to without end.
const PAUSE_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Queue {
    backoff_initial: Duration,
    backoff_max: Duration,
    /// By uid.
    entries: HashMap<Arc<str>, Entry>,
    ready: BTreeSet<Turn>,
    backing_off: BTreeSet<(Instant, Turn)>,
    waiting: BTreeSet<(Instant, Arc<str>)>,
    /// How many have come: of two at once, the first is first.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    pod: Arc<Pod>,
    profile: usize,
    place: Place,
    /// When it last came here.
    since: Instant,
    /// How often it fitted nowhere, and how often in a row something went wrong.
    rejections: u32,
    errors: u32,
    rejected_by: PluginSet,
    /// Room is being made for it: until that is done, trying is of no use.
    is_preempting: bool,
    /// Something has helped it meanwhile.
    is_woken: bool,
}

#[derive(Debug, Clone)]
enum Place {
    Ready(Turn),
    BackingOff {
        until: Instant,
        turn: Turn,
    },
    Waiting,
    Gated,
    /// It is being scheduled, or bound.
    InHand,
}

/// Whose turn comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    priority: Reverse<i32>,
    since: Instant,
    number: u64,
    uid: Arc<str>,
}

/// A pod whose turn it is.
#[derive(Debug, Clone)]
pub(crate) struct Next {
    pub(crate) pod: Arc<Pod>,
    pub(crate) profile: usize,
}

impl Queue {
    pub(crate) fn new(backoff_initial: Duration, backoff_max: Duration) -> Self {
        Queue {
            backoff_initial,
            backoff_max,
            entries: HashMap::new(),
            ready: BTreeSet::new(),
            backing_off: BTreeSet::new(),
            waiting: BTreeSet::new(),
            count: 0,
        }
    }

    pub(crate) fn get(&self, uid: &str) -> Option<&Arc<Pod>> {
        self.entries.get(uid).map(|entry| &entry.pod)
    }

    /// A pod wants a node.
    pub(crate) fn add(&mut self, pod: Arc<Pod>, profile: usize, is_gated: bool, now: Instant) {
        let uid = Arc::clone(&pod.uid);
        let entry = Entry {
            pod,
            profile,
            place: Place::Gated,
            since: now,
            rejections: 0,
            errors: 0,
            rejected_by: PluginSet::default(),
            is_preempting: false,
            is_woken: false,
        };
        self.entries.insert(Arc::clone(&uid), entry);
        if !is_gated {
            self.make_ready(&uid);
        }
    }

    /// A pod has changed. `helps` tells whether that may help, by whom it was rejected.
    pub(crate) fn update(
        &mut self,
        pod: Arc<Pod>,
        is_gated: bool,
        now: Instant,
        helps: impl FnOnce(PluginSet) -> bool,
    ) {
        let Some(entry) = self.entries.get_mut(&pod.uid) else { return };
        let uid = Arc::clone(&pod.uid);
        let has_new_priority = entry.pod.priority != pod.priority;
        entry.pod = pod;
        let rejected_by = entry.rejected_by;
        match entry.place.clone() {
            Place::Gated if !is_gated => {
                entry.since = now;
                self.make_ready(&uid);
            }
            Place::Waiting if helps(rejected_by) => self.wake(&uid, now),
            Place::Ready(_) if has_new_priority => {
                self.leave(&uid);
                self.make_ready(&uid);
            }
            _ => {}
        }
    }

    /// A pod needs no node any more.
    pub(crate) fn remove(&mut self, uid: &str) -> Option<Arc<Pod>> {
        self.leave(uid);
        self.entries.remove(uid).map(|entry| entry.pod)
    }

    /// The pod whose turn it is. One that backs off has its turn when nobody else has.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Next> {
        self.advance(now);
        let uid = match self.ready.first() {
            Some(turn) => Arc::clone(&turn.uid),
            None => {
                let mut backing_off = self.backing_off.iter();
                // What went wrong elsewhere is given its time.
                let is_due =
                    |uid: &Arc<str>| self.entries.get(uid).is_some_and(|entry| entry.errors == 0);
                Arc::clone(&backing_off.find(|(_, turn)| is_due(&turn.uid))?.1.uid)
            }
        };
        self.leave(&uid);
        let entry = self.entries.get_mut(&uid)?;
        entry.place = Place::InHand;
        entry.is_woken = false;
        Some(Next { pod: Arc::clone(&entry.pod), profile: entry.profile })
    }

    /// A pod that was in hand fits nowhere, for now.
    pub(crate) fn reject(&mut self, uid: &str, rejected_by: PluginSet, now: Instant) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        entry.since = now;
        entry.rejections += 1;
        entry.errors = 0;
        entry.rejected_by = rejected_by;
        let is_forgotten = rejected_by.is_empty() && !entry.is_preempting;
        match is_forgotten {
            // Nobody could tell what helps it.
            true => self.back_off(uid, now),
            false => {
                entry.place = Place::Waiting;
                let uid = Arc::clone(&entry.pod.uid);
                self.waiting.insert((now, uid));
            }
        }
    }

    /// Something went wrong with a pod that was in hand.
    pub(crate) fn fail(&mut self, uid: &str, now: Instant) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        entry.since = now;
        entry.errors += 1;
        self.back_off(uid, now);
    }

    /// Room is made for a pod from now on, or no longer.
    pub(crate) fn set_preempting(&mut self, uid: &str, is_preempting: bool, now: Instant) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        entry.is_preempting = is_preempting;
        if !is_preempting && entry.is_woken && matches!(entry.place, Place::Waiting) {
            let uid = Arc::clone(&entry.pod.uid);
            self.wake(&uid, now);
        }
    }

    /// Something has changed: those that it may help have a turn.
    pub(crate) fn wake_those(
        &mut self,
        now: Instant,
        helps: impl Fn(&Pod, usize, PluginSet) -> bool,
    ) {
        let helped: Vec<Arc<str>> = self
            .waiting
            .iter()
            .filter(|(_, uid)| {
                let entry = self.entries.get(uid);
                entry.is_some_and(|it| helps(&it.pod, it.profile, it.rejected_by))
            })
            .map(|(_, uid)| Arc::clone(uid))
            .collect();
        for uid in helped {
            self.wake(&uid, now);
        }
    }

    /// When there may be something to do without any change.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let backoff = self.backing_off.first().map(|(until, _)| *until);
        let wait = self.waiting.first().map(|(since, _)| *since + WAIT_MAX);
        [backoff, wait].into_iter().flatten().min()
    }

    /// Those whose time has come are ready.
    fn advance(&mut self, now: Instant) {
        while let Some((until, turn)) = self.backing_off.first()
            && *until <= now
        {
            let uid = Arc::clone(&turn.uid);
            self.leave(&uid);
            self.make_ready(&uid);
        }
        while let Some((since, uid)) = self.waiting.first()
            && *since + WAIT_MAX <= now
        {
            let uid = Arc::clone(uid);
            self.leave(&uid);
            self.make_ready(&uid);
        }
    }

    fn wake(&mut self, uid: &Arc<str>, now: Instant) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        if entry.is_preempting {
            entry.is_woken = true;
            return;
        }
        let until = entry.since + self.backoff(uid);
        self.leave(uid);
        match until > now {
            true => self.delay(uid, until),
            false => self.make_ready(uid),
        }
    }

    fn back_off(&mut self, uid: &str, now: Instant) {
        let Some((uid, _)) = self.entries.get_key_value(uid) else { return };
        let uid = Arc::clone(uid);
        let until = now + self.backoff(&uid);
        self.delay(&uid, until);
    }

    fn delay(&mut self, uid: &Arc<str>, until: Instant) {
        let Some(turn) = self.turn(uid) else { return };
        self.backing_off.insert((until, turn.clone()));
        self.set_place(uid, Place::BackingOff { until, turn });
    }

    fn make_ready(&mut self, uid: &Arc<str>) {
        let Some(turn) = self.turn(uid) else { return };
        self.ready.insert(turn.clone());
        self.set_place(uid, Place::Ready(turn));
    }

    /// Takes a pod from wherever it stands in line.
    fn leave(&mut self, uid: &str) {
        let Some(entry) = self.entries.get(uid) else { return };
        match &entry.place {
            Place::Ready(turn) => drop(self.ready.remove(turn)),
            Place::BackingOff { until, turn } => {
                self.backing_off.remove(&(*until, turn.clone()));
            }
            Place::Waiting => {
                self.waiting.remove(&(entry.since, Arc::clone(&entry.pod.uid)));
            }
            Place::Gated | Place::InHand => {}
        }
    }

    /// How long a pod has to wait after its last attempt.
    fn backoff(&self, uid: &str) -> Duration {
        let Some(entry) = self.entries.get(uid) else { return Duration::ZERO };
        let count = if entry.errors > 0 { entry.errors } else { entry.rejections };
        let Some(doublings) = count.checked_sub(1) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.backoff_initial.saturating_mul(factor).min(self.backoff_max).min(PAUSE_MAX)
    }

    fn turn(&mut self, uid: &Arc<str>) -> Option<Turn> {
        let entry = self.entries.get(uid)?;
        self.count += 1;
        Some(Turn {
            priority: Reverse(entry.pod.priority),
            since: entry.since,
            number: self.count,
            uid: Arc::clone(uid),
        })
    }

    fn set_place(&mut self, uid: &str, place: Place) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.place = place;
        }
    }
}
