//! Lives of pods, told as stories: what happens to a pod, and what is done about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerState, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_apimachinery::yaml;

use super::admit::Rejection;
use super::life::{Life, Sandbox};
use super::log::run_of;
use super::plan::{Action, plan};
use super::resize::{Pending, Standing};
use super::status::{Host, container_status, status};
use crate::runtime::{
    Ended, FailedRun, Found, Health, Id, PrepareError, ProbeKind, StartError, Started,
};

/// A pod whose containers do as the story says.
struct Story {
    life: Life,
    now: Timestamp,
    shown: PodStatus,
    told: String,
}

/// Plays a story, a line for each thing that happens, and compares what was done and shown.
///
/// `up a` means that a container has started, `exit a 1` that it ended, `no a pull` that it could
/// not be started, `no a run` that its process did not begin, `no a config` that something was missing,
/// `news` that what it is made of has changed, `lost a` that there was no place to start it in, `lost` that the place is gone, `done a hook` and `failed a hook` what became of its hook, `well a ready` and `ill a alive` what a probe found, `wait 10` that time passes,
/// `delete 30` that somebody deleted the pod, `phase Failed` that somebody said so, `show` that we look at its status,
/// `log a` and `previous a` that somebody asks for its log, `resize a 2` that other resources were allocated to it, `resized a`
/// that it has them, `no a resize` that it was refused them, `defer` that there is no room for a resize, and `given a` and
/// `resizes` that we look at all that.
fn check(spec: &str, story: &str, expected: &str) {
    let it = Story::play(spec, story);
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(it.told.trim_end(), expected.join("\n"), "{}", it.told);
}

