//! One pod: decide, reserve, bind; or say why not.

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kubewright::Event;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::report::{self, Nomination, Reason, Report};
use super::{Done, Loop};
use crate::change::Change;
use crate::cycle::{self, Attempt, Diagnosis, NO_NODES, Scope};
use crate::plugin::{Assignment, Code, Permit, Plugin, Point, Preemption, Rejection, Remedy, Work};
use crate::pod::Pod;
use crate::preempt;
use crate::profile::{PluginSet, Profile};
use crate::queue::Next;

/// What was decided about a pod.
enum Decision {
    Node(Arc<str>),
    NoNodes,
    Nowhere(Box<Diagnosis>, Relief),
    Failed(String),
}

/// What becomes of a pod that fits nowhere.
enum Relief {
    /// The room that is being made for it, if any, is of use still.
    None,
    /// It is of no use any more.
    Hopeless,
    Preempt(Preemption),
}

/// How binding a pod ended.
pub(super) struct Bound {
    assignment: Arc<Assignment>,
    profile: usize,
    outcome: Result<(), Trouble>,
}

/// Why a pod that had a node was not bound.
enum Trouble {
    /// It may not go there.
    Denied(usize, Rejection),
    Failed(String),
}

impl Loop {
    pub(super) async fn schedule(&mut self, next: Next) {
        let Next { pod, profile } = next;
        if pod.is_deleted() {
            let note = format!("skip schedule deleting pod: {}", pod.key);
            self.tell(profile, &pod, Event::warning("FailedScheduling", note).action("Scheduling"));
            self.dismiss(&pod);
            return;
        }
        self.snapshot.arrange();
        match self.decide(&pod, profile).await {
            Decision::Node(node) => self.assign(pod, profile, node),
            Decision::NoNodes => {
                let every = self.profiles[profile].filters().fold(
                    PluginSet::default(),
                    |mut all, (place, _)| {
                        all.insert(place);
                        all
                    },
                );
                self.queue.reject(&pod.uid, every, Instant::now());
                self.fits_nowhere(profile, &pod, NO_NODES.to_owned(), Nomination::Clear);
            }
            Decision::Nowhere(diagnosis, relief) => self.nowhere(&pod, profile, &diagnosis, relief),
            Decision::Failed(message) => {
                warn!(pod = %pod.key, message, "a pod could not be scheduled");
                self.queue.fail(&pod.uid, Instant::now());
                self.report(profile, &pod, Reason::SchedulerError, message, Nomination::Clear);
            }
        }
    }

    async fn decide(&mut self, pod: &Arc<Pod>, profile: usize) -> Decision {
        if self.snapshot.is_empty() {
            return Decision::NoNodes;
        }
        let (draw, offset) = (self.random.below(usize::MAX), self.random.below(usize::MAX));
        let profile = &self.profiles[profile];
        let compares = profile.has_scores() || self.extenders.iter().any(|it| it.prioritizes());
        let filters_elsewhere = self.extenders.iter().any(|it| it.filters());
        let scope = Scope {
            start: self.start,
            is_first_enough: !compares && !filters_elsewhere,
            percentage: profile.percentage.or(self.percentage),
        };
        let found = match cycle::search(profile, pod, &self.snapshot, scope) {
            Ok(found) => found,
            Err(message) => return Decision::Failed(message),
        };
        self.start = (self.start + found.visited) % self.snapshot.len();
        let mut diagnosis = found.diagnosis;
        let mut nodes = found.nodes;
        for extender in self.extenders.iter().filter(|it| it.is_interested(pod)) {
            if nodes.is_empty() {
                break;
            }
            match extender.filter(pod, nodes, &mut diagnosis).await {
                Ok(left) => nodes = left,
                Err(message) => return Decision::Failed(message),
            }
        }
        match nodes[..] {
            [] => {}
            [only] => return Decision::Node(Arc::clone(&only.name)),
            _ => {
                let mut scores = cycle::score(profile, pod, &self.snapshot, &nodes);
                for extender in self.extenders.iter().filter(|it| it.is_interested(pod)) {
                    extender.prioritize(pod, &nodes, &mut scores).await;
                }
                let best = cycle::choose(&scores, |count| draw % count);
                let best = best.map_or(nodes[0], |best| nodes[best]);
                return Decision::Node(Arc::clone(&best.name));
            }
        }
        let remedy = {
            let attempt = Attempt {
                pod,
                snapshot: &self.snapshot,
                filters: &found.filters,
                diagnosis: &diagnosis,
                offset,
            };
            cycle::remedy(profile, &attempt)
        };
        let relief = match remedy {
            None => Relief::None,
            Some(Remedy::Nothing(why)) => {
                diagnosis.remedy = why;
                Relief::None
            }
            Some(Remedy::NoUse(why)) => {
                diagnosis.remedy = why;
                Relief::Hopeless
            }
            Some(Remedy::Preempt(mut candidates)) => {
                for extender in self.extenders.iter().filter(|it| it.is_interested(pod)) {
                    match extender.preempt(pod, candidates, &self.snapshot).await {
                        Ok(left) => candidates = left,
                        Err(message) => return Decision::Failed(message),
                    }
                }
                match preempt::best(candidates) {
                    Some(best) => Relief::Preempt(best),
                    None => {
                        "preemption: no candidate node for preemption"
                            .clone_into(&mut diagnosis.remedy);
                        Relief::None
                    }
                }
            }
        };
        Decision::Nowhere(Box::new(diagnosis), relief)
    }

