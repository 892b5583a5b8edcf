//! Which node gets this pod, and why.
//!
//! A [`Scheduler`] runs beside any API server, ours or upstream's, alone or as a second one. It
//! follows nodes, pods and what pods refer to (`feed`), keeps a [`Snapshot`] of
//! them up to date, and takes pods from a `queue` one after another. For each it looks for nodes
//! that will do and compares them (`cycle`, pure), or finds out whose going would help (`preempt`,
//! pure). Rules are [`Plugin`]s, the built-in ones too; a [`Config`] says which of them count and
//! how much, for each profile.

mod change;
pub mod config;
mod cycle;
mod extender;
mod feed;
#[cfg(test)]
mod fixtures;
mod node;
pub mod plugin;
mod plugins;
mod pod;
mod preempt;
mod profile;
mod queue;
mod resources;
mod run;
mod selector;
mod snapshot;
mod storage;
mod volumes;
mod workloads;

use std::fmt;
use std::sync::Arc;

use kube::Client;
use kubewright::event::Recorder;
use kubewright::{Cache, Clock, election};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::change::Change;
pub use self::config::{Config, ConfigError};
pub use self::cycle::{Attempt, Diagnosis, Filters};
pub use self::node::Node;
pub use self::plugin::Plugin;
pub use self::pod::Pod;
pub use self::profile::registry::{Around, Factory, Registry};
pub use self::resources::Resources;
pub use self::snapshot::Snapshot;

/// A scheduler that is yet to run.
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    registry: Registry,
}

/// What a scheduler needs of the process that it runs in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// What has been read is here; it may be shared with others.
    pub cache: Cache,
    pub recorder: Recorder,
    pub clock: Clock,
}

impl Scheduler {
    pub fn new(mut config: Config) -> Self {
        config.complete();
        Scheduler { config, registry: Registry::builtin() }
    }

    /// With a plugin of one's own, which profiles name to use it.
    pub fn with_plugin(
        mut self,
        name: &str,
        make: impl Fn(&Value, &Around) -> Result<Arc<dyn Plugin>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.registry.add(name, make);
        self
    }

    /// Says what is wrong with the configuration, before anything is done by it.
    ///
    /// # Errors
    /// It makes no sense, or names plugins that there are not.
    pub fn check(&self) -> Result<(), ConfigError> {
        run::check(&self.config, &self.registry)
    }

    /// Schedules pods until `shutdown`; returns when everything it started has ended.
    ///
    /// # Errors
    /// The configuration makes no sense.
    pub async fn run(
        self,
        client: Client,
        around: Surroundings,
        shutdown: CancellationToken,
    ) -> Result<(), ConfigError> {
        run::run(self.config, &self.registry, client, around, shutdown).await
    }

    /// As [`run`](Scheduler::run), in a process that has nothing else to do.
    ///
    /// # Errors
    /// The configuration makes no sense.
    pub async fn run_alone(
        self,
        client: Client,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> Result<(), ConfigError> {
        let mut tasks = JoinSet::new();
        let (cache, run_cache) = Cache::new(client.clone());
        tasks.spawn(run_cache);
        let instance = election::identity();
        let (recorder, run_recorder) = Recorder::new(client.clone(), &instance, clock.clone());
        tasks.spawn(run_recorder);
        let ended = self.run(client, Surroundings { cache, recorder, clock }, shutdown).await;
        // Both end when nobody has a handle on them.
        while tasks.join_next().await.is_some() {}
        ended
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}