impl Story {
    fn play(spec: &str, story: &str) -> Self {
        let text = format!("metadata: {{name: p, namespace: d, uid: u, generation: 1}}\n{spec}");
        let value = yaml::decode(&text).unwrap_or_else(|error| panic!("{error}")).value;
        let pod: Pod = serde_json::from_value(value).expect("a pod");
        let now = Timestamp::UNIX_EPOCH;
        let life = Life::new(Arc::new(pod), Found::default(), now);
        let mut it = Story { life, now, shown: PodStatus::default(), told: String::new() };
        it.act();
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            it.happen(line);
            it.act();
        }
        it
    }

    fn happen(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let id = |it: &Story, name: &str| {
            let member = it.life.member(name).expect("a container");
            member.up().map_or_else(|| Id::new(""), |running| running.started.id.clone())
        };
        let number = |word: &str| word.parse::<i64>().expect("a number");
        match words[..] {
            ["wait", seconds] => self.now += SignedDuration::from_secs(number(seconds)),
            ["up", name] => {
                let starts = self.life.member(name).expect("a container").starts;
                let id = Id::new(format!("t://{name}{starts}"));
                let started = Started { id, image_id: "i".to_owned(), at: self.now };
                self.life.started(name, Ok(started), self.now);
            }
            [how @ ("done" | "failed"), name, "hook"] => {
                let id = id(self, name);
                self.life.hooked(name, &id, how == "failed");
            }
            ["lost"] => {
                let is_news = self.life.lose_place(self.now);
                let needs_place = self.life.needs_place();
                self.tell(&format!("lost: news {is_news}, needs another {needs_place}"));
            }
            ["lost", name] => {
                self.life.started(name, Err(StartError::Sandbox), self.now);
            }
            ["no", name, "pull"] => {
                let error = StartError::Pull("no such image".to_owned());
                self.life.started(name, Err(error), self.now);
            }
            ["no", name, "run"] => {
                let starts = self.life.member(name).expect("a container").starts;
                let id = Id::new(format!("t://{name}{starts}"));
                let at = Timestamp::UNIX_EPOCH;
                let started = Started { id, image_id: "i".to_owned(), at };
                let ended = Ended::before_it_began("no such program".to_owned(), self.now);
                let run = Some(Box::new(FailedRun { started, ended }));
                let error = StartError::Run { why: "no such program".to_owned(), run };
                self.life.started(name, Err(error), self.now);
            }
            ["no", name, "config"] => {
                let error = StartError::Config("secret \"s\" not found".to_owned());
                self.life.started(name, Err(error), self.now);
            }
            ["news"] => self.life.hurry(),
            ["exit", name, code] => {
                let code = i32::try_from(number(code)).expect("an exit code");
                let id = id(self, name);
                self.life.ended(name, &id, Ended::with_code(code, self.now));
            }
            ["resize", name, cpu] => {
                let mut pod = Pod::clone(&self.life.pod);
                let spec = pod.spec.as_mut().expect("a spec");
                let container = spec.containers.iter_mut().find(|it| it.name == name);
                let requests = BTreeMap::from([("cpu".to_owned(), Quantity(cpu.to_owned()))]);
                let resources = container.expect("a container").resources.get_or_insert_default();
                resources.requests = Some(requests);
                let generation = pod.metadata.generation.get_or_insert_default();
                *generation += 1;
                let standing = Standing { allocated: Some(*generation), pending: None };
                self.life.seen(Arc::new(pod));
                self.life.stands(standing, self.now);
            }
            ["defer"] => {
                let why = Rejection { reason: "OutOfcpu".to_owned(), message: "full".to_owned() };
                let pending = Pending::deferred(&why, 9, None, self.now);
                let allocated = self.life.pod.metadata.generation.filter(|it| *it > 1);
                self.life.stands(Standing { allocated, pending: Some(pending) }, self.now);
            }
            ["no", name, "resize"] => {
                let id = id(self, name);
                let news = self.life.not_resized(name, &id, "too small", self.now);
                self.tell(&format!("news: {news:?}"));
            }
            ["resizes"] => self.show_resizes(),
            ["resized", name] => {
                let given = self.life.member(name).expect("a container").spec.resources.clone();
                let id = id(self, name);
                self.life.resized(name, &id, given);
            }
            ["given", name] => {
                let member = self.life.member(name).expect("a container");
                let shown = container_status(&self.life, member).resources;
                let requests = shown.and_then(|it| it.requests).unwrap_or_default();
                let cpu = requests.get("cpu").map_or("nothing", |cpu| cpu.0.as_str());
                let told = format!("given {name}: {cpu}");
                self.tell(&told);
            }
            [how, name, kind] => {
                let health =
                    if how == "well" { Health::Well } else { Health::Ill("why".to_owned()) };
                let kind = match kind {
                    "alive" => ProbeKind::Liveness,
                    "ready" => ProbeKind::Readiness,
                    _ => ProbeKind::Startup,
                };
                let id = id(self, name);
                self.life.probed(name, &id, kind, &health, self.now);
            }
            ["delete", seconds] => {
                let mut pod = Pod::clone(&self.life.pod);
                pod.metadata.deletion_timestamp = Some(Time(self.now));
                pod.metadata.deletion_grace_period_seconds = Some(number(seconds));
                self.life.seen(Arc::new(pod));
            }
            ["phase", phase] => {
                let mut pod = Pod::clone(&self.life.pod);
                pod.status.get_or_insert_default().phase = Some(phase.to_owned());
                self.life.seen(Arc::new(pod));
            }
            [which @ ("log" | "previous"), name] => {
                let member = self.life.member(name).expect("a container");
                let told = match run_of(&self.life, member, which == "previous") {
                    Ok(number) => format!("{which} {name}: run {number}"),
                    Err(why) => format!("{which} {name}: {why}"),
                };
                self.tell(&told);
            }
            ["show"] => self.show(),
            _ => panic!("what is {line:?}?"),
        }
    }

    fn act(&mut self) {
        loop {
            let plan = plan(&self.life, self.now);
            for notice in plan.notices {
                let told = format!("{:?}", notice.event);
                let note = told.split("note: ").nth(1).unwrap_or_default();
                self.tell(&format!("tell {}", note.trim_end_matches(" }")));
            }
            if plan.actions.is_empty() {
                if let Some(wake) = plan.wake {
                    let at = wake.as_second();
                    self.tell(&format!("look again at {at}"));
                }
                return;
            }
            for action in plan.actions {
                self.life.begin(&action, self.now);
                self.do_(action);
            }
        }
    }

    fn do_(&mut self, action: Action) {
        match action {
            Action::Prepare => {
                if self.life.containers.iter().any(|member| member.has_started()) {
                    self.tell("prepare again");
                }
                let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
                self.life.prepared(&Ok(vec![address]), self.now);
            }
            Action::Release => {
                self.tell("release");
                self.life.released();
            }
            Action::Start { container } => self.tell(&format!("start {container}")),
            Action::Hold { container, reason, message } => {
                self.tell(&format!("hold {container}: {reason}: {message}"));
            }
            Action::Stop { container, grace, message } => {
                let message = message.unwrap_or_else(|| "again".to_owned());
                self.tell(&format!("stop {container} in {}s: {message}", grace.as_secs()));
            }
            Action::Resize { container } => self.tell(&format!("resize {container}")),
            Action::Probe { container, kind } => self.tell(&format!("probe {container} {kind:?}")),
            Action::End { why, .. } => self.tell(&format!("end: {why:?}")),
            Action::Delete => self.tell("delete"),
            Action::Renew => self.tell("all begin anew"),
            Action::Settle => self.tell("resize is done"),
        }
    }

    fn show(&mut self) {
        let host = Host { address: Ipv4Addr::LOCALHOST.into() };
        self.shown = status(&self.life, &host, &self.shown, self.now);
        let status = self.shown.clone();
        let mut line = status.phase.clone().unwrap_or_default();
        if let Some(reason) = &status.reason {
            write!(line, " ({reason})").expect("a string takes it");
        }
        let init = status.init_container_statuses.iter().flatten();
        for container in init.chain(status.container_statuses.iter().flatten()) {
            let state = shown(container.state.as_ref()).unwrap_or_default();
            write!(line, "; {} {state}", container.name).expect("a string takes it");
            if let Some(last) = shown(container.last_state.as_ref()) {
                write!(line, " after {last}").expect("a string takes it");
            }
            write!(line, " x{}", container.restart_count).expect("a string takes it");
            line.push_str(if container.ready { " ready" } else { "" });
        }
        for condition in status.conditions.iter().flatten() {
            if condition.type_ == "Ready" || condition.type_ == "Initialized" {
                let reason = condition.reason.as_deref().unwrap_or("-");
                write!(line, "; {}={} {reason}", condition.type_, condition.status)
                    .expect("a string takes it");
            }
        }
        self.tell(&line);
    }

    fn show_resizes(&mut self) {
        let host = Host { address: Ipv4Addr::LOCALHOST.into() };
        let status = status(&self.life, &host, &self.shown, self.now);
        let all = status.conditions.iter().flatten();
        let resizes = all.filter(|it| it.type_.starts_with("PodResize")).map(|it| {
            let reason = it.reason.as_deref().unwrap_or("-");
            let message = it.message.as_deref().unwrap_or("-");
            let generation = it.observed_generation.unwrap_or_default();
            format!("{} {reason} {message} of {generation}", it.type_)
        });
        let resizes: Vec<String> = resizes.collect();
        let resizes = if resizes.is_empty() { "none".to_owned() } else { resizes.join("; ") };
        self.tell(&format!("resizes: {resizes}"));
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.told, "{} {line}", self.now.as_second()).expect("a string takes it");
    }
}

