//! Replicas that stand for one lease: who leads, who writes, and when another one takes over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kubewright::Clock;
use kubewright::election::{Election, Leadership, Refused, Status, refusal};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Random, runs};
use crate::{Cluster, Line};

const LEASE: Duration = Duration::from_secs(15);

/// A replica that stands for a lease, and writes its name again and again while it leads.
struct Replica {
    line: Line,
    status: watch::Receiver<Status>,
    shutdown: CancellationToken,
    task: JoinSet<()>,
}

impl Replica {
    fn start(cluster: &Cluster, lease: &str, identity: &str, line: Line, pace: Duration) -> Self {
        let ledger = format!("ledger-{lease}");
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let client = cluster.client_over(&line);
        let election = Election::new(client, "default", lease, identity, clock);
        let (status, shutdown) = (election.status(), CancellationToken::new());
        let identity = identity.to_owned();
        let run = election.run(shutdown.clone(), move |leadership| {
            write(leadership, ledger.clone(), identity.clone(), pace)
        });
        let mut task = JoinSet::new();
        task.spawn(async move { run.await.expect("it writes until it is to end") });
        Replica { line, status, shutdown, task }
    }

    async fn leads(&mut self) {
        let leads = self.status.wait_for(|status| status.leading);
        timeout(Duration::from_secs(120), leads).await.expect("in time").expect("it runs");
    }

    async fn leads_no_more(&mut self) {
        self.status.wait_for(|status| !status.leading).await.expect("it runs");
    }

    /// Ends it, as a signal would.
    async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.expect("it does not panic");
        }
    }

    /// Ends it, as a loss of power would.
    async fn kill(mut self) {
        self.task.shutdown().await;
    }
}

/// Writes into a ledger until the lease is lost, and three times more: a leader need not be quick to
/// notice that it is none.
async fn write(
    leadership: Leadership,
    ledger: String,
    identity: String,
    pace: Duration,
) -> Result<(), kube::Error> {
    let config_maps = Api::<ConfigMap>::default_namespaced(leadership.client().clone());
    let params = PatchParams::apply("test").force();
    let (mut count, mut more) = (0, 3);
    while more > 0 {
        if leadership.lost().is_cancelled() {
            more -= 1;
        }
        count += 1;
        let entry = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ledger},
            "data": {"writer": identity, "count": count.to_string()},
        });
        match config_maps.patch(&ledger, &params, &Patch::Apply(&entry)).await {
            Err(error) if refusal(&error).is_none() => return Err(error),
            Ok(_) | Err(_) => {}
        }
        sleep(pace).await;
    }
    Ok(())
}

/// All that was written to leases and ledgers while it followed, in the server's order.
#[derive(Clone, Default)]
struct History(Arc<Mutex<BTreeMap<String, BTreeMap<u64, Entry>>>>);

#[derive(Clone, Debug)]
struct Entry {
    at: Instant,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Held(String),
    Wrote(String),
}

impl History {
    async fn follow(cluster: &Cluster, tasks: &mut JoinSet<()>) -> Self {
        let history = History::default();
        let leases = watch_all(&Api::<Lease>::default_namespaced(cluster.client())).await;
        let ledgers = watch_all(&Api::<ConfigMap>::default_namespaced(cluster.client())).await;
        let notes = history.clone();
        tasks.spawn(leases.for_each(move |lease| {
            let holder = lease.spec.clone().unwrap_or_default().holder_identity;
            let what = What::Held(holder.unwrap_or_default());
            notes.note(&lease.name_any(), lease.resource_version(), what);
            std::future::ready(())
        }));
        let notes = history.clone();
        tasks.spawn(ledgers.for_each(move |ledger| {
            if let Some(lease) = ledger.name_any().strip_prefix("ledger-") {
                let writer = ledger.data.clone().unwrap_or_default().remove("writer");
                let what = What::Wrote(writer.unwrap_or_default());
                notes.note(lease, ledger.resource_version(), what);
            }
            std::future::ready(())
        }));
        history
    }

    fn note(&self, lease: &str, version: Option<String>, what: What) {
        let version = version.and_then(|version| version.parse().ok()).expect("a version");
        let entry = Entry { at: Instant::now(), what };
        let mut all = self.0.lock().expect("nobody panics");
        all.entry(lease.to_owned()).or_default().insert(version, entry);
    }

