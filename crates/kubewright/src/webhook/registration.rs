//! What the API server must know to call a webhook.

use std::fmt;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Resource;
use serde_json::{Value, json};

use super::CONVERT_PATH;
use super::review::Operation;
use crate::manifest::Names;

/// Where cert-manager reads which certificate's authority to put into a configuration.
pub const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";

/// One webhook, as the server is to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    pub purpose: Purpose,
    /// Unique among the webhooks of an operator, and a domain of at least three labels.
    pub name: String,
    pub path: String,
    /// `*` for all; empty for the core group.
    pub group: String,
    pub version: String,
    /// The resource, such as `pods`, `pods/status` or `*`.
    pub plural: String,
    pub kind: String,
    pub operations: Vec<Operation>,
    pub side_effects: SideEffects,
    pub failure_policy: FailurePolicy,
    pub match_policy: MatchPolicy,
    pub reinvocation: Reinvocation,
    /// After which the server takes it for failed.
    pub timeout: Duration,
    pub namespace_selector: Option<LabelSelector>,
    pub object_selector: Option<LabelSelector>,
    pub match_conditions: Vec<MatchCondition>,
}

/// What a webhook is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To complete objects.
    Mutate,
    /// To judge them.
    Validate,
    /// To bring objects of a definition from version to version.
    Convert,
}

/// What answering does besides answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SideEffects {
    #[default]
    None,
    /// There are some, but none for a trial.
    NoneOnDryRun,
}

/// What becomes of requests whose webhook does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    #[default]
    Fail,
    Ignore,
}

/// Whether a webhook is asked about requests in other versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchPolicy {
    /// Yes, by the version that it asked for.
    #[default]
    Equivalent,
    Exact,
}

/// Whether a webhook is asked again when one after it has changed the object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reinvocation {
    #[default]
    Never,
    IfNeeded,
}

/// Where the server finds webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At a Service in the cluster.
    Service { namespace: String, name: String, port: u16 },
    /// Anywhere, such as a process on the same machine: `https://127.0.0.1:9443`.
    Url(String),
}

/// Whom the server believes to be a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Servers that these authorities vouch for, in PEM.
    Bundle(String),
    /// Servers with this Certificate of cert-manager's, which brings the authority in.
    CertManager { namespace: String, certificate: String },
    /// Nobody yet: the bundle is put in when there is one.
    Later,
}

/// The objects by which a server learns of webhooks; what an operator has none of is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Configurations {
    pub mutating: Option<MutatingWebhookConfiguration>,
    pub validating: Option<ValidatingWebhookConfiguration>,
}

impl Registration {
    /// A webhook of a kind, with the defaults that controller-runtime's users know.
    pub fn of<K: Resource<DynamicType = ()>>(purpose: Purpose) -> Self {
        let (group, version) = (K::group(&()), K::version(&()));
        let (kind, plural) = (K::kind(&()), K::plural(&()));
        let path = match purpose {
            Purpose::Convert => CONVERT_PATH.to_owned(),
            Purpose::Mutate | Purpose::Validate => {
                let group = group.replace('.', "-");
                format!("/{purpose}-{group}-{version}-{}", kind.to_lowercase())
            }
        };
        let domain = if group.is_empty() { "core" } else { &group };
        Registration {
            name: format!("{purpose}.{plural}.{version}.{domain}"),
            ..Registration::new(purpose, &path, &group, &version, &plural, &kind)
        }
    }

    /// A webhook of any resources, at any path.
    pub fn new(
        purpose: Purpose,
        path: &str,
        group: &str,
        version: &str,
        plural: &str,
        kind: &str,
    ) -> Self {
        Registration {
            purpose,
            name: format!("{}.webhook.kubewright", path.trim_start_matches('/').replace('/', ".")),
            path: path.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            operations: vec![Operation::Create, Operation::Update],
            side_effects: SideEffects::default(),
            failure_policy: FailurePolicy::default(),
            match_policy: MatchPolicy::default(),
            reinvocation: Reinvocation::default(),
            timeout: Duration::from_secs(10),
            namespace_selector: None,
            object_selector: None,
            match_conditions: Vec::new(),
        }
    }

