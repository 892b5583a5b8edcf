//! The controllers that every cluster needs: what kube-controller-manager does.
//!
//! They know the API only through [`kube::Client`] and a [`Cache`], so they run beside any server.
//! Nothing is polled: what waits, waits for a change.
//!
//! # How a controller is made
//!
//! A module per kind. Its root has one constructor, which declares a [`kubewright::Controller`] by
//! `part::controller` and is named in `BUILTINS` below; its `plan` decides, from objects to a
//! value, and is tested by value; its `reconcile` reads the cache through the
//! [`Context`](kubewright::Context), asks `plan`, and does what it says. `protection::volumes` is a
//! small one.
//!
//! - Reads are from the one cache that all share, and see what the same controller wrote before
//!   them: no controller counts its expectations.
//! - Each writes as the service account that upstream gives it, whose rights the server founds.
//!   Most may `update` their own kind and not `patch` it, which `part::controller` provides for.
//! - Children with a selector are [claimed](kubewright::Context::claim), others are
//!   [children](kubewright::Context::children).
//! - Status is changed in the object that `reconcile` is given, and is written if it has changed.
//!   Counts that are zero are left out, as Go leaves them out: `part::count`.
//! - Names in `names` are those of kube-controller-manager's `--controllers`; events are reported
//!   by the component that upstream names.
//!
//! Some must know of objects of every kind there is: `namespaces`, `garbage` and `quotas` are told by
//! `census`, which has an informer of the metadata of each kind for as long as the kind is served.
//! What they work on is in queues of the library all the same.

mod answer;
mod autoscaler;
mod census;
mod certificates;
mod cluster_roles;
mod cron_jobs;
mod daemon_set;
mod deployment;
mod disruptions;
mod garbage;
mod hash;
mod jobs;
mod kinds;
mod load_balancers;
mod names;
mod namespaces;
mod node_life;
mod node_ttl;
mod part;
mod pod_gc;
mod pods;
mod policy_status;
mod protection;
mod quotas;
mod replica_set;
mod residents;
mod revisions;
mod selection;
mod service_cidrs;
mod services;
mod stateful_set;
mod storage;
mod taint_eviction;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kubewright::controller::Surroundings;
use kubewright::event::Recorder;
use kubewright::{Cache, Clock};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use certificates::{Order, SharedSigner, SignError, Signer};
pub use load_balancers::Address;
pub use names::{NAMES, Names, UnknownName};
pub use storage::standard_class;

use census::Census;
use garbage::GarbageCollector;
use part::Part;

/// What the controllers are told.
pub struct Config {
    pub names: Names,
    /// Goes into every namespace, for pods to know the server by. Without it nothing is published.
    pub root_ca_pem: Option<String>,
    pub clock: Clock,
    /// Where volumes of [`standard_class`] are made; without it nobody provides them.
    pub local_volumes: Option<PathBuf>,
    /// Signs requests for certificates; without it nobody does.
    pub signer: Option<SharedSigner>,
    /// Where Services of type LoadBalancer are reached; without it they wait for somebody else.
    pub load_balancer: Option<Address>,
}

/// A controller on the library.
struct Builtin {
    name: &'static str,
    /// The service account in `kube-system` that it acts as.
    account: &'static str,
    make: fn(&mut Site<'_>) -> Box<dyn Part>,
}

/// What a controller can be made with.
struct Site<'a> {
    config: &'a Config,
    /// The client of its account.
    client: &'a Client,
    cache: &'a Cache,
    census: &'a mut Census,
}

