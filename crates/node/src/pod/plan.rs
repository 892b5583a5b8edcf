//! What to do about a pod next. Decides only.
//!
//! What is planned is recorded in [`Life`] when it begins, so that planning again yields what is
//! left to do: whoever plans goes on until nothing is.

use std::time::Duration;

use jiff::Timestamp;
use kubewright::Event;

use super::backoff::later;
use super::life::{End, Life, Member, NOT_BEGUN, Now, Replacement, Role, Sandbox, TroubleKind};
use super::notice::{Notice, pause, pod_name};
use super::resize;
use super::restart::{is_init_restarted, is_restarted};
use crate::runtime::ProbeKind;

/// What a pod gets to end in when it does not say.
const GRACE: Duration = Duration::from_secs(30);
/// How long a failure to get an image, or to begin, is shown as such, before it becomes a pause.
const SHOWN: Duration = Duration::from_secs(1);
/// How long a container that was refused other resources waits until it is asked for them again.
const RESIZE_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    pub(crate) notices: Vec<Notice>,
    /// When to look again, if nothing happens before.
    pub(crate) wake: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Make the pod's place.
    Prepare,
    Start {
        container: String,
    },
    /// Show that a container waits, and why.
    Hold {
        container: String,
        reason: &'static str,
        message: String,
    },
    Stop {
        container: String,
        grace: Duration,
        /// What people are told; none if they were told already.
        message: Option<String>,
    },
    /// Give a container other resources while it runs.
    Resize {
        container: String,
    },
    Probe {
        container: String,
        kind: ProbeKind,
    },
    /// Let all containers, which have ended, begin anew.
    Renew,
    /// Take note that a resize is done.
    Settle,
    /// From now on the pod is ending.
    End {
        why: End,
        grace: Duration,
    },
    /// Take the pod's place away.
    Release,
    /// Say the last word: nothing of it runs.
    Delete,
}

pub(crate) fn plan(life: &Life, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if let Some(action) = plan.end(life, now) {
        plan.actions.push(action);
        return plan;
    }
    match &life.end {
        Some(_) => plan.wind_down(life, now),
        None => plan.run(life, now),
    }
    plan.probe(life, now);
    plan
}

impl Plan {
    /// Whether the pod is to end from now on, or sooner than it was to.
    fn end(&mut self, life: &Life, now: Timestamp) -> Option<Action> {
        let metadata = &life.pod.metadata;
        let current = life.end.as_ref();
        if metadata.deletion_timestamp.is_some() {
            let grace = metadata.deletion_grace_period_seconds;
            let grace = grace.map_or(GRACE, |seconds| Duration::from_secs(seconds.max(0) as u64));
            let is_sooner = current.is_none_or(|end| match end.why {
                End::Done | End::Failed { .. } => true,
                End::Deleted => grace < end.grace,
                End::Gone => false,
            });
            return is_sooner.then_some(Action::End { why: End::Deleted, grace });
        }
        let phase = life.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if current.is_none() && matches!(phase, Some("Succeeded" | "Failed")) {
            // Somebody else has said so, and nothing leads out of it.
            return Some(Action::End { why: End::Done, grace: grace(life) });
        }
        let deadline = life.spec().active_deadline_seconds?;
        let deadline = later(life.since, Duration::from_secs(deadline.max(0) as u64));
        if current.is_some() {
            return None;
        }
        if now < deadline {
            self.wake_at(deadline);
            return None;
        }
        let (reason, message) =
            ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
        self.notices.push(Notice::of_pod(Event::normal(reason, message)));
        Some(Action::End { why: End::Failed { reason, message }, grace: grace(life) })
    }

