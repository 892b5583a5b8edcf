//! What is known of a pod: its place, its containers, and whether it is ending.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, LifecycleHandler, Pod, PodSpec, PodStatus, ResourceRequirements,
};

use super::admit::Rejection;
use super::backoff::{Backoff, later};
use super::plan::Action;
use super::probing::Probes;
use super::resize::{Pending, Progress, Standing, is_same, needs_restart};
use super::restart::{are_all_restarted, is_restarted};
use crate::runtime::{
    Ended, FailedRun, Found, FoundContainer, Health, Id, PrepareError, ProbeKind, StartError,
    Started,
};

/// How the message of a pod begins that its node did not take.
pub(crate) const REJECTED: &str = "Pod was rejected: ";

/// What is said of containers that are ended since another ended, and all begin anew.
const RESTARTING: &str = "RestartingAllContainers";
/// What is said of a container whose process did not begin, until its pause does.
pub(super) const NOT_BEGUN: &str = "RunContainerError";
const REMOVED: &str = "The container is removed because RestartAllContainers in place";

/// How long what could not be made or started waits to be tried again.
const PAUSE: Duration = Duration::from_secs(10);
/// The same, for volumes: twice as long each time.
const MOUNT_FIRST: Duration = Duration::from_millis(500);
const MOUNT_LONGEST: Duration = Duration::from_secs(122);

/// A pod, as this node knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Life {
    /// As it was last seen, with the resources that were allocated to it.
    pub(crate) pod: Arc<Pod>,
    pub(crate) sandbox: Sandbox,
    /// In the order of the specification: init containers, containers, ephemeral ones.
    pub(crate) containers: Vec<Member>,
    pub(crate) end: Option<Ending>,
    /// Why it was never taken, if it was not.
    pub(crate) rejection: Option<Rejection>,
    /// When this node first saw it.
    pub(crate) since: Timestamp,
    /// The places that it has lost.
    preparations: Backoff,
    /// How often its volumes could not be mounted in a row.
    mount_failures: u32,
    /// The generation of the last resize that there was room for.
    allocated: Option<i64>,
    /// A resize that there is no room for.
    pub(crate) pending: Option<Pending>,
    /// A resize that there is room for, until it is done.
    pub(crate) progress: Option<Progress>,
}

/// The place of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// There is none. It is made next.
    Absent,
    /// It could not be made, and is tried again at this time.
    Failed(Timestamp),
    /// It is being made.
    Preparing,
    /// Containers can be started.
    Ready(Vec<IpAddr>),
    /// It was taken away behind our back. What still runs of the pod is ended, and then there is
    /// another, in which all begins anew.
    Lost(Timestamp),
    /// It is being taken away.
    Releasing(Vec<IpAddr>),
    /// There will be none again. These were its addresses.
    Released(Vec<IpAddr>),
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) spec: Arc<Container>,
    pub(crate) role: Role,
    pub(crate) now: Now,
    /// How its newest run ended, if one has.
    pub(crate) exit: Option<Exit>,
    /// How the run before that ended.
    pub(crate) exit_before: Option<Exit>,
    /// How often it was started.
    pub(crate) starts: u32,
    /// Why it does not run.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) crashes: Backoff,
    failures: Backoff,
    /// Its process is to be replaced, whatever the restart policy says.
    pub(crate) replacement: Option<Replacement>,
    /// It is to run as if it never had: how it ended before does not count.
    pub(crate) is_afresh: bool,
    /// What its newest run may use.
    pub(crate) given: Option<ResourceRequirements>,
    /// What it was last asked to be given.
    pub(crate) asked: Option<ResourceRequirements>,
    /// When that was refused, if it was.
    pub(crate) refused: Option<Timestamp>,
}

/// Why a process is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacement {
    Image,
    Resize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Must succeed before what comes after it.
    Init,
    /// Is started in order, and runs beside the containers.
    Sidecar,
    Main,
    /// Somebody wants to look at something.
    Ephemeral,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Now {
    Idle,
    /// The runtime was asked to start it.
    Starting,
    /// It runs, and what it wants done then is under way: until that is over it shows as starting.
    Hooked(Running),
    Running(Running),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Running {
    pub(crate) started: Started,
    pub(crate) probes: Probes,
    /// What it wanted done when it started has failed.
    pub(crate) has_failed_hook: bool,
    /// It was asked to end, at the latest by this time.
    pub(crate) stopping: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) started: Started,
    pub(crate) ended: Ended,
}