fn shown(state: Option<&ContainerState>) -> Option<String> {
    let state = state?;
    if let Some(waiting) = &state.waiting {
        return Some(format!("waits {}", waiting.reason.as_deref().unwrap_or("-")));
    }
    if let Some(ended) = &state.terminated {
        return Some(format!("{} {}", ended.reason.as_deref().unwrap_or("-"), ended.exit_code));
    }
    state.running.as_ref().map(|_| "runs".to_owned())
}

#[test]
fn a_pod_runs_and_is_deleted() {
    check(
        "spec: {containers: [{name: a}]}",
        "show
         up a
         show
         delete 30
         exit a 0
         show",
        "0 start a
         0 Pending; a waits ContainerCreating x0; Initialized=True -; Ready=False ContainersNotReady
         0 Running; a runs x0 ready; Initialized=True -; Ready=True -
         0 end: Deleted
         0 stop a in 30s: Stopping container a
         0 release
         0 delete
         0 Succeeded; a Completed 0 x0; Initialized=True PodCompleted; Ready=False PodCompleted",
    );
}

#[test]
fn a_container_that_crashes_waits_longer_each_time() {
    check(
        "spec: {containers: [{name: a}]}",
        "up a
         exit a 1
         show
         up a
         exit a 1
         show
         wait 10
         up a
         exit a 1
         wait 20
         up a
         show",
        "0 start a
         0 start a
         0 Running; a Error 1 x0; Initialized=True -; Ready=False ContainersNotReady
         0 tell \"Back-off restarting failed container a in pod p_d(u)\"
         0 hold a: CrashLoopBackOff: back-off 10s restarting failed container=a pod=p_d(u)
         0 look again at 10
         0 Running; a waits CrashLoopBackOff after Error 1 x1; Initialized=True -; Ready=False ContainersNotReady
         0 look again at 10
         10 start a
         10 tell \"Back-off restarting failed container a in pod p_d(u)\"
         10 hold a: CrashLoopBackOff: back-off 20s restarting failed container=a pod=p_d(u)
         10 look again at 30
         30 start a
         30 Running; a runs after Error 1 x3 ready; Initialized=True -; Ready=True -",
    );
}

#[test]
fn a_container_that_ran_for_long_is_started_at_once() {
    check(
        "spec: {containers: [{name: a}]}",
        "up a
         exit a 1
         up a
         wait 601
         exit a 1",
        "0 start a
         0 start a
         601 start a",
    );
}

#[test]
fn what_has_succeeded_is_over_unless_it_is_always_started_again() {
    check(
        "spec: {restartPolicy: OnFailure, containers: [{name: a}]}",
        "up a
         exit a 3
         up a
         exit a 0
         show",
        "0 start a
         0 start a
         0 end: Done
         0 release
         0 Succeeded; a Completed 0 after Error 3 x1; Initialized=True PodCompleted; Ready=False PodCompleted",
    );
    check(
        "spec: {restartPolicy: Never, containers: [{name: a}, {name: b}]}",
        "up a
         up b
         exit a 0
         show
         exit b 2
         show",
        "0 start a
         0 start b
         0 Running; a Completed 0 x0; b runs x0 ready; Initialized=True -; Ready=False ContainersNotReady
         0 end: Done
         0 release
         0 Failed; a Completed 0 x0; b Error 2 x0; Initialized=True -; Ready=False PodFailed",
    );
}

