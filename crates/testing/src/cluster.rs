//! A cluster for one test.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::{Client, Config};
use kubewright_apiserver::user::{MASTERS, User};
use kubewright_cluster::{Clock, Names, Storage, Terms};
use tokio::sync::OnceCell;

use crate::faults::Faults;
use crate::line::Line;
use crate::outside::Outside;
use crate::remote::Remote;
use crate::running::Operators;

/// Set to anything, tests run on the cluster that the kubeconfig leads to.
const EXISTING: &str = "KUBEWRIGHT_TEST_EXISTING";

/// A cluster. It is there for as long as this is.
pub struct Cluster {
    place: Place,
    clock: Clock,
    faults: Faults,
    namespace: String,
    operators: Operators,
    /// Made for the first who asks.
    outside: OnceCell<Outside>,
}

enum Place {
    /// In this process, for this test.
    Memory(Box<kubewright_cluster::Cluster>),
    /// Somebody else's, for whoever can reach it.
    Existing(Box<Config>),
}

/// Runs a test on a cluster of its own: one in memory, whose time is virtual; or if the variable
/// `KUBEWRIGHT_TEST_EXISTING` is set, in a namespace of its own on the cluster that the kubeconfig
/// leads to, as time goes by.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_testing::on_cluster;
/// use serde_json::json;
///
/// on_cluster(async |cluster| {
///     let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
///     cluster.apply(&object).await;
///     let namespace = Some(cluster.namespace());
///     cluster.eventually::<ConfigMap>(namespace, "one", |found| found.is_some()).await;
/// });
/// ```
///
/// # Panics
/// If the test does, or there is no cluster.
pub fn on_cluster(test: impl AsyncFnOnce(&Cluster)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(!is_existing()).build().expect("a runtime");
    runtime.block_on(async {
        let cluster = Cluster::from_env().await;
        test(&cluster).await;
        cluster.shutdown().await;
    });
}

impl Cluster {
    /// Starts a cluster in memory, with all its controllers.
    ///
    /// # Panics
    /// If it does not start, which ends the test.
    pub async fn start() -> Self {
        let clock = Clock::started_now();
        let config = kubewright_cluster::Config {
            storage: Storage::Memory,
            listen: None,
            clock,
            controllers: Names::all(),
            nodes: None,
            audit: None,
            terms: Terms::default(),
        };
        let inner = kubewright_cluster::Cluster::start(config).await;
        let inner = inner.unwrap_or_else(|error| panic!("the cluster did not start: {error:?}"));
        Cluster {
            place: Place::Memory(Box::new(inner)),
            clock,
            faults: Faults::default(),
            namespace: "default".to_owned(),
            operators: Operators::default(),
            outside: OnceCell::new(),
        }
    }

    /// The cluster that the kubeconfig leads to, and a namespace in it that is this test's alone.
    ///
    /// # Panics
    /// If there is none.
    pub async fn existing() -> Self {
        let mut config = Config::infer().await.unwrap_or_else(|error| panic!("{error}"));
        config.default_retry = false;
        let mut cluster = Cluster {
            place: Place::Existing(Box::new(config)),
            clock: Clock::System,
            faults: Faults::default(),
            namespace: String::new(),
            operators: Operators::default(),
            outside: OnceCell::new(),
        };
        cluster.namespace = cluster.make_namespace().await;
        if let Place::Existing(config) = &mut cluster.place {
            config.default_namespace.clone_from(&cluster.namespace);
        }
        cluster
    }

    /// The cluster that a test is to run on: as [`on_cluster`], but time is as the test has it. For
    /// tests with sockets of their own, which virtual time would not wait for.
    ///
    /// # Panics
    /// If there is none.
    pub async fn from_env() -> Self {
        match is_existing() {
            true => Cluster::existing().await,
            false => Cluster::start().await,
        }
    }

    /// Where the test is at home: nobody else is there.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A client that may do everything, and meets the cluster's [`Faults`].
    pub fn client(&self) -> Client {
        self.client_as("admin", &[MASTERS])
    }

