//! A runtime that runs nothing: containers are said to start, run and end, as stages tell.
//!
//! What a container does is data: the first [`Stage`] that fits, overruled by annotations of the
//! pod, `fake.kubewright.dev/runs-for: 5s` for all its containers or
//! `fake.kubewright.dev/runs-for.sidecar: 5s` for one. Nothing is kept elsewhere: what the API says
//! of a pod is enough to go on after a restart.

mod stages;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Pod, Probe};
use kubewright::Clock;
use kubewright_apimachinery::quantity::Quantity;
use serde::Deserialize;
use tokio::sync::watch;

pub use self::stages::{StagesError, parse_stages};
use super::{
    Attempt, Connection, Ended, Found, FoundContainer, Health, Id, Order, PrepareError, ProbeKind,
    Pulled, Runtime, RuntimeError, StartError, Started, Streams, Target, Usage,
};

const NAME: &str = "fake://";
const ANNOTATION: &str = "fake.kubewright.dev/";
/// How many there are to give.
const ADDRESSES: u32 = 0x7f_ff00;
/// Places where an agent may begin are so far apart.
const BLOCK: u32 = 256;
const SIMULATED: &str = "this pod is simulated: nothing runs in it";

/// What containers do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Stage {
    /// Only containers of pods that are controlled by an object of this kind.
    pub owner: Option<String>,
    /// Only containers of this name.
    pub container: Option<String>,
    /// How long it takes to start.
    pub start_after: SignedDuration,
    /// How long after its start it passes its probes.
    pub ready_after: SignedDuration,
    /// How long after its start it ends; none for never.
    pub runs_for: Option<SignedDuration>,
    pub exit_code: i32,
    /// How much of a processor it uses, as quantities are written; none for nothing.
    pub cpu: Option<String>,
    /// How much memory.
    pub memory: Option<String>,
}

/// Containers that exist only on paper.
pub struct Fake {
    clock: Clock,
    stages: Vec<Stage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    containers: HashMap<Id, Running>,
    addresses: HashMap<String, Ipv4Addr>,
    taken: HashSet<Ipv4Addr>,
    last: u32,
}

struct Running {
    since: Timestamp,
    /// Thousandths of a processor.
    millicores: u64,
    memory: u64,
    ends: Option<Timestamp>,
    code: i32,
    ended: watch::Sender<Option<Ended>>,
}

impl Fake {
    /// Containers that do what the first stage that fits says. Without one, those of Jobs end well
    /// after a second, as do init containers at once; all others run for ever.
    pub fn new(clock: Clock, stages: Vec<Stage>) -> Self {
        Fake { clock, stages, state: Mutex::default() }
    }

    /// Gives pods other addresses than an agent of another name does, as far as that can be without
    /// knowing of each other: each begins somewhere else, and goes on from there.
    pub fn called(self, name: &str) -> Self {
        self.state().last = (hash(name) % (ADDRESSES / BLOCK)) * BLOCK;
        self
    }

    fn stage(&self, pod: &Pod, container: &str, is_init: bool) -> Stage {
        let owner = controller(pod);
        let fits = |stage: &&Stage| {
            stage.owner.as_deref().is_none_or(|kind| owner == Some(kind))
                && stage.container.as_deref().is_none_or(|name| name == container)
        };
        let job = Stage { runs_for: Some(SignedDuration::from_secs(1)), ..Stage::default() };
        let init = Stage { runs_for: Some(SignedDuration::ZERO), ..Stage::default() };
        let stage = match self.stages.iter().find(fits) {
            Some(stage) => stage.clone(),
            None if is_init => init,
            None if owner == Some("Job") => job,
            None => Stage::default(),
        };
        annotated(stage, pod, container)
    }

    fn run(&self, id: Id, stage: &Stage, since: Timestamp) {
        let ends = stage.runs_for.map(|time| since.saturating_add(time).unwrap_or(Timestamp::MAX));
        let running = Running {
            since,
            millicores: amount(stage.cpu.as_deref(), Quantity::milli_value),
            memory: amount(stage.memory.as_deref(), Quantity::value),
            ends,
            code: stage.exit_code,
            ended: watch::Sender::new(None),
        };
        self.state().containers.insert(id, running);
    }

