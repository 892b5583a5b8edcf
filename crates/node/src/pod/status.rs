//! What the API shows of a pod, as upstream's kubelet would write it.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, PodCondition, PodIP, PodStatus, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::admit::Rejection;
use super::life::{End, Exit, Life, Member, Now, REJECTED, Role, Sandbox};
use super::resize::{IN_PROGRESS, PENDING, Pending, Progress};
use super::restart::{could_all_restart, is_init_restarted, is_restarted};

/// The conditions that a node writes. Others are somebody else's.
pub(crate) const CONDITIONS: [&str; 8] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    ALL_RESTARTING,
    PENDING,
    IN_PROGRESS,
];
/// That all containers are ended to begin anew, of a pod in which that may happen.
const ALL_RESTARTING: &str = "AllContainersRestarting";

/// What is known of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) address: IpAddr,
}

/// The status of a pod. `old` is what was shown before: times of what has not changed stay.
pub(crate) fn status(life: &Life, host: &Host, old: &PodStatus, now: Timestamp) -> PodStatus {
    if let Some(rejection) = &life.rejection {
        return rejected(life, rejection, old);
    }
    let of_roles = |roles: &[Role]| -> Option<Vec<ContainerStatus>> {
        let members = life.containers.iter().filter(|member| roles.contains(&member.role));
        let statuses: Vec<_> = members.map(|member| container_status(life, member)).collect();
        (!statuses.is_empty()).then_some(statuses)
    };
    let generation = life.pod.metadata.generation;
    let addresses = match life.spec().host_network {
        Some(true) => vec![host.address],
        _ => life.addresses().to_vec(),
    };
    let mut status = PodStatus {
        container_statuses: of_roles(&[Role::Main]),
        init_container_statuses: of_roles(&[Role::Init, Role::Sidecar]),
        ephemeral_container_statuses: of_roles(&[Role::Ephemeral]),
        host_ip: Some(host.address.to_string()),
        host_ips: Some(vec![HostIP { ip: host.address.to_string() }]),
        pod_ip: addresses.first().map(ToString::to_string),
        pod_ips: (!addresses.is_empty())
            .then(|| addresses.iter().map(|ip| PodIP { ip: ip.to_string() }).collect()),
        start_time: Some(Time(life.since)),
        observed_generation: generation,
        qos_class: old.qos_class.clone(),
        ..PodStatus::default()
    };
    decide_phase(&mut status, life, old);
    let foreign = old.conditions.iter().flatten();
    let foreign =
        foreign.filter(|condition| !CONDITIONS.contains(&condition.type_.as_str())).cloned();
    let mut conditions: Vec<PodCondition> = foreign.collect();
    let judged = judge(life, &status, &conditions);
    // Of what is over nobody asks how large it is.
    if life.is_active() {
        conditions.extend(life.pending.as_ref().map(Pending::condition));
        conditions.extend(life.progress.as_ref().map(Progress::condition));
    }
    conditions.extend(judged.into_iter().map(|(type_, judgement)| {
        let old = old.conditions.iter().flatten().find(|condition| condition.type_ == type_);
        judgement.condition(type_, generation, old, now)
    }));
    status.conditions = Some(conditions);
    status
}

/// Of a pod that its node did not take: nothing of it has ever been there.
fn rejected(life: &Life, rejection: &Rejection, old: &PodStatus) -> PodStatus {
    PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some(rejection.reason.clone()),
        message: Some(format!("{REJECTED}{}", rejection.message)),
        start_time: Some(Time(life.since)),
        observed_generation: life.pod.metadata.generation,
        qos_class: old.qos_class.clone(),
        conditions: old.conditions.clone(),
        ..PodStatus::default()
    }
}

