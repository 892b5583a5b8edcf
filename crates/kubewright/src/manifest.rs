//! The objects that bring an operator into a cluster, rendered by its own binary.
//!
//! A [`Package`] is all that is known of an operator from outside: a plain value, of which
//! [`Package::render`] makes [`Manifest`]s under the names that kubebuilder gives them, so that
//! whoever has run one operator knows where things are. [`stream`] and [`write_folder`] write them;
//! [`Options`] are the arguments of the subcommand that does both. Other packagings begin with the
//! same value.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::access::Access;
//! use kubewright::manifest::{self, Package};
//!
//! let package = Package {
//!     image: "registry.example.com/greeter:1.0".to_owned(),
//!     accesses: vec![Access::owned::<ConfigMap>()],
//!     ..Package::new("greeter")
//! };
//! let manifests = package.render()?;
//! assert_eq!(manifests[0].kind(), "Namespace");
//! assert!(manifest::stream(&package, &manifests).contains("name: greeter-controller-manager"));
//! # Ok::<(), manifest::RenderError>(())
//! ```

mod certificates;
mod definitions;
mod model;
mod monitoring;
mod names;
mod network;
mod options;
mod output;
mod rbac;
mod reference;
mod sample;
#[cfg(test)]
mod tests;
mod webhooks;
mod workload;

use std::time::Duration;

use clap::ValueEnum;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, ValidatingWebhook};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::Access;
use crate::coordination::Coordination;
use crate::crd::{self, CrdError};

pub use model::{MODEL, ModelError};
pub use monitoring::dashboard;
pub use names::{NAME_BYTES_MAX, Names};
pub use options::{ManifestsError, Options};
pub use output::{WriteError, stream, write_folder, write_pages};
pub use reference::reference;
pub use sample::sample;

/// An operator, as its installation sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Package {
    /// What all names begin with.
    pub name: String,
    /// Where it runs.
    pub namespace: String,
    pub image: String,
    /// What is started in the image; if empty, what the image starts by itself.
    pub command: Vec<String>,
    /// Arguments beside those that follow from the rest.
    pub arguments: Vec<String>,
    pub replicas: u32,
    /// What its controllers do. What the library does itself is added.
    pub accesses: Vec<Access>,
    pub definitions: Vec<CustomResourceDefinition>,
    /// The definitions, by name, whose objects the operator converts between versions.
    pub converted: Vec<String>,
    /// Webhooks as the API has them; of where they are called only the path counts, the rest is
    /// filled in.
    pub mutating: Vec<MutatingWebhook>,
    pub validating: Vec<ValidatingWebhook>,
    /// Objects to try it with. A definition that none is for gets one of its own.
    pub samples: Vec<Value>,
    /// How its replicas keep out of each other's way.
    pub coordination: Coordination,
    /// Whether it serves metrics, to those who may read them.
    pub metrics: bool,
    /// Whether connections are let in only where they have business.
    pub network_policy: bool,
    /// Whether Prometheus' operator, which must be in the cluster, is told to read the metrics.
    pub service_monitor: bool,
    /// Whether there is a dashboard for Grafana.
    pub dashboards: bool,
    pub watched: Watched,
    pub certificates: Certificates,
    /// How long it may take to stop.
    pub graceful_shutdown: Duration,
}

/// Where an operator looks for objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watched {
    /// In all namespaces.
    Everywhere,
    /// Only where it runs.
    Home,
    /// In these.
    Namespaces(Vec<String>),
}

/// Who makes the certificates of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certificates {
    /// The operator, which keeps them in a Secret.
    SelfMade,
    /// cert-manager, which must be in the cluster.
    CertManager,
}

/// One object to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub part: Part,
    pub object: Value,
}

