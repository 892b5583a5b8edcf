//! Certificates that others put into a directory, and replace there.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::authority::Pair;
use super::current::{Current, PairError};
use crate::chain::chain;

/// How often files are read again, as controller-runtime does. What a Secret is mounted by replaces
/// a link, which is easier seen by reading than by watching.
const INTERVAL: Duration = Duration::from_secs(10);

/// Where a certificate and its key are.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    certificate: String,
    key: String,
    interval: Duration,
}

/// How often certificates were read, and in vain.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(super) reads: Counter,
    pub(super) errors: Counter,
}

/// Why a directory has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("read {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("use the certificate in {path}")]
    Pair {
        path: PathBuf,
        #[source]
        source: PairError,
    },
}

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Metrics::default();
        registry.register(
            "certwatcher_read_certificate",
            "Total number of certificate reads",
            metrics.reads.clone(),
        );
        registry.register(
            "certwatcher_read_certificate_errors",
            "Total number of certificate read errors",
            metrics.errors.clone(),
        );
        metrics
    }
}

impl Directory {
    /// Where `tls.crt` and `tls.key` are, as a Secret is mounted.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Directory {
            path: path.into(),
            certificate: "tls.crt".to_owned(),
            key: "tls.key".to_owned(),
            interval: INTERVAL,
        }
    }

    /// Other names of the files.
    pub fn files(self, certificate: &str, key: &str) -> Self {
        Directory { certificate: certificate.to_owned(), key: key.to_owned(), ..self }
    }

    /// How often they are read: every ten seconds, unless said otherwise.
    pub fn every(self, interval: Duration) -> Self {
        Directory { interval, ..self }
    }

    /// Has what is there shown, until `shutdown`. What cannot be read is told, and what was shown
    /// is shown further.
    pub async fn run(self, current: Current, metrics: Arc<Metrics>, shutdown: CancellationToken) {
        let mut rounds = tokio::time::interval(self.interval);
        let mut told = None;
        while shutdown.run_until_cancelled(rounds.tick()).await.is_some() {
            let problem = self.show(&current, &metrics).await.err().map(|it| chain(&it));
            if let Some(error) = problem.as_ref().filter(|_| problem != told) {
                error!(%error, "certificate not read");
            }
            // What was read before may still be good, but nobody knows for how long.
            current.set_problem(problem.clone());
            told = problem;
        }
    }

    /// Has what is there now shown.
    ///
    /// # Errors
    /// If there is nothing that could be.
    pub async fn show(&self, current: &Current, metrics: &Metrics) -> Result<(), ReadError> {
        metrics.reads.inc();
        let reader = self.clone();
        let read = tokio::task::spawn_blocking(move || reader.read());
        let shown = read.await.expect("reading does not panic").and_then(|pair| {
            let path = || self.path.clone();
            current.show(pair).map_err(|source| ReadError::Pair { path: path(), source })
        });
        match shown {
            Ok(is_new) => {
                if is_new {
                    info!(path = %self.path.display(), "certificate read");
                }
                Ok(())
            }
            Err(error) => {
                metrics.errors.inc();
                Err(error)
            }
        }
    }

    fn read(&self) -> Result<Pair, ReadError> {
        let read = |name: &str| {
            let path = self.path.join(name);
            std::fs::read_to_string(&path).map_err(|source| ReadError::File { path, source })
        };
        Ok(Pair { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }
}
