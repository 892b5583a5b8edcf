//! An operator with all that is around its controllers: probes, metrics, webhooks, certificates,
//! and an election.
//!
//! Servers take their places first, so that what is taken is told at once, and whoever asks how it
//! is has an answer though the cluster gives none. Then come webhooks, caches, and what every
//! replica runs. Caches fill before anybody leads, and stay warm when the lead is lost. At the end
//! all go in the other order, the controllers first; what has not ended after the time that
//! settings give is given up. Only what the cluster was told of this process, that its webhooks are
//! here, is taken back however the rest ends: it would have every write refused.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::runnable::{self, Runnable, Where};
use super::{Operator, prepare, run_parts, warm};
use crate::backoff::Backoff;
use crate::cache::Cache;
use crate::certificate::{self, Current, Directory, SelfMade, Targets, Wanted};
use crate::chain::chain;
use crate::clock::Clock;
use crate::controller::{Part, Surroundings};
use crate::coordination::{Asked, Coordination};
use crate::election::{self, BadTerms, Election, Terms};
use crate::event::Recorder;
use crate::manifest::Names;
use crate::metrics::Metrics;
use crate::operator::report::{Controllers, caches, caches_if_served, reconciles, untroubled};
use crate::serve::debug::Page;
use crate::serve::metrics::Pages;
use crate::serve::probes::{Checks, Probes};
use crate::serve::{Access, Bind, BindError, Check, Listener, Process};
use crate::settings::{LeaderElection, Settings};
use crate::shard::{Member, Ring};
use crate::webhook::{
    self, InstallError, Installation, LocalError, Place, Purpose, Reach, Registration, Server,
    Trust, Webhooks,
};

/// How long the cluster may take to hear that webhooks of this process are to be called no more.
const TAKING_BACK_MAX: Duration = Duration::from_secs(5);

/// Where an operator is run, and how.
pub struct Host {
    pub client: Client,
    pub clock: Clock,
    pub settings: Settings,
    /// The namespace it runs in.
    pub namespace: String,
    pub surrounding: Surrounding,
    /// What counts already, such as requests of the client.
    pub registry: Registry,
}

/// What is between an operator and its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surrounding {
    /// It runs in a pod of the cluster: webhooks are called at its Service.
    Pod,
    /// The cluster seems to be on the same machine: its server calls this process, and is told
    /// where.
    Beside,
    /// Nobody there can call it, unless settings say at which host.
    Afar,
}