/// Why a container waits, as status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// When it arose.
    pub(crate) at: Timestamp,
    pub(crate) kind: TroubleKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// It ended too often.
    Crashed,
    /// It could not be started at that time.
    NotStarted,
    /// Its image could not be had.
    NoImage,
}

/// A pod that is ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) why: End,
    /// When all must have ended.
    pub(crate) by: Timestamp,
    pub(crate) grace: Duration,
    /// The last word has been asked for.
    pub(crate) is_deleting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Its containers have done what they were for, or failed at it for good.
    Done,
    /// It must not run any longer, and has failed.
    Failed { reason: &'static str, message: &'static str },
    /// Somebody deleted it.
    Deleted,
    /// It is not in the API any more.
    Gone,
}

impl Life {
    /// A pod that is new here, with what the runtime still has of it.
    pub(crate) fn new(pod: Arc<Pod>, found: Found, now: Timestamp) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let since = status.start_time.as_ref().map_or(now, |time| time.0);
        let sandbox = match found.addresses {
            Some(addresses) => Sandbox::Ready(addresses),
            None if found.is_lost => Sandbox::Lost(now),
            None => Sandbox::Absent,
        };
        let mut life = Life {
            pod: Arc::clone(&pod),
            sandbox,
            containers: Vec::new(),
            end: None,
            rejection: None,
            since,
            preparations: Backoff::default(),
            mount_failures: 0,
            allocated: None,
            pending: None,
            progress: Progress::recalled(&status, now),
        };
        life.complete();
        for member in &mut life.containers {
            let known = statuses(&status).find(|known| known.name == member.spec.name);
            let found = found.containers.iter().find(|found| found.name == member.spec.name);
            member.recall(known, found);
            member.restart_to_resize();
        }
        if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            life.be_done(now);
        }
        life.rejection = status.message.as_deref().and_then(|message| {
            let message = message.strip_prefix(REJECTED)?.to_owned();
            Some(Rejection { reason: status.reason.clone()?, message })
        });
        life
    }

    /// This node does not take it.
    pub(crate) fn reject(&mut self, rejection: Rejection, now: Timestamp) {
        self.rejection = Some(rejection);
        self.be_done(now);
    }

    fn be_done(&mut self, now: Timestamp) {
        let grace = Duration::ZERO;
        self.end = Some(Ending { why: End::Done, by: now, grace, is_deleting: false });
    }

    pub(crate) fn spec(&self) -> &PodSpec {
        static NONE: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        self.pod.spec.as_ref().unwrap_or(&NONE)
    }

    /// The pod has changed.
    pub(crate) fn seen(&mut self, pod: Arc<Pod>) {
        self.pod = pod;
        self.complete();
        for member in &mut self.containers {
            member.restart_to_resize();
        }
    }

    /// What the node has decided about its resizes.
    pub(crate) fn stands(&mut self, standing: Standing, now: Timestamp) {
        let Standing { allocated, pending } = standing;
        if let Some(generation) = allocated.filter(|_| allocated != self.allocated) {
            self.progress = Some(Progress::begun(generation, now));
        }
        (self.allocated, self.pending) = (allocated, pending);
    }

    /// Whether something runs that was not given yet what was allocated to it.
    pub(crate) fn is_resizing(&self) -> bool {
        let mut all = self.containers.iter().filter(|member| member.role != Role::Ephemeral);
        all.any(|member| member.up().is_some() && !member.is_given())
    }

    /// Takes up what the specification has and this does not: at first everything, later ephemeral
    /// containers and other images.
    fn complete(&mut self) {
        let spec = self.spec().clone();
        let roles = spec.init_containers.unwrap_or_default().into_iter().map(|container| {
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            (if is_sidecar { Role::Sidecar } else { Role::Init }, container)
        });
        let main = spec.containers.into_iter().map(|container| (Role::Main, container));
        let ephemeral = spec.ephemeral_containers.unwrap_or_default().into_iter();
        let ephemeral = ephemeral.map(|container| {
            // All but the name of the container it looks at; the types are alike on the wire.
            let container = serde_json::to_value(container).and_then(serde_json::from_value);
            (Role::Ephemeral, container.expect("an ephemeral container is a container"))
        });
        for (role, container) in roles.chain(main).chain(ephemeral) {
            match self.containers.iter_mut().find(|known| known.spec.name == container.name) {
                Some(known) => {
                    // Other changes do not need another process.
                    let is_other = known.spec.image != container.image;
                    if is_other && known.now != Now::Idle && role != Role::Init {
                        known.replacement = Some(Replacement::Image);
                    }
                    // How it went with the image before says nothing.
                    if is_other && known.now == Now::Idle {
                        known.trouble.take_if(|trouble| trouble.kind != TroubleKind::Crashed);
                        known.failures = Backoff::default();
                    }
                    known.spec = Arc::new(container);
                }
                None => self.containers.push(Member::new(role, container)),
            }
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.containers.iter().find(|member| member.spec.name == name)
    }

    fn member_mut(&mut self, name: &str) -> Option<&mut Member> {
        self.containers.iter_mut().find(|member| member.spec.name == name)
    }

    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &Member> {
        self.containers.iter().filter(move |member| member.role == role)
    }

    pub(crate) fn addresses(&self) -> &[IpAddr] {
        match &self.sandbox {
            Sandbox::Ready(addresses)
            | Sandbox::Releasing(addresses)
            | Sandbox::Released(addresses) => addresses,
            Sandbox::Absent | Sandbox::Failed(_) | Sandbox::Preparing | Sandbox::Lost(_) => &[],
        }
    }

    /// Whether it takes room on its node: something of it runs, or will.
    pub(crate) fn is_active(&self) -> bool {
        self.end.is_none() || self.containers.iter().any(|member| member.now != Now::Idle)
    }

    /// Whether nothing of it runs, nor will.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && matches!(self.sandbox, Sandbox::Released(_))
    }

    /// Something is about to be done.
    pub(crate) fn begin(&mut self, action: &Action, now: Timestamp) {
        match action {
            Action::Prepare => {
                if let Sandbox::Lost(at) = self.sandbox {
                    self.preparations.tried(at, now);
                    self.begin_afresh();
                }
                self.sandbox = Sandbox::Preparing;
            }
            Action::Renew => self.renew(now),
            Action::Settle => self.progress = None,
            Action::Release => {
                self.sandbox = Sandbox::Releasing(self.addresses().to_vec());
            }
            Action::End { why, grace } => {
                let is_deleting = self.end.as_ref().is_some_and(|end| end.is_deleting);
                let by = later(now, *grace);
                self.end = Some(Ending { why: why.clone(), by, grace: *grace, is_deleting });
            }
            Action::Delete => {
                if let Some(end) = &mut self.end {
                    end.is_deleting = true;
                }
            }
            Action::Start { container } => {
                if let Some(member) = self.member_mut(container) {
                    member.start(now);
                }
            }
            Action::Hold { container, reason, message, .. } => {
                if let Some(member) = self.member_mut(container) {
                    let (at, kind) = match &member.trouble {
                        Some(trouble) => (trouble.at, trouble.kind),
                        None => (now, TroubleKind::Crashed),
                    };
                    let (reason, message) = ((*reason).to_owned(), message.clone());
                    member.trouble = Some(Trouble { reason, message, at, kind });
                }
            }
            Action::Stop { container, grace, .. } => {
                // It is wanted no later than this, also if that is over by now: whoever asks for a
                // later end is asked again.
                let wanted = self.end.as_ref().map(|end| end.by);
                let by = later(now, *grace);
                let by = wanted.map_or(by, |wanted| by.min(wanted));
                if let Some(member) = self.member_mut(container) {
                    member.stop(by);
                }
            }
            Action::Resize { container } => {
                if let Some(member) = self.member_mut(container) {
                    member.asked.clone_from(&member.spec.resources);
                    member.refused = None;
                }
            }
            Action::Probe { container, kind } => {
                if let Some(Now::Running(running)) =
                    self.member_mut(container).map(|member| &mut member.now)
                {
                    running.probes.begun(*kind);
                }
            }
        }
    }

    pub(crate) fn prepared(
        &mut self,
        prepared: &Result<Vec<IpAddr>, PrepareError>,
        now: Timestamp,
    ) {
        let pause = match prepared {
            Ok(addresses) => {
                self.mount_failures = 0;
                self.sandbox = Sandbox::Ready(addresses.clone());
                return;
            }
            Err(PrepareError::Sandbox(_)) => PAUSE,
            Err(error) => {
                let doubled = 2_u32.saturating_pow(self.mount_failures);
                self.mount_failures = self.mount_failures.saturating_add(1);
                // A claim that was not bound may be a moment later, and nobody tells of it.
                let is_unknown = matches!(error, PrepareError::Unprocessed { .. });
                let longest = if is_unknown { PAUSE } else { MOUNT_LONGEST };
                MOUNT_FIRST.saturating_mul(doubled).min(longest)
            }
        };
        self.sandbox = Sandbox::Failed(later(now, pause));
    }

    /// The place was taken away behind our back. Says whether that is news.
    pub(crate) fn lose_place(&mut self, now: Timestamp) -> bool {
        let is_news = matches!(self.sandbox, Sandbox::Ready(_)) && self.end.is_none();
        if is_news {
            self.sandbox = Sandbox::Lost(now);
        }
        is_news
    }

    /// Whether a pod that has lost its place needs another: not one that is never started again, and
    /// has begun, nor one whose containers have all done what they were for.
    pub(crate) fn needs_place(&self) -> bool {
        let spec = self.spec();
        let has_run = self.containers.iter().any(Member::has_started);
        let is_never = spec.restart_policy.as_deref() == Some("Never");
        let is_over = |member: &Member| {
            let exit = member.last_exit();
            exit.is_some_and(|exit| !is_restarted(spec, &member.spec, exit.ended.code))
        };
        let is_done = is_never && has_run || self.of_role(Role::Main).all(is_over);
        !is_done
    }

    /// All containers begin anew in another place, but for those that need not.
    fn begin_afresh(&mut self) {
        let spec = self.pod.spec.clone().unwrap_or_default();
        for member in &mut self.containers {
            let is_over = member.role == Role::Main
                && member
                    .last_exit()
                    .is_some_and(|exit| !is_restarted(&spec, &member.spec, exit.ended.code));
            member.is_afresh = member.role != Role::Ephemeral && !is_over;
        }
    }

    /// All containers begin anew where they are, since one of them ended so that they do.
    fn renew(&mut self, now: Timestamp) {
        for member in self.containers.iter_mut().filter(|it| it.role != Role::Ephemeral) {
            member.is_afresh = true;
            member.trouble = member.exit.as_ref().map(|_| Trouble {
                reason: RESTARTING.to_owned(),
                message: REMOVED.to_owned(),
                at: now,
                kind: TroubleKind::Crashed,
            });
        }
    }

    /// Whether all containers are to be ended and begin anew, since one of them ended so.
    pub(crate) fn is_renewing(&self) -> bool {
        self.end.is_none()
            && self.containers.iter().any(|member| {
                member.role != Role::Ephemeral
                    && member.last_exit().is_some_and(|exit| {
                        are_all_restarted(self.spec(), &member.spec, exit.ended.code)
                    })
            })
    }

    pub(crate) fn released(&mut self) {
        self.sandbox = Sandbox::Released(self.addresses().to_vec());
    }

    /// The last word could not be said, and is tried again.
    pub(crate) fn not_deleted(&mut self) {
        if let Some(end) = &mut self.end {
            end.is_deleting = false;
        }
    }

    /// A container runs, or does not.
    pub(crate) fn started(
        &mut self,
        container: &str,
        started: Result<Started, StartError>,
        now: Timestamp,
    ) {
        let Some(member) = self.member_mut(container) else { return };
        match started {
            Ok(started) => {
                let probes = Probes::new(&member.spec, started.at);
                member.starts += 1;
                member.trouble = None;
                member.replacement = None;
                member.failures = Backoff::default();
                let running = Running { started, probes, has_failed_hook: false, stopping: None };
                member.now = match post_start(&member.spec) {
                    Some(_) => Now::Hooked(running),
                    None => Now::Running(running),
                };
            }
            Err(StartError::Sandbox) => {
                member.now = Now::Idle;
                self.lose_place(now);
            }
            Err(StartError::Run { why, run: Some(run) }) => {
                let FailedRun { started, ended } = *run;
                member.exit_before = member.exit.replace(Exit { started, ended });
                member.starts += 1;
                member.replacement = None;
                member.failures = Backoff::default();
                member.trouble = Some(Trouble {
                    reason: NOT_BEGUN.to_owned(),
                    message: why,
                    at: now,
                    kind: TroubleKind::Crashed,
                });
                member.now = Now::Idle;
            }
            Err(error) => {
                let is_image = matches!(error, StartError::Pull(_));
                let kind = if is_image { TroubleKind::NoImage } else { TroubleKind::NotStarted };
                let (reason, message) = (error.reason().to_owned(), error.to_string());
                member.trouble = Some(Trouble { reason, message, at: now, kind });
                member.now = Now::Idle;
            }
        }
    }

    /// What a container wanted done when it started is over. If it was asked to end meanwhile,
    /// that does not matter any more.
    pub(crate) fn hooked(&mut self, container: &str, id: &Id, has_failed: bool) {
        let Some(member) = self.member_mut(container) else { return };
        if let Now::Hooked(running) = &member.now
            && running.started.id == *id
        {
            let running = Running { has_failed_hook: has_failed, ..running.clone() };
            member.now = Now::Running(running);
        }
    }

    pub(crate) fn ended(&mut self, container: &str, id: &Id, mut ended: Ended) {
        let is_renewing = self.is_renewing();
        let Some(member) = self.member_mut(container) else { return };
        if let Some(running) = member.up()
            && running.started.id == *id
        {
            if is_renewing && running.stopping.is_some() {
                (ended.reason, ended.message) = (RESTARTING.to_owned(), Some(REMOVED.to_owned()));
            }
            let exit = Exit { started: running.started.clone(), ended };
            member.exit_before = member.exit.replace(exit);
            member.now = Now::Idle;
        }
    }

    /// A container was given these resources while it runs.
    pub(crate) fn resized(
        &mut self,
        container: &str,
        id: &Id,
        given: Option<ResourceRequirements>,
    ) {
        let Some(member) = self.member_mut(container) else { return };
        if member.up().is_some_and(|running| running.started.id == *id) {
            member.given = given;
        }
    }

    /// A container was not given other resources, and is asked again later. Gives the generation
    /// of the resize if that is news.
    pub(crate) fn not_resized(
        &mut self,
        container: &str,
        id: &Id,
        why: &str,
        now: Timestamp,
    ) -> Option<i64> {
        let generation = self.pod.metadata.generation.unwrap_or_default();
        let member = self.member_mut(container)?;
        member.up().filter(|running| running.started.id == *id)?;
        member.refused = Some(now);
        let progress = self.progress.get_or_insert_with(|| Progress::begun(generation, now));
        progress.fail(why, now).then_some(progress.generation)
    }

    /// A container could not be asked to end, and is asked again.
    pub(crate) fn not_stopped(&mut self, container: &str, id: &Id) {
        if let Some(Now::Running(running)) = self.member_mut(container).map(|it| &mut it.now)
            && running.started.id == *id
        {
            running.stopping = None;
        }
    }

    pub(crate) fn probed(
        &mut self,
        container: &str,
        id: &Id,
        kind: ProbeKind,
        health: &Health,
        now: Timestamp,
    ) {
        let Some(member) = self.member_mut(container) else { return };
        let found = match health {
            Health::Well | Health::Warned(_) => Some(true),
            Health::Ill(_) => Some(false),
            Health::Unknown(_) => None,
        };
        if let (Now::Running(running), Some(probe)) = (&mut member.now, kind.of(&member.spec))
            && running.started.id == *id
        {
            running.probes.found(kind, probe, found, now);
        }
    }

    /// Until when a pod that lost its sandbox again must wait for another.
    pub(crate) fn replacing_waits(&self, lost: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.preparations.hold(lost, now).map(|(_, until)| until)
    }

    /// Whether something of it waits to be tried again that another object may be missing for.
    pub(crate) fn is_wanting(&self) -> bool {
        let is_failed = matches!(self.sandbox, Sandbox::Failed(_));
        self.end.is_none() && (is_failed || self.containers.iter().any(Member::is_wanting))
    }

    /// Whether nothing of it is missing any more, as far as has been tried.
    pub(crate) fn is_content(&self) -> bool {
        let has_place = matches!(self.sandbox, Sandbox::Ready(_));
        self.end.is_some() || has_place && !self.containers.iter().any(Member::is_wanting)
    }

    /// What it is made of has changed: what was missing is looked for again at once.
    pub(crate) fn hurry(&mut self) {
        if matches!(self.sandbox, Sandbox::Failed(_)) {
            self.sandbox = Sandbox::Absent;
        }
        for member in self.containers.iter_mut().filter(|member| member.is_wanting()) {
            if let Some(trouble) = &mut member.trouble {
                trouble.at = Timestamp::MIN;
            }
        }
    }
}