    fn end(&self, id: &Id, ended: Ended) {
        if let Some(running) = self.state().containers.get(id) {
            running.ended.send_if_modified(|known| {
                let is_new = known.is_none();
                known.get_or_insert(ended);
                is_new
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for Fake {
    fn version(&self) -> String {
        format!("{NAME}{}", env!("CARGO_PKG_VERSION"))
    }

    fn adopt<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Found> {
        let status = pod.status.clone().unwrap_or_default();
        let is_init =
            |name: &str| status.init_container_statuses.iter().flatten().any(|it| it.name == name);
        let statuses = status.init_container_statuses.iter().flatten();
        let statuses = statuses.chain(status.container_statuses.iter().flatten());
        let mut found = Found::default();
        for known in statuses {
            let running = known.state.as_ref().and_then(|state| state.running.as_ref());
            let id = known.container_id.as_ref().filter(|id| id.starts_with(NAME));
            let (Some(running), Some(id)) = (running, id) else { continue };
            let at = running.started_at.as_ref().map_or_else(|| self.clock.now(), |time| time.0);
            let id = Id::new(id.as_str());
            self.run(id.clone(), &self.stage(pod, &known.name, is_init(&known.name)), at);
            found.containers.push(FoundContainer {
                name: known.name.clone(),
                number: known.restart_count.unsigned_abs(),
                started: Started { id, image_id: known.image_id.clone(), at },
                ended: None,
            });
        }
        let address = status.pod_ip.as_deref().and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        if let Some(address) = address.filter(|_| !found.containers.is_empty()) {
            self.state().take(uid(pod), address);
            found.addresses = Some(vec![address.into()]);
        }
        std::future::ready(found).boxed()
    }

    fn sweep<'a>(&'a self, _: &'a HashSet<String>) -> BoxFuture<'a, ()> {
        // Nothing is left of what never was.
        std::future::ready(()).boxed()
    }

    fn prepare<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Vec<IpAddr>, PrepareError>> {
        let address = self.state().address(uid(pod));
        std::future::ready(Ok(vec![address.into()])).boxed()
    }

    fn tend(&self, _: watch::Receiver<Arc<Pod>>) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    fn pull<'a>(
        &'a self,
        _: &'a Pod,
        _: &'a Container,
        _: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Result<Pulled, StartError>> {
        std::future::ready(Ok(Pulled { fetched: None, remark: None })).boxed()
    }

    fn start(&self, order: Order) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let Order { pod, container, is_init, number, .. } = order;
            let stage = self.stage(&pod, &container.name, is_init);
            pause(stage.start_after).await;
            let id = Id::new(format!("{NAME}{}/{}/{number}", uid(&pod), container.name));
            let at = self.clock.now();
            self.run(id.clone(), &stage, at);
            let image_id = container.image.clone().unwrap_or_default();
            Ok(Started { id, image_id, at })
        })
    }

    fn wait<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let known = self
                .state()
                .containers
                .get(id)
                .map(|running| (running.ends, running.code, running.ended.subscribe()));
            let Some((ends, code, mut ended)) = known else {
                return Ended::with_code(137, self.clock.now());
            };
            let own_end = async {
                match ends {
                    Some(ends) => pause(ends.duration_since(self.clock.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                asked = ended.wait_for(Option::is_some) => match asked.ok().and_then(|it| it.clone()) {
                    Some(ended) => ended,
                    None => Ended::with_code(137, self.clock.now()),
                },
                () = own_end => {
                    let ended = Ended::with_code(code, ends.unwrap_or_else(|| self.clock.now()));
                    self.end(id, ended.clone());
                    ended
                }
            }
        })
    }

    fn stop<'a>(&'a self, id: &'a Id, _: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        // It does as it is asked.
        self.end(id, Ended::with_code(0, self.clock.now()));
        std::future::ready(Ok(())).boxed()
    }

    fn release<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<(), RuntimeError>> {
        self.state().give_back(uid(pod));
        std::future::ready(Ok(())).boxed()
    }

    fn forget<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, ()> {
        let prefix = format!("{NAME}{}/", uid(pod));
        let mut state = self.state();
        state.containers.retain(|id, _| !id.as_str().starts_with(&prefix));
        state.give_back(uid(pod));
        std::future::ready(()).boxed()
    }

    fn probe<'a>(&'a self, target: &'a Target, _: &'a Probe) -> BoxFuture<'a, Health> {
        let stage = self.stage(&target.pod, &target.container.name, false);
        let is_early = self.clock.now().duration_since(target.since) < stage.ready_after;
        let health = match target.kind {
            ProbeKind::Startup | ProbeKind::Readiness if is_early => {
                Health::Ill("the simulated container is not ready yet".to_owned())
            }
            _ => Health::Well,
        };
        std::future::ready(health).boxed()
    }

    fn call<'a>(
        &'a self,
        _: &'a Target,
        _: &'a HTTPGetAction,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        // Hooks go as well as all else does.
        std::future::ready(Ok(())).boxed()
    }

    fn ask<'a>(
        &'a self,
        _: &'a Id,
        _: &'a [String],
        _: Option<Duration>,
    ) -> BoxFuture<'a, Result<(i32, Vec<u8>), RuntimeError>> {
        std::future::ready(Ok((0, Vec::new()))).boxed()
    }

    fn exec<'a>(
        &'a self,
        _: &'a Id,
        _: &'a [String],
        _: Streams,
    ) -> BoxFuture<'a, Result<i32, RuntimeError>> {
        std::future::ready(Err(RuntimeError::Unsupported(SIMULATED.to_owned()))).boxed()
    }

    fn attach<'a>(&'a self, _: &'a Id, _: Streams) -> BoxFuture<'a, Result<(), RuntimeError>> {
        std::future::ready(Err(RuntimeError::Unsupported(SIMULATED.to_owned()))).boxed()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Pod,
        _: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, RuntimeError>> {
        std::future::ready(Err(RuntimeError::Unsupported(SIMULATED.to_owned()))).boxed()
    }

    fn logs<'a>(
        &'a self,
        _: &'a Attempt,
        _: bool,
    ) -> BoxFuture<'a, Result<BoxStream<'static, std::io::Result<Vec<u8>>>, RuntimeError>> {
        let line = format!("{} stdout F {SIMULATED}\n", self.clock.now());
        let lines = futures::stream::once(std::future::ready(Ok(line.into_bytes())));
        std::future::ready(Ok(lines.boxed())).boxed()
    }

    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Option<Usage>> {
        let now = self.clock.now();
        let used = self.state().containers.get(id).map(|running| {
            let time = Duration::try_from(now.duration_since(running.since)).unwrap_or_default();
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let cpu = Duration::from_micros(millis.saturating_mul(running.millicores));
            Usage { cpu, memory: running.memory }
        });
        std::future::ready(used).boxed()
    }
}