    fn run(&mut self, life: &Life, now: Timestamp) {
        if let Some(progress) = life.progress.as_ref().filter(|_| !life.is_resizing()) {
            let event = resize::completed(&life.pod, progress.generation);
            self.notices.push(Notice::of_pod(event));
            self.actions.push(Action::Settle);
        }
        match &life.sandbox {
            Sandbox::Absent => self.actions.push(Action::Prepare),
            Sandbox::Failed(until) if now < *until => self.wake_at(*until),
            Sandbox::Failed(_) => self.actions.push(Action::Prepare),
            Sandbox::Ready(_) if life.is_renewing() => {
                if self.stop_all(life, Duration::ZERO, "killing", now) {
                    self.actions.push(Action::Renew);
                }
            }
            Sandbox::Ready(_) => self.run_containers(life, now),
            Sandbox::Lost(at) => self.replace_sandbox(life, *at, now),
            Sandbox::Preparing | Sandbox::Releasing(_) | Sandbox::Released(_) => {}
        }
    }

    /// Has another place made for a pod that has lost its own, unless it need not run again.
    fn replace_sandbox(&mut self, life: &Life, lost: Timestamp, now: Timestamp) {
        if !life.needs_place() {
            self.actions.push(Action::End { why: End::Done, grace: grace(life) });
            return;
        }
        if self.stop_all(life, grace(life), "", now) {
            match life.replacing_waits(lost, now) {
                Some(until) => self.wake_at(until),
                None => self.actions.push(Action::Prepare),
            }
        }
    }

    /// Ends all that runs of a pod which goes on. Says whether nothing does any more.
    fn stop_all(&mut self, life: &Life, grace: Duration, message: &str, now: Timestamp) -> bool {
        for member in life.containers.iter().filter(|member| member.role != Role::Ephemeral) {
            let Some(running) = member.up() else { continue };
            if running.stopping.is_none_or(|by| by > later(now, grace)) {
                let container = member.spec.name.clone();
                let message = match message {
                    "" => format!("Stopping container {container}"),
                    message => message.to_owned(),
                };
                self.actions.push(Action::Stop { container, grace, message: Some(message) });
            }
        }
        let mut all = life.containers.iter().filter(|member| member.role != Role::Ephemeral);
        all.all(|member| member.now == Now::Idle)
    }

    fn run_containers(&mut self, life: &Life, now: Timestamp) {
        for member in life.of_role(Role::Ephemeral) {
            if !member.has_started() && member.now == Now::Idle {
                self.start(life, member, now);
            }
        }
        self.replace(life, now);
        self.resize(life, now);
        let has_begun = life
            .of_role(Role::Main)
            .any(|it| it.has_started() && !it.is_afresh || it.now == Now::Starting);
        match self.initialize(life, has_begun, now) {
            Initialized::Yes => {}
            Initialized::NotYet => return,
            Initialized::Never => {
                self.actions.push(Action::End { why: End::Done, grace: grace(life) });
                return;
            }
        }
        let mut is_done = true;
        for member in life.of_role(Role::Main) {
            let is_over = member.last_exit().is_some_and(|exit| {
                let is_kept = member.replacement.is_none();
                is_kept && !is_restarted(life.spec(), &member.spec, exit.ended.code)
            });
            is_done &= is_over;
            if member.now == Now::Idle && !is_over {
                self.start(life, member, now);
            }
        }
        if is_done {
            self.actions.push(Action::End { why: End::Done, grace: grace(life) });
        }
    }

    /// Starts init containers in their order, and sidecars again whenever they end.
    fn initialize(&mut self, life: &Life, has_begun: bool, now: Timestamp) -> Initialized {
        let init = life.containers.iter();
        for member in init.take_while(|it| matches!(it.role, Role::Init | Role::Sidecar)) {
            let is_idle = member.now == Now::Idle;
            if member.role == Role::Sidecar {
                if is_idle {
                    self.start(life, member, now);
                }
                let is_up = member.running().is_some_and(|running| running.probes.is_started());
                if !is_up && !has_begun {
                    return Initialized::NotYet;
                }
                continue;
            }
            if has_begun {
                continue;
            }
            match member.last_exit() {
                Some(exit) if exit.ended.code == 0 => continue,
                Some(exit) if !is_init_restarted(life.spec(), &member.spec, exit.ended.code) => {
                    return Initialized::Never;
                }
                _ if is_idle => self.start(life, member, now),
                _ => {}
            }
            return Initialized::NotYet;
        }
        Initialized::Yes
    }

