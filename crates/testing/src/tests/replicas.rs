//! Two replicas of a whole operator: one is killed, cut off or stopped while objects change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use kubewright::operator::{Host, Surrounding};
use kubewright::serve::Bind;
use kubewright::settings::Settings;
use kubewright::{Action, Context, Controller, Coordination, Error, Operator, Reconciler};
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::election::watch_all;
use super::{Random, runs};
use crate::{Cluster, Line};

const OBJECTS: u64 = 6;
/// Longer than a lease and all that comes before it.
const SETTLED_MAX: Duration = Duration::from_secs(90);

/// Does what objects want, and writes down who did it. It takes its time: when it writes, the
/// lease may be another's.
struct Scribe {
    name: &'static str,
    ledger: Ledger,
    random: Mutex<Random>,
    /// Writes with a client that nobody guards, as a program without the library's would; and from a
    /// task of its own, which goes on when the reconcile is given up.
    unguarded: Option<(Client, Mutex<JoinSet<()>>)>,
    pace: Pace,
}

/// How many times faster everything is than with the leases that Kubernetes has.
#[derive(Clone, Copy)]
struct Pace(u32);

impl Pace {
    fn millis(self, millis: u64) -> Duration {
        Duration::from_millis(millis) / self.0
    }
}

const USUAL: Pace = Pace(1);

/// Which objects are reconciled by whom right now, and who has reconciled any.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    busy: HashMap<String, &'static str>,
    seen: BTreeSet<&'static str>,
    /// That two reconciled one object at once.
    wrong: Vec<String>,
}

/// An object that is being reconciled.
struct Entered {
    ledger: Ledger,
    object: String,
}

impl Entered {
    fn begin(ledger: &Ledger, object: &str, who: &'static str) -> Self {
        let mut entries = ledger.0.lock().unwrap();
        entries.seen.insert(who);
        if let Some(other) = entries.busy.insert(object.to_owned(), who) {
            entries.wrong.push(format!("{who} reconciles {object}, and so does {other}"));
        }
        Entered { ledger: ledger.clone(), object: object.to_owned() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.ledger.0.lock().unwrap().busy.remove(&self.object);
    }
}

impl Reconciler<ConfigMap> for Scribe {
    async fn reconcile(&self, object: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
        let _entry = Entered::begin(&self.ledger, &object.name_any(), self.name);
        let data = object.data.get_or_insert_default();
        let want = data.get("want").cloned().unwrap_or_default();
        if data.get("done") == Some(&want) {
            return Ok(Action::Done);
        }
        let linger = {
            let mut random = self.random.lock().unwrap();
            if random.below(4) == 0 { random.below(20_000) } else { 10 }
        };
        let linger = self.pace.millis(linger);
        if let Some((client, tasks)) = &self.unguarded {
            let namespace = object.namespace().unwrap_or_default();
            let api = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
            let (name, patch) =
                (object.name_any(), json!({"data": {"done": want, "by": self.name}}));
            let (tell, told) = oneshot::channel();
            tasks.lock().unwrap().spawn(async move {
                sleep(linger).await;
                let written = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
                let _ = tell.send(written.map(drop));
            });
            told.await??;
            return Ok(Action::Done);
        }
        sleep(linger).await;
        let data = object.data.get_or_insert_default();
        data.insert("done".to_owned(), want);
        data.insert("by".to_owned(), self.name.to_owned());
        Ok(Action::Done)
    }
}

struct Replica {
    line: Line,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

/// How the replicas of a run are.
#[derive(Clone, Copy)]
struct Kind {
    coordination: Coordination,
    is_guarded: bool,
    pace: Pace,
}

impl Replica {
    fn start(site: &Site<'_>, name: &'static str, line: Line, seed: u64) -> Self {
        let client = site.cluster.client_over(&line);
        let scribe = Scribe {
            name,
            ledger: site.ledger.clone(),
            random: Mutex::new(Random(seed)),
            unguarded: (!site.kind.is_guarded).then(|| (client.clone(), Mutex::default())),
            pace: site.kind.pace,
        };
        let controller = Controller::new("scribe", scribe).labelled("app=test").at_once(3);
        let operator = Operator::new("scribe").controller(controller).only_in([&site.namespace]);
        let mut settings = Settings::default();
        settings.leader_election.wanted = Some(site.kind.coordination == Coordination::Leader);
        let election = &mut settings.leader_election;
        for time in
            [&mut election.lease_duration, &mut election.renew_deadline, &mut election.retry_period]
        {
            *time /= site.kind.pace.0;
        }
        settings.sharded = Some(site.kind.coordination == Coordination::Shards);
        settings.metrics.bind = Bind::Nowhere;
        settings.probes = Bind::Nowhere;
        settings.webhooks.bind = Some(Bind::Nowhere);
        let host = Host {
            client,
            clock: site.cluster.clock(),
            settings,
            namespace: site.namespace.clone(),
            surrounding: Surrounding::Pod,
            registry: Registry::default(),
        };
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let served = operator.serve(host, shutdown.clone());
        tasks.spawn(async move { served.await.expect("it can be run") });
        Replica { line, shutdown, tasks }
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("it does not panic");
        }
    }