impl Member {
    fn new(role: Role, spec: Container) -> Self {
        Member {
            spec: Arc::new(spec),
            role,
            now: Now::Idle,
            exit: None,
            exit_before: None,
            starts: 0,
            trouble: None,
            crashes: Backoff::default(),
            failures: Backoff::default(),
            replacement: None,
            is_afresh: false,
            given: None,
            asked: None,
            refused: None,
        }
    }

    /// Whether it has the resources that were allocated to it.
    fn is_given(&self) -> bool {
        is_same(self.given.as_ref(), self.spec.resources.as_ref())
    }

    /// Some resources are only given to a process that is started with them.
    fn restart_to_resize(&mut self) {
        let (before, after) = (self.given.as_ref(), self.spec.resources.as_ref());
        if self.up().is_some() && needs_restart(&self.spec, before, after) {
            self.replacement.get_or_insert(Replacement::Resize);
        }
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        match &self.now {
            Now::Running(running) => Some(running),
            Now::Idle | Now::Starting | Now::Hooked(_) => None,
        }
    }

    /// Its process, whether or not that counts as running yet.
    pub(crate) fn up(&self) -> Option<&Running> {
        match &self.now {
            Now::Running(running) | Now::Hooked(running) => Some(running),
            Now::Idle | Now::Starting => None,
        }
    }

