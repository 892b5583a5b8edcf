//! A program of controllers and webhooks.
//!
//! An [`Operator`] is what an author declares in `main`. [`Operator::main`] makes a program of it:
//! `run` it is the default, `manifests` renders what installs it. Tests and whoever has a client
//! run its controllers with [`Operator::run`], and all of it, with servers and election, with
//! [`Operator::serve`].

mod host;
mod program;
mod report;
mod runnable;

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
use kubewright_apimachinery::yaml;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::host::{Host, ServeError, Surrounding};
use self::runnable::{Runnable, Where};
use crate::access::Access;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::context::Kind;
use crate::controller::{Controller, Part, Reconciler, Surroundings};
use crate::coordination::Coordination;
use crate::crd;
use crate::event::Recorder;
use crate::informer::Object;
use crate::manifest::{Package, Watched};
use crate::metrics::Metrics;
use crate::reconcile::Error;
use crate::serve::Check;
use crate::serve::probes::Probes;
use crate::settings::Layer;
use crate::webhook::{Conversion, Place, Purpose, Registration, Trust, Webhook, Webhooks};

/// Where a cluster calls webhooks.
const SERVICE_PORT: u16 = 443;
/// How long informers may take before it is told that they are not ready.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// How long it may take to stop, unless it is said.
const GRACEFUL_SHUTDOWN: Duration = Duration::from_secs(30);

/// Controllers and webhooks that are one program.
///
/// ```
/// use kubewright::Operator;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright::{Action, Context, Controller, Error, Reconciler};
/// # struct Greeter;
/// # impl Reconciler<ConfigMap> for Greeter {
/// #     async fn reconcile(&self, _: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
/// #         Ok(Action::Done)
/// #     }
/// # }
///
/// let operator = Operator::new("greeter").controller(Controller::new("greeter", Greeter));
/// let manifests = operator.package().render()?;
/// assert!(manifests.iter().any(|manifest| manifest.kind() == "Deployment"));
/// // And in `main`: operator.main()
/// # Ok::<(), kubewright::manifest::RenderError>(())
/// ```
pub struct Operator {
    name: String,
    parts: Vec<Box<dyn Part>>,
    runnables: Vec<Arc<Runnable>>,
    /// What is done by none of its controllers.
    accesses: Vec<Access>,
    webhooks: Webhooks,
    definitions: Vec<CustomResourceDefinition>,
    samples: Vec<Value>,
    namespaces: BTreeSet<String>,
    coordination: Coordination,
    keeps_objects: bool,
    projections: Vec<Box<Prepare>>,
    graceful_shutdown: Duration,
    probes: Probes,
    registers: Vec<Box<Register>>,
}

/// Says what else is counted.
type Register = dyn FnOnce(&mut Registry) + Send + Sync;

/// Says what is kept of objects.
type Prepare = dyn Fn(&Cache) + Send + Sync;

impl Operator {
    /// An operator that does nothing yet. All that installs it is called after its name.
    pub fn new(name: &str) -> Self {
        Operator {
            name: name.to_owned(),
            parts: Vec::new(),
            runnables: Vec::new(),
            accesses: Vec::new(),
            webhooks: Webhooks::new(),
            definitions: Vec::new(),
            samples: Vec::new(),
            namespaces: BTreeSet::new(),
            coordination: Coordination::Leader,
            keeps_objects: false,
            projections: Vec::new(),
            graceful_shutdown: GRACEFUL_SHUTDOWN,
            probes: Probes::default(),
            registers: Vec::new(),
        }
    }

    /// With a controller.
    ///
    /// # Panics
    /// If it has one of that name: their metrics, logs and fields could not be told apart.
    pub fn controller<K, R>(mut self, controller: Controller<K, R>) -> Self
    where
        K: Kind + Clone,
        R: Reconciler<K>,
    {
        let name = controller.name();
        let is_there = self.parts.iter().any(|part| part.name() == name);
        assert!(!is_there, "there is a controller {name:?} already: give each a name of its own");
        self.parts.push(Box::new(controller));
        self
    }

    /// Runs something of the author's own as well, in every replica: from before controllers begin
    /// until after they have ended. It is given the client and the cache that all share, should end
    /// when the token is cancelled, and may end before. One that fails or panics is told of in logs
    /// and at `/readyz/<name>`, and started again, later each time. What it does in the cluster is
    /// declared with [`may`](Operator::may).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewright::Operator;
    /// use kubewright::access::Access;
    /// use kubewright::informer::Scope;
    ///
    /// let operator = Operator::new("greeter").may(Access::read::<Pod>()).runs(
    ///     "census",
    ///     |around, stop| async move {
    ///         let pods = around.cache.informer::<Pod>(&Scope::default());
    ///         let told = pods.subscribe(|change| println!("{change:?}"));
    ///         stop.cancelled().await;
    ///         drop(told);
    ///         Ok(())
    ///     },
    /// );
    /// assert_eq!(operator.accesses().len(), 1);
    /// ```
    pub fn runs<F, R>(self, name: &str, run: F) -> Self
    where
        F: Fn(Surroundings, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.running(Runnable::new(name, Where::Everywhere, run))
    }

