//! The store in a real etcd, shared with other servers of ours and, one after the other, with a stock
//! kube-apiserver.
//!
//! etcd owns the history: it decides every write and numbers every revision. This engine keeps the
//! image that all reads are served from equal to it.
//!
//! - One watch over the store's prefix feeds the image. A write is acknowledged when the
//!   image has reached its revision, so whoever wrote can read it.
//! - Others write too. A read that must be current asks etcd for its revision (one
//!   question for all who wait) and then waits for the image to get there.
//! - A broken watch resumes after the last revision. Only if etcd has compacted past it is everything
//!   loaded again, and watchers are told that they missed something.
//! - What has a time to live is tied to a lease; etcd expires it, which arrives as a
//!   deletion like any other.

pub mod wire;

mod client;
mod compaction;
mod feed;
mod follow;
mod freshness;
mod lease;
mod load;
mod session;
mod transaction;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::history::Floor;
use crate::image::Image;
use crate::{Revision, Store};

pub use client::{CallError, Client};

/// How to reach an etcd cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// `http://` or `https://` URLs of the members. One is used at a time.
    pub endpoints: Vec<String>,
    pub tls: Option<Tls>,
    pub login: Option<Login>,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// How long one answer may take. etcd itself gives up after seven seconds.
    pub request_timeout: Duration,
    /// How long a call that can be repeated is repeated while no member answers.
    pub patience: Duration,
    /// How much history etcd keeps, at least. `None` leaves compaction to others.
    pub compaction_interval: Option<Duration>,
}

impl Config {
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoints: vec![endpoint.into()],
            tls: None,
            login: None,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            patience: Duration::from_secs(10),
            // As kube-apiserver does by default.
            compaction_interval: Some(Duration::from_secs(5 * 60)),
        }
    }
}

/// Whom to trust, and who we are.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The authorities that may have signed the members' certificates.
    pub ca_pem: Vec<u8>,
    /// Needed when etcd verifies its clients.
    pub identity: Option<Identity>,
    /// The name to expect in the members' certificates, when it is not the host of the URL.
    pub server_name: Option<String>,
}

/// A client certificate with its private key.
#[derive(Clone)]
pub struct Identity {
    pub certificate_pem: Vec<u8>,
    pub private_key_pem: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A user of an etcd with authentication enabled.
#[derive(Clone)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a store in etcd could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A person must change the configuration.
    #[error("use the configuration of etcd")]
    Config(#[from] ConfigError),
    /// Try again, or tell a person.
    #[error("read from etcd")]
    Call(#[from] CallError),
}

/// The configuration cannot work, whatever etcd does.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("find an etcd endpoint in the configuration")]
    NoEndpoint,
    #[error("use the etcd endpoint {endpoint:?}")]
    Endpoint {
        endpoint: String,
        #[source]
        source: tonic::transport::Error,
    },
}

/// What a request holds besides the value: the key, three times, and a little framing.
const REQUEST_OVERHEAD: usize = 8 << 10;

/// The largest request that etcd takes unless told otherwise.
const REQUEST_BYTES_MAX: usize = 3 << 19;

impl<I: Send + Sync + 'static> Store<I> {
    /// Opens what etcd holds under `prefix`, such as `/registry/`, which every key must begin with.
    ///
    /// Needs a tokio runtime for as long as the store lives. Returns when everything is loaded; from
    /// then on, etcd being away only delays. Values with a time to live are removed by etcd, so
    /// their [`crate::Rev::deadline`] is none and [`Store::expire`] has nothing to do.
    pub async fn etcd(
        mut config: crate::Config<I>,
        cluster: &Config,
        prefix: &str,
    ) -> Result<Self, OpenError> {
        let limit = REQUEST_BYTES_MAX - REQUEST_OVERHEAD;
        config.value_bytes_max = config.value_bytes_max.min(limit);
        let client = Arc::new(Client::new(cluster)?);
        let prefix = Bytes::copy_from_slice(prefix.as_bytes());
        let loaded = load::load(&client, &prefix).await?;
        let revision = Revision::new(loaded.revision);
        let stored = follow::stored(loaded.kvs);
        let image = Image::new(config, stored, revision, Floor::at(revision));

        let wanted = watch::Sender::new(revision);
        let follower = follow::Follower {
            client: Arc::clone(&client),
            image: Arc::clone(&image),
            prefix: prefix.clone(),
            cluster: loaded.cluster,
            wanted: wanted.subscribe(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(follower.run());
        if let Some(interval) = cluster.compaction_interval {
            let client = Arc::clone(&client);
            tasks.spawn(async move { compaction::run(&client, interval).await });
        }
        let writer = writer::EtcdWriter {
            client,
            image: Arc::clone(&image),
            prefix,
            leases: lease::Leases::default(),
            freshness: freshness::Freshness::new(),
            wanted,
            patience: cluster.patience,
            tasks: Mutex::new(Some(tasks)),
        };
        Ok(Self::new(image, Arc::new(writer)))
    }
}
