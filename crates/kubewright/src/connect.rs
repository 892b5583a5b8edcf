//! A client of the cluster that flags, environment or the cluster itself point at.
//!
//! [`find`] looks where client-go's users expect it to: the file of `--kubeconfig`, else those of
//! `$KUBECONFIG`, else the service account of the pod it runs in, else `~/.kube/config`. What was
//! named and cannot be used is an error, never passed over. [`Connection::client`] is then `kube`'s
//! client, except that it never tries again by itself: inside a reconcile an answer of 429 belongs
//! to the queue, which knows how long to wait.
//!
//! ```no_run
//! # async fn example() -> Result<(), kubewright::connect::ConnectError> {
//! use kubewright::connect;
//!
//! let connection = connect::find(None, |name: &str| std::env::var_os(name)).await?;
//! println!("{}", connection.source);
//! let client = connection.client(&connect::Options::default())?;
//! # drop(client);
//! # Ok(())
//! # }
//! ```

mod metrics;
mod protobuf;
#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

pub use metrics::{Measure, Measured, Metrics};
pub use protobuf::{Transcode, Transcoded};

/// A cluster that was found.
#[derive(Debug, Clone)]
pub struct Connection {
    pub config: Config,
    /// Where it was found.
    pub source: Source,
}

/// Where a cluster can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the file that a flag names.
    Flag(PathBuf),
    /// In the files that `KUBECONFIG` names; of two that say the same, the first counts.
    Variable(Vec<PathBuf>),
    /// Around this process, which is in a pod.
    Pod,
    /// In the file that everybody has at home.
    Home(PathBuf),
}

/// How to talk to a cluster.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Counts requests.
    pub metrics: Option<Arc<Metrics>>,
    /// Ask for built-in kinds in protobuf, which is less work for the server and the network, and
    /// more for this process; see [`Transcode`].
    pub protobuf: bool,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody has said which cluster, or what was said is of no use.
    #[error("find a cluster: {}", Tried(.0))]
    NoCluster(Vec<Attempt>),
    /// The cluster was found, and how to talk to it makes no sense.
    #[error("make a client")]
    Client(#[source] kube::Error),
}

/// Where no cluster was found, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub source: Source,
    pub cause: String,
}

/// Finds the cluster to talk to. `environment` gives variables, as [`std::env::var_os`] does.
///
/// # Errors
/// No cluster was found; it says where it was looked for.
pub async fn find(
    kubeconfig: Option<&Path>,
    environment: impl Fn(&str) -> Option<OsString> + Sync,
) -> Result<Connection, ConnectError> {
    let mut attempts = Vec::new();
    for source in sources(kubeconfig, &environment) {
        match read(&source, &environment).await {
            Ok(mut config) => {
                config.default_retry = false;
                return Ok(Connection { config, source });
            }
            Err(cause) => attempts.push(Attempt { source, cause }),
        }
    }
    Err(ConnectError::NoCluster(attempts))
}

impl Connection {
    /// Whether this process runs in the cluster it talks to.
    pub fn is_in_cluster(&self) -> bool {
        self.source == Source::Pod
    }

    /// The namespace it runs in, or else the one of the context.
    pub fn namespace(&self) -> &str {
        &self.config.default_namespace
    }

    /// A client of the cluster.
    ///
    /// # Errors
    /// What is known of the cluster is not enough to talk to it: a certificate that is none, a
    /// program for tokens that cannot be started.
    pub fn client(self, options: &Options) -> Result<Client, ConnectError> {
        let host = self.config.cluster_url.authority().map(ToString::to_string);
        let measure = Measure::new(options.metrics.clone(), host.unwrap_or_default());
        let builder = ClientBuilder::try_from(self.config).map_err(ConnectError::Client)?;
        let transcode = Transcode::new(options.protobuf);
        Ok(builder.with_layer(&transcode).with_layer(&measure).build())
    }
}

type Environment<'a> = &'a (dyn Fn(&str) -> Option<OsString> + Sync);

/// Where to look, in this order; what is named is the only one.
fn sources(flag: Option<&Path>, environment: Environment<'_>) -> Vec<Source> {
    if let Some(path) = flag {
        return vec![Source::Flag(path.to_owned())];
    }
    let named = environment("KUBECONFIG").unwrap_or_default();
    let named: Vec<_> = env::split_paths(&named).filter(|it| it != Path::new("")).collect();
    if !named.is_empty() {
        return vec![Source::Variable(named)];
    }
    let home = environment("HOME").or_else(|| environment("USERPROFILE"));
    let home = home.map(|home| Source::Home(Path::new(&home).join(".kube").join("config")));
    [Source::Pod].into_iter().chain(home).collect()
}

async fn read(source: &Source, environment: Environment<'_>) -> Result<Config, String> {
    // `kube`'s errors say all there is to say themselves.
    match source {
        Source::Pod => {
            let is_missing = |name: &&str| environment(name).is_none();
            let names = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
            if let Some(name) = names.into_iter().find(is_missing) {
                return Err(format!("{name} is not set"));
            }
            Config::incluster().map_err(|error| error.to_string())
        }
        Source::Flag(path) | Source::Home(path) => {
            let read = Kubeconfig::read_from(path);
            from_kubeconfig(read).await.map_err(|error| error.to_string())
        }
        Source::Variable(paths) => {
            // Those that do not exist are passed over while one does, as kubectl does.
            let mut there: Vec<_> = paths.iter().filter(|path| path.exists()).collect();
            if there.is_empty() {
                there = paths.iter().collect();
            }
            let merged = there.into_iter().try_fold(Kubeconfig::default(), |merged, path| {
                Kubeconfig::read_from(path).and_then(|next| merged.merge(next))
            });
            from_kubeconfig(merged).await.map_err(|error| error.to_string())
        }
    }
}

async fn from_kubeconfig(
    kubeconfig: Result<Kubeconfig, KubeconfigError>,
) -> Result<Config, KubeconfigError> {
    Config::from_custom_kubeconfig(kubeconfig?, &KubeConfigOptions::default()).await
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(path) => write!(f, "--kubeconfig {}", path.display()),
            Source::Variable(paths) => {
                let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                write!(f, "$KUBECONFIG {}", paths.join(", "))
            }
            Source::Pod => f.write_str("the pod's service account"),
            Source::Home(path) => write!(f, "{}", path.display()),
        }
    }
}

struct Tried<'a>(&'a [Attempt]);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Attempt { source, cause }) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{source}: {cause}")?;
        }
        Ok(())
    }
}
