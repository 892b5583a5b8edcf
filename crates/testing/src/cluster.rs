//! A cluster for one test.

use std::time::Duration;

use kube::Client;
use kubewright_apiserver::user::{MASTERS, User};
use kubewright_cluster::{Clock, Config, Names, Storage, Terms};

use crate::faults::Faults;
use crate::line::Line;

/// A cluster in memory. It is there for as long as this is.
pub struct Cluster {
    inner: kubewright_cluster::Cluster,
    clock: Clock,
    faults: Faults,
}

impl Cluster {
    /// Starts a cluster with all its controllers.
    ///
    /// # Panics
    /// If it does not start, which ends the test.
    pub async fn start() -> Self {
        let clock = Clock::started_now();
        let config = Config {
            storage: Storage::Memory,
            listen: None,
            clock,
            controllers: Names::all(),
            audit: None,
            terms: Terms::default(),
        };
        let inner = kubewright_cluster::Cluster::start(config).await;
        let inner = inner.unwrap_or_else(|error| panic!("the cluster did not start: {error:?}"));
        Cluster { inner, clock, faults: Faults::default() }
    }

    /// A client that may do everything, and meets the cluster's [`Faults`].
    pub fn client(&self) -> Client {
        self.client_as("admin", &[MASTERS])
    }

    /// A client of another user, who may do what the cluster's roles say.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let groups = groups.iter().map(|&group| group.to_owned());
        let service = self.inner.server().as_user(User::new(user, groups));
        Client::new(self.faults.around(service), "default")
    }

    /// The time as the cluster has it, since the Unix epoch.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// A client that may do everything, and meets no faults.
    pub(crate) fn plain_client(&self) -> Client {
        let admin = User::new("admin", [MASTERS.to_owned()]);
        Client::new(self.inner.server().as_user(admin), "default")
    }

    /// A client that may do everything, over a line that can be cut.
    pub fn client_over(&self, line: &Line) -> Client {
        let service = self.inner.server().as_user(User::new("admin", [MASTERS.to_owned()]));
        Client::new(line.to(self.faults.around(service)), "default")
    }

    /// What can go wrong between clients and the cluster.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Ends the cluster, and waits until everything in it has ended.
    pub async fn shutdown(self) {
        self.inner.shutdown().await;
    }
}