fn decide_phase(status: &mut PodStatus, life: &Life, old: &PodStatus) {
    let old_phase = old.phase.as_deref();
    let mut phase = phase(life);
    if life.is_over() && !is_terminal(phase) {
        phase = "Failed";
    }
    if let Some(End::Failed { reason, message }) = life.end.as_ref().map(|end| &end.why) {
        status.phase = Some("Failed".to_owned());
        (status.reason, status.message) = (Some((*reason).to_owned()), Some((*message).to_owned()));
        return;
    }
    // Nothing leads out of a terminal phase.
    let phase = match old_phase {
        Some(old) if is_terminal(old) => old,
        _ => phase,
    };
    if old_phase == Some(phase) {
        (status.reason, status.message) = (old.reason.clone(), old.message.clone());
    }
    status.phase = Some(phase.to_owned());
}

fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

fn phase(life: &Life) -> &'static str {
    let spec = life.spec();
    let has_begun = life.of_role(Role::Main).any(Member::has_started);
    let (mut pending, mut waiting, mut running) = (false, false, false);
    for member in life.of_role(Role::Init) {
        match (&member.now, shown_exit(member)) {
            (Now::Running(_), _) => pending = true,
            (_, Some(exit)) if exit.ended.code == 0 => {}
            (_, Some(exit)) if is_init_restarted(spec, &member.spec, exit.ended.code) => {}
            (_, Some(_)) if member.is_afresh => {}
            (_, Some(_)) => return "Failed",
            (_, None) => pending = true,
        }
    }
    for member in life.of_role(Role::Sidecar) {
        match &member.now {
            Now::Running(up) => {
                pending |= !up.probes.is_started() && !has_begun;
                running = true;
            }
            _ if member.exit.is_some() => {}
            _ => (pending, waiting) = (pending || !has_begun, true),
        }
    }
    let (mut stopped, mut restarting, mut succeeded) = (0, 0, 0);
    for member in life.of_role(Role::Main) {
        match (&member.now, shown_exit(member)) {
            (Now::Running(_), _) => running = true,
            (_, Some(exit)) => {
                stopped += 1;
                succeeded += u32::from(exit.ended.code == 0);
                let is_again = is_restarted(spec, &member.spec, exit.ended.code);
                restarting += u32::from(is_again || member.is_afresh || life.is_renewing());
            }
            (_, None) => waiting = true,
        }
    }
    match () {
        () if pending || waiting => "Pending",
        () if running => "Running",
        () if stopped == 0 => "Pending",
        () if life.end.is_none() && restarting > 0 => "Running",
        () if stopped == succeeded => "Succeeded",
        () => "Failed",
    }
}

/// How it ended, if it does not run: one that is started again has still ended.
fn shown_exit(member: &Member) -> Option<&Exit> {
    member.exit.as_ref().filter(|_| member.running().is_none())
}

