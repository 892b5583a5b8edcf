//! An operator with all that is around its controllers: probes, metrics, webhooks, certificates,
//! and an election.
//!
//! Servers take their places first, so that what is taken is told at once. Caches fill before
//! anybody leads, and stay warm when the lead is lost. At the end the controllers go first, then
//! the caches, then the servers; what has not ended after the time that settings give is given up.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Operator, run_parts, warm};
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
use crate::operator::report::{Controllers, caches};
use crate::serve::debug::Page;
use crate::serve::metrics::Pages;
use crate::serve::probes::Probes;
use crate::serve::{Access, Bind, BindError, Check, Listener, Process};
use crate::settings::Settings;
use crate::shard::Ring;
use crate::webhook::{
    self, InstallError, LocalError, Place, Purpose, Registration, Server, Trust, Webhooks, install,
};

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
    /// The cluster is on the same machine: its server calls this process, and is told where.
    Beside,
    /// Nobody there can call it.
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
            webhooks,
            mut namespaces,
            coordination,
            keeps_objects,
            probes,
            registers,
            definitions: _,
            samples: _,
        } = self;
        let Host { client, clock, settings, namespace: home, surrounding, mut registry } = host;
        // What it was told when it was started counts, not what it was built for.
        if !settings.namespaces.is_empty() {
            namespaces = settings.namespaces.iter().cloned().collect();
        }
        registers.into_iter().for_each(|register| register(&mut registry));
        let mut servers = Servers { tasks: JoinSet::new(), stop: CancellationToken::new(), probes };
        let parts: Arc<[Box<dyn Part>]> = parts.into();
        let certificates = Arc::new(certificate::Metrics::new(&mut registry));
        if !webhooks.is_empty() && settings.webhooks.bind != Bind::Nowhere {
            let metrics = Arc::new(webhook::Metrics::new(&mut registry));
            let place = Callee { name: &name, home: &home, client: &client, clock: &clock };
            servers
                .add_webhooks(place, webhooks, metrics, &settings, surrounding, &certificates)
                .await?;
        }

        let (cache, run_cache) = Cache::build(client.clone(), !keeps_objects);
        let (recorder, run_recorder) = Recorder::new(client.clone(), &name, clock.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(run_cache);
        tasks.spawn(run_recorder);
        let election_metrics = Arc::new(election::Metrics::new(&mut registry));
        let metrics = Arc::new(Metrics::new(&mut registry));
        metrics.register_cache(&mut registry, &cache);
        Process::register(&mut registry);
        servers.probes.readiness.add("caches", caches(&cache));
        let report = Controllers { cache: cache.downgrade(), parts: Arc::clone(&parts) };
        let page = Page::new("controllers", Arc::new(report));
        servers.add_metrics(registry, page, &client, &clock, &settings, &certificates).await?;
        if settings.probes != Bind::Nowhere {
            let listener = Listener::bind("probes", &settings.probes).await?;
            let (probes, stop) = (servers.probes.clone(), servers.stop.clone());
            servers.tasks.spawn(probes.run(listener, stop));
        }

        let around = Surroundings {
            client: client.clone(),
            cache,
            recorder,
            clock: clock.clone(),
            metrics,
            namespaces,
            ring: None,
            sync_max: settings.cache_sync_timeout,
        };
        let warm = warm(&parts, &around);
        let wanted = &settings.leader_election;
        let asked = Asked { leader: wanted.wanted, shards: settings.sharded };
        let coordination = coordination.under(asked, surrounding == Surrounding::Pod);
        info!(operator = name, ?coordination, "running");
        // All of it has the same time to end, whether it is told to or ends by itself.
        let ending = shutdown.child_token();
        let serving = async {
            let working = async {
                let terms =
                    Terms::new(wanted.lease_duration, wanted.renew_deadline, wanted.retry_period)?;
                let place = wanted.namespace.as_deref().unwrap_or(&home);
                let lease = wanted.name.as_deref().unwrap_or(&name);
                let (identity, around) = (election::identity(), &around);
                match coordination {
                    Coordination::None => {
                        run_parts(&parts, around, &shutdown).await;
                        return Ok(());
                    }
                    Coordination::Shards => {
                        let joined =
                            Ring::join_with(client.clone(), place, lease, &identity, clock, terms);
                        let (ring, member) = joined;
                        let around = Surroundings { ring: Some(ring), ..around.clone() };
                        tokio::join!(
                            member.run(shutdown.clone()),
                            run_parts(&parts, &around, &shutdown),
                        );
                        return Ok(());
                    }
                    Coordination::Leader => {}
                }
                let election =
                    Election::new(client.clone(), place, lease, &identity, clock.clone())
                        .terms(terms)
                        .metrics(election_metrics);
                let led = election.run(shutdown.clone(), |leadership| {
                    let around =
                        Surroundings { client: leadership.client().clone(), ..around.clone() };
                    let (parts, lost) = (Arc::clone(&parts), leadership.lost());
                    async move {
                        run_parts(&parts, &around, &lost).await;
                        Ok::<(), Infallible>(())
                    }
                });
                led.await.unwrap_or_else(|never| match never {});
                Ok::<(), ServeError>(())
            };
            let worked = working.await;
            ending.cancel();
            // Caches and events end when nobody has a handle on them.
            drop((warm, around));
            while tasks.join_next().await.is_some() {}
            servers.stop.cancel();
            while servers.tasks.join_next().await.is_some() {}
            worked
        };
        let served = ended_in_time(serving, &ending, settings.graceful_shutdown).await;
        served.unwrap_or(Ok(()))
    }
}

