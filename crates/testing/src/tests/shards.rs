//! Replicas that share keys: who works on which, while they come, go, die and are cut off.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kubewright::election::refusal;
use kubewright::shard::{Ring, Work};
use kubewright::{Clock, ObjectKey};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Random, runs};
use crate::{Cluster, Line};

const KEYS: u64 = 12;

/// A replica that is a member of the ring, and works on keys all the time.
struct Replica {
    ring: Ring,
    line: Line,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

/// Who works on what, as those who work say.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    /// Who works on a key.
    busy: HashMap<String, String>,
    /// How many works there were, each of which has a number.
    count: u64,
}

/// A key that is being worked on.
struct Entry {
    ledger: Ledger,
    key: String,
}

impl Ledger {
    /// Begins to work on a key, which nobody else does.
    fn begin(&self, work: &Work, who: &str) -> (Entry, u64) {
        let key = work.key().name().to_owned();
        let mut entries = self.entries();
        let other = entries.busy.insert(key.clone(), who.to_owned());
        assert_eq!(other, None, "{who} works on {key}, and so does another");
        entries.count += 1;
        (Entry { ledger: self.clone(), key }, entries.count)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.entries().busy.remove(&self.key);
    }
}

impl Replica {
    fn start(cluster: &Cluster, ring: &str, ledger: &Ledger, line: Line, seed: u64) -> Self {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let client = cluster.client_over(&line);
        let (ring, member) = Ring::join(client, "default", ring, &format!("host_{seed}"), clock);
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(member.run(shutdown.clone()));
        for n in 0..2 {
            let random = Random(seed * 1_000 + n);
            tasks.spawn(work(ring.clone(), ledger.clone(), random, shutdown.clone()));
        }
        Replica { ring, line, shutdown, tasks }
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

/// Works on one key after the other, a while on each.
async fn work(ring: Ring, ledger: Ledger, mut random: Random, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let key = ObjectKey::new(Some("default"), &format!("key-{}", random.below(KEYS)));
        let is_busy = ledger.entries().busy.get(key.name()).is_some_and(|who| who == ring.name());
        // One queue gives a key to one worker at a time.
        if let Some(work) = ring.work(&key).filter(|_| !is_busy) {
            let (entry, number) = ledger.begin(&work, ring.name());
            let steps = write(&ring, &work, number, &mut random);
            // One that lost its key works on in vain; nobody says that it does.
            let lost = work.lost();
            if lost.run_until_cancelled(steps).await.is_none() {
                drop(entry);
                write(&ring, &work, number, &mut random).await;
            }
        }
        sleep(Duration::from_millis(100 + random.below(400))).await;
    }
}

/// Writes a few times, with pauses.
async fn write(ring: &Ring, work: &Work, number: u64, random: &mut Random) {
    let config_maps = Api::<ConfigMap>::default_namespaced(work.client().clone());
    let ring_name = ring.name().rsplitn(6, '-').last().unwrap_or_default();
    let name = format!("{ring_name}-{}", work.key().name());
    for step in 0..1 + random.below(3) {
        let entry = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"who": ring.name(), "work": number.to_string(), "step": step.to_string()},
        });
        let params = PatchParams::apply("test").force();
        if let Err(error) = config_maps.patch(&name, &params, &Patch::Apply(&entry)).await {
            assert!(refusal(&error).is_some(), "{error}");
        }
        sleep(Duration::from_millis(random.below(3_000))).await;
    }
}

/// Which works wrote to which key, in the server's order.
async fn follow(cluster: &Cluster, tasks: &mut JoinSet<()>) -> Arc<Mutex<Vec<(String, u64)>>> {
    let api = Api::<ConfigMap>::default_namespaced(cluster.client());
    let list = api.list_metadata(&ListParams::default()).await.expect("listed");
    let version = list.metadata.resource_version.expect("a version");
    let written = Arc::new(Mutex::new(Vec::new()));
    let events = api.watch(&WatchParams::default().timeout(290), &version).await.expect("watched");
    let notes = Arc::clone(&written);
    tasks.spawn(events.boxed().for_each(move |event| {
        if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) = event
            && let Some(work) = object.data.as_ref().and_then(|data| data.get("work"))
        {
            let work = work.parse().expect("a number");
            notes.lock().expect("nobody panics").push((object.name_any(), work));
        }
        std::future::ready(())
    }));
    written
}