    /// It is asked to end by this time. It does not wait for its hook: whoever ends it is not held
    /// up by what its start was to be followed by.
    fn stop(&mut self, by: Timestamp) {
        if let Some(running) = self.up() {
            self.now = Now::Running(Running { stopping: Some(by), ..running.clone() });
        }
    }

    /// The number of the run that has this id, if it is one that is remembered.
    pub(crate) fn number(&self, id: &str) -> Option<u32> {
        let up = self.up().map(|running| &running.started);
        let ended = [&self.exit, &self.exit_before].into_iter().flatten();
        // The newest first.
        let mut runs = up.into_iter().chain(ended.map(|exit| &exit.started));
        let back = runs.position(|started| started.id.as_str() == id)?;
        self.starts.checked_sub(1 + u32::try_from(back).ok()?)
    }

    /// Whether it has ever run.
    pub(crate) fn has_started(&self) -> bool {
        self.starts > 0
    }

    /// How it ended, if it does not run since, and that counts.
    pub(crate) fn last_exit(&self) -> Option<&Exit> {
        self.exit.as_ref().filter(|_| self.now == Now::Idle && !self.is_afresh)
    }

    fn start(&mut self, now: Timestamp) {
        match (&self.trouble, &self.exit) {
            (Some(trouble), _) if trouble.kind != TroubleKind::Crashed => {
                self.failures.tried(trouble.at, now);
            }
            (_, Some(exit)) if self.replacement.is_none() => {
                self.crashes.tried(exit.ended.at, now);
            }
            _ => {}
        }
        self.is_afresh = false;
        self.give(self.spec.resources.clone());
        self.now = Now::Starting;
    }