    fn nowhere(&mut self, pod: &Arc<Pod>, profile: usize, diagnosis: &Diagnosis, relief: Relief) {
        let nomination = match relief {
            Relief::None => Nomination::Keep,
            Relief::Hopeless => Nomination::Clear,
            Relief::Preempt(preemption) => {
                let node = Arc::clone(&preemption.node);
                self.preempt(pod, profile, preemption);
                Nomination::Set(node)
            }
        };
        self.queue.reject(&pod.uid, diagnosis.rejected_by, Instant::now());
        self.fits_nowhere(profile, pod, diagnosis.to_string(), nomination);
    }

    fn fits_nowhere(
        &mut self,
        profile: usize,
        pod: &Arc<Pod>,
        message: String,
        nomination: Nomination,
    ) {
        debug!(pod = %pod.key, message, "a pod fits nowhere");
        match &nomination {
            Nomination::Set(node) => {
                self.snapshot.nominated.set(Arc::clone(pod), Arc::clone(node));
            }
            Nomination::Clear => self.snapshot.nominated.remove(&pod.uid),
            Nomination::Keep => {}
        }
        self.report(profile, pod, Reason::Unschedulable, message, nomination);
    }

    /// A node was found: takes it for the pod, and has it bound.
    fn assign(&mut self, pod: Arc<Pod>, profile: usize, node: Arc<str>) {
        self.snapshot.assume(Arc::clone(&pod), &node);
        self.snapshot.nominated.remove(&pod.uid);
        let assignment = Arc::new(Assignment { pod, node });
        let pod = &assignment.pod;
        let reserving = self.profiles[profile].placed_at(Point::Reserve);
        let reserved: Result<(), (usize, Rejection)> =
            reserving.into_iter().try_for_each(|(place, plugin)| {
                let reserved = plugin.reserve(pod, &assignment.node, &mut self.snapshot);
                reserved.map_err(|rejection| (place, rejection))
            });
        if let Err((place, rejection)) = reserved {
            let trouble = Trouble::of(place, rejection);
            return self.unassign(&assignment, profile, trouble);
        }
        let permitted: Result<Vec<Option<Wait>>, Trouble> = self.profiles[profile]
            .placed_at(Point::Permit)
            .map(|(place, plugin)| match plugin.permit(pod, &assignment.node) {
                Permit::Allow => Ok(None),
                Permit::Wait(until, max) => Ok(Some((place, plugin.name().to_owned(), until, max))),
                Permit::Deny(rejection) => Err(Trouble::of(place, rejection)),
            })
            .collect();
        let waits = match permitted {
            Ok(waits) => waits.into_iter().flatten().collect(),
            Err(trouble) => return self.unassign(&assignment, profile, trouble),
        };
        let work = Binding::of(&self.profiles[profile], &assignment, waits, &self.extenders);
        // What it was told before must not be written after it is bound.
        let mut turn = self.order.turn(&assignment.pod.uid);
        self.binding += 1;
        self.tasks.spawn(async move {
            turn.come().await;
            let outcome = work.guarded().await;
            Done::Bound(Bound { assignment, profile, outcome })
        });
    }