pub(crate) fn container_status(life: &Life, member: &Member) -> ContainerStatus {
    let spec = &member.spec;
    let running = member.running();
    let exit = member.exit.as_ref();
    let has_succeeded = running.is_none() && exit.is_some_and(|exit| exit.ended.code == 0);
    let is_initialised = member.role == Role::Init && has_succeeded;
    let newest = running.map(|running| &running.started).or(exit.map(|exit| &exit.started));
    let (state, last) = match (running, exit, &member.trouble) {
        (Some(running), before, _) => (
            ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(running.started.at)) }),
                ..ContainerState::default()
            },
            before,
        ),
        (None, Some(exit), None) => (terminated(exit), member.exit_before.as_ref()),
        // What is done and will not be started again shows how it ended.
        (None, Some(exit), Some(_)) if is_initialised || life.end.is_some() => {
            (terminated(exit), member.exit_before.as_ref())
        }
        (None, before, Some(trouble)) => (waiting(&trouble.reason, Some(&trouble.message)), before),
        (None, None, None) if life.is_over() && has_begun(life, member) => (lost(), None),
        (None, None, None) => {
            let has_init = life.containers.iter().any(|it| it.role == Role::Init)
                || life.of_role(Role::Sidecar).next().is_some();
            (waiting(if has_init { "PodInitializing" } else { "ContainerCreating" }, None), None)
        }
    };
    let started = match member.role {
        Role::Init => running.is_some(),
        _ => running.is_some_and(|running| running.probes.is_started()),
    };
    let ready = match member.role {
        Role::Init => is_initialised,
        Role::Ephemeral => false,
        Role::Sidecar | Role::Main => running.is_some_and(|running| running.probes.is_ready()),
    };
    let has_run = newest.is_some();
    let shown_starts = member.starts - u32::from(matches!(member.now, Now::Hooked(_)));
    ContainerStatus {
        name: spec.name.clone(),
        image: spec.image.clone().unwrap_or_default(),
        image_id: newest.map(|newest| newest.image_id.clone()).unwrap_or_default(),
        container_id: newest.map(|newest| newest.id.to_string()).filter(|id| !id.is_empty()),
        restart_count: i32::try_from(shown_starts.saturating_sub(1)).unwrap_or(i32::MAX),
        started: (member.role != Role::Ephemeral).then_some(started),
        ready,
        state: Some(state),
        last_state: Some(last.map(terminated).unwrap_or_default()),
        volume_mounts: volume_mounts(member),
        resources: member.given.clone().filter(|_| has_run),
        allocated_resources: spec
            .resources
            .as_ref()
            .and_then(|resources| resources.requests.clone())
            .filter(|_| has_run),
        ..ContainerStatus::default()
    }
}

/// Whether a container that never ran should have, when its pod ended.
fn has_begun(life: &Life, member: &Member) -> bool {
    let main = life.of_role(Role::Main).any(Member::has_started);
    let all_initialised = life
        .of_role(Role::Init)
        .all(|init| shown_exit(init).is_some_and(|exit| exit.ended.code == 0));
    match member.role {
        Role::Main => main || all_initialised,
        Role::Init | Role::Sidecar => main,
        Role::Ephemeral => false,
    }
}

fn volume_mounts(member: &Member) -> Option<Vec<VolumeMountStatus>> {
    let mounts = member.spec.volume_mounts.as_ref()?;
    let mount = mounts.iter().map(|mount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only,
        recursive_read_only: mount
            .read_only
            .filter(|is_read_only| *is_read_only)
            .map(|_| "Disabled".to_owned()),
        ..VolumeMountStatus::default()
    });
    Some(mount.collect())
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    let (reason, message) = (Some(reason.to_owned()), message.map(str::to_owned));
    let waiting = Some(ContainerStateWaiting { reason, message });
    ContainerState { waiting, ..ContainerState::default() }
}

fn terminated(exit: &Exit) -> ContainerState {
    let Exit { started, ended } = exit;
    let terminated = ContainerStateTerminated {
        container_id: Some(started.id.to_string()).filter(|id| !id.is_empty()),
        exit_code: ended.code,
        reason: Some(ended.reason.clone()).filter(|reason| !reason.is_empty()),
        message: ended.message.clone(),
        started_at: Some(Time(started.at)),
        finished_at: Some(Time(ended.at)),
        signal: None,
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// Of a container that should have run by the end of its pod, and never did.
fn lost() -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code: 137,
        reason: Some("ContainerStatusUnknown".to_owned()),
        message: Some("The container could not be located when the pod was terminated".to_owned()),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// What a condition says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Judgement {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Judgement {
    const TRUE: Judgement = Judgement { holds: true, reason: None, message: None };

    fn no(reason: &'static str, message: Option<String>) -> Self {
        Judgement { holds: false, reason: Some(reason), message }
    }

    fn condition(
        self,
        type_: &str,
        generation: Option<i64>,
        old: Option<&PodCondition>,
        now: Timestamp,
    ) -> PodCondition {
        let status = if self.holds { "True" } else { "False" };
        let since = old.filter(|old| old.status == status);
        PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason.map(str::to_owned),
            message: self.message,
            observed_generation: generation,
            last_probe_time: None,
            last_transition_time: since
                .and_then(|old| old.last_transition_time.clone())
                .or(Some(Time(now))),
        }
    }
}