/// Waits until each key is exactly one member's, and all agree on who is a member.
async fn settled(replicas: &[Replica]) {
    let keys = || (0..KEYS).map(|n| ObjectKey::new(Some("default"), &format!("key-{n}")));
    let is_settled = || {
        keys().all(|key| replicas.iter().filter(|replica| replica.ring.owns(&key)).count() == 1)
            && replicas
                .iter()
                .all(|replica| replica.ring.share().borrow().members.len() == replicas.len())
    };
    let wait = async {
        while !is_settled() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = timeout(Duration::from_secs(90), wait).await;
    let shares = || replicas.iter().map(|replica| replica.ring.share().borrow().clone());
    assert!(waited.is_ok(), "they do not agree: {:#?}", shares().collect::<Vec<_>>());
}

/// One run with its own ring: replicas come, go, die and are cut off; no key is worked on by two.
async fn run(cluster: &Cluster, seed: u64) {
    let ring = format!("ring{seed}");
    let (ledger, mut random, mut count) = (Ledger::default(), Random(seed), 0);
    let mut start = |random: &mut Random| {
        count += 1;
        let mut delays = Random(random.next());
        let line = match random.below(2) {
            0 => Line::default(),
            _ => Line::slow(move || match delays.below(10) {
                0 => Duration::from_millis(delays.below(2_400)),
                _ => Duration::from_millis(delays.below(100)),
            }),
        };
        Replica::start(cluster, &ring, &ledger, line, seed * 100 + count)
    };
    let mut replicas = vec![start(&mut random), start(&mut random)];
    for _ in 0..5 {
        sleep(Duration::from_millis(random.below(12_000))).await;
        let one = random.below(replicas.len() as u64) as usize;
        match random.below(5) {
            0 | 1 if replicas.len() < 4 => replicas.push(start(&mut random)),
            2 if replicas.len() > 1 => replicas.swap_remove(one).stop().await,
            3 if replicas.len() > 1 => replicas.swap_remove(one).kill().await,
            _ => {
                replicas[one].line.cut();
                sleep(Duration::from_millis(random.below(30_000))).await;
                replicas[one].line.mend();
            }
        }
    }
    settled(&replicas).await;
    for replica in replicas {
        replica.stop().await;
    }
    let leases = Api::<Lease>::default_namespaced(cluster.client());
    let ours = ListParams::default().labels(&format!("kubewright.dev/ring={ring}"));
    // Those that were killed have left a lease, and none that ended in order.
    let left = leases.list(&ours).await.expect("listed").items.len() as u64;
    assert!(left < count, "{left} of {count}");
}

/// Ten times, or as often as `KUBEWRIGHT_RUNS` says; `cargo xtask long` says a thousand.
#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_members_no_key_is_worked_on_by_two() {
    let cluster = Cluster::start().await;
    let seeds: Vec<u64> = (0..runs(10)).collect();
    for batch in seeds.chunks(10) {
        let mut tasks = JoinSet::new();
        let written = follow(&cluster, &mut tasks).await;
        futures::future::join_all(batch.iter().map(|seed| run(&cluster, *seed))).await;
        check(&written.lock().expect("nobody panics"));
    }
}

/// Checks that the writes of each work on a key come together, with none of another in between.
fn check(written: &[(String, u64)]) {
    let mut works = BTreeMap::<&str, Vec<u64>>::new();
    for (key, work) in written {
        let works = works.entry(key).or_default();
        if works.last() != Some(work) {
            assert!(!works.contains(work), "work {work} on {key} wrote after another: {works:?}");
            works.push(*work);
        }
    }
    assert!(works.len() > KEYS as usize, "hardly anything was worked on: {works:?}");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_handed_over_when_its_work_has_ended() {
    let cluster = Cluster::start().await;
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let join =
        |identity: &str| Ring::join(cluster.client(), "default", "pets", identity, clock.clone());
    let keys: Vec<_> = (0..20).map(|n| ObjectKey::new(None, &format!("key-{n}"))).collect();
    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let (first, member) = join("first");
    tasks.spawn(member.run(shutdown.clone()));
    let mut share = first.share();
    share.wait_for(|share| share.members.len() == 1).await.expect("it runs");
    let works: Vec<_> = keys.iter().map(|key| first.work(key).expect("it is alone")).collect();

    let (second, member) = join("second");
    tasks.spawn(member.run(shutdown.clone()));
    sleep(Duration::from_secs(60)).await;
    assert!(!keys.iter().any(|key| second.owns(key)), "all are being worked on");
    // What moves cannot be begun again, what stays can.
    let stay = keys.iter().filter(|key| first.owns(key)).count();
    assert!((1..20).contains(&stay), "{stay}");
    drop(works);
    share.wait_for(|share| share.members.len() == 2).await.expect("it runs");
    sleep(Duration::from_secs(1)).await;
    let counts = [&first, &second].map(|ring| keys.iter().filter(|key| ring.owns(key)).count());
    assert_eq!(counts, [stay, 20 - stay]);

    // Somebody deletes a lease: it is made again, and nobody else has its keys in between.
    let leases = Api::<Lease>::default_namespaced(cluster.client());
    leases.delete(first.name(), &DeleteParams::default()).await.expect("deleted");
    sleep(Duration::from_secs(40)).await;
    let counts = [&first, &second].map(|ring| keys.iter().filter(|key| ring.owns(key)).count());
    assert_eq!(counts, [stay, 20 - stay]);
    shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    let left = leases.list(&ListParams::default().labels("kubewright.dev/ring=pets")).await;
    assert!(left.expect("listed").items.is_empty());
}
