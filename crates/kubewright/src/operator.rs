//! A program of controllers and webhooks.
//!
//! An [`Operator`] is what an author declares in `main`. [`Operator::main`] makes a program of it:
//! `run` it is the default, `manifests` renders what installs it. Tests and whoever has a client
//! run its controllers with [`Operator::run`], and all of it, with servers and election, with
//! [`Operator::serve`].

mod host;
mod program;
mod report;

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::Client;
use kube::core::CustomResourceExt;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::host::{Host, ServeError, Surrounding};
use crate::access::Access;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::context::Kind;
use crate::controller::{Controller, Part, Reconciler, Surroundings};
use crate::coordination::Coordination;
use crate::crd;
use crate::event::Recorder;
use crate::manifest::{Package, Watched};
use crate::metrics::Metrics;
use crate::serve::Check;
use crate::serve::probes::Probes;
use crate::settings::Layer;
use crate::webhook::{Conversion, Place, Purpose, Registration, Trust, Webhook, Webhooks};

/// Where a cluster calls webhooks.
const SERVICE_PORT: u16 = 443;
/// How long informers may take before it is told that they are not ready.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// Controllers and webhooks that are one program.
pub struct Operator {
    name: String,
    parts: Vec<Box<dyn Part>>,
    webhooks: Webhooks,
    definitions: Vec<CustomResourceDefinition>,
    samples: Vec<Value>,
    namespaces: BTreeSet<String>,
    coordination: Coordination,
    keeps_objects: bool,
    probes: Probes,
    registers: Vec<Box<Register>>,
}

/// Says what else is counted.
type Register = dyn FnOnce(&mut Registry) + Send + Sync;

impl Operator {
    /// An operator that does nothing yet. All that installs it is called after its name.
    pub fn new(name: &str) -> Self {
        Operator {
            name: name.to_owned(),
            parts: Vec::new(),
            webhooks: Webhooks::new(),
            definitions: Vec::new(),
            samples: Vec::new(),
            namespaces: BTreeSet::new(),
            coordination: Coordination::Leader,
            keeps_objects: false,
            probes: Probes::default(),
            registers: Vec::new(),
        }
    }

    /// With a controller.
    pub fn controller<K, R>(mut self, controller: Controller<K, R>) -> Self
    where
        K: Kind + Clone,
        R: Reconciler<K>,
    {
        self.parts.push(Box::new(controller));
        self
    }

    /// With a kind of its own, whose definition is rendered with its manifests.
    pub fn kind<K: CustomResourceExt>(self) -> Self {
        self.definition(K::crd())
    }

    /// With a definition of its own, such as one of several versions.
    pub fn definition(mut self, mut definition: CustomResourceDefinition) -> Self {
        crd::complete(&mut definition);
        self.definitions.push(definition);
        self
    }

    /// With another version of a kind that it has. Objects are stored in the version that was given
    /// to [`kind`](Operator::kind).
    ///
    /// # Panics
    /// If it has no such kind, or the version is there already.
    pub fn version<K: CustomResourceExt>(mut self) -> Self {
        let mut other = K::crd();
        crd::complete(&mut other);
        let there = self.definitions.iter_mut().find(|it| it.metadata.name == other.metadata.name);
        let there = there.unwrap_or_else(|| panic!("{} is no kind of it yet", K::crd_name()));
        for version in other.spec.versions {
            let is_there = there.spec.versions.iter().any(|it| it.name == version.name);
            assert!(!is_there, "{} has the version {} already", K::crd_name(), version.name);
            there.spec.versions.push(CustomResourceDefinitionVersion { storage: false, ..version });
        }
        self
    }

    /// With a webhook for admission.
    pub fn webhook(self, webhook: Webhook) -> Self {
        Operator { webhooks: self.webhooks.with(webhook), ..self }
    }

    /// With versions of a kind that are converted into each other.
    pub fn converting(self, conversion: impl Into<Conversion>) -> Self {
        Operator { webhooks: self.webhooks.converting(conversion), ..self }
    }

    /// With an object to try it with.
    pub fn sample(mut self, sample: Value) -> Self {
        self.samples.push(sample);
        self
    }

    /// Lets all replicas work at once, each on its share of the objects: more of them get more
    /// done. One that comes or goes moves few objects, and none is worked on by two.
    pub fn sharded(self) -> Self {
        Operator { coordination: Coordination::Shards, ..self }
    }

    /// Lets all replicas work at once, on everything. Without this, in a cluster, one of them does.
    pub fn without_leader(self) -> Self {
        Operator { coordination: Coordination::None, ..self }
    }

    /// Looks at these namespaces only, and may do nothing elsewhere; at all if none is given.
    pub fn only_in<T: Into<String>>(self, namespaces: impl IntoIterator<Item = T>) -> Self {
        let namespaces = namespaces.into_iter().map(Into::into).collect();
        Operator { namespaces, ..self }
    }