impl State {
    /// The address of a pod. All are in one network, out of the way of those that Services are
    /// given.
    fn address(&mut self, uid: &str) -> Ipv4Addr {
        if let Some(known) = self.addresses.get(uid) {
            return *known;
        }
        loop {
            // 10.128.0.0/9, from 10.128.0.2 on.
            let [_, high, mid, low] = (self.last + 2).to_be_bytes();
            self.last = (self.last + 1) % ADDRESSES;
            let address = Ipv4Addr::new(10, 128 | high, mid, low);
            if !self.taken.contains(&address) {
                self.take(uid, address);
                return address;
            }
        }
    }

    fn take(&mut self, uid: &str, address: Ipv4Addr) {
        self.taken.insert(address);
        self.addresses.insert(uid.to_owned(), address);
    }

    fn give_back(&mut self, uid: &str) {
        if let Some(address) = self.addresses.remove(uid) {
            self.taken.remove(&address);
        }
    }
}

/// Spreads names evenly (FNV-1a), and the same way in every process.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What the pod itself says it is to do.
fn annotated(mut stage: Stage, pod: &Pod, container: &str) -> Stage {
    let Some(annotations) = &pod.metadata.annotations else { return stage };
    let find = |name: &str| {
        let own = annotations.get(&format!("{ANNOTATION}{name}.{container}"));
        own.or_else(|| annotations.get(&format!("{ANNOTATION}{name}")))
    };
    // What does not parse says nothing.
    let time = |name: &str| find(name).and_then(|text| text.parse::<SignedDuration>().ok());
    if let Some(code) = find("exit-code").and_then(|text| text.parse().ok()) {
        stage.exit_code = code;
        stage.runs_for.get_or_insert(SignedDuration::ZERO);
    }
    stage.cpu = find("cpu").cloned().or(stage.cpu);
    stage.memory = find("memory").cloned().or(stage.memory);
    stage.start_after = time("start-after").unwrap_or(stage.start_after);
    stage.ready_after = time("ready-after").unwrap_or(stage.ready_after);
    stage.runs_for = time("runs-for").or(stage.runs_for);
    stage
}

/// An amount that somebody declared. What does not parse says nothing.
fn amount(text: Option<&str>, of: fn(&Quantity) -> i64) -> u64 {
    let parsed = text.and_then(|text| Quantity::parse(text).ok());
    parsed.and_then(|quantity| u64::try_from(of(&quantity)).ok()).unwrap_or_default()
}

async fn pause(time: SignedDuration) {
    match Duration::try_from(time) {
        Ok(time) if !time.is_zero() => tokio::time::sleep(time).await,
        _ => {}
    }
}

fn controller(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.kind.as_str())
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