/// Why an operator cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error("tell the cluster where webhooks are")]
    Install(#[from] InstallError),
    /// It was not told of them.
    #[error(
        "have the cluster call webhooks at {url} (--webhook-url-host says at which host it reaches \
         this machine; --webhook-bind-address=0 does without them): {why}"
    )]
    Unreached {
        url: String,
        /// In the server's words.
        why: String,
    },
    #[error(transparent)]
    Terms(#[from] BadTerms),
    #[error("make a certificate for metrics")]
    Certificate(#[from] certificate::IssueError),
    #[error("show a certificate for metrics")]
    Shown(#[from] certificate::PairError),
}

/// Servers and what keeps their certificates, while the operator runs.
struct Servers {
    tasks: JoinSet<()>,
    stop: CancellationToken,
    probes: Probes,
}

impl Operator {
    /// Runs until `shutdown`, with servers, certificates and an election as the settings say.
    ///
    /// # Errors
    /// If it cannot begin. What goes wrong later is told in logs, readiness and metrics.
    pub async fn serve(self, host: Host, shutdown: CancellationToken) -> Result<(), ServeError> {
        let Operator {
            name,
            parts,
            runnables,
            webhooks,
            mut namespaces,
            coordination,
            keeps_objects,
            projections,
            graceful_shutdown,
            probes,
            registers,
            accesses: _,
            definitions: _,
            samples: _,
        } = self;
        let Host { client, clock, settings, namespace: home, surrounding, mut registry } = host;
        // What it was told when it was started counts, not what it was built for.
        if !settings.namespaces.is_empty() {
            namespaces = settings.namespaces.iter().cloned().collect();
        }
        let graceful_shutdown = settings.graceful_shutdown.unwrap_or(graceful_shutdown);
        registers.into_iter().for_each(|register| register(&mut registry));
        let mut servers = Servers { tasks: JoinSet::new(), stop: CancellationToken::new(), probes };
        let parts: Arc<[Box<dyn Part>]> = parts.into();
        let certificates = Arc::new(certificate::Metrics::new(&mut registry));
        let is_called = !webhooks.is_empty() && settings.webhooks.bind != Some(Bind::Nowhere);
        let called = is_called.then(|| Arc::new(webhook::Metrics::new(&mut registry)));
        let mut paths: Vec<_> = webhooks.registrations().map(|it| it.path.clone()).collect();
        paths.dedup();
        paths.retain(|_| is_called);
        let leases = Arc::new(election::Metrics::new(&mut registry));
        let metrics = Arc::new(Metrics::new(&mut registry));
        let (cache, run_cache) = Cache::build(client.clone(), !keeps_objects);
        let (recorder, run_recorder) = Recorder::new(client.clone(), &name, clock.clone());
        prepare(&parts, &projections, &cache);
        let webhooks = if is_called { webhooks.informed(&cache, &namespaces) } else { webhooks };
        if webhooks.read_any() {
            servers.probes.readiness.add("webhook-caches", webhooks.listed());
        }
        metrics.register_cache(&mut registry, &cache);
        Process::register(&mut registry);
        let mut troubles = Troubles { readiness: &mut servers.probes.readiness, is_called };
        troubles.add("caches", caches(&cache));
        runnables.iter().for_each(|it| troubles.add(&it.name, it.check()));
        let whose = Whose { name: &name, home: &home, client: &client, clock: &clock };
        let wanted = &settings.leader_election;
        let asked = Asked { leader: wanted.wanted, shards: settings.sharded };
        let coordination = coordination.under(asked, surrounding == Surrounding::Pod);
        let candidate = Candidate::new(coordination, whose, wanted, leases, &recorder)?;
        candidate.add_check(troubles);
        servers.probes.readiness.tell("reconciles", reconciles(&parts));
        if cache.can_do_without() {
            servers.probes.readiness.tell("caches-if-served", caches_if_served(&cache));
        }

        // Until all of these have their places, nobody asks the cluster anything.
        let listener = match settings.probes {
            Bind::Nowhere => None,
            _ => Some(Listener::bind("probes", &settings.probes).await?),
        };
        let report =
            Controllers { cache: cache.downgrade(), parts: Arc::clone(&parts), webhooks: paths };
        let page = Page::new("controllers", Arc::new(report));
        servers.add_metrics(registry, page, whose, &settings, &certificates).await?;
        let mut untold = None;
        if let Some(metrics) = called {
            let adding = servers.add_webhooks(
                whose,
                webhooks,
                metrics,
                &settings,
                surrounding,
                &certificates,
            );
            untold = adding.await?;
        }
        if let Some(listener) = listener {
            let (probes, stop) = (servers.probes.clone(), servers.stop.clone());
            servers.tasks.spawn(probes.run(listener, stop));
        }
        let mut telling = JoinSet::new();
        let stop_telling = CancellationToken::new();
        if let Some(mut untold) = untold {
            untold.ask(&shutdown).await?;
            match shutdown.run_until_cancelled(untold.tell()).await {
                Some(Ok(is_told)) => {
                    telling.spawn(untold.run(is_told, stop_telling.clone()));
                }
                Some(Err(error)) => {
                    untold.take_back().await;
                    return Err(error.into());
                }
                None => {
                    untold.take_back().await;
                    return Ok(());
                }
            }
        }

        let mut tasks = JoinSet::new();
        tasks.spawn(run_cache);
        tasks.spawn(run_recorder);
        let around = Surroundings {
            client: client.clone(),
            cache,
            recorder,
            clock: clock.clone(),
            metrics,
            namespaces,
            ring: None,
            revoked: CancellationToken::new(),
            sync_max: settings.cache_sync_timeout,
        };
        let stop_others = CancellationToken::new();
        let mut others = runnable::start(&runnables, Where::Everywhere, &around, &stop_others);
        let warm = warm(&parts, &around);
        info!(operator = name, ?coordination, "running");
        // All of it has the same time to end, whether it is told to or ends by itself.
        let ending = shutdown.child_token();
        let serving = async {
            candidate.work(parts, runnables, &around, &shutdown).await;
            ending.cancel();
            stop_others.cancel();
            while others.join_next().await.is_some() {}
            // Caches and events end when nobody has a handle on them.
            drop((warm, around));
            while tasks.join_next().await.is_some() {}
            // Until nobody is led here any more, there is an answer.
            stop_telling.cancel();
            while telling.join_next().await.is_some() {}
            servers.stop.cancel();
            while servers.tasks.join_next().await.is_some() {}
        };
        ended_in_time(serving, &ending, graceful_shutdown).await;
        stop_telling.cancel();
        while telling.join_next().await.is_some() {}
        Ok(())
    }
}

/// Whose servers and leases these are.
#[derive(Clone, Copy)]
struct Whose<'a> {
    name: &'a str,
    home: &'a str,
    client: &'a Client,
    clock: &'a Clock,
}

/// What readiness tells of that stops a part of the operator, and its webhooks not.
struct Troubles<'a> {
    readiness: &'a mut Checks,
    /// Whether it answers for webhooks. A pod that is not ready is not called: nobody else could
    /// write then, and a kind that must be converted to be read would never be.
    is_called: bool,
}

