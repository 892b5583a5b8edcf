//! What the command line says, as kube-scheduler's users are used to it.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use clap::Args as ClapArgs;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::{Client, Error};
use kubewright::election::{BadTerms, Terms};
use tracing::warn;

use super::policy::{self, WARNING};
use super::{Config, ConfigError};
use crate::pod::DEFAULT_SCHEDULER;

/// How a scheduler is started.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Args {
    /// The file that leads to the cluster.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A KubeSchedulerConfiguration.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy_config_file", "policy_configmap"])]
    pub config: Option<PathBuf>,
    /// The name that pods call it by, if no configuration says.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub scheduler_name: Option<String>,
    /// A legacy policy; deprecated.
    #[arg(long, value_name = "FILE", conflicts_with = "policy_configmap")]
    pub policy_config_file: Option<PathBuf>,
    /// The ConfigMap with a legacy policy under `policy.cfg`; deprecated.
    #[arg(
        long,
        value_name = "[NAMESPACE/]NAME",
        num_args = 0..=1,
        default_missing_value = policy::CONFIG_MAP
    )]
    pub policy_configmap: Option<String>,
    /// Where that ConfigMap is, if its name does not say.
    #[arg(long, value_name = "NAMESPACE", default_value = policy::CONFIG_MAP_NAMESPACE)]
    pub policy_configmap_namespace: String,
    /// Whether only one of several replicas schedules, the one with the lease [default: true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    #[arg(require_equals = true)]
    pub leader_elect: Option<bool>,
    /// How long a lease lasts that nobody renews [default: 15s].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub leader_elect_lease_duration: Option<Duration>,
    /// How long the leader tries to renew before it stops [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub leader_elect_renew_deadline: Option<Duration>,
    /// How often the lease is renewed or looked at [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub leader_elect_retry_period: Option<Duration>,
    /// The kind of the lease: only `leases` is left.
    #[arg(long, value_name = "KIND", value_parser = ["leases"])]
    pub leader_elect_resource_lock: Option<String>,
    /// The name of the lease [default: kube-scheduler, or that of the scheduler if it has another
    /// than the default-scheduler, so that both can run beside each other].
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// The namespace of the lease [default: kube-system].
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
}

/// The lease that replicas agree by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub namespace: String,
    pub name: String,
    pub terms: Terms,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("read ConfigMap {namespace}/{name}")]
    ConfigMap { namespace: String, name: String, source: Box<Error> },
    #[error("find {:?} in ConfigMap {namespace}/{name}", policy::CONFIG_MAP_KEY)]
    NoPolicy { namespace: String, name: String },
    #[error("use {what}")]
    Config { what: String, source: ConfigError },
    #[error("stand for election")]
    Terms(#[from] BadTerms),
    #[error("stand for election: leaderElection.{field} is {value:?}, which is {why}")]
    Election { field: &'static str, value: String, why: String },
}

impl Args {
    /// The configuration that is meant.
    ///
    /// # Errors
    /// It cannot be read, or makes no sense.
    pub async fn load(&self, client: &Client) -> Result<Config, LoadError> {
        let of = |what: String| |source| LoadError::Config { what, source };
        if let Some(path) = &self.config {
            let text = read(path)?;
            return Config::parse(&text).map_err(of(path.display().to_string()));
        }
        let mut config = if let Some(path) = &self.policy_config_file {
            warn!("{WARNING}");
            Config::from_policy(&read(path)?).map_err(of(path.display().to_string()))?
        } else if let Some(name) = &self.policy_configmap {
            warn!("{WARNING}");
            let text = self.policy(client, name).await?;
            Config::from_policy(&text).map_err(of(format!("the policy in ConfigMap {name}")))?
        } else {
            Config::default()
        };
        config.complete();
        if let (Some(name), Some(profile)) = (&self.scheduler_name, config.profiles.first_mut()) {
            profile.scheduler_name = Some(name.clone());
        }
        Ok(config)
    }

    /// The lease to stand for, unless replicas need not agree. What a flag says counts more than
    /// what the configuration does, as upstream has it.
    ///
    /// # Errors
    /// The times do not fit each other.
    pub fn standing(&self, config: &Config) -> Result<Option<Standing>, LoadError> {
        let file = &config.leader_election;
        if !self.leader_elect.or(file.leader_elect).unwrap_or(true) {
            return Ok(None);
        }
        if let Some(lock) = file.resource_lock.as_deref().filter(|lock| *lock != "leases") {
            let (value, why) = (lock.to_owned(), "not leases, the only kind there is".to_owned());
            return Err(LoadError::Election { field: "resourceLock", value, why });
        }
        let first = config.profiles.first().and_then(|profile| profile.scheduler_name.clone());
        let usual = first.filter(|name| name != DEFAULT_SCHEDULER);
        let or_else = |flag: &Option<String>, file: &Option<String>, usual: String| {
            flag.clone().or_else(|| file.clone()).unwrap_or(usual)
        };
        let long = |flag: Option<Duration>, field, file: &Option<String>, usual| match (flag, file)
        {
            (Some(given), _) => Ok(given),
            (None, Some(text)) => {
                time(text).map_err(|why| LoadError::Election { field, value: text.clone(), why })
            }
            (None, None) => Ok(Duration::from_secs(usual)),
        };
        let terms = Terms::new(
            long(self.leader_elect_lease_duration, "leaseDuration", &file.lease_duration, 15)?,
            long(self.leader_elect_renew_deadline, "renewDeadline", &file.renew_deadline, 10)?,
            long(self.leader_elect_retry_period, "retryPeriod", &file.retry_period, 2)?,
        )?;
        Ok(Some(Standing {
            namespace: or_else(
                &self.leader_elect_resource_namespace,
                &file.resource_namespace,
                "kube-system".to_owned(),
            ),
            name: or_else(
                &self.leader_elect_resource_name,
                &file.resource_name,
                usual.unwrap_or_else(|| "kube-scheduler".to_owned()),
            ),
            terms,
        }))
    }

    async fn policy(&self, client: &Client, name: &str) -> Result<String, LoadError> {
        let (namespace, name) =
            name.split_once('/').unwrap_or((&self.policy_configmap_namespace, name));
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        match maps.get(&name).await {
            Ok(map) => map
                .data
                .and_then(|mut data| data.remove(policy::CONFIG_MAP_KEY))
                .ok_or(LoadError::NoPolicy { namespace, name }),
            Err(source) => Err(LoadError::ConfigMap { namespace, name, source: Box::new(source) }),
        }
    }
}

/// A time as Go writes it.
fn time(text: &str) -> Result<Duration, String> {
    let parsed: Result<SignedDuration, _> = text.parse();
    let parsed = parsed.map_err(|_| "no time such as 15s or 1m30s".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "less than nothing".to_owned())
}

fn read(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(|source| LoadError::File { path: path.to_owned(), source })
}
