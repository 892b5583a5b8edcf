//! What the objects of an operator are called: by the renderer, and by the operator itself when it
//! looks for them.

/// The longest name of an operator with which the longest name of a Service still is one.
pub const NAME_BYTES_MAX: usize = 63 - "-controller-manager-metrics-service".len();

/// The names of an operator's objects, all of which begin with its own.
///
/// ```
/// use kubewright::manifest::Names;
///
/// let names = Names::of("greeter");
/// assert_eq!(names.service_account(), "greeter-controller-manager");
/// assert_eq!(names.webhook_service(), "greeter-webhook-service");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a>(&'a str);

impl<'a> Names<'a> {
    pub fn of(operator: &'a str) -> Self {
        Names(operator)
    }

    /// The Deployment, and what else is the only one of its kind.
    pub fn deployment(self) -> String {
        self.with("controller-manager")
    }

    pub fn service_account(self) -> String {
        self.with("controller-manager")
    }

    pub fn manager_role(self) -> String {
        self.with("manager-role")
    }

    pub fn metrics_service(self) -> String {
        self.with("controller-manager-metrics-service")
    }

    pub fn webhook_service(self) -> String {
        self.with("webhook-service")
    }

    /// The Secret with the certificate of the webhooks, whoever makes it.
    pub fn webhook_secret(self) -> String {
        self.with("webhook-server-cert")
    }

    /// The Secret with the certificate of the metrics, which cert-manager makes.
    pub fn metrics_secret(self) -> String {
        self.with("metrics-server-cert")
    }

    pub fn mutating_configuration(self) -> String {
        self.with("mutating-webhook-configuration")
    }

    pub fn validating_configuration(self) -> String {
        self.with("validating-webhook-configuration")
    }

    /// The DNS names of the webhooks' Service, for which its certificate must be.
    pub fn webhook_hosts(self, namespace: &str) -> [String; 2] {
        hosts(&self.webhook_service(), namespace)
    }

    pub(super) fn metrics_hosts(self, namespace: &str) -> [String; 2] {
        hosts(&self.metrics_service(), namespace)
    }

    pub(super) fn with(self, rest: &str) -> String {
        format!("{}-{rest}", self.0)
    }
}

fn hosts(service: &str, namespace: &str) -> [String; 2] {
    let host = format!("{service}.{namespace}.svc");
    [host.clone(), host + ".cluster.local"]
}

/// Whether objects can be named after an operator of this name; Services are the pickiest.
pub(super) fn fit(name: &str) -> bool {
    let is_inner = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_inner)
}