    /// The same where controllers run and while they do: in the replica that leads, whose client it
    /// is given, which writes only for as long as that is certain. It is started again in the next
    /// that leads. Where objects are shared out, or nobody is elected, all replicas run it.
    pub fn runs_leading<F, R>(self, name: &str, run: F) -> Self
    where
        F: Fn(Surroundings, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.running(Runnable::new(name, Where::Leading, run))
    }

    fn running(mut self, runnable: Arc<Runnable>) -> Self {
        self.runnables.push(runnable);
        self
    }

    /// May do something that none of its controllers declares: what webhooks do, and what else it
    /// [runs](Operator::runs).
    pub fn may(mut self, access: Access) -> Self {
        self.accesses.push(access);
        self
    }

    /// Looks at objects of kind `T` for its webhooks, which find them in the cache that all share:
    /// [`Review::informer`](crate::webhook::Review::informer).
    pub fn reads<T: Kind>(self) -> Self {
        let webhooks = self.webhooks.reads::<T>();
        Operator { webhooks, ..self }.may(Access::read::<T>())
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

    /// With objects to try it with, as YAML, of which there may be several.
    ///
    /// # Panics
    /// If it is no YAML.
    pub fn samples(mut self, text: &str) -> Self {
        let documents = yaml::documents(text).unwrap_or_else(|error| panic!("a sample: {error}"));
        for document in documents {
            let decoded =
                yaml::decode(document).unwrap_or_else(|error| panic!("a sample: {error}"));
            self.samples.extend(Some(decoded.value).filter(|sample| !sample.is_null()));
        }
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

    /// Takes from each object of a kind what nobody will read, before it is kept: for all
    /// controllers, and whoever else asks the operator's cache for the kind. What is taken away is
    /// as if it were not there, also to whoever writes a [whole](Controller::by_update) object.
    pub fn projecting<T>(mut self, project: impl Fn(&mut T) + Send + Sync + 'static) -> Self
    where
        T: Object + Serialize,
    {
        let project = Arc::new(project);
        self.projections.push(Box::new(move |cache| {
            let project = Arc::clone(&project);
            cache.project::<T>(move |object| project(object));
        }));
        self
    }

    /// How long it may take to stop, unless its settings say; 30 seconds, if nobody does. Rendered
    /// manifests say it to the program, and give its pod a little more.
    pub fn graceful_shutdown(self, time: Duration) -> Self {
        Operator { graceful_shutdown: time, ..self }
    }

    /// Is ready only while this is so as well: `/readyz/<name>` says why not. Webhooks are not called
    /// while the operator is not ready, so with them it should be something that they need.
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
        self.parts.iter().flat_map(|part| part.accesses()).chain(&self.accesses).cloned().collect()
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
            graceful_shutdown: self.graceful_shutdown,
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

    /// Runs all controllers, and what else it runs, until `shutdown`, then lets what is under way end.
    /// There are no servers and no election: for tests, and for those who have their own.
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
            revoked: CancellationToken::new(),
            sync_max: SYNC_MAX,
        };
        prepare(&self.parts, &self.projections, &around.cache);
        let stop = CancellationToken::new();
        let mut others = runnable::start(&self.runnables, Where::Everywhere, &around, &stop);
        let warm = warm(&self.parts, &around);
        run_parts(&self.parts, &self.runnables, &around, &shutdown).await;
        stop.cancel();
        while others.join_next().await.is_some() {}
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

/// Says what is kept of objects, before anybody looks at them.
fn prepare(parts: &[Box<dyn Part>], projections: &[Box<Prepare>], cache: &Cache) {
    parts.iter().for_each(|part| part.prepare(cache));
    projections.iter().for_each(|project| project(cache));
}

/// Begins to look at what all controllers need, for as long as this is there.
fn warm(parts: &[Box<dyn Part>], around: &Surroundings) -> Vec<Box<dyn Send + Sync>> {
    parts.iter().map(|part| part.warm(around)).collect()
}

/// Runs what only those do who lead.
async fn run_parts(
    parts: &[Box<dyn Part>],
    runnables: &[Arc<Runnable>],
    around: &Surroundings,
    shutdown: &CancellationToken,
) {
    let mut others = runnable::start(runnables, Where::Leading, around, shutdown);
    join_all(parts.iter().map(|part| part.run(around, shutdown))).await;
    while others.join_next().await.is_some() {}
    // An operator of webhooks alone has none of them, and goes on all the same.
    shutdown.cancelled().await;
}