    async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}

/// One run, in a namespace of its own.
struct Site<'a> {
    cluster: &'a Cluster,
    namespace: String,
    kind: Kind,
    ledger: Ledger,
}

impl Site<'_> {
    fn objects(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    async fn want(&self, name: &str, what: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"app": "test"}},
            "data": {"want": what},
        });
        let params = PatchParams::apply("editor").force();
        self.objects().patch(name, &params, &Patch::Apply(object)).await.expect("edited");
    }

    /// Has objects want something else, one after the other, until it is told to stop.
    async fn edit(&self, mut random: Random, stop: CancellationToken) {
        for count in 0.. {
            if stop.is_cancelled() {
                return;
            }
            let name = format!("object-{}", random.below(OBJECTS));
            self.want(&name, &count.to_string()).await;
            sleep(self.kind.pace.millis(200 + random.below(3_000))).await;
        }
    }

    /// Waits until all that was wanted is done.
    async fn settled(&self) {
        let begun = Instant::now();
        loop {
            let all = self.objects().list(&ListParams::default().labels("app=test")).await;
            let all = all.expect("listed").items;
            let is_done = |object: &ConfigMap| {
                object.data.as_ref().is_some_and(|data| data.get("done") == data.get("want"))
            };
            if all.iter().all(is_done) {
                return;
            }
            assert!(begun.elapsed() < SETTLED_MAX, "an event was lost: {all:#?}");
            sleep(self.kind.pace.millis(500)).await;
        }
    }
}

/// What was written in a namespace, in the server's order: who holds the lease, who did something.
#[derive(Debug, Clone)]
enum Entry {
    Held(String),
    Did { object: String, by: String, done: String },
}

#[derive(Clone, Default)]
struct History(Arc<Mutex<BTreeMap<u64, Entry>>>);

impl History {
    async fn follow(site: &Site<'_>, tasks: &mut JoinSet<()>) -> Self {
        let history = History::default();
        let version = |it: Option<String>| it.and_then(|it| it.parse().ok()).expect("a version");
        let leases = Api::<Lease>::namespaced(site.cluster.client(), &site.namespace);
        let objects = site.objects();
        let (leases, objects) = (watch_all(&leases).await, watch_all(&objects).await);
        let notes = history.clone();
        tasks.spawn(leases.for_each(move |lease| {
            let holder = lease.spec.clone().unwrap_or_default().holder_identity;
            let entry = Entry::Held(holder.unwrap_or_default());
            notes.0.lock().unwrap().insert(version(lease.resource_version()), entry);
            std::future::ready(())
        }));
        let notes = history.clone();
        tasks.spawn(objects.for_each(move |object| {
            let data = object.data.clone().unwrap_or_default();
            if let (Some(by), Some(done)) = (data.get("by"), data.get("done")) {
                let (object_name, by, done) = (object.name_any(), by.clone(), done.clone());
                let entry = Entry::Did { object: object_name, by, done };
                notes.0.lock().unwrap().insert(version(object.resource_version()), entry);
            }
            std::future::ready(())
        }));
        history
    }

    /// Who wrote, in order; or what is wrong: that somebody did without the lease.
    fn writers(&self) -> Result<Vec<String>, String> {
        let history: Vec<Entry> = self.0.lock().unwrap().values().cloned().collect();
        let (mut holder, mut known, mut writers) = (String::new(), BTreeMap::new(), Vec::new());
        let mut last: HashMap<String, String> = HashMap::new();
        for entry in &history {
            match entry {
                Entry::Held(by) => holder.clone_from(by),
                Entry::Did { object, by, done } => {
                    // An editor's change leaves what was done before.
                    if last.insert(object.clone(), format!("{by} {done}"))
                        == Some(format!("{by} {done}"))
                    {
                        continue;
                    }
                    if writers.last() != Some(by) {
                        writers.push(by.clone());
                    }
                    let first: &mut String = known.entry(holder.clone()).or_insert(by.clone());
                    if first != by || holder.is_empty() {
                        return Err(format!("{by} wrote while {holder} led: {history:#?}"));
                    }
                }
            }
        }
        let distinct: BTreeSet<&String> = known.values().collect();
        match distinct.len() == known.len() {
            true => Ok(writers),
            false => Err(format!("one wrote while another led: {history:#?}")),
        }
    }
}