impl Troubles<'_> {
    fn add(&mut self, name: &str, check: Check) {
        match self.is_called {
            true => self.readiness.tell(name, check),
            false => self.readiness.add(name, check),
        }
    }
}

/// A replica that works when it is its turn.
enum Candidate {
    /// It always is.
    Alone,
    Leader(Box<Election>),
    Member(Ring, Box<Member>),
}

impl Candidate {
    fn new(
        coordination: Coordination,
        whose: Whose<'_>,
        wanted: &LeaderElection,
        metrics: Arc<election::Metrics>,
        recorder: &Recorder,
    ) -> Result<Self, BadTerms> {
        let terms = Terms::new(wanted.lease_duration, wanted.renew_deadline, wanted.retry_period)?;
        let Whose { name, home, client, clock } = whose;
        let place = wanted.namespace.as_deref().unwrap_or(home);
        let lease = wanted.name.as_deref().unwrap_or(name);
        let (identity, client, clock) = (election::identity(), client.clone(), clock.clone());
        Ok(match coordination {
            Coordination::None => Candidate::Alone,
            Coordination::Leader => {
                let election = Election::new(client, place, lease, &identity, clock);
                let election = election.terms(terms).metrics(metrics).events(recorder.clone());
                Candidate::Leader(Box::new(election))
            }
            Coordination::Shards => {
                let joined = Ring::join_with(client, place, lease, &identity, clock, terms);
                let (ring, member) = joined;
                Candidate::Member(ring, Box::new(member.metrics(metrics)))
            }
        })
    }

    /// Has readiness tell why it is never its turn.
    fn add_check(&self, mut troubles: Troubles<'_>) {
        match self {
            Candidate::Alone => {}
            Candidate::Leader(election) => {
                let check = untroubled(election.status(), |status| status.trouble.as_ref());
                troubles.add("leader-election", check);
            }
            Candidate::Member(ring, _) => {
                let check = untroubled(ring.share(), |share| share.trouble.as_ref());
                troubles.add("share", check);
            }
        }
    }