    /// Starts a container unless another is being started: one has its image, runs, and has done
    /// what it wanted done then, before the next begins.
    fn start_alone(&mut self, life: &Life, container: String) {
        let is_planned = self.actions.iter().any(|it| matches!(it, Action::Start { .. }));
        let mut all = life.containers.iter();
        if !is_planned && !all.any(|it| matches!(it.now, Now::Starting | Now::Hooked(_))) {
            self.actions.push(Action::Start { container });
        }
    }

    /// Starts a container when it is its turn, or says why it must wait. One that must wait holds up
    /// nobody.
    fn start(&mut self, life: &Life, member: &Member, now: Timestamp) {
        let container = member.spec.name.clone();
        let trouble = member.trouble.as_ref();
        if let Some(trouble) = trouble.filter(|trouble| trouble.kind != TroubleKind::Crashed) {
            let Some((_, until)) = member.failure_holds(now) else {
                self.start_alone(life, container);
                return;
            };
            self.wake_at(until);
            let shown = later(trouble.at, SHOWN);
            if trouble.kind == TroubleKind::NoImage && trouble.reason == "ErrImagePull" {
                if now < shown {
                    self.wake_at(shown);
                    return;
                }
                let image = member.spec.image.as_deref().unwrap_or_default();
                let told = format!("Back-off pulling image {image:?}");
                let message = format!("{told}: ErrImagePull: {}", trouble.message);
                self.notices.push(Notice::of(&container, Event::normal("BackOff", told)));
                self.actions.push(Action::Hold { container, reason: "ImagePullBackOff", message });
            }
            return;
        }
        let held = member.exit.as_ref().filter(|_| member.replacement.is_none());
        match held.and_then(|exit| member.crashes.hold(exit.ended.at, now)) {
            None => self.start_alone(life, container),
            Some((length, until)) => {
                self.wake_at(until);
                match trouble {
                    Some(trouble) if trouble.reason == NOT_BEGUN => {
                        let shown = later(trouble.at, SHOWN);
                        if now < shown {
                            self.wake_at(shown);
                            return;
                        }
                    }
                    Some(_) => return,
                    None => {}
                }
                let (name, length) = (pod_name(&life.pod), pause(length));
                let told =
                    format!("Back-off restarting failed container {container} in pod {name}");
                self.notices.push(Notice::of(&container, Event::warning("BackOff", told)));
                let message =
                    format!("back-off {length} restarting failed container={container} pod={name}");
                self.actions.push(Action::Hold { container, reason: "CrashLoopBackOff", message });
            }
        }
    }

    /// Ends containers that are to be started anew: those that are not well, and those whose image
    /// has changed.
    fn replace(&mut self, life: &Life, _now: Timestamp) {
        for member in &life.containers {
            let Some(running) = member.running().filter(|running| running.stopping.is_none())
            else {
                continue;
            };
            let (name, spec) = (&member.spec.name, life.spec());
            let failed = running.probes.failed();
            if running.has_failed_hook {
                let (container, message) = (name.clone(), Some("FailedPostStartHook".to_owned()));
                self.actions.push(Action::Stop { container, grace: grace(life), message });
                continue;
            }
            let (message, own_grace) = match (failed, member.replacement) {
                (Some(kind), _) => {
                    let probe = kind.of(&member.spec);
                    let grace = probe.and_then(|probe| probe.termination_grace_period_seconds);
                    let kind = if kind == ProbeKind::Startup { "startup" } else { "liveness" };
                    (format!("Container {name} failed {kind} probe"), grace)
                }
                (None, Some(Replacement::Image)) => {
                    (format!("Container {name} definition changed"), None)
                }
                (None, Some(Replacement::Resize)) => {
                    let message = Some(format!("Container {name} resize requires restart"));
                    let (container, grace) = (name.clone(), grace(life));
                    self.actions.push(Action::Stop { container, grace, message });
                    continue;
                }
                (None, None) => continue,
            };
            let is_again = member.replacement.is_some()
                || member.role == Role::Sidecar
                || spec.restart_policy.as_deref() != Some("Never");
            let message = if is_again { format!("{message}, will be restarted") } else { message };
            let grace = match own_grace {
                Some(seconds) => Duration::from_secs(seconds.max(0) as u64),
                None => grace(life),
            };
            let (container, message) = (name.clone(), Some(message));
            self.actions.push(Action::Stop { container, grace, message });
        }
    }