    pub(super) fn bound(&mut self, bound: Bound) {
        self.binding -= 1;
        let Bound { assignment, profile, outcome } = bound;
        match outcome {
            Ok(()) => {
                let (pod, node) = (&assignment.pod, &assignment.node);
                info!(pod = %pod.key, %node, "a pod has a node");
                let note = format!("Successfully assigned {} to {node}", pod.key);
                self.tell(profile, pod, Event::normal("Scheduled", note).action("Binding"));
                let plugins = self.profiles[profile].at_point(Point::PostBind);
                plugins.for_each(|plugin| plugin.post_bind(&assignment));
                // The watch may say so later; nobody waits for it.
                self.dismiss(pod);
            }
            Err(trouble) => self.unassign(&assignment, profile, trouble),
        }
    }

    /// A pod that had a node has none after all.
    fn unassign(&mut self, assignment: &Assignment, profile: usize, trouble: Trouble) {
        let pod = &assignment.pod;
        self.settle_in(profile, pod, &assignment.node);
        if self.snapshot.forget(&pod.uid) {
            self.wake(&Change::PodDeleted(Arc::clone(pod)));
        }
        if self.queue.get(&pod.uid).is_none() {
            // It is gone, or bound though that was not heard.
            return;
        }
        let now = Instant::now();
        match trouble {
            Trouble::Denied(place, rejection) => {
                let mut diagnosis = Diagnosis::new(1);
                diagnosis.reject(&assignment.node, place, rejection);
                self.queue.reject(&pod.uid, diagnosis.rejected_by, now);
                self.fits_nowhere(profile, pod, diagnosis.to_string(), Nomination::Clear);
            }
            Trouble::Failed(message) => {
                warn!(pod = %pod.key, message, "a pod was not bound");
                self.queue.fail(&pod.uid, now);
                self.report(profile, pod, Reason::SchedulerError, message, Nomination::Clear);
            }
        }
    }

    /// Gives back what plugins reserved for a pod: it is of no use, or the watch shows it now.
    pub(super) fn settle(&mut self, pod: &Pod) {
        let name = pod.scheduler_name();
        let profile = self.profiles.iter().position(|profile| *profile.name == *name);
        if let (Some(profile), Some(node)) = (profile, pod.node_name()) {
            self.settle_in(profile, pod, node);
        }
    }

    fn settle_in(&mut self, profile: usize, pod: &Pod, node: &str) {
        let plugins: Vec<&Arc<dyn Plugin>> =
            self.profiles[profile].at_point(Point::Reserve).collect();
        for plugin in plugins.into_iter().rev() {
            plugin.unreserve(pod, node, &mut self.snapshot);
        }
    }

    /// Has pods taken away for another.
    fn preempt(&mut self, pod: &Arc<Pod>, profile: usize, preemption: Preemption) {
        let going = preemption.victims.iter().all(|victim| victim.is_deleted());
        if going {
            return;
        }
        let displaced: Vec<Arc<Pod>> = self
            .snapshot
            .nominated
            .on(&preemption.node)
            .iter()
            .filter(|other| other.priority < pod.priority)
            .cloned()
            .collect();
        for other in &displaced {
            self.snapshot.nominated.remove(&other.uid);
        }
        let displaced: Vec<_> =
            displaced.into_iter().map(|other| (self.order.turn(&other.uid), other)).collect();
        self.queue.set_preempting(&pod.uid, true, Instant::now());
        let recorder = self.around.recorder.of(&self.profiles[profile].name);
        let (client, clock) = (self.client.clone(), self.around.clock.clone());
        let pod = Arc::clone(pod);
        self.tasks.spawn(async move {
            report::clear_nominations(&client, displaced).await;
            report::preempt(&client, &recorder, &clock, &pod, &preemption).await;
            Done::Preempted(pod)
        });
    }

