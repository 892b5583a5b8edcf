//! A program of controllers.
//!
//! An [`Operator`] is what an author declares in `main`: which controllers there are, and which
//! definitions they need. It can be run by anybody who has a client, as tests do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::core::CustomResourceExt;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::context::Kind;
use crate::controller::{Controller, Part, Reconciler, Surroundings};
use crate::event::Recorder;
use crate::manifest::Package;
use crate::metrics::Metrics;

/// How long informers may take before it is told that they are not ready.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// Controllers that are one program.
pub struct Operator {
    name: String,
    parts: Vec<Box<dyn Part>>,
    definitions: Vec<CustomResourceDefinition>,
    namespace: Option<String>,
}

impl Operator {
    pub fn new(name: &str) -> Self {
        Operator {
            name: name.to_owned(),
            parts: Vec::new(),
            definitions: Vec::new(),
            namespace: None,
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

    /// With a definition of its own, as one of several versions.
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Looks at one namespace only, if one is given.
    pub fn only_in(self, namespace: Option<String>) -> Self {
        Operator { namespace, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it must be allowed to do.
    pub fn accesses(&self) -> Vec<Access> {
        self.parts.iter().flat_map(|part| part.accesses()).cloned().collect()
    }

    pub fn definitions(&self) -> &[CustomResourceDefinition] {
        &self.definitions
    }

    /// What brings it into a cluster.
    pub fn package(&self) -> Package {
        Package {
            accesses: self.accesses(),
            definitions: self.definitions.clone(),
            ..Package::new(&self.name)
        }
    }

    /// Runs all controllers until `shutdown`, then lets what is under way end.
    pub async fn run(&self, client: Client, clock: Clock, shutdown: CancellationToken) {
        let mut registry = Registry::default();
        let mut tasks = JoinSet::new();
        let (cache, run_cache) = Cache::new(client.clone());
        tasks.spawn(run_cache);
        let (recorder, run_recorder) = Recorder::new(client.clone(), &self.name, clock.clone());
        tasks.spawn(run_recorder);
        let around = Surroundings {
            client,
            cache,
            recorder,
            clock,
            metrics: Arc::new(Metrics::new(&mut registry)),
            namespace: self.namespace.clone(),
            sync_max: SYNC_MAX,
        };
        self.parts.iter().for_each(|part| part.prepare(&around.cache));
        let warm: Vec<_> = self.parts.iter().map(|part| part.warm(&around)).collect();
        join_all(self.parts.iter().map(|part| part.run(&around, &shutdown))).await;
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