/// What an object is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// The namespace it runs in
    Namespace,
    /// The definitions of its kinds
    Crds,
    /// Its service account, its roles, and roles for users of its kinds
    Rbac,
    /// The Service in front of its metrics
    Metrics,
    /// The Deployment that runs it
    Manager,
    /// Issuer and Certificates of cert-manager
    Certificates,
    /// The Service in front of its webhooks, and their configurations
    Webhooks,
    /// Who may connect to it; only with --network-policy
    NetworkPolicy,
    /// How Prometheus reads its metrics; only with --service-monitor
    Monitoring,
    /// Dashboards for Grafana; only with --dashboards
    Dashboards,
    /// Objects to try it with; only if asked for, or written into a folder of their own
    Samples,
}

/// Why there is nothing to be written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Choose another name.
    #[error(
        "name objects after {name:?}: it must begin with a letter, have only lower-case letters, \
         digits and dashes, and at most {NAME_BYTES_MAX} of them"
    )]
    Name { name: String },
    /// A definition is said to be converted that there is none of.
    #[error("convert {name:?}, which is none of the operator's definitions")]
    Converted { name: String },
    /// A cluster would refuse a definition.
    #[error(transparent)]
    Definition(#[from] CrdError),
}

impl Package {
    /// An operator of this name that has nothing yet, in a namespace of its own.
    pub fn new(name: &str) -> Self {
        Package {
            name: name.to_owned(),
            namespace: format!("{name}-system"),
            image: "controller:latest".to_owned(),
            command: Vec::new(),
            arguments: Vec::new(),
            replicas: 1,
            accesses: Vec::new(),
            definitions: Vec::new(),
            converted: Vec::new(),
            mutating: Vec::new(),
            validating: Vec::new(),
            samples: Vec::new(),
            coordination: Coordination::Leader,
            metrics: true,
            network_policy: false,
            service_monitor: false,
            dashboards: false,
            watched: Watched::Everywhere,
            certificates: Certificates::SelfMade,
            graceful_shutdown: Duration::from_secs(30),
        }
    }

    /// What its objects are called.
    pub fn names(&self) -> Names<'_> {
        Names::of(&self.name)
    }

    /// Its objects, in an order in which they can be created: that of `kustomize build`, and
    /// samples last. Equal packages give equal manifests.
    ///
    /// # Errors
    /// The package contradicts itself, or no object could be named after it.
    pub fn render(&self) -> Result<Vec<Manifest>, RenderError> {
        if !names::fit(&self.name) {
            return Err(RenderError::Name { name: self.name.clone() });
        }
        let is_unknown = |name: &&String| {
            !self.definitions.iter().any(|crd| crd.metadata.name.as_ref() == Some(*name))
        };
        if let Some(name) = self.converted.iter().find(is_unknown) {
            return Err(RenderError::Converted { name: name.clone() });
        }

        self.definitions.iter().try_for_each(crd::check)?;

        let mut manifests: Vec<Manifest> = [
            workload::namespace(self),
            network::policy(self),
            definitions::definitions(self),
            rbac::roles(self),
            monitoring::dashboards(self),
            workload::metrics_service(self),
            webhooks::service(self),
            workload::deployment(self),
            certificates::certificates(self),
            monitoring::service_monitor(self),
            webhooks::configurations(self),
            sample::samples(self),
        ]
        .into_iter()
        .flatten()
        .collect();
        for manifest in &mut manifests {
            label(&mut manifest.object, &self.name);
        }
        Ok(manifests)
    }

    /// Whether the API server calls it.
    pub fn is_called(&self) -> bool {
        !(self.mutating.is_empty() && self.validating.is_empty() && self.converted.is_empty())
    }
}

impl Manifest {
    fn new(part: Part, object: Value) -> Self {
        Manifest { part, object }
    }

    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }
}

/// Marks an object as belonging to the operator; labels that it has stay.
fn label(object: &mut Value, name: &str) {
    let labels = &mut object["metadata"]["labels"];
    for (key, value) in [("app.kubernetes.io/name", name), (MANAGED_BY, "kubewright")] {
        if labels[key].is_null() {
            labels[key] = json!(value);
        }
    }
}

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