/// One of two replicas meets its fate while objects change; the other goes on.
async fn run(cluster: &Cluster, kind: Kind, seed: u64) -> Result<(), String> {
    let namespace = format!("run-{seed}");
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let new = serde_json::from_value(json!({"metadata": {"name": namespace}})).expect("one");
    namespaces.create(&PostParams::default(), &new).await.expect("created");
    let site = Site { cluster, namespace, kind, ledger: Ledger::default() };
    let (mut random, mut tasks) = (Random(seed), JoinSet::new());
    let history = History::follow(&site, &mut tasks).await;

    let first = Replica::start(&site, "first", Line::default(), random.next());
    let pace = kind.pace;
    sleep(pace.millis(3_000)).await;
    let second = Replica::start(&site, "second", Line::default(), random.next());
    let stop = CancellationToken::new();
    let events = async {
        // It has seen the other one by then, or would have to wait for a lease of its own.
        sleep(pace.millis(8_000 + random.below(10_000))).await;
        let (fate, line) = (random.below(3), first.line.clone());
        let rest = match fate {
            0 => {
                first.kill().await;
                None
            }
            1 => {
                first.stop().await;
                None
            }
            _ => {
                line.cut();
                Some(first)
            }
        };
        sleep(pace.millis(20_000 + random.below(10_000))).await;
        line.mend();
        sleep(pace.millis(random.below(10_000))).await;
        stop.cancel();
        rest
    };
    let (rest, ()) = tokio::join!(events, site.edit(Random(seed + 1), stop.clone()));
    site.settled().await;
    let checked = match kind.coordination {
        Coordination::Leader => history.writers().and_then(|writers| {
            // Whoever came last did something.
            match writers.iter().any(|by| by == "second") {
                true => Ok(()),
                false => Err(format!("the second never took over: {writers:?}")),
            }
        }),
        _ if !site.ledger.0.lock().unwrap().seen.contains("second") => {
            Err("the second did nothing".to_owned())
        }
        _ => Ok(()),
    };
    // What reconciles do outside the cluster no client guards: none may go on when another begins.
    let checked = checked.and_then(|()| match site.ledger.0.lock().unwrap().wrong.first() {
        Some(wrong) => Err(wrong.clone()),
        None => Ok(()),
    });
    second.kill().await;
    if let Some(rest) = rest {
        rest.kill().await;
    }
    checked
}

#[tokio::test(start_paused = true)]
async fn two_replicas_of_a_sharded_operator_do_about_half_each() {
    let cluster = Cluster::start().await;
    let kind = Kind { coordination: Coordination::Shards, is_guarded: true, pace: USUAL };
    let namespace = "default".to_owned();
    let site = Site { cluster: &cluster, namespace, kind, ledger: Ledger::default() };
    let first = Replica::start(&site, "first", Line::default(), 1);
    let second = Replica::start(&site, "second", Line::default(), 2);
    sleep(Duration::from_secs(10)).await;
    for number in 0..40 {
        site.want(&format!("object-{number}"), "1").await;
    }
    site.settled().await;
    let all = site.objects().list(&ListParams::default().labels("app=test")).await;
    let all = all.expect("listed").items;
    let by = |name: &str| {
        all.iter().filter(|it| it.data.as_ref().is_some_and(|data| data["by"] == name)).count()
    };
    let counts = (by("first"), by("second"));
    assert!(counts.0 + counts.1 == 40 && counts.0.min(counts.1) > 8, "{counts:?}");
    first.stop().await;
    second.stop().await;
    cluster.shutdown().await;
}

async fn run_all(kind: Kind, seeds: Vec<u64>) -> Vec<Result<(), String>> {
    let cluster = Cluster::start().await;
    let mut ended = Vec::new();
    for batch in seeds.chunks(10) {
        ended.extend(
            futures::future::join_all(batch.iter().map(|seed| run(&cluster, kind, *seed))).await,
        );
    }
    ended
}

/// Ten times, or as often as `KUBEWRIGHT_RUNS` says; `cargo xtask long` says a thousand.
#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_an_operator_no_event_is_lost_and_no_two_lead() {
    let kind = Kind { coordination: Coordination::Leader, is_guarded: true, pace: USUAL };
    let ended = run_all(kind, (0..runs(10)).collect()).await;
    for (seed, ended) in ended.into_iter().enumerate() {
        ended.unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
    }
}

/// The same with replicas that share out the objects.
#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_a_share_no_event_is_lost_and_no_object_is_worked_on_by_two() {
    let kind = Kind { coordination: Coordination::Shards, is_guarded: true, pace: USUAL };
    let ended = run_all(kind, (0..runs(10)).collect()).await;
    for (seed, ended) in ended.into_iter().enumerate() {
        ended.unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
    }
}

/// The same a few times for real, with leases of five seconds: no clock waits for anybody.
#[tokio::test]
async fn whatever_becomes_of_an_operator_no_two_lead_in_real_time_either() {
    let kind = Kind { coordination: Coordination::Leader, is_guarded: true, pace: Pace(3) };
    // Among them are some that are killed, some that are stopped, and some that are cut off.
    let ended = run_all(kind, (0..6).collect()).await;
    for (seed, ended) in ended.into_iter().enumerate() {
        ended.unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
    }
}

/// The first check is worth something: without the client that refuses to write past its time, it
/// finds writes of one that leads no more.
#[tokio::test(start_paused = true)]
async fn a_leader_that_nobody_guards_is_caught_writing() {
    let kind = Kind { coordination: Coordination::Leader, is_guarded: false, pace: USUAL };
    let ended = run_all(kind, (0..10).collect()).await;
    assert!(ended.iter().any(Result::is_err), "nobody was caught");
}
