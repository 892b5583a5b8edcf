//! How an operator is run: what it is told by a file, by variables and by flags.
//!
//! Each says more than the one before it: defaults, the file of `--config`, variables, flags. Every
//! setting has one name in three spellings, and nothing else has to be remembered:
//!
//! | flag | variable | file | default |
//! |---|---|---|---|
//! | `--kubeconfig` | `KUBEWRIGHT_KUBECONFIG` | `kubeconfig` | see [`connect`](crate::connect) |
//! | `--namespace` | `KUBEWRIGHT_NAMESPACE`, `WATCH_NAMESPACE` | `namespace` | all |
//! | `--leader-elect` | `KUBEWRIGHT_LEADER_ELECT` | `leaderElect` | as the operator says, in a cluster |
//! | `--leader-elect-resource-name` | `…` | `leaderElectResourceName` | the operator's name |
//! | `--leader-elect-resource-namespace` | `…` | `leaderElectResourceNamespace` | where it runs |
//! | `--leader-elect-lease-duration` | `…` | `leaderElectLeaseDuration` | `15s` |
//! | `--leader-elect-renew-deadline` | `…` | `leaderElectRenewDeadline` | `10s` |
//! | `--leader-elect-retry-period` | `…` | `leaderElectRetryPeriod` | `2s` |
//! | `--sharded` | `…` | `sharded` | as the operator says, in a cluster |
//! | `--metrics-bind-address` | `…` | `metricsBindAddress` | `:8443` |
//! | `--metrics-secure` | `…` | `metricsSecure` | `true` |
//! | `--metrics-cert-path` | `…` | `metricsCertPath` | made by itself |
//! | `--health-probe-bind-address` | `…` | `healthProbeBindAddress` | `:8081` |
//! | `--webhook-bind-address` | `…` | `webhookBindAddress` | `:9443` |
//! | `--webhook-url-host` | `…` | `webhookUrlHost` | this machine, beside a cluster on it |
//! | `--webhook-cert-path` | `…` | `webhookCertPath` | made by itself |
//! | `--enable-http2` | `…` | `enableHttp2` | `false` |
//! | `--protobuf` | `…` | `protobuf` | `false` |
//! | `--graceful-shutdown-timeout` | `…` | `gracefulShutdownTimeout` | as the operator says, `30s` |
//! | `--cache-sync-timeout` | `…` | `cacheSyncTimeout` | `2m` |
//! | `--log-level` | `KUBEWRIGHT_LOG_LEVEL`, `RUST_LOG` | `logLevel` | `info` |
//! | `--log-format` | `…` | `logFormat` | `text` |
//! | `--otlp-endpoint` | `…`, `OTEL_EXPORTER_OTLP_ENDPOINT` | `otlpEndpoint` | none |
//!
//! Variables begin with `KUBEWRIGHT_` whatever the operator is called: one page describes them all,
//! and no Service of the operator's name brings variables into its pods that look like settings. A
//! variable that is empty says nothing. Flags are spelled as in Go, values too: `30s`, `:8443`, and
//! `0` for an address that is not served.
//!
//! Replicas that share out the objects do so by leases, too: these have the times and the namespace
//! of the one for leading, and begin with its name.
//!
//! A file with a key that nobody knows is refused, with its line and the key that was probably
//! meant. Below the key `operator` an author keeps settings of their own, which
//! [`Settings::own`] reads as strictly.
//!
//! ```
//! use std::time::Duration;
//! use clap::Parser;
//! use kubewright::settings::{Layer, Settings};
//!
//! #[derive(Parser)]
//! struct Arguments {
//!     #[command(flatten)]
//!     settings: Layer,
//! }
//!
//! let arguments = Arguments::parse_from(["greeter", "--leader-elect", "--cache-sync-timeout=1m"]);
//! let settings = Settings::load(&arguments.settings, |_| None)?;
//! assert_eq!(settings.leader_election.wanted, Some(true));
//! assert_eq!(settings.cache_sync_timeout, Duration::from_secs(60));
//! assert_eq!(settings.metrics.bind.to_string(), ":8443");
//! # Ok::<(), kubewright::settings::SettingsError>(())
//! ```

mod environment;
mod file;
mod layer;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::serve::Bind;

pub use environment::VariableError;
pub use file::{File, FileError};
pub use layer::Layer;

/// How an operator is run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub kubeconfig: Option<PathBuf>,
    /// The namespaces it looks into; none means all.
    pub namespaces: Vec<String>,
    pub leader_election: LeaderElection,
    /// Whether replicas share out the objects. If nothing was said, the operator says itself.
    pub sharded: Option<bool>,
    pub metrics: Metrics,
    pub probes: Bind,
    pub webhooks: Webhooks,
    /// Whether its servers speak HTTP/2, which has been a way to overload servers.
    pub http2: bool,
    /// Whether its client asks for built-in kinds in protobuf.
    pub protobuf: bool,
    /// How long it may take to stop. If nothing was said, the operator says itself.
    pub graceful_shutdown: Option<Duration>,
    /// How long caches may take to fill.
    pub cache_sync_timeout: Duration,
    pub logs: Logs,
    /// Where traces go, if anywhere.
    pub otlp_endpoint: Option<String>,
    /// The file they were read from, for what is the author's own.
    pub file: Option<File>,
}