    /// Tells people, and the pod's condition, why it has no node.
    fn report(
        &mut self,
        profile: usize,
        pod: &Arc<Pod>,
        reason: Reason,
        message: String,
        nomination: Nomination,
    ) {
        let note = report::note(&message);
        self.tell(profile, pod, Event::warning("FailedScheduling", note).action("Scheduling"));
        let pod = Arc::clone(self.queue.get(&pod.uid).unwrap_or(pod));
        let is_news = self.order.tell(&pod.uid, &message);
        let report = Report { reason, message, nomination, is_news };
        if let Some(patch) = report::condition(&pod, &report, self.around.clock.now()) {
            let client = self.client.clone();
            let mut turn = self.order.turn(&pod.uid);
            self.tasks.spawn(async move {
                turn.come().await;
                report::patch_status(&client, &pod, &patch).await;
                Done::Reported
            });
        }
    }

    fn tell(&self, profile: usize, pod: &Pod, event: Event) {
        self.around.recorder.of(&self.profiles[profile].name).record(&pod.reference(), event);
    }
}

impl Trouble {
    fn of(place: usize, rejection: Rejection) -> Self {
        match rejection.code {
            Code::Error => Trouble::Failed(rejection.message()),
            _ => Trouble::Denied(place, rejection),
        }
    }
}

type Wait = (usize, String, futures::future::BoxFuture<'static, Result<(), Rejection>>, Duration);

/// All that must be done for a pod to be on its node.
struct Binding {
    waits: Vec<Wait>,
    before: Vec<(String, Work)>,
    bind: Option<(String, Work)>,
}

impl Binding {
    fn of(
        profile: &Profile,
        assignment: &Arc<Assignment>,
        waits: Vec<Wait>,
        extenders: &[crate::extender::Extender],
    ) -> Self {
        let before = profile
            .at_point(Point::PreBind)
            .filter_map(|plugin| Some((plugin.name().to_owned(), plugin.pre_bind(assignment)?)));
        let elsewhere = extenders.iter().filter(|it| it.is_interested(&assignment.pod));
        let elsewhere =
            elsewhere.filter_map(|it| Some((it.name().to_owned(), it.bind(assignment)?)));
        let here = profile
            .at_point(Point::Bind)
            .filter_map(|plugin| Some((plugin.name().to_owned(), plugin.bind(assignment)?)));
        Binding { waits, before: before.collect(), bind: elsewhere.chain(here).next() }
    }

    /// A plugin that panics costs its pod this try, and nobody else anything: the pod's place among
    /// those that are being bound would stay taken.
    async fn guarded(self) -> Result<(), Trouble> {
        let ran = AssertUnwindSafe(self.run()).catch_unwind().await;
        ran.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = text.unwrap_or_else(|| "it does not say why".to_owned());
            Err(Trouble::Failed(format!("a plugin panicked: {why}")))
        })
    }

    async fn run(self) -> Result<(), Trouble> {
        for (place, name, until, max) in self.waits {
            match timeout(max, until).await {
                Ok(permitted) => {
                    permitted.map_err(|rejection| Trouble::of(place, rejection))?;
                }
                Err(_) => {
                    let why =
                        format!("rejected due to timeout after waiting {max:?} at plugin {name}");
                    return Err(Trouble::Denied(place, Rejection::unschedulable(why)));
                }
            }
        }
        for (name, work) in self.before {
            let failed = |why| Trouble::Failed(format!("running PreBind plugin {name:?}: {why}"));
            work.await.map_err(failed)?;
        }
        match self.bind {
            Some((name, work)) => work
                .await
                .map_err(|why| Trouble::Failed(format!("running Bind plugin {name:?}: {why}"))),
            None => Err(Trouble::Failed("nobody binds pods".to_owned())),
        }
    }
}
