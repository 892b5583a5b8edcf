//! The controllers that every cluster needs: what kube-controller-manager does for namespaces,
//! garbage, service accounts, aggregated roles, quotas, and claims and volumes in use.
//!
//! They know the API only through [`kube::Client`], so they run beside any server. `census` keeps
//! one watch on the metadata of each kind and tells every controller what changed; a controller
//! turns that into keys of a queue, and for each key reads what is, plans, and acts. Nothing is
//! polled: what waits, waits for a change.

mod answer;
mod backoff;
mod census;
mod cluster_roles;
mod controller;
mod feed;
mod garbage;
mod kinds;
mod names;
mod namespaces;
mod protection;
mod queue;
mod quotas;
mod residents;

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use names::{NAMES, Names, UnknownName};

use census::Census;
use cluster_roles::ClusterRoles;
use controller::Controller;
use garbage::GarbageCollector;
use namespaces::Namespaces;
use quotas::Quotas;

/// What the controllers are told.
pub struct Config {
    pub names: Names,
    /// Goes into every namespace, for pods to know the server by. Without it nothing is published.
    pub root_ca_pem: Option<String>,
    pub now: Now,
}

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

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

    fn informers(&self) -> Client {
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
pub async fn run(clients: impl Into<Clients>, config: Config, shutdown: CancellationToken) {
    let clients = clients.into();
    let mut census = Census::new(clients.informers());
    let controllers = controllers(&clients, &config, &census);
    if controllers.is_empty() {
        return;
    }
    let mut tasks = JoinSet::new();
    for controller in controllers {
        census.tell(Arc::clone(&controller));
        tasks.spawn(controller.run(shutdown.clone()));
    }
    tasks.spawn(census.run(shutdown));
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a controller does not panic");
    }
}

fn controllers(clients: &Clients, config: &Config, census: &Census) -> Vec<Arc<dyn Controller>> {
    let mut controllers: Vec<Arc<dyn Controller>> = Vec::new();
    let on = |name| config.names.includes(name);
    if on(names::SERVICE_ACCOUNT) {
        let client = clients.service_account("service-account-controller");
        controllers.push(Arc::new(residents::service_account((client, clients.informers()))));
    }
    if let Some(pem) = &config.root_ca_pem
        && on(names::ROOT_CA)
    {
        let client = clients.service_account("root-ca-cert-publisher");
        controllers.push(Arc::new(residents::root_ca((client, clients.informers()), pem.clone())));
    }
    if on(names::NAMESPACE) {
        let client = clients.service_account("namespace-controller");
        controllers.push(Arc::new(Namespaces::new(client, Arc::clone(&config.now))));
    }
    if on(names::GARBAGE_COLLECTOR) {
        let client = clients.service_account("generic-garbage-collector");
        let now = Arc::clone(&config.now);
        controllers.push(Arc::new(GarbageCollector::new(client, census.complete(), now)));
    }
    if on(names::CLUSTER_ROLE_AGGREGATION) {
        let client = clients.service_account("clusterrole-aggregation-controller");
        controllers.push(Arc::new(ClusterRoles::new(client)));
    }
    if on(names::RESOURCE_QUOTA) {
        let client = clients.service_account("resourcequota-controller");
        let now = Arc::clone(&config.now);
        controllers.push(Arc::new(Quotas::new(client, census.complete(), now)));
    }
    if on(names::CLAIM_PROTECTION) {
        let client = clients.service_account("pvc-protection-controller");
        controllers.push(Arc::new(protection::Claims::new(client)));
    }
    if on(names::VOLUME_PROTECTION) {
        let client = clients.service_account("pv-protection-controller");
        controllers.push(Arc::new(protection::Volumes::new(client)));
    }
    controllers
}