    /// A client of another user, who may do what the cluster's roles say.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        match &self.place {
            Place::Memory(inner) => {
                let service = inner.server().as_user(user_of(user, groups));
                Client::new(self.faults.around(service), &self.namespace)
            }
            Place::Existing(config) => {
                let service = Remote::new(config, user, groups);
                Client::new(self.faults.around(service), &self.namespace)
            }
        }
    }

    /// A client that may do everything, over a line that can be cut.
    pub fn client_over(&self, line: &Line) -> Client {
        match &self.place {
            Place::Memory(inner) => {
                let service = inner.server().as_user(user_of("admin", &[MASTERS]));
                Client::new(line.to(self.faults.around(service)), &self.namespace)
            }
            Place::Existing(config) => {
                let service = Remote::new(config, "admin", &[MASTERS]);
                Client::new(line.to(self.faults.around(service)), &self.namespace)
            }
        }
    }

    /// A client that may do everything, and meets no faults.
    pub(crate) fn plain_client(&self) -> Client {
        match &self.place {
            Place::Memory(inner) => {
                let service = inner.server().as_user(user_of("admin", &[MASTERS]));
                Client::new(service, &self.namespace)
            }
            Place::Existing(config) => {
                Client::new(Remote::new(config, "admin", &[MASTERS]), &self.namespace)
            }
        }
    }

    /// A kubeconfig by which other processes reach the cluster as its administrator, over TLS, for
    /// as long as it is there; faults are not for them. For tests in real time: a paused clock does
    /// not wait for sockets.
    ///
    /// # Panics
    /// If nothing can listen on loopback.
    pub async fn kubeconfig(&self) -> PathBuf {
        let outside = self.outside.get_or_init(|| async {
            match &self.place {
                Place::Memory(inner) => Outside::of(inner.server(), self.clock.now()).await,
                Place::Existing(_) => Outside::existing(&self.namespace),
            }
        });
        outside.await.path()
    }

    /// What can go wrong between clients and the cluster.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Those that run in it.
    pub(crate) fn operators(&self) -> &Operators {
        &self.operators
    }

    /// The time as the cluster has it.
    pub fn clock(&self) -> kubewright::Clock {
        if matches!(self.clock, Clock::System) {
            return kubewright::Clock::system();
        }
        let since_epoch = SignedDuration::try_from(self.clock.now()).unwrap_or(SignedDuration::MAX);
        let now = Timestamp::from_duration(since_epoch).unwrap_or(Timestamp::MAX);
        kubewright::Clock::starting_at(now)
    }

    /// Lets so much time pass, if time is virtual. Elsewhere only a moment: a test that must see
    /// that nothing happens cannot wait for ever.
    pub async fn pass(&self, time: Duration) {
        let moment = Duration::from_millis(500);
        let time = if matches!(self.clock, Clock::System) { time.min(moment) } else { time };
        tokio::time::sleep(time).await;
    }

    /// How long what was written about admission may take to be in force. Ours knows at once; an
    /// upstream server hears of configurations and of labels of namespaces by watches of its own,
    /// and nobody can ask it how far it is.
    pub fn lag(&self) -> Duration {
        if self.is_virtual() { Duration::ZERO } else { Duration::from_secs(1) }
    }

    /// Whether time is virtual, and the cluster this test's alone.
    pub fn is_virtual(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    /// Ends the cluster, and waits until everything in it has ended. From one that was there
    /// before, the test's namespace is taken away.
    pub async fn shutdown(self) {
        if let Place::Existing(_) = &self.place {
            let namespaces: Api<Namespace> = Api::all(self.plain_client());
            // Whoever runs no controllers keeps it.
            let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
        }
        if let Some(outside) = self.outside.into_inner() {
            outside.shutdown().await;
        }
        if let Place::Memory(inner) = self.place {
            inner.shutdown().await;
        }
    }

    async fn make_namespace(&self) -> String {
        let namespaces: Api<Namespace> = Api::all(self.plain_client());
        let namespace = Namespace {
            metadata: ObjectMeta {
                generate_name: Some("kubewright-test-".to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        let made = made.unwrap_or_else(|error| panic!("a namespace for the test: {error}"));
        let name = made.metadata.name.expect("the server completes it");
        // Without controllers nobody else makes it, and no pod could be made.
        let accounts: Api<ServiceAccount> = Api::namespaced(self.plain_client(), &name);
        let account = ServiceAccount {
            metadata: ObjectMeta { name: Some("default".to_owned()), ..ObjectMeta::default() },
            ..ServiceAccount::default()
        };
        let _ = accounts.create(&PostParams::default(), &account).await;
        name
    }
}

fn is_existing() -> bool {
    std::env::var_os(EXISTING).is_some()
}

fn user_of(user: &str, groups: &[&str]) -> User {
    User::new(user, groups.iter().map(|&group| group.to_owned()))
}
