//! Certificates that an operator makes itself.
//!
//! A Secret holds the authority and what it has signed. All replicas read it, and whoever finds
//! that something should change writes it, unless somebody was faster; so they agree. Where the
//! Secret cannot be had, servers show a certificate all the same, which nobody believes: then it
//! is clear what is missing, and nothing else stands still.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, PostParams};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::authority::IssueError;
use super::current::{Current, PairError};
use super::directory::Metrics;
use super::inject::{InjectError, Targets};
use super::kept::{Kept, Wanted, plan};
use crate::chain::chain;
use crate::clock::Clock;

/// How often the Secret and those who must believe are looked at.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often a Secret that others change meanwhile is looked at anew.
const ATTEMPTS_MAX: usize = 5;

/// Keeps certificates in a Secret.
pub struct SelfMade {
    client: Client,
    namespace: String,
    secret: String,
    wanted: Wanted,
    targets: Targets,
    clock: Clock,
    interval: Duration,
    /// The bundle that all targets have.
    told: Option<String>,
    /// What is shown while there is no Secret.
    makeshift: Kept,
}

/// Why certificates are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error("read the Secret {secret} of certificates")]
    Read {
        secret: String,
        #[source]
        source: kube::Error,
    },
    #[error("write the Secret {secret} of certificates")]
    Write {
        secret: String,
        #[source]
        source: kube::Error,
    },
    /// The Secret is good, but the server does not know of it.
    #[error("tell the server whom to believe")]
    Inject(#[source] InjectError),
    #[error("make certificates")]
    Issue(#[source] IssueError),
    #[error("show a certificate")]
    Show(#[source] PairError),
}

impl SelfMade {
    /// Certificates as `wanted`, in a Secret, believed by `targets`.
    pub fn new(
        client: Client,
        (namespace, secret): (&str, &str),
        wanted: Wanted,
        targets: Targets,
        clock: Clock,
    ) -> Self {
        SelfMade {
            client,
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            wanted,
            targets,
            clock,
            interval: INTERVAL,
            told: None,
            makeshift: Kept::default(),
        }
    }

    /// How often all is looked at: every ten seconds, unless said otherwise.
    pub fn every(self, interval: Duration) -> Self {
        SelfMade { interval, ..self }
    }

    /// Keeps certificates, and has them shown, until `shutdown`.
    pub async fn run(
        mut self,
        current: Current,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) {
        let mut rounds = tokio::time::interval(self.interval);
        let mut told = None;
        while shutdown.run_until_cancelled(rounds.tick()).await.is_some() {
            metrics.reads.inc();
            // A request that is given up may well have been made; the next round will see.
            let Some(tended) = shutdown.run_until_cancelled(self.tend(&current)).await else {
                return;
            };
            let problem = tended.err().map(|error| {
                metrics.errors.inc();
                chain(&error)
            });
            match &problem {
                Some(error) if problem != told => error!(%error, "certificates not kept"),
                None if told.is_some() => info!("certificates kept again"),
                _ => {}
            }
            told = problem;
        }
    }

    /// Looks once at everything, and brings it in order.
    ///
    /// # Errors
    /// If something is not in order afterwards. There is a certificate to show nevertheless; if
    /// it is one that is believed, [`Current::problem`] does not speak of it.
    pub async fn tend(&mut self, current: &Current) -> Result<(), KeepError> {
        let (kept, result) = match self.keep().await {
            Ok(kept) => (kept, Ok(())),
            Err((kept, error)) => (kept, Err(error)),
        };
        if !kept.is_servable(self.clock.now()) {
            let makeshift = plan(&self.makeshift, &self.wanted, false, self.clock.now());
            self.makeshift = makeshift.map_err(KeepError::Issue)?;
            current.show(self.makeshift.serving.clone()).map_err(KeepError::Show)?;
            let problem = result.as_ref().err().map(|error| chain(error));
            current.set_problem(Some(problem.unwrap_or_else(|| "nothing is kept".to_owned())));
            return result;
        }
        if current.show(kept.serving.clone()).map_err(KeepError::Show)? {
            info!(secret = self.place(), "certificate shown");
        }
        let bundle = kept.bundle();
        let injected = self.targets.inject(&self.client, &bundle).await;
        self.told = injected.is_ok().then_some(bundle);
        let injected = injected.map_err(KeepError::Inject);
        current.set_problem(injected.as_ref().err().map(|error| chain(error)));
        injected.and(result)
    }

    /// What the Secret holds, after it was brought in order; or before, if it could not be.
    async fn keep(&self) -> Result<Kept, (Kept, KeepError)> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PostParams::default();
        let mut attempts = 0..ATTEMPTS_MAX;
        loop {
            let found = secrets.get_opt(&self.secret).await.map_err(|source| {
                (Kept::default(), KeepError::Read { secret: self.place(), source })
            })?;
            let data = found.as_ref().and_then(|found| found.data.as_ref());
            let kept = data.map(Kept::read).unwrap_or_default();
            let is_told = self.told.as_ref().is_some_and(|told| *told == kept.bundle());
            let wanted = match plan(&kept, &self.wanted, is_told, self.clock.now()) {
                Ok(wanted) if wanted == kept => return Ok(kept),
                Ok(wanted) => wanted,
                Err(error) => return Err((kept, KeepError::Issue(error))),
            };
            let is_new = found.is_none();
            let secret = self.with(found, &wanted);
            let written = match is_new {
                true => secrets.create(&params, &secret).await,
                // Its version says which one was read.
                false => secrets.replace(&self.secret, &params, &secret).await,
            };
            match written {
                Ok(_) => {
                    info!(secret = self.place(), "certificates written");
                    return Ok(wanted);
                }
                Err(kube::Error::Api(status))
                    if [404, 409].contains(&status.code) && attempts.next().is_some() =>
                {
                    warn!(secret = self.place(), "somebody else wrote certificates");
                }
                Err(source) => {
                    return Err((kept, KeepError::Write { secret: self.place(), source }));
                }
            }
        }
    }

    fn with(&self, found: Option<Secret>, kept: &Kept) -> Secret {
        let new = || Secret {
            metadata: ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        };
        Secret { data: Some(kept.write()), ..found.unwrap_or_else(new) }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.secret)
    }
}