fn judge(
    life: &Life,
    status: &PodStatus,
    foreign: &[PodCondition],
) -> Vec<(&'static str, Judgement)> {
    let phase = status.phase.as_deref().unwrap_or_default();
    let has_place = matches!(life.sandbox, Sandbox::Ready(_));
    let containers_ready = containers_ready(life, status, phase);
    let ready = match containers_ready.holds {
        true => gates(life, foreign),
        false => containers_ready.clone(),
    };
    let mut judged = vec![
        ("PodReadyToStartContainers", Judgement { holds: has_place, ..Judgement::default() }),
        ("Initialized", initialized(life, status, phase)),
        ("Ready", ready),
        ("ContainersReady", containers_ready),
        ("PodScheduled", Judgement::TRUE),
    ];
    if life.containers.iter().any(|member| could_all_restart(&member.spec)) {
        judged.push((ALL_RESTARTING, all_restarting(life)));
    }
    judged
}

fn all_restarting(life: &Life) -> Judgement {
    match life.is_renewing() {
        false => Judgement::default(),
        true => Judgement {
            holds: true,
            reason: Some("RestartAllContainersStarted"),
            message: Some("container exited with restart policy rule".to_owned()),
        },
    }
}

fn containers_ready(life: &Life, status: &PodStatus, phase: &str) -> Judgement {
    match phase {
        "Succeeded" => return Judgement::no("PodCompleted", None),
        "Failed" => return Judgement::no("PodFailed", None),
        _ => {}
    }
    let is_judged = |name: &str| {
        life.member(name).is_some_and(|it| matches!(it.role, Role::Sidecar | Role::Main))
    };
    let unready = statuses(status).filter(|it| !it.ready && is_judged(&it.name));
    let unready: Vec<&str> = unready.map(|it| it.name.as_str()).collect();
    if unready.is_empty() {
        return Judgement::TRUE;
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Judgement::no("ContainersNotReady", Some(message))
}

fn initialized(life: &Life, status: &PodStatus, phase: &str) -> Judgement {
    if phase == "Succeeded" {
        return Judgement { holds: true, reason: Some("PodCompleted"), message: None };
    }
    if life.of_role(Role::Main).any(Member::has_started) {
        return Judgement::TRUE;
    }
    let is_incomplete = |it: &&ContainerStatus| match life.member(&it.name).map(|it| it.role) {
        Some(Role::Sidecar) => it.started != Some(true),
        _ => !it.ready,
    };
    let init = status.init_container_statuses.iter().flatten();
    let incomplete: Vec<&str> = init.filter(is_incomplete).map(|it| it.name.as_str()).collect();
    if incomplete.is_empty() {
        return Judgement::TRUE;
    }
    let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
    Judgement::no("ContainersNotInitialized", Some(message))
}

/// Whether what others say about the pod lets it be ready.
fn gates(life: &Life, conditions: &[PodCondition]) -> Judgement {
    let gates = life.spec().readiness_gates.iter().flatten();
    let refusals = gates.filter_map(|gate| {
        let gate = &gate.condition_type;
        match conditions.iter().find(|condition| condition.type_ == *gate) {
            None => Some(format!(
                "corresponding condition of pod readiness gate {gate:?} does not exist."
            )),
            Some(condition) if condition.status != "True" => Some(format!(
                "the status of pod readiness gate {gate:?} is not \"True\", but {}",
                condition.status
            )),
            Some(_) => None,
        }
    });
    let refusals: Vec<String> = refusals.collect();
    match refusals.is_empty() {
        true => Judgement::TRUE,
        false => Judgement::no("ReadinessGatesNotReady", Some(refusals.join(", "))),
    }
}

/// Init containers first, as conditions name them.
fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
}