    /// Keeps cached objects as they are read, for those that look at thousands at a time, which then
    /// costs nothing. Otherwise they are kept as texts, in a fraction of the memory, and read when
    /// somebody looks; what was looked at lately is shared either way.
    pub fn keeping_objects(self) -> Self {
        Operator { keeps_objects: true, ..self }
    }

    /// Is ready only while this is so as well: `/readyz/<name>` says why not.
    pub fn ready_when(mut self, name: &str, check: Check) -> Self {
        self.probes.readiness.add(name, check);
        self
    }

    /// Is healthy only while this is so. What is not healthy is restarted, so it should be something
    /// that only a restart can mend.
    pub fn healthy_when(mut self, name: &str, check: Check) -> Self {
        self.probes.health.add(name, check);
        self
    }

    /// Tells of other metrics as well, where it tells of its own.
    pub fn counting(
        mut self,
        register: impl FnOnce(&mut Registry) + Send + Sync + 'static,
    ) -> Self {
        self.registers.push(Box::new(register));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it must be allowed to do.
    pub fn accesses(&self) -> Vec<Access> {
        self.parts.iter().flat_map(|part| part.accesses()).cloned().collect()
    }

    /// How its controllers are doing, and what each has reconciled last, for people: what
    /// `/debug/controllers` says of them.
    pub fn report(&self) -> Value {
        self.parts.iter().map(|part| part.report()).collect()
    }

    pub fn definitions(&self) -> &[CustomResourceDefinition] {
        &self.definitions
    }

    /// Its webhooks alone, for those who serve them by themselves.
    pub fn into_webhooks(self) -> Webhooks {
        self.webhooks
    }

    /// What brings it into a cluster.
    pub fn package(&self) -> Package {
        // Where they are called is filled in when it is known.
        let place =
            Place::Service { namespace: String::new(), name: String::new(), port: SERVICE_PORT };
        let trust = Trust::Later;
        let of = |purpose| {
            let all = self.webhooks.registrations();
            all.filter(move |it: &&Registration| it.purpose == purpose)
        };
        Package {
            accesses: self.accesses(),
            definitions: self.definitions.clone(),
            converted: of(Purpose::Convert).map(Registration::definition).collect(),
            mutating: of(Purpose::Mutate).map(|it| it.mutating(&place, &trust)).collect(),
            validating: of(Purpose::Validate).map(|it| it.validating(&place, &trust)).collect(),
            samples: self.samples.clone(),
            coordination: self.coordination,
            watched: match self.namespaces.is_empty() {
                true => Watched::Everywhere,
                false => Watched::Namespaces(self.namespaces.iter().cloned().collect()),
            },
            ..Package::new(&self.name)
        }
    }

    /// Makes a program of it: reads arguments, environment and configuration, and runs it, or
    /// renders its manifests. What goes wrong is told on standard error.
    pub fn main(self) -> ExitCode {
        program::main(self)
    }

    /// What [`main`](Operator::main) does to run it, for programs with arguments of their own.
    ///
    /// # Errors
    /// If it cannot begin: what it was told makes no sense, there is no cluster, a place is taken.
    pub fn start(self, flags: &Layer) -> Result<(), Box<dyn StdError + Send + Sync>> {
        program::run(self, flags)
    }

    /// Runs all controllers until `shutdown`, then lets what is under way end. There are no servers
    /// and no election: for tests, and for those who have their own.
    pub async fn run(&self, client: Client, clock: Clock, shutdown: CancellationToken) {
        let mut registry = Registry::default();
        let mut tasks = JoinSet::new();
        let (cache, run_cache) = Cache::build(client.clone(), !self.keeps_objects);
        tasks.spawn(run_cache);
        let (recorder, run_recorder) = Recorder::new(client.clone(), &self.name, clock.clone());
        tasks.spawn(run_recorder);
        let around = Surroundings {
            client,
            cache,
            recorder,
            clock,
            metrics: Arc::new(Metrics::new(&mut registry)),
            namespaces: self.namespaces.clone(),
            ring: None,
            sync_max: SYNC_MAX,
        };
        let warm = warm(&self.parts, &around);
        run_parts(&self.parts, &around, &shutdown).await;
        // Caches and events end when nobody has a handle on them.
        drop((warm, around));
        while tasks.join_next().await.is_some() {}
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.name()).collect();
        f.debug_struct("Operator").field("name", &self.name).field("controllers", &parts).finish()
    }
}

/// Begins to look at what all controllers need, for as long as this is there.
fn warm(parts: &[Box<dyn Part>], around: &Surroundings) -> Vec<Box<dyn Send + Sync>> {
    parts.iter().for_each(|part| part.prepare(&around.cache));
    parts.iter().map(|part| part.warm(around)).collect()
}

async fn run_parts(parts: &[Box<dyn Part>], around: &Surroundings, shutdown: &CancellationToken) {
    join_all(parts.iter().map(|part| part.run(around, shutdown))).await;
    // An operator of webhooks alone has none of them, and goes on all the same.
    shutdown.cancelled().await;
}