    fn give(&mut self, resources: Option<ResourceRequirements>) {
        self.asked.clone_from(&resources);
        self.given = resources;
        self.refused = None;
    }

    /// Until when another start must wait after one that failed, and how long in all.
    pub(crate) fn failure_holds(&self, now: Timestamp) -> Option<(Duration, Timestamp)> {
        let trouble = self.trouble.as_ref()?;
        // Only what others have to give is asked for less and less.
        let held = self.failures.hold(trouble.at, now);
        let held = held.filter(|_| trouble.kind == TroubleKind::NoImage);
        let (pause, until) = held.unwrap_or((PAUSE, later(trouble.at, PAUSE)));
        (now < until).then_some((pause, until))
    }

    /// Whether it could not be started for what it is made of.
    fn is_wanting(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.kind == TroubleKind::NotStarted)
    }

    /// What the API and the runtime know from before.
    fn recall(&mut self, known: Option<&ContainerStatus>, found: Option<&FoundContainer>) {
        // What it was given before it was asked for more is what it shows.
        let shown = known.and_then(|known| known.resources.clone());
        self.give(shown.or_else(|| self.spec.resources.clone()));
        if let Some(known) = known {
            let has_run = known.container_id.is_some() || known.restart_count > 0;
            self.starts = known.restart_count.unsigned_abs() + u32::from(has_run);
            let state = known.state.as_ref();
            let last = known.last_state.as_ref();
            let ended = state.and_then(|state| state.terminated.as_ref());
            let before = last.and_then(|state| state.terminated.as_ref());
            let exit = |ended| exit_of(known, ended);
            (self.exit, self.exit_before) = match ended {
                Some(ended) => (Some(exit(ended)), before.map(exit)),
                None => (before.map(exit), None),
            };
        }
        let Some(FoundContainer { number, started, ended, .. }) = found else {
            self.lose(known);
            return;
        };
        self.starts = number + 1;
        match ended {
            Some(ended) => {
                let exit = Exit { started: started.clone(), ended: ended.clone() };
                if self.exit.as_ref().is_none_or(|known| known.started.id != exit.started.id) {
                    self.exit_before = self.exit.replace(exit);
                }
            }
            None => {
                let is_started = known.is_some_and(|known| known.started == Some(true));
                let is_ready = known.is_some_and(|known| known.ready);
                let probes = Probes::new(&self.spec, started.at).adopted(is_started, is_ready);
                self.now = Now::Running(Running {
                    started: started.clone(),
                    probes,
                    has_failed_hook: false,
                    stopping: None,
                });
            }
        }
    }

    /// What the API says to run, and the runtime does not know, has ended somehow.
    fn lose(&mut self, known: Option<&ContainerStatus>) {
        let running = known.and_then(|known| known.state.as_ref()?.running.as_ref());
        if let (Some(known), Some(running)) = (known, running) {
            let at = running.started_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
            let ended = Ended {
                code: 137,
                reason: "ContainerStatusUnknown".to_owned(),
                message: Some(
                    "The container could not be located when the pod was deleted.  \
                     The container used to be Running"
                        .to_owned(),
                ),
                at,
            };
            self.exit_before = self.exit.replace(Exit { started: started_of(known, at), ended });
        }
    }
}

/// What a container wants done when it has started.
pub(crate) fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

fn exit_of(
    known: &ContainerStatus,
    ended: &k8s_openapi::api::core::v1::ContainerStateTerminated,
) -> Exit {
    let started = ended.started_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let at = ended.finished_at.as_ref().map_or(started, |time| time.0);
    let mut started = started_of(known, started);
    started.id = Id::new(ended.container_id.clone().unwrap_or_default());
    let reason = ended.reason.clone().unwrap_or_default();
    let ended = Ended { code: ended.exit_code, reason, message: ended.message.clone(), at };
    Exit { started, ended }
}

fn started_of(known: &ContainerStatus, at: Timestamp) -> Started {
    let id = Id::new(known.container_id.clone().unwrap_or_default());
    Started { id, image_id: known.image_id.clone(), at }
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    let ephemeral = status.ephemeral_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten()).chain(ephemeral)
}