#[test]
fn init_containers_run_one_after_the_other() {
    check(
        "spec: {initContainers: [{name: i}, {name: j}], containers: [{name: a}]}",
        "up i
         show
         exit i 0
         up j
         exit j 0
         up a
         show",
        "0 start i
         0 Pending; i runs x0; j waits PodInitializing x0; a waits PodInitializing x0; Initialized=False ContainersNotInitialized; Ready=False ContainersNotReady
         0 start j
         0 start a
         0 Running; i Completed 0 x0 ready; j Completed 0 x0 ready; a runs x0 ready; Initialized=True -; Ready=True -",
    );
    check(
        "spec: {restartPolicy: Never, initContainers: [{name: i}], containers: [{name: a}]}",
        "up i
         exit i 1
         show",
        "0 start i
         0 end: Done
         0 release
         0 Failed; i Error 1 x0; a waits PodInitializing x0; Initialized=False ContainersNotInitialized; Ready=False PodFailed",
    );
}

#[test]
fn sidecars_start_before_and_end_after_the_others() {
    check(
        "spec: {restartPolicy: Never, terminationGracePeriodSeconds: 5, initContainers: \
         [{name: s, restartPolicy: Always, startupProbe: {periodSeconds: 1, failureThreshold: 9}}], \
         containers: [{name: a}]}",
        "up s
         show
         well s start
         up a
         exit a 0
         exit s 143
         show",
        "0 start s
         0 probe s Startup
         0 Pending; s runs x0; a waits PodInitializing x0; Initialized=False ContainersNotInitialized; Ready=False ContainersNotReady
         0 start a
         0 end: Done
         0 stop s in 5s: Stopping container s
         0 release
         0 Succeeded; s Error 143 x0; a Completed 0 x0; Initialized=True PodCompleted; Ready=False PodCompleted",
    );
}

#[test]
fn a_container_is_ready_when_its_probe_says_so() {
    check(
        "spec: {containers: [{name: a, readinessProbe: {initialDelaySeconds: 2, periodSeconds: 5, \
         failureThreshold: 2}}]}",
        "up a
         show
         wait 2
         well a ready
         show
         wait 5
         ill a ready
         show
         wait 5
         ill a ready
         show",
        "0 start a
         0 look again at 2
         0 Running; a runs x0; Initialized=True -; Ready=False ContainersNotReady
         0 look again at 2
         2 probe a Readiness
         2 look again at 7
         2 Running; a runs x0 ready; Initialized=True -; Ready=True -
         2 look again at 7
         7 probe a Readiness
         7 look again at 12
         7 Running; a runs x0 ready; Initialized=True -; Ready=True -
         7 look again at 12
         12 probe a Readiness
         12 look again at 17
         12 Running; a runs x0; Initialized=True -; Ready=False ContainersNotReady
         12 look again at 17",
    );
}

#[test]
fn a_container_that_is_not_alive_is_started_anew() {
    check(
        "spec: {containers: [{name: a, livenessProbe: {periodSeconds: 1, failureThreshold: 1, \
         terminationGracePeriodSeconds: 7}}]}",
        "up a
         ill a alive
         exit a 137
         up a
         show",
        "0 start a
         0 probe a Liveness
         0 stop a in 7s: Container a failed liveness probe, will be restarted
         0 start a
         0 probe a Liveness
         0 Running; a runs after Error 137 x1 ready; Initialized=True -; Ready=True -",
    );
}

#[test]
fn an_image_that_cannot_be_had_is_tried_again_later() {
    check(
        "spec: {containers: [{name: a, image: x}]}",
        "no a pull
         show
         wait 1
         show
         wait 9
         no a pull
         wait 1",
        "0 start a
         0 look again at 1
         0 Pending; a waits ErrImagePull x0; Initialized=True -; Ready=False ContainersNotReady
         0 look again at 1
         1 tell \"Back-off pulling image \\\"x\\\"\"
         1 hold a: ImagePullBackOff: Back-off pulling image \"x\": ErrImagePull: no such image
         1 look again at 10
         1 Pending; a waits ImagePullBackOff x0; Initialized=True -; Ready=False ContainersNotReady
         1 look again at 10
         10 start a
         10 look again at 11
         11 tell \"Back-off pulling image \\\"x\\\"\"
         11 hold a: ImagePullBackOff: Back-off pulling image \"x\": ErrImagePull: no such image
         11 look again at 20",
    );
}

/// It was tried again less and less, so that what came was noticed up to five minutes later.
#[test]
fn what_is_missing_is_looked_for_again_soon_and_at_once_when_it_comes() {
    check(
        "spec: {containers: [{name: a}]}",
        "no a config
         wait 10
         no a config
         wait 10
         no a config
         show
         wait 3
         news
         up a
         news",
        "0 start a
         0 look again at 10
         10 start a
         10 look again at 20
         20 start a
         20 look again at 30
         20 Pending; a waits CreateContainerConfigError x0; Initialized=True -; Ready=False ContainersNotReady
         20 look again at 30
         23 look again at 30
         23 start a",
    );
}