/// Whose webhooks are called.
#[derive(Clone, Copy)]
struct Callee<'a> {
    name: &'a str,
    home: &'a str,
    client: &'a Client,
    clock: &'a Clock,
}

impl Servers {
    async fn add_webhooks(
        &mut self,
        callee: Callee<'_>,
        webhooks: Webhooks,
        metrics: Arc<webhook::Metrics>,
        settings: &Settings,
        surrounding: Surrounding,
        certificates: &Arc<certificate::Metrics>,
    ) -> Result<(), ServeError> {
        let Callee { name, home, client, clock } = callee;
        let webhooks = Arc::new(webhooks.client(client.clone()));
        if surrounding == Surrounding::Beside && settings.webhooks.certificates.is_none() {
            let local = Server::local(Arc::clone(&webhooks), metrics, clock.now()).await?;
            let (server, place, trust) = local;
            let told = install(client, name, webhooks.registrations(), &place, &trust).await;
            match told {
                Err(error) if error.is_missing() => {
                    let (client, name) = (client.clone(), name.to_owned());
                    let (tell, told) = watch::channel(Some(warned(&error)));
                    self.probes.readiness.add("webhooks-installed", installed(told));
                    let telling = install_later(client, name, webhooks, place, trust, tell);
                    let stop = self.stop.clone();
                    self.tasks.spawn(async move {
                        stop.run_until_cancelled(telling).await;
                    });
                }
                told => told?,
            }
            self.probes.readiness.add("webhooks", server.check());
            self.tasks.spawn(server.run(self.stop.clone()));
            return Ok(());
        }
        if surrounding == Surrounding::Afar {
            warn!("webhooks are served, but the cluster cannot call this machine by itself");
        }
        let current = Current::new();
        let (shown, stop) = (current.clone(), self.stop.clone());
        let server =
            Server::bind(&settings.webhooks.bind, Arc::clone(&webhooks), metrics, current.clone());
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
        Ok(())
    }

    async fn add_metrics(
        &mut self,
        registry: Registry,
        page: Page,
        client: &Client,
        clock: &Clock,
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
                let kept = certificate::plan(&kept, &wanted, true, clock.now())?;
                current.show(kept.serving)?;
            }
        }
        let pages = Pages::new(registry, Access::new(client.clone())).with(page);
        self.tasks.spawn(pages.run(listener.secured(current), stop));
        Ok(())
    }
}

/// Tells the cluster of webhooks until it takes it, and says by `tell` what it lacks until then: a
/// definition whose objects are converted may come later than its operator.
async fn install_later(
    client: Client,
    name: String,
    webhooks: Arc<Webhooks>,
    place: Place,
    trust: Trust,
    tell: watch::Sender<Option<String>>,
) {
    let mut backoff = Backoff::default();
    loop {
        backoff.wait().await;
        match install(&client, &name, webhooks.registrations(), &place, &trust).await {
            Ok(()) => {
                info!("the cluster knows where webhooks are");
                tell.send_replace(None);
                return;
            }
            Err(error) => tell.send_replace(Some(warned(&error))),
        };
    }
}

/// Why the cluster does not know where webhooks are, which is told.
fn warned(error: &InstallError) -> String {
    let why = chain(error);
    warn!(error = why, "the cluster does not know where webhooks are");
    why
}

/// Whether the cluster knows where webhooks are.
fn installed(lacking: watch::Receiver<Option<String>>) -> Check {
    Check::new(move || {
        let verdict = match &*lacking.borrow() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        };
        async move { verdict }
    })
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

/// What `working` comes to, if it ends in time once it should.
async fn ended_in_time<T>(
    working: impl Future<Output = T>,
    shutdown: &CancellationToken,
    time: Duration,
) -> Option<T> {
    let late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(time).await;
    };
    tokio::select! {
        worked = working => Some(worked),
        () = late => {
            warn!(?time, "what is still under way is given up");
            None
        }
    }
}
