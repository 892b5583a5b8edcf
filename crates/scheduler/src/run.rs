//! The scheduler at work: one loop that hears what happened, decides about one pod at a time, and
//! has what it decided written beside it.
//!
//! All that is known belongs to the loop, so there is nothing to lock, and every decision is made
//! on what has been heard up to then.

mod apply;
mod order;
mod report;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Client;
use kubewright::informer::{Informer, Scope};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::error;

use self::order::Order;
use self::schedule::Bound;
use crate::Surroundings;
use crate::config::{Config, ConfigError};
use crate::extender::Extender;
use crate::feed::Feed;
use crate::pod::Pod;
use crate::profile::Profile;
use crate::profile::registry::{Around, Registry};
use crate::queue::Queue;
use crate::snapshot::Snapshot;

/// How long what is under way at the end may take.
const END_MAX: Duration = Duration::from_secs(1);

/// So many pods may be on their way to their nodes. More would wait at the server.
const BINDING_MAX: usize = 256;

/// Makes everything of a configuration that can be made without a server.
pub(crate) fn check(config: &Config, registry: &Registry) -> Result<(), ConfigError> {
    config.validate()?;
    for profile in &config.profiles {
        Profile::new(profile, registry, &Around::default())?;
    }
    config.extenders.iter().try_for_each(|extender| Extender::new(extender).map(drop))
}

/// Runs until `shutdown`; returns when all it started has ended.
pub(crate) async fn run(
    config: Config,
    registry: &Registry,
    client: Client,
    around: Surroundings,
    shutdown: CancellationToken,
) -> Result<(), ConfigError> {
    config.validate()?;
    let claims: Informer<PersistentVolumeClaim> = around.cache.informer(&Scope::default());
    let managed = config.extenders.iter().flat_map(|it| &it.managed_resources);
    let ignored = managed.filter(|it| it.ignored_by_scheduler).map(|it| it.name.clone());
    let with = Around {
        client: Some(client.clone()),
        volumes: Some(crate::plugins::VolumeApi { client: client.clone(), claims }),
        ignored_resources: ignored.collect(),
    };
    let profiles: Result<Vec<Profile>, ConfigError> =
        config.profiles.iter().map(|profile| Profile::new(profile, registry, &with)).collect();
    let extenders: Result<Vec<Extender>, ConfigError> =
        config.extenders.iter().map(Extender::new).collect();
    let (profiles, extenders) = (profiles?, extenders?);
    drop(with);
    let Some(mut feed) = shutdown.run_until_cancelled(Feed::start(&around.cache)).await else {
        return Ok(());
    };
    let mut scheduler = Loop {
        queue: Queue::new(config.backoff_initial(), config.backoff_max()),
        percentage: config.percentage_of_nodes_to_score,
        profiles,
        extenders,
        snapshot: Snapshot::default(),
        client,
        around,
        start: 0,
        random: Random::seeded(),
        order: Order::default(),
        tasks: JoinSet::new(),
        binding: 0,
    };
    scheduler.work(&mut feed, &shutdown).await;
    // What is being written is written. Pods may wait for their volumes far longer than that; the
    // next scheduler finds them as they are.
    let writing = async { while scheduler.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(END_MAX, writing).await;
    scheduler.tasks.shutdown().await;
    Ok(())
}

struct Loop {
    queue: Queue,
    profiles: Vec<Profile>,
    extenders: Vec<Extender>,
    snapshot: Snapshot,
    client: Client,
    around: Surroundings,
    percentage: Option<u32>,
    /// The node that the next search begins with.
    start: usize,
    random: Random,
    order: Order,
    tasks: JoinSet<Done>,
    /// How many of the tasks bind a pod.
    binding: usize,
}

/// What a task has done.
enum Done {
    Bound(Bound),
    /// Room was made for a pod, as far as that can be told.
    Preempted(Arc<Pod>),
    Reported,
}

impl Loop {
    async fn work(&mut self, feed: &mut Feed, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            while let Ok(event) = feed.events.try_recv() {
                self.apply(event);
            }
            while let Some(done) = self.tasks.try_join_next() {
                self.done(done);
            }
            if self.binding < BINDING_MAX
                && let Some(next) = self.queue.pop(Instant::now())
            {
                self.schedule(next).await;
                // Others have a turn: those who write what was decided, and those who watch.
                tokio::task::yield_now().await;
                continue;
            }
            let deadline = self.queue.deadline();
            tokio::select! {
                () = shutdown.cancelled() => {}
                event = feed.events.recv() => match event {
                    Some(event) => self.apply(event),
                    None => return,
                },
                Some(done) = self.tasks.join_next() => self.done(done),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {}
            }
        }
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Bound(bound)) => self.bound(bound),
            Ok(Done::Preempted(pod)) => {
                self.queue.set_preempting(&pod.uid, false, Instant::now());
            }
            Ok(Done::Reported) => {}
            Err(error) => error!(%error, "a task of the scheduler panicked"),
        }
    }
}

/// Numbers that nobody can foresee, and that need not be better than that.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let mut seed = [0; 8];
        // Without one, ties are broken in the same way each time, which harms nobody.
        let _ = getrandom::fill(&mut seed);
        Random(u64::from_ne_bytes(seed))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % bound.max(1)
    }
}