#[test]
fn volumes_are_tried_again_later_and_later_and_all_else_soon() {
    let pod = Pod::default();
    let now = Timestamp::UNIX_EPOCH;
    let mut life = Life::new(Arc::new(pod), Found::default(), now);
    let mut pause = |error: PrepareError| {
        life.prepared(&Err(error), now);
        assert!(life.is_wanting() && !life.is_content());
        match life.sandbox {
            Sandbox::Failed(until) => until.duration_since(now).as_millis(),
            _ => panic!("it has failed"),
        }
    };
    let (volume, why) = ("v".to_owned(), "none".to_owned());
    let mount = PrepareError::Volume { volume: volume.clone(), why: why.clone() };
    let pauses: Vec<i128> = (0..10).map(|_| pause(mount.clone())).collect();
    let longest = 122_000;
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, longest, longest]);
    assert_eq!(pause(PrepareError::Unprocessed { volume, why: why.clone() }), 10_000);
    assert_eq!(pause(PrepareError::Sandbox(why)), 10_000);
    life.hurry();
    assert_eq!(life.sandbox, Sandbox::Absent);
}

/// A pod whose command was mistyped waited for ever, and so did its Job.
#[test]
fn a_container_that_does_not_begin_has_ended() {
    check(
        "spec: {containers: [{name: a}]}",
        "no a run
         show
         no a run
         show
         wait 1
         show
         wait 9
         up a
         show",
        "0 start a
         0 start a
         0 Running; a waits RunContainerError after StartError 128 x0; Initialized=True -; Ready=False ContainersNotReady
         0 look again at 1
         0 Running; a waits RunContainerError after StartError 128 x1; Initialized=True -; Ready=False ContainersNotReady
         0 look again at 1
         1 tell \"Back-off restarting failed container a in pod p_d(u)\"
         1 hold a: CrashLoopBackOff: back-off 10s restarting failed container=a pod=p_d(u)
         1 look again at 10
         1 Running; a waits CrashLoopBackOff after StartError 128 x1; Initialized=True -; Ready=False ContainersNotReady
         1 look again at 10
         10 start a
         10 Running; a runs after StartError 128 x2 ready; Initialized=True -; Ready=True -",
    );
    check(
        "spec: {restartPolicy: Never, containers: [{name: a}]}",
        "no a run
         show",
        "0 start a
         0 end: Done
         0 release
         0 Failed; a StartError 128 x0; Initialized=True -; Ready=False PodFailed",
    );
    check(
        "spec: {restartPolicy: Never, initContainers: [{name: i}], containers: [{name: a}]}",
        "no i run
         show",
        "0 start i
         0 end: Done
         0 release
         0 Failed; i StartError 128 x0; a waits PodInitializing x0; Initialized=False ContainersNotInitialized; Ready=False PodFailed",
    );
}