const BUILTINS: &[Builtin] = &[
    Builtin {
        name: names::SERVICE_ACCOUNT,
        account: "service-account-controller",
        make: |_| Box::new(residents::service_account()),
    },
    Builtin {
        name: names::ROOT_CA,
        account: "root-ca-cert-publisher",
        make: |site| Box::new(site.config.root_ca_pem.as_deref().map(residents::root_ca)),
    },
    Builtin {
        name: names::NAMESPACE,
        account: "namespace-controller",
        make: |site| Box::new(namespaces::controller(site.cache, site.census)),
    },
    Builtin {
        name: names::GARBAGE_COLLECTOR,
        account: "generic-garbage-collector",
        make: |site| {
            let (client, clock) = (site.client.clone(), site.config.clock.clone());
            Box::new(GarbageCollector::new(client, clock, site.census))
        },
    },
    Builtin {
        name: names::CLUSTER_ROLE_AGGREGATION,
        account: "clusterrole-aggregation-controller",
        make: |_| Box::new(cluster_roles::controller()),
    },
    Builtin {
        name: names::RESOURCE_QUOTA,
        account: "resourcequota-controller",
        make: |site| Box::new(quotas::controller(site.cache, site.census, &site.config.clock)),
    },
    Builtin {
        name: names::CLAIM_PROTECTION,
        account: "pvc-protection-controller",
        make: |_| Box::new(protection::claims()),
    },
    Builtin {
        name: names::POLICY_STATUS,
        account: "validatingadmissionpolicy-status-controller",
        make: |site| Box::new(policy_status::controller(site.census.kinds())),
    },
    Builtin {
        name: names::VOLUME_PROTECTION,
        account: "pv-protection-controller",
        make: |_| Box::new(protection::volumes()),
    },
    Builtin {
        name: names::ENDPOINTS,
        account: "endpoint-controller",
        make: |_| Box::new(services::endpoints()),
    },
    Builtin {
        name: names::ENDPOINTS,
        account: "endpoint-controller",
        make: |_| Box::new(services::leftovers()),
    },
    Builtin {
        name: names::ENDPOINT_SLICE,
        account: "endpointslice-controller",
        make: |_| Box::new(services::slices()),
    },
    Builtin {
        name: names::ENDPOINT_SLICE_MIRRORING,
        account: "endpointslicemirroring-controller",
        make: |_| Box::new(services::mirror()),
    },
    Builtin { name: names::JOB, account: "job-controller", make: |_| Box::new(jobs::controller()) },
    Builtin { name: names::JOB, account: "job-controller", make: |_| Box::new(jobs::strays()) },
    Builtin {
        name: names::TTL_AFTER_FINISHED,
        account: "ttl-after-finished-controller",
        make: |_| Box::new(jobs::expiry()),
    },
    Builtin {
        name: names::CRON_JOB,
        account: "cronjob-controller",
        make: |_| Box::new(cron_jobs::controller()),
    },
    Builtin {
        name: names::POD_GC,
        account: "pod-garbage-collector",
        make: |_| Box::new(pod_gc::controller()),
    },
    Builtin {
        name: names::NODE_LIFECYCLE,
        account: "node-controller",
        make: |_| Box::new(node_life::controller()),
    },
    Builtin {
        name: names::TAINT_EVICTION,
        account: "node-controller",
        make: |_| Box::new(taint_eviction::controller()),
    },
    Builtin {
        name: names::DISRUPTION,
        account: "disruption-controller",
        make: |_| Box::new(disruptions::controller()),
    },
    Builtin {
        name: names::DISRUPTION,
        account: "disruption-controller",
        make: |_| Box::new(disruptions::stale()),
    },
    Builtin {
        name: names::REPLICA_SET,
        account: "replicaset-controller",
        make: |_| Box::new(replica_set::replica_sets()),
    },
    Builtin {
        name: names::REPLICATION_CONTROLLER,
        account: "replication-controller",
        make: |_| Box::new(replica_set::replication_controllers()),
    },
    Builtin {
        name: names::DEPLOYMENT,
        account: "deployment-controller",
        make: |_| Box::new(deployment::deployments()),
    },
    Builtin {
        name: names::DAEMON_SET,
        account: "daemon-set-controller",
        make: |_| Box::new(daemon_set::daemon_sets()),
    },
    Builtin {
        name: names::STATEFUL_SET,
        account: "statefulset-controller",
        make: |_| Box::new(stateful_set::stateful_sets()),
    },
    Builtin {
        name: names::PERSISTENT_VOLUME_BINDER,
        account: "persistent-volume-binder",
        make: |_| Box::new(storage::claims()),
    },
    Builtin {
        name: names::PERSISTENT_VOLUME_BINDER,
        account: "persistent-volume-binder",
        make: |_| Box::new(storage::volumes()),
    },
    Builtin {
        name: names::PERSISTENT_VOLUME_BINDER,
        account: "persistent-volume-binder",
        make: |site| Box::new(site.config.local_volumes.as_deref().map(storage::local_path)),
    },
    Builtin {
        name: names::PERSISTENT_VOLUME_BINDER,
        account: "persistent-volume-binder",
        make: |site| {
            Box::new(site.config.local_volumes.as_deref().map(storage::local_path_cleanup))
        },
    },
    Builtin {
        name: names::EPHEMERAL_VOLUME,
        account: "ephemeral-volume-controller",
        make: |_| Box::new(storage::ephemeral()),
    },
    Builtin {
        name: names::CSR_APPROVING,
        account: "certificate-controller",
        make: |_| Box::new(certificates::approval()),
    },
    Builtin {
        name: names::CSR_SIGNING,
        account: "certificate-controller",
        make: |site| Box::new(site.config.signer.as_ref().map(certificates::signing)),
    },
    Builtin {
        name: names::CSR_CLEANER,
        account: "certificate-controller",
        make: |_| Box::new(certificates::cleaner()),
    },
    Builtin {
        name: names::HORIZONTAL_POD_AUTOSCALER,
        account: "horizontal-pod-autoscaler",
        make: |_| Box::new(autoscaler::controller()),
    },
    Builtin {
        name: names::TTL,
        account: "ttl-controller",
        make: |_| Box::new(node_ttl::controller()),
    },
    Builtin {
        name: names::SERVICE_LB,
        account: "service-controller",
        make: |site| Box::new(site.config.load_balancer.as_ref().map(load_balancers::controller)),
    },
    Builtin {
        name: names::SERVICE_CIDR,
        account: "service-cidrs-controller",
        make: |_| Box::new(service_cidrs::controller()),
    },
];