    fn of(&self, lease: &str) -> Vec<Entry> {
        let all = self.0.lock().expect("nobody panics");
        all.get(lease).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Checks that only holders wrote, each while it held the lease; gives them in their order.
    fn writers(&self, lease: &str) -> Vec<String> {
        let history = self.of(lease);
        let (mut holder, mut writers) = (String::new(), Vec::<String>::new());
        for entry in &history {
            match &entry.what {
                What::Held(by) => holder.clone_from(by),
                What::Wrote(by) => {
                    assert_eq!(*by, holder, "{by} wrote without the lease: {history:#?}");
                    if writers.last() != Some(by) {
                        writers.push(by.clone());
                    }
                }
            }
        }
        writers
    }

    /// When somebody first wrote, after a moment.
    async fn wrote(&self, lease: &str, who: &str, after: Instant) -> Instant {
        let what = What::Wrote(who.to_owned());
        for _ in 0..12_000 {
            let found = self.of(lease).into_iter().find(|e| e.at > after && e.what == what);
            if let Some(entry) = found {
                return entry.at;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{who} did not write in two minutes: {:#?}", self.of(lease));
    }
}

/// Everything that is written to objects from now on.
pub(super) async fn watch_all<K>(api: &Api<K>) -> futures::stream::BoxStream<'static, K>
where
    K: kubewright::informer::Object + Clone + std::fmt::Debug,
{
    let list = api.list_metadata(&Default::default()).await.expect("listed");
    let version = list.metadata.resource_version.expect("a version");
    let params = WatchParams::default().timeout(290);
    let events = api.watch(&params, &version).await.expect("watched");
    events
        .try_filter_map(|event| async move {
            Ok(match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
                _ => None,
            })
        })
        .map(|object| object.expect("a watch that nobody cuts"))
        .boxed()
}

const PACE: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_is_followed_within_the_lease() {
    let cluster = Cluster::start().await;
    let mut tasks = JoinSet::new();
    let history = History::follow(&cluster, &mut tasks).await;
    let mut first = Replica::start(&cluster, "a", "first", Line::default(), PACE);
    first.leads().await;
    let mut second = Replica::start(&cluster, "a", "second", Line::default(), PACE);
    sleep(Duration::from_secs(7)).await;
    first.kill().await;
    let killed = Instant::now();
    second.leads().await;
    assert!(killed.elapsed() <= LEASE, "{:?}", killed.elapsed());
    history.wrote("a", "second", killed).await;
    assert_eq!(history.writers("a"), ["first", "second"]);
    assert_eq!(second.status.borrow().leader.as_deref(), Some("second"));
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_ends_hands_over_at_once() {
    let cluster = Cluster::start().await;
    let mut tasks = JoinSet::new();
    let history = History::follow(&cluster, &mut tasks).await;
    let mut first = Replica::start(&cluster, "a", "first", Line::default(), PACE);
    first.leads().await;
    let mut second = Replica::start(&cluster, "a", "second", Line::default(), PACE);
    sleep(Duration::from_secs(7)).await;
    first.stop().await;
    let stopped = Instant::now();
    second.leads().await;
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    history.wrote("a", "second", stopped).await;
    assert_eq!(history.writers("a"), ["first", "second"]);
    second.stop().await;

    // What client-go leaves behind.
    let leases = Api::<Lease>::default_namespaced(cluster.client());
    let spec = leases.get("a").await.expect("it is there").spec.expect("it says something");
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(1), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_writing_and_stands_again() {
    let cluster = Cluster::start().await;
    let mut tasks = JoinSet::new();
    let history = History::follow(&cluster, &mut tasks).await;
    let mut first = Replica::start(&cluster, "a", "first", Line::default(), PACE);
    first.leads().await;
    let mut second = Replica::start(&cluster, "a", "second", Line::default(), PACE);
    sleep(Duration::from_secs(7)).await;
    first.line.cut();
    let cut = Instant::now();
    first.leads_no_more().await;
    assert!(cut.elapsed() <= Duration::from_secs(10), "{:?}", cut.elapsed());
    second.leads().await;
    assert!(cut.elapsed() <= LEASE, "{:?}", cut.elapsed());
    first.line.mend();
    sleep(Duration::from_secs(60)).await;
    assert!(!first.status.borrow().leading);
    second.stop().await;
    let stopped = Instant::now();
    first.leads().await;
    history.wrote("a", "first", stopped).await;
    assert_eq!(history.writers("a"), ["first", "second", "first"]);
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_does_not_make_two_leaders() {
    let cluster = Cluster::start().await;
    let mut tasks = JoinSet::new();
    let history = History::follow(&cluster, &mut tasks).await;
    let mut first = Replica::start(&cluster, "a", "first", Line::default(), PACE);
    first.leads().await;
    let second = Replica::start(&cluster, "a", "second", Line::default(), PACE);
    let leases = Api::<Lease>::default_namespaced(cluster.client());
    for _ in 0..10 {
        sleep(Duration::from_millis(5_300)).await;
        leases.delete("a", &DeleteParams::default()).await.expect("deleted");
    }
    sleep(Duration::from_secs(20)).await;
    assert!(first.status.borrow().leading);
    assert_eq!(history.writers("a"), ["first"]);
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_write_leases_is_told_so_and_the_others_lead() {
    let cluster = Cluster::start().await;
    let client = cluster.client_as("nobody", &[]);
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let election = Election::new(client, "default", "a", "nobody", clock);
    let (mut status, shutdown) = (election.status(), CancellationToken::new());
    let stop = shutdown.clone();
    let stand = election.run(shutdown, |_| async { Err::<(), _>("it cannot lead") });
    let look = async {
        let told = status.wait_for(|status| status.trouble.is_some()).await.expect("it runs");
        let trouble = told.trouble.clone().expect("some");
        assert!(trouble.contains("cannot get resource \"leases\""), "{trouble}");
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(stand, look);
    assert_eq!(ended, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_leads_may_end_by_itself_and_gives_the_lease_away() {
    let cluster = Cluster::start().await;
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let stand = |identity: &str| {
        let client = cluster.client();
        Election::new(client, "default", "a", identity, clock.clone())
    };
    let failed = stand("first").run(CancellationToken::new(), |_| async { Err("no disk") }).await;
    assert_eq!(failed, Err("no disk"));
    let begun = Instant::now();
    let ended = stand("second").run(CancellationToken::new(), |_| async { Ok::<(), &str>(()) });
    assert_eq!(ended.await, Ok(()));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_guarded_client_reads_always_and_writes_only_while_it_leads() {
    let cluster = Cluster::start().await;
    let line = Line::default();
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let election = Election::new(cluster.client_over(&line), "default", "a", "first", clock);
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let lead = election.run(shutdown, move |leadership| {
        let (line, stop) = (line.clone(), stop.clone());
        async move {
            let config_maps = Api::<ConfigMap>::default_namespaced(leadership.client().clone());
            let config_map = |name: &str| -> ConfigMap {
                serde_json::from_value(json!({"metadata": {"name": name}})).expect("an object")
            };
            let params = PostParams::default();
            config_maps.create(&params, &config_map("in-time")).await.expect("it leads");

            // One that is under way when the line is cut is given up before the lease can end.
            line.cut();
            let begun = Instant::now();
            let error = config_maps.create(&params, &config_map("cut-off")).await;
            let error = error.expect_err("it is cut off");
            assert_eq!(refusal(&error), Some(Refused::Unanswered));
            assert!(begun.elapsed() <= Duration::from_millis(12_500), "{:?}", begun.elapsed());

            assert!(leadership.lost().is_cancelled());
            let error = config_maps.create(&params, &config_map("late")).await;
            let error = error.expect_err("it leads no more");
            assert_eq!(refusal(&error), Some(Refused::NotHeld));
            line.mend();
            config_maps.get("in-time").await.expect("reads go on");
            stop.cancel();
            Ok::<(), kube::Error>(())
        }
    });
    lead.await.expect("it wrote what it could");
    let config_maps = Api::<ConfigMap>::default_namespaced(cluster.client());
    assert!(config_maps.get_opt("cut-off").await.expect("an answer").is_none());
}

/// What becomes of a leader.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Killed,
    CutOff,
    Stopped,
}

/// One run with its own lease: a leader meets its fate, and the other replica takes over.
async fn run(cluster: &Cluster, history: &History, seed: u64) {
    let lease = format!("run-{seed}");
    let mut random = Random(seed);
    let fate = [Fate::Killed, Fate::CutOff, Fate::Stopped][random.below(3) as usize];
    let is_slow = random.below(2) == 0;
    let mut line = || match is_slow {
        true => {
            let mut random = Random(random.next());
            // Mostly quick, and now and then as slow as the terms of a lease allow.
            Line::slow(move || match random.below(10) {
                0 => Duration::from_millis(random.below(2_400)),
                _ => Duration::from_millis(random.below(100)),
            })
        }
        false => Line::default(),
    };
    let (near, far) = (line(), line());
    let mut pace = || Duration::from_millis(300 + random.below(1_500));
    let mut first = Replica::start(cluster, &lease, "first", near, pace());
    first.leads().await;
    let mut second = Replica::start(cluster, &lease, "second", far, pace());
    // It has seen the leader by then, or would have to wait for a lease of its own.
    sleep(Duration::from_millis(5_000 + random.below(6_000))).await;
    let first_line = first.line.clone();
    let rest = match fate {
        Fate::Killed => {
            first.kill().await;
            None
        }
        Fate::Stopped => {
            first.stop().await;
            None
        }
        Fate::CutOff => {
            first_line.cut();
            Some(first)
        }
    };
    let met = Instant::now();
    second.leads().await;
    let most = if fate == Fate::Stopped { Duration::from_secs(1) } else { LEASE };
    assert!(is_slow || met.elapsed() <= most, "{seed} {fate:?}: {:?}", met.elapsed());
    sleep(Duration::from_millis(random.below(8_000))).await;
    first_line.mend();
    sleep(Duration::from_millis(1_000 + random.below(4_000))).await;
    second.kill().await;
    if let Some(first) = rest {
        first.kill().await;
    }
    let writers = history.writers(&lease);
    assert_eq!(writers, ["first", "second"], "{seed} {fate:?}");
}

/// Forty times, or as often as `KUBEWRIGHT_RUNS` says; `cargo xtask long` says a thousand.
#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_a_leader_no_two_write() {
    let cluster = Cluster::start().await;
    let seeds: Vec<u64> = (0..runs(40)).collect();
    for batch in seeds.chunks(20) {
        let mut tasks = JoinSet::new();
        let history = History::follow(&cluster, &mut tasks).await;
        let runs = batch.iter().map(|seed| run(&cluster, &history, *seed));
        futures::future::join_all(runs).await;
    }
}