/// Whether and how replicas agree on who works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// What was asked for. If nothing was, the operator says itself whether it needs a leader; and
    /// outside a cluster, where it has nobody to agree with, it goes without.
    pub wanted: Option<bool>,
    /// The Lease; by default named after the operator, where it runs.
    pub name: Option<String>,
    pub namespace: Option<String>,
    /// How long others wait for a leader that is not heard of.
    pub lease_duration: Duration,
    /// After how long a leader that cannot renew gives up.
    pub renew_deadline: Duration,
    /// How long everybody waits between attempts.
    pub retry_period: Duration,
}

#[derive(Debug, Clone)]
pub struct Metrics {
    pub bind: Bind,
    /// Over TLS, and only to those who may read them.
    pub secure: bool,
    /// A folder with `tls.crt` and `tls.key`.
    pub certificates: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Webhooks {
    /// If nothing was said: [`Server::BIND`](crate::webhook::Server::BIND) in a cluster, and beside
    /// one wherever there is a place.
    pub bind: Option<Bind>,
    /// The host at which a cluster calls a process that is not in it.
    pub url_host: Option<String>,
    /// A folder with `tls.crt` and `tls.key`.
    pub certificates: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// A level, or levels by module: `info,kube=debug`.
    pub level: String,
    pub format: LogFormat,
}

/// What a line of a log looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Why an operator does not know how it is to be run. Nothing else can be done about any of these
/// than to tell whoever started it.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// A leader would be replaced before it has noticed that it is none.
    #[error(
        "elect a leader with these times: lease duration ({lease:?}) must be longer than renew \
         deadline ({renew:?}), and that longer than 1.2 times the retry period ({retry:?})"
    )]
    Election { lease: Duration, renew: Duration, retry: Duration },
    #[error("let one replica work (leader-elect), and all of them (sharded): choose one")]
    Coordination,
}

impl Settings {
    /// Reads what the flags leave open: the file, and variables, which `environment` gives as
    /// [`std::env::var_os`] does.
    ///
    /// # Errors
    /// The file cannot be read, or something in it or in a variable is not understood.
    pub fn load(
        flags: &Layer,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let said = flags.clone().over(environment::layer(&environment)?);
        let Some(path) = &said.config else { return Settings::of(said, None) };
        let file = File::read(path)?;
        let said = said.clone().over(file.layer()?);
        Settings::of(said, Some(file))
    }

    /// The author's own settings: what the file has below `operator`, or the default.
    ///
    /// ```
    /// use kubewright::settings::Settings;
    ///
    /// #[derive(Default, serde::Deserialize)]
    /// #[serde(deny_unknown_fields)]
    /// struct Shop {
    ///     tax: f64,
    /// }
    ///
    /// // There is no file.
    /// let shop: Shop = Settings::default().own()?;
    /// assert_eq!(shop.tax, 0.0);
    /// # Ok::<(), kubewright::settings::FileError>(())
    /// ```
    ///
    /// # Errors
    /// What is there does not fit.
    pub fn own<T: DeserializeOwned + Default>(&self) -> Result<T, FileError> {
        self.file.as_ref().map_or_else(|| Ok(T::default()), File::own)
    }

    /// What was said, and defaults for the rest.
    fn of(said: Layer, file: Option<File>) -> Result<Self, SettingsError> {
        let seconds =
            |given: Option<Duration>, default| given.unwrap_or(Duration::from_secs(default));
        let port = |given: Option<Bind>, default| given.unwrap_or(Bind::Port(default));
        let leader_election = LeaderElection {
            wanted: said.leader_elect,
            name: said.leader_elect_resource_name,
            namespace: said.leader_elect_resource_namespace,
            lease_duration: seconds(said.leader_elect_lease_duration, 15),
            renew_deadline: seconds(said.leader_elect_renew_deadline, 10),
            retry_period: seconds(said.leader_elect_retry_period, 2),
        };
        leader_election.check()?;
        if (leader_election.wanted, said.sharded) == (Some(true), Some(true)) {
            return Err(SettingsError::Coordination);
        }
        Ok(Settings {
            kubeconfig: said.kubeconfig,
            namespaces: said.namespace.unwrap_or_default(),
            leader_election,
            sharded: said.sharded,
            metrics: Metrics {
                bind: port(said.metrics_bind_address, 8443),
                secure: said.metrics_secure.unwrap_or(true),
                certificates: said.metrics_cert_path,
            },
            probes: port(said.health_probe_bind_address, 8081),
            webhooks: Webhooks {
                bind: said.webhook_bind_address,
                url_host: said.webhook_url_host,
                certificates: said.webhook_cert_path,
            },
            http2: said.enable_http2.unwrap_or(false),
            protobuf: said.protobuf.unwrap_or(false),
            graceful_shutdown: said.graceful_shutdown_timeout,
            cache_sync_timeout: seconds(said.cache_sync_timeout, 120),
            logs: Logs {
                level: said.log_level.unwrap_or_else(|| "info".to_owned()),
                format: said.log_format.unwrap_or_default(),
            },
            otlp_endpoint: said.otlp_endpoint,
            file,
        })
    }
}

/// Nothing was said at all.
impl Default for Settings {
    fn default() -> Self {
        Settings::of(Layer::default(), None).expect("defaults contradict nothing")
    }
}

impl LeaderElection {
    /// Whether a leader notices in time that it is none any more.
    fn check(&self) -> Result<(), SettingsError> {
        let &LeaderElection { lease_duration: lease, renew_deadline: renew, .. } = self;
        let retry = self.retry_period;
        if lease > renew && renew > retry.mul_f64(1.2) && !retry.is_zero() {
            return Ok(());
        }
        Err(SettingsError::Election { lease, renew, retry })
    }
}