/// How long the cache may take before it is told that a controller waits for it.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// Which client a controller speaks through.
///
/// Upstream gives each controller an account of its own, with no more rights than it needs; the
/// watches that all share belong to `system:kube-controller-manager`.
pub struct Clients(Box<dyn Fn(&str) -> Client + Send + Sync>);

impl Clients {
    /// A client for each user name.
    pub fn by_user(client: impl Fn(&str) -> Client + Send + Sync + 'static) -> Self {
        Self(Box::new(client))
    }

    /// For the watches that all share: the cache should be one of this client.
    pub fn informers(&self) -> Client {
        self.0("system:kube-controller-manager")
    }

    fn service_account(&self, name: &str) -> Client {
        self.0(&format!("system:serviceaccount:kube-system:{name}"))
    }
}

impl From<Client> for Clients {
    /// One client for all.
    fn from(client: Client) -> Self {
        Self::by_user(move |_| client.clone())
    }
}

/// Runs until `shutdown`; returns when everything it started has ended.
///
/// What the cache has is shared with whoever else has a handle on it. Whoever made it runs it.
pub async fn run(
    clients: impl Into<Clients>,
    cache: Cache,
    config: Config,
    shutdown: CancellationToken,
) {
    let clients = clients.into();
    let mut tasks = JoinSet::new();
    let mut census = Census::new(&cache);
    let (recorder, scribe) =
        Recorder::counting(clients.informers(), part::MANAGER, None, config.clock.clone());
    tasks.spawn(scribe);
    let metrics = Arc::default();
    for builtin in BUILTINS.iter().filter(|builtin| config.names.includes(builtin.name)) {
        let client = clients.service_account(builtin.account);
        let mut site =
            Site { config: &config, client: &client, cache: &cache, census: &mut census };
        let part = (builtin.make)(&mut site);
        let around = Surroundings {
            client,
            cache: cache.clone(),
            recorder: recorder.clone(),
            clock: config.clock.clone(),
            metrics: Arc::clone(&metrics),
            namespaces: BTreeSet::new(),
            ring: None,
            revoked: CancellationToken::new(),
            sync_max: SYNC_MAX,
        };
        tasks.spawn(part.run(around, shutdown.clone()));
    }
    tasks.spawn(census.run(shutdown.clone()));
    // The scribe ends with the last recorder, and informers with the last handle on them.
    drop((recorder, cache));
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a controller does not panic");
    }
}