#[test]
fn a_pod_that_is_active_for_too_long_fails() {
    check(
        "spec: {activeDeadlineSeconds: 60, containers: [{name: a}]}",
        "up a
         wait 60
         exit a 0
         show",
        "0 start a
         0 look again at 60
         0 look again at 60
         60 tell \"Pod was active on the node longer than the specified deadline\"
         60 end: Failed { reason: \"DeadlineExceeded\", message: \"Pod was active on the node longer than the specified deadline\" }
         60 stop a in 30s: Stopping container a
         60 release
         60 Failed (DeadlineExceeded); a Completed 0 x0; Initialized=True -; Ready=False PodFailed",
    );
}

#[test]
fn a_second_deletion_can_only_be_sooner() {
    check(
        "spec: {containers: [{name: a}]}",
        "up a
         delete 30
         delete 60
         delete 1",
        "0 start a
         0 end: Deleted
         0 stop a in 30s: Stopping container a
         0 end: Deleted
         0 stop a in 1s: again",
    );
}

/// Clocks go on between a decision and the deed. A pod that was gone at once was to end a moment
/// before it was asked to, and was asked again, without end.
#[test]
fn what_should_have_ended_by_now_is_asked_to_end_once() {
    let mut it = Story::play("spec: {containers: [{name: a}]}", "up a\ndelete 30");
    it.life.end.as_mut().expect("it ends").by = it.now - SignedDuration::from_secs(1);
    it.told.clear();
    let plan = plan(&it.life, it.now);
    for action in plan.actions {
        it.life.begin(&action, it.now);
        it.do_(action);
    }
    assert_eq!(it.told, "0 stop a in 0s: again\n");
    assert!(super::plan::plan(&it.life, it.now).actions.is_empty());
}

#[test]
fn a_pod_that_is_deleted_before_it_started_is_over_at_once() {
    check(
        "spec: {initContainers: [{name: i}], containers: [{name: a}]}",
        "no i pull
         delete 30
         show",
        "0 start i
         0 look again at 1
         0 end: Deleted
         0 release
         0 delete
         0 Failed; i waits ErrImagePull x0; a waits PodInitializing x0; Initialized=False ContainersNotInitialized; Ready=False PodFailed",
    );
}

#[test]
fn a_container_runs_when_its_hook_is_done() {
    check(
        "spec: {containers: [{name: a, image: i, lifecycle: {postStart: {sleep: {seconds: 9}}}}]}",
        "up a
         show
         wait 9
         done a hook
         show",
        "0 start a
         0 Pending; a waits ContainerCreating x0; Initialized=True -; Ready=False ContainersNotReady
         9 Running; a runs x0 ready; Initialized=True -; Ready=True -",
    );
}

#[test]
fn a_container_whose_hook_fails_is_ended_and_started_again() {
    check(
        "spec: {containers: [{name: a, image: i, lifecycle: {postStart: {sleep: {seconds: 9}}}}]}",
        "up a
         failed a hook
         exit a 137",
        "0 start a
         0 stop a in 30s: FailedPostStartHook
         0 start a",
    );
}

#[test]
fn a_hook_does_not_hold_up_the_end() {
    check(
        "spec: {containers: [{name: a, image: i, lifecycle: {postStart: {sleep: {seconds: 9}}}}]}",
        "up a
         delete 5
         exit a 0",
        "0 start a
         0 end: Deleted
         0 stop a in 5s: Stopping container a
         0 release
         0 delete",
    );
}

#[test]
fn a_pod_that_somebody_says_has_failed_is_ended() {
    check(
        "spec: {containers: [{name: a}]}",
        "up a
         phase Failed
         exit a 0",
        "0 start a
         0 end: Done
         0 stop a in 30s: Stopping container a
         0 release",
    );
}

/// Who asked for the previous run of a container in `CrashLoopBackOff` was given the one before it.
#[test]
fn the_previous_run_is_the_one_that_status_shows_as_the_last() {
    check(
        "spec: {containers: [{name: a}]}",
        "log a
         up a
         log a
         previous a
         exit a 1
         log a
         up a
         log a
         previous a
         exit a 1
         log a
         previous a",
        "0 start a
         0 log a: container \"a\" in pod \"p\" is waiting to start: ContainerCreating
         0 log a: run 0
         0 previous a: previous terminated container \"a\" in pod \"p\" not found
         0 start a
         0 log a: run 0
         0 log a: run 1
         0 previous a: run 0
         0 tell \"Back-off restarting failed container a in pod p_d(u)\"
         0 hold a: CrashLoopBackOff: back-off 10s restarting failed container=a pod=p_d(u)
         0 look again at 10
         0 log a: run 1
         0 look again at 10
         0 previous a: run 1
         0 look again at 10",
    );
}

#[test]
fn who_asks_for_the_log_of_a_container_that_waits_is_told_why() {
    check(
        "spec: {containers: [{name: a, image: x}]}",
        "no a pull
         log a
         wait 1
         log a",
        "0 start a
         0 look again at 1
         0 log a: container \"a\" in pod \"p\" is waiting to start: image can't be pulled
         0 look again at 1
         1 tell \"Back-off pulling image \\\"x\\\"\"
         1 hold a: ImagePullBackOff: Back-off pulling image \"x\": ErrImagePull: no such image
         1 look again at 10
         1 log a: container \"a\" in pod \"p\" is waiting to start: trying and failing to pull image
         1 look again at 10",
    );
    check(
        "spec: {initContainers: [{name: i}], containers: [{name: a}]}",
        "log a",
        "0 start i
         0 log a: container \"a\" in pod \"p\" is waiting to start: PodInitializing",
    );
}

/// It was noticed only when a container had to be started.
#[test]
fn a_place_that_is_gone_is_noticed_while_all_containers_run() {
    check(
        "spec: {initContainers: [{name: i}, {name: s, restartPolicy: Always}], containers: [{name: a}]}",
        "up i
         exit i 0
         up s
         up a
         lost
         lost
         exit a 137
         show
         exit s 137
         up i
         exit i 0
         up s
         up a
         show",
        "0 start i
         0 start s
         0 start a
         0 lost: news true, needs another true
         0 stop s in 30s: Stopping container s
         0 stop a in 30s: Stopping container a
         0 lost: news false, needs another true
         0 Running; i Completed 0 x0 ready; s runs x0 ready; a Error 137 x0; Initialized=True -; Ready=False ContainersNotReady
         0 prepare again
         0 start i
         0 start s
         0 start a
         0 Running; i Completed 0 after Completed 0 x1 ready; s runs after Error 137 x1 ready; a runs after Error 137 x1 ready; Initialized=True -; Ready=True -",
    );
}

#[test]
fn no_other_place_is_made_for_what_is_not_started_again() {
    check(
        "spec: {restartPolicy: Never, containers: [{name: a}, {name: b}]}",
        "up a
         up b
         exit b 0
         lost
         exit a 137
         lost
         show",
        "0 start a
         0 start b
         0 lost: news true, needs another false
         0 end: Done
         0 stop a in 30s: Stopping container a
         0 release
         0 lost: news false, needs another false
         0 Failed; a Error 137 x0; b Completed 0 x0; Initialized=True -; Ready=False PodFailed",
    );
    // Nothing of it has run, and all of it is to.
    check(
        "spec: {restartPolicy: Never, containers: [{name: a}]}",
        "lost
         lost a",
        "0 start a
         0 lost: news true, needs another true
         0 start a",
    );
}

/// What has succeeded is not run again, what runs is.
#[test]
fn in_another_place_only_what_is_to_be_started_again_is() {
    check(
        "spec: {restartPolicy: OnFailure, containers: [{name: a}, {name: b}]}",
        "up a
         up b
         exit a 0
         lost
         exit b 137
         up b",
        "0 start a
         0 start b
         0 lost: news true, needs another true
         0 stop b in 30s: Stopping container b
         0 prepare again
         0 start b",
    );
}

/// The agent was not there when it was taken away.
#[test]
fn a_place_that_is_gone_is_noticed_by_the_next_agent() {
    let pod: Pod = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "a"}]},
    }))
    .expect("a pod");
    let found = Found { is_lost: true, ..Found::default() };
    let life = Life::new(Arc::new(pod), found, Timestamp::UNIX_EPOCH);
    let plan = plan(&life, Timestamp::UNIX_EPOCH);
    assert_eq!(plan.actions, [Action::Prepare]);
    assert!(matches!(life.sandbox, Sandbox::Lost(_)) && life.needs_place());
}