    /// The name of the definition whose objects are converted.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The `spec.conversion` of the definition whose objects are converted.
    pub fn conversion(&self, place: &Place, trust: &Trust) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": place.client_config(&self.path, trust),
                "conversionReviewVersions": ["v1"],
            },
        })
    }

    fn rules(&self) -> Option<Vec<RuleWithOperations>> {
        let operation = |operation: &Operation| operation.as_str().to_owned();
        Some(vec![RuleWithOperations {
            api_groups: Some(vec![self.group.clone()]),
            api_versions: Some(vec![self.version.clone()]),
            operations: Some(self.operations.iter().map(operation).collect()),
            resources: Some(vec![self.plural.clone()]),
            scope: None,
        }])
    }

    fn conditions(&self) -> Option<Vec<MatchCondition>> {
        (!self.match_conditions.is_empty()).then(|| self.match_conditions.clone())
    }

    fn timeout_seconds(&self) -> Option<i32> {
        i32::try_from(self.timeout.as_secs()).ok()
    }

    /// As the API has it, if it completes objects.
    pub fn mutating(&self, place: &Place, trust: &Trust) -> MutatingWebhook {
        MutatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: place.client_config(&self.path, trust),
            failure_policy: Some(format!("{:?}", self.failure_policy)),
            match_conditions: self.conditions(),
            match_policy: Some(format!("{:?}", self.match_policy)),
            name: self.name.clone(),
            namespace_selector: self.namespace_selector.clone(),
            object_selector: self.object_selector.clone(),
            reinvocation_policy: Some(format!("{:?}", self.reinvocation)),
            rules: self.rules(),
            side_effects: format!("{:?}", self.side_effects),
            timeout_seconds: self.timeout_seconds(),
        }
    }

    /// As the API has it, if it judges changes.
    pub fn validating(&self, place: &Place, trust: &Trust) -> ValidatingWebhook {
        ValidatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: place.client_config(&self.path, trust),
            failure_policy: Some(format!("{:?}", self.failure_policy)),
            match_conditions: self.conditions(),
            match_policy: Some(format!("{:?}", self.match_policy)),
            name: self.name.clone(),
            namespace_selector: self.namespace_selector.clone(),
            object_selector: self.object_selector.clone(),
            rules: self.rules(),
            side_effects: format!("{:?}", self.side_effects),
            timeout_seconds: self.timeout_seconds(),
        }
    }
}

impl Configurations {
    /// The configurations of an operator, under the names that its manifests have.
    pub fn new(
        operator: &str,
        registrations: &[Registration],
        place: &Place,
        trust: &Trust,
    ) -> Self {
        let of = |purpose| registrations.iter().filter(move |it| it.purpose == purpose);
        let mutating: Vec<_> = of(Purpose::Mutate).map(|it| it.mutating(place, trust)).collect();
        let validating: Vec<_> =
            of(Purpose::Validate).map(|it| it.validating(place, trust)).collect();
        let names = Names::of(operator);
        let metadata = |name: String| ObjectMeta {
            name: Some(name),
            annotations: trust
                .annotation()
                .map(|value| [(INJECT_CA_FROM.to_owned(), value)].into_iter().collect()),
            ..ObjectMeta::default()
        };
        Configurations {
            mutating: (!mutating.is_empty()).then(|| MutatingWebhookConfiguration {
                metadata: metadata(names.mutating_configuration()),
                webhooks: Some(mutating),
            }),
            validating: (!validating.is_empty()).then(|| ValidatingWebhookConfiguration {
                metadata: metadata(names.validating_configuration()),
                webhooks: Some(validating),
            }),
        }
    }
}

impl Place {
    fn client_config(&self, path: &str, trust: &Trust) -> WebhookClientConfig {
        let ca_bundle = match trust {
            Trust::Bundle(pem) => Some(ByteString(pem.clone().into_bytes())),
            Trust::CertManager { .. } | Trust::Later => None,
        };
        match self {
            Place::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: name.clone(),
                    namespace: namespace.clone(),
                    path: Some(path.to_owned()),
                    port: Some(i32::from(*port)),
                }),
                url: None,
            },
            Place::Url(base) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{}{path}", base.trim_end_matches('/'))),
            },
        }
    }
}

impl Trust {
    /// What [`INJECT_CA_FROM`] says, on configurations and definitions, if anything.
    pub fn annotation(&self) -> Option<String> {
        match self {
            Trust::CertManager { namespace, certificate } => {
                Some(format!("{namespace}/{certificate}"))
            }
            Trust::Bundle(_) | Trust::Later => None,
        }
    }
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Service { namespace, name, port } => {
                write!(f, "{name}.{namespace}.svc:{port}")
            }
            Place::Url(base) => f.write_str(base),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Mutate => "mutate",
            Purpose::Validate => "validate",
            Purpose::Convert => "convert",
        })
    }
}