    /// Gives containers what was allocated to them by now. What was refused is asked for again after
    /// a while.
    fn resize(&mut self, life: &Life, now: Timestamp) {
        for member in &life.containers {
            let is_to_stay = member.running().is_some_and(|running| running.stopping.is_none());
            if !is_to_stay || member.replacement.is_some() {
                continue;
            }
            let again = member.refused.map(|at| later(at, RESIZE_PAUSE));
            match again.filter(|_| member.asked == member.spec.resources) {
                Some(again) if now < again => self.wake_at(again),
                None if member.asked == member.spec.resources => {}
                _ => self.actions.push(Action::Resize { container: member.spec.name.clone() }),
            }
        }
    }

    /// Ends what runs: containers first, then sidecars, the last one first.
    fn wind_down(&mut self, life: &Life, now: Timestamp) {
        let Some(end) = &life.end else { return };
        let mut is_quiet = true;
        let mut stop = |member: &Member| {
            if let Some(running) = member.up() {
                let is_new = running.stopping.is_none();
                if running.stopping.is_none_or(|by| by > end.by) {
                    let grace = Duration::try_from(end.by.duration_since(now)).unwrap_or_default();
                    let message =
                        is_new.then(|| format!("Stopping container {}", member.spec.name));
                    let container = member.spec.name.clone();
                    self.actions.push(Action::Stop { container, grace, message });
                }
            }
            member.now == Now::Idle
        };
        for member in life.containers.iter().filter(|member| member.role != Role::Sidecar) {
            is_quiet &= stop(member);
        }
        let sidecars: Vec<&Member> = life.of_role(Role::Sidecar).collect();
        for member in sidecars.into_iter().rev() {
            if is_quiet {
                is_quiet = stop(member);
            }
        }
        if !is_quiet {
            return;
        }
        match &life.sandbox {
            Sandbox::Absent | Sandbox::Failed(_) | Sandbox::Ready(_) | Sandbox::Lost(_) => {
                self.actions.push(Action::Release);
            }
            Sandbox::Released(_) if end.why == End::Deleted && !end.is_deleting => {
                self.actions.push(Action::Delete);
            }
            Sandbox::Preparing | Sandbox::Releasing(_) | Sandbox::Released(_) => {}
        }
    }

    fn probe(&mut self, life: &Life, now: Timestamp) {
        for member in &life.containers {
            let Some(running) = member.running() else { continue };
            for kind in ProbeKind::ALL {
                // What is ending need not be found ill.
                let is_ending = life.end.is_some() || running.stopping.is_some();
                if is_ending && kind != ProbeKind::Readiness {
                    continue;
                }
                match running.probes.due(kind) {
                    Some(due) if due <= now => {
                        let container = member.spec.name.clone();
                        self.actions.push(Action::Probe { container, kind });
                    }
                    Some(due) => self.wake_at(due),
                    None => {}
                }
            }
        }
    }

    fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }
}

enum Initialized {
    Yes,
    NotYet,
    /// An init container has failed for good.
    Never,
}

/// What the containers of a pod get to end in.
pub(crate) fn grace(life: &Life) -> Duration {
    let grace = life.spec().termination_grace_period_seconds;
    grace.map_or(GRACE, |seconds| Duration::from_secs(seconds.max(0) as u64))
}