/// Status showed what was asked for before anything was done about it.
#[test]
fn a_container_shows_the_resources_that_it_was_given() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '1'}}}]}",
        "given a
         up a
         given a
         resize a 2
         given a
         resized a
         given a
         resize a 3
         exit a 1
         up a
         given a",
        "0 start a
         0 given a: nothing
         0 given a: 1
         0 resize a
         0 given a: 1
         0 tell \"Pod resize completed: {\\\"containers\\\":[{\\\"name\\\":\\\"a\\\",\\\"resources\\\":{\\\"requests\\\":{\\\"cpu\\\":\\\"2\\\"}}}],\\\"generation\\\":2}\"
         0 resize is done
         0 given a: 2
         0 resize a
         0 tell \"Pod resize completed: {\\\"containers\\\":[{\\\"name\\\":\\\"a\\\",\\\"resources\\\":{\\\"requests\\\":{\\\"cpu\\\":\\\"3\\\"}}}],\\\"generation\\\":3}\"
         0 resize is done
         0 start a
         0 given a: 3",
    );
}

#[test]
fn a_resize_is_in_progress_until_it_is_done() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '1'}}}]}",
        "up a
         resizes
         defer
         resizes
         resize a 2
         resizes
         resized a
         resizes",
        "0 start a
         0 resizes: none
         0 resizes: PodResizePending Deferred full of 9
         0 resize a
         0 resizes: PodResizeInProgress - - of 2
         0 tell \"Pod resize completed: {\\\"containers\\\":[{\\\"name\\\":\\\"a\\\",\\\"resources\\\":{\\\"requests\\\":{\\\"cpu\\\":\\\"2\\\"}}}],\\\"generation\\\":2}\"
         0 resize is done
         0 resizes: none",
    );
}

#[test]
fn a_resize_that_is_refused_is_tried_again() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '1'}}}]}",
        "up a
         resize a 2
         no a resize
         resizes
         defer
         resizes
         wait 10
         no a resize
         delete 0
         exit a 0
         resizes",
        "0 start a
         0 resize a
         0 news: Some(2)
         0 look again at 10
         0 resizes: PodResizeInProgress Error too small of 2
         0 look again at 10
         0 look again at 10
         0 resizes: PodResizePending Deferred full of 9; PodResizeInProgress Error too small of 2
         0 look again at 10
         10 resize a
         10 news: None
         10 look again at 20
         10 end: Deleted
         10 stop a in 0s: Stopping container a
         10 release
         10 delete
         10 resizes: none",
    );
}

/// What is not given to a process that runs is given to the next, also to one that would not be
/// started again.
#[test]
fn a_container_is_started_anew_to_be_resized_if_its_policy_says_so() {
    let memory = |policy: &str| {
        format!(
            "spec: {{restartPolicy: OnFailure, containers: [{{name: a, resources: {{requests: {{cpu: '1'}}}},
               resizePolicy: [{{resourceName: cpu, restartPolicy: {policy}}}]}}]}}"
        )
    };
    check(&memory("NotRequired"), "up a\n resize a 2", "0 start a\n 0 resize a");
    check(
        &memory("RestartContainer"),
        "up a
         resize a 2
         resizes
         exit a 0
         up a
         given a
         show",
        "0 start a
         0 stop a in 30s: Container a resize requires restart
         0 resizes: PodResizeInProgress - - of 2
         0 tell \"Pod resize completed: {\\\"containers\\\":[{\\\"name\\\":\\\"a\\\",\\\"resources\\\":{\\\"requests\\\":{\\\"cpu\\\":\\\"2\\\"}}}],\\\"generation\\\":2}\"
         0 resize is done
         0 start a
         0 given a: 2
         0 Running; a runs after Completed 0 x1 ready; Initialized=True -; Ready=True -",
    );
}