    /// Works whenever it is its turn, until `shutdown`.
    async fn work(
        self,
        parts: Arc<[Box<dyn Part>]>,
        runnables: Vec<Arc<Runnable>>,
        around: &Surroundings,
        shutdown: &CancellationToken,
    ) {
        match self {
            Candidate::Alone => run_parts(&parts, &runnables, around, shutdown).await,
            Candidate::Member(ring, member) => {
                let around = Surroundings { ring: Some(ring), ..around.clone() };
                let working = run_parts(&parts, &runnables, &around, shutdown);
                tokio::join!(member.run(shutdown.clone()), working);
            }
            Candidate::Leader(election) => {
                let led = election.run(shutdown.clone(), |leadership| {
                    let (client, revoked) = (leadership.client().clone(), leadership.revoked());
                    let around = Surroundings { client, revoked, ..around.clone() };
                    let (parts, runnables) = (Arc::clone(&parts), runnables.clone());
                    let lost = leadership.lost();
                    async move {
                        run_parts(&parts, &runnables, &around, &lost).await;
                        Ok::<(), Infallible>(())
                    }
                });
                led.await.unwrap_or_else(|never| match never {});
            }
        }
    }
}

/// Webhooks of which the cluster is told for as long as this process is there.
struct Untold {
    client: Client,
    name: String,
    place: Place,
    trust: Trust,
    installation: Installation,
    /// What the cluster lacks.
    lacking: watch::Sender<Option<String>>,
}

impl Untold {
    /// Whether the cluster could call webhooks here, as far as that can be found out.
    async fn ask(&self, shutdown: &CancellationToken) -> Result<(), ServeError> {
        let Untold { client, name, place, trust, .. } = self;
        match webhook::ask(client, name, place, trust, shutdown).await {
            Reach::Reached | Reach::Unknown => Ok(()),
            Reach::Unreached(why) => Err(ServeError::Unreached { url: place.to_string(), why }),
        }
    }

    /// Tells the cluster. Whether it knows: one that lacks a definition whose objects are converted
    /// is told again when it may have it, which may be later than its operator.
    async fn tell(&mut self) -> Result<bool, InstallError> {
        match self.install().await {
            Ok(()) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tells the cluster if it does not know yet, and at `stop` takes it back.
    async fn run(mut self, is_told: bool, stop: CancellationToken) {
        if !is_told {
            stop.run_until_cancelled(self.tell_later()).await;
        }
        stop.cancelled().await;
        self.take_back().await;
    }

    async fn tell_later(&mut self) {
        let mut backoff = Backoff::default();
        loop {
            backoff.wait().await;
            if self.install().await.is_ok() {
                return info!("the cluster knows where webhooks are");
            }
        }
    }

    async fn install(&mut self) -> Result<(), InstallError> {
        let told = self.installation.install().await;
        self.lacking.send_replace(told.as_ref().err().map(|error| {
            let why = chain(error);
            warn!(error = why, "the cluster does not know where webhooks are");
            why
        }));
        told
    }

    async fn take_back(&mut self) {
        let taken_back = self.installation.take_back();
        let why = match tokio::time::timeout(TAKING_BACK_MAX, taken_back).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => "the cluster does not answer".to_owned(),
        };
        warn!(
            error = why,
            "the cluster still calls webhooks of this process: delete its webhook configurations"
        );
    }
}

impl Servers {
    /// Begins to answer for webhooks. Gives what the cluster must be told, if nobody else does.
    async fn add_webhooks(
        &mut self,
        whose: Whose<'_>,
        webhooks: Webhooks,
        metrics: Arc<webhook::Metrics>,
        settings: &Settings,
        surrounding: Surrounding,
        certificates: &Arc<certificate::Metrics>,
    ) -> Result<Option<Untold>, ServeError> {
        let Whose { name, home, client, clock } = whose;
        let webhooks = Arc::new(webhooks.client(client.clone()).reached());
        let (bind, host) = (&settings.webhooks.bind, settings.webhooks.url_host.as_deref());
        let is_outside = match surrounding {
            Surrounding::Pod => false,
            Surrounding::Beside => true,
            Surrounding::Afar => host.is_some(),
        };
        if is_outside && settings.webhooks.certificates.is_none() {
            let (asked, now) = (Arc::clone(&webhooks), clock.now());
            let called = Server::called_at(host, bind.as_ref(), asked, metrics, now).await?;
            let (server, place, trust) = called;
            let lacking = watch::Sender::new(Some("it is being told".to_owned()));
            let installed = untroubled(lacking.subscribe(), Option::as_ref);
            self.probes.readiness.add("webhooks-installed", installed);
            let server = server.http2(settings.http2);
            self.probes.readiness.add("webhooks", server.check());
            self.tasks.spawn(server.run(self.stop.clone()));
            let told = webhooks.registrations();
            let installation = Installation::new(client, name, told, place.clone(), trust.clone());
            let (client, name) = (client.clone(), name.to_owned());
            return Ok(Some(Untold { client, name, place, trust, installation, lacking }));
        }
        if surrounding == Surrounding::Afar {
            warn!(
                "webhooks are served, but the cluster cannot call this machine by itself: \
                 --webhook-url-host says where it reaches it"
            );
        }
        let current = Current::new();
        let (shown, stop) = (current.clone(), self.stop.clone());
        let bind = bind.as_ref().unwrap_or(&Server::BIND);
        let server = Server::bind(bind, Arc::clone(&webhooks), metrics, current.clone());
        let server = server.await?.http2(settings.http2);
        match &settings.webhooks.certificates {
            Some(folder) => {
                let keeping = Directory::new(folder).run(shown, Arc::clone(certificates), stop);
                self.tasks.spawn(keeping);
            }
            None => {
                let names = Names::of(name);
                let secret = names.webhook_secret();
                let wanted = Wanted::for_service(home, &names.webhook_service());
                let targets = targets(name, &webhooks);
                let place = (home, secret.as_str());
                let keeper = SelfMade::new(client.clone(), place, wanted, targets, clock.clone());
                self.tasks.spawn(keeper.run(shown, Arc::clone(certificates), stop));
            }
        }
        self.probes.readiness.add("certificate", current.check());
        self.probes.readiness.add("webhooks", server.check());
        self.tasks.spawn(server.run(self.stop.clone()));
        Ok(None)
    }