#[test]
fn containers_are_started_one_after_the_other() {
    check(
        "spec: {containers: [{name: a, image: i, lifecycle: {postStart: {sleep: {seconds: 9}}}}, \
         {name: b, image: i}, {name: c, image: i}]}",
        "up a
         done a hook
         no b pull
         up c
         wait 10
         exit c 1
         up b",
        "0 start a
         0 start b
         0 start c
         0 look again at 1
         0 look again at 1
         10 start b
         10 start c",
    );
}

#[test]
fn a_pod_that_has_lost_its_place_begins_anew_in_another() {
    check(
        "spec: {initContainers: [{name: i}], containers: [{name: a}, {name: b}]}",
        "up i
         exit i 0
         up a
         up b
         exit b 1
         lost b
         exit a 137
         up i
         exit i 0
         up a",
        "0 start i
         0 start a
         0 start b
         0 start b
         0 stop a in 30s: Stopping container a
         0 prepare again
         0 start i
         0 tell \"Back-off restarting failed container b in pod p_d(u)\"
         0 start a
         0 hold b: CrashLoopBackOff: back-off 10s restarting failed container=b pod=p_d(u)
         0 look again at 10
         0 look again at 10",
    );
    check(
        "spec: {restartPolicy: Never, containers: [{name: a}, {name: b}]}",
        "up a
         exit a 0
         lost b
         show",
        "0 start a
         0 start b
         0 end: Done
         0 release
         0 Failed; a Completed 0 x0; b ContainerStatusUnknown 137 x0; Initialized=True -; Ready=False PodFailed",
    );
}

#[test]
fn who_has_all_begin_anew_again_and_again_is_held_back() {
    check(
        "spec: {restartPolicy: Never, containers: [{name: a, restartPolicy: Never, \
         restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: \
         [88]}}]}]}",
        "up a
         exit a 88
         up a
         exit a 88
         wait 10
         up a",
        "0 start a
         0 all begin anew
         0 start a
         0 all begin anew
         0 look again at 10
         10 start a",
    );
}

#[test]
fn a_container_may_have_all_others_begin_anew_with_it() {
    check(
        "spec: {restartPolicy: Never, initContainers: [{name: i}], containers: [{name: a, \
         restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: \
         {operator: In, values: [88]}}]}, {name: b}]}",
        "up i
         exit i 0
         up a
         up b
         exit a 88
         show
         exit b 137
         show
         up i
         exit i 0
         up a
         up b
         show
         exit a 1
         exit b 0
         show",
        "0 start i
         0 start a
         0 start b
         0 stop b in 0s: killing
         0 Running; i Completed 0 x0 ready; a Error 88 x0; b runs x0 ready; Initialized=True -; Ready=False ContainersNotReady
         0 all begin anew
         0 start i
         0 Running; i Completed 0 x0 ready; a waits RestartingAllContainers after Error 88 x0; b waits RestartingAllContainers after RestartingAllContainers 137 x0; Initialized=True -; Ready=False ContainersNotReady
         0 start a
         0 start b
         0 Running; i Completed 0 after Completed 0 x1 ready; a runs after Error 88 x1 ready; b runs after RestartingAllContainers 137 x1 ready; Initialized=True -; Ready=True -
         0 end: Done
         0 release
         0 Failed; i Completed 0 after Completed 0 x1 ready; a Error 1 after Error 88 x1; b Completed 0 after RestartingAllContainers 137 x1; Initialized=True -; Ready=False PodFailed",
    );
}

#[test]
fn a_pod_that_its_node_does_not_take_has_failed() {
    let pod = |status: PodStatus| {
        let mut pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {"containers": [{"name": "a"}]},
        }))
        .expect("a pod");
        pod.status = Some(status);
        Arc::new(pod)
    };
    let now = Timestamp::UNIX_EPOCH;
    let host = Host { address: Ipv4Addr::LOCALHOST.into() };
    let mut life = Life::new(pod(PodStatus::default()), Found::default(), now);
    assert!(life.is_active());
    let (reason, message) = ("OutOfcpu".to_owned(), "there is none".to_owned());
    life.reject(Rejection { reason, message }, now);
    assert!(!life.is_active());
    assert_eq!(plan(&life, now).actions, [Action::Release]);
    let shown = status(&life, &host, &PodStatus::default(), now);
    assert_eq!(shown.phase.as_deref(), Some("Failed"));
    assert_eq!(shown.reason.as_deref(), Some("OutOfcpu"));
    assert_eq!(shown.message.as_deref(), Some("Pod was rejected: there is none"));
    assert_eq!(shown.container_statuses, None);
    // An agent that is started again shows the same.
    let again = Life::new(pod(shown.clone()), Found::default(), now);
    assert_eq!(status(&again, &host, &shown, now), shown);
}