    async fn add_metrics(
        &mut self,
        registry: Registry,
        page: Page,
        whose: Whose<'_>,
        settings: &Settings,
        certificates: &Arc<certificate::Metrics>,
    ) -> Result<(), ServeError> {
        let settings = &settings.metrics;
        if settings.bind == Bind::Nowhere {
            return Ok(());
        }
        let (registry, stop) = (Arc::new(registry), self.stop.clone());
        let listener = Listener::bind("metrics", &settings.bind).await?;
        if !settings.secure {
            let pages = Pages::for_everybody(registry).with(page);
            self.tasks.spawn(pages.run(listener, stop));
            return Ok(());
        }
        let current = Current::new();
        match &settings.certificates {
            Some(folder) => {
                let keeping = Directory::new(folder);
                let keeping = keeping.run(current.clone(), Arc::clone(certificates), stop.clone());
                self.tasks.spawn(keeping);
            }
            // Nobody has to believe it: who may read is told by a token.
            None => {
                let kept = certificate::Kept::default();
                let wanted = Wanted::for_localhost();
                let kept = certificate::plan(&kept, &wanted, true, whose.clock.now())?;
                current.show(kept.serving)?;
            }
        }
        let pages = Pages::new(registry, Access::new(whose.client.clone())).with(page);
        self.tasks.spawn(pages.run(listener.secured(current), stop));
        Ok(())
    }
}

/// The objects by which the server knows an operator's webhooks.
fn targets(name: &str, webhooks: &Webhooks) -> Targets {
    let names = Names::of(name);
    let of = |purpose| webhooks.registrations().filter(move |it| it.purpose == purpose);
    let some = |purpose, name: String| {
        of(purpose).next().map(|_: &Registration| name).into_iter().collect()
    };
    Targets {
        mutating: some(Purpose::Mutate, names.mutating_configuration()),
        validating: some(Purpose::Validate, names.validating_configuration()),
        definitions: of(Purpose::Convert).map(Registration::definition).collect(),
    }
}

/// Has `working` end in time once it should.
async fn ended_in_time(
    working: impl Future<Output = ()>,
    shutdown: &CancellationToken,
    time: Duration,
) {
    let late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(time).await;
    };
    tokio::select! {
        () = working => {}
        () = late => warn!(?time, "what is still under way is given up"),
    }
}
