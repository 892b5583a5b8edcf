//! Whether a write may happen, and what is added to it: upstream's admission plugins, in
//! upstream's order.
//!
//! A plugin is a function in a table, which says for each resource whom to ask. Those that change
//! objects run first, on the object as the client sent it; those that only judge run last, on the
//! object as it would be stored. NamespaceLifecycle comes before all others, ResourceQuota after
//! them: what it charges would be charged in vain if somebody else refused.

mod certificates;
mod criteria;
mod default_class;
pub(crate) mod expression;
mod limit_ranger;
mod namespace_lifecycle;
mod node_restriction;
mod node_taint;
mod plugin;
mod pod_resize;
mod pod_security;
mod policy;
mod priority;
mod protection;
mod quota;
mod runtime_class;
mod service_account;
mod shown;
mod tolerations;
mod topology_labels;
mod volume_resize;
mod webhook;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kubewright_apimachinery::apply;
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};

use crate::authz::{Authorizer, escalation};
use crate::crd::Shelf;
use crate::index::{self, Store};
use crate::meta;
use crate::metrics::{Metrics, Step};
use crate::options::{DeleteOptions, WriteOptions};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::target::{ResourceTarget, Verb};
use crate::user::User;
use crate::warnings::Warnings;
pub use plugin::{Plugin, PluginSet, PluginsError};

use self::policy::Policies;
use self::webhook::{Rounds, Webhooks};

pub(crate) use self::webhook::Role;
pub use self::webhook::read_verdict;

/// How long a request may take that does not say how long.
const REQUEST_MAX: Duration = Duration::from_secs(34);

/// What is about to happen.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub resource: &'a Resource,
    /// The endpoint below the object: `status`, `binding`.
    pub part: Option<&'a str>,
    pub namespace: Option<&'a str>,
    /// Empty when a name is yet to be made.
    pub name: &'a str,
    pub operation: Operation,
    pub dry_run: bool,
    /// The object that is there, on updates and deletes.
    pub old: Option<&'a Value>,
    pub warnings: &'a Warnings,
    pub(crate) options: Options<'a>,
    /// When the client stops waiting.
    pub(crate) deadline: tokio::time::Instant,
}

/// How something is to happen.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
    /// Connections have none besides what they are about.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// When a request is given up, if its query says how long it may take, or if not.
pub(crate) fn deadline(asked: Option<Duration>) -> tokio::time::Instant {
    tokio::time::Instant::now() + asked.map_or(REQUEST_MAX, |asked| asked.min(REQUEST_MAX))
}

/// What plugins may look at besides.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub store: &'a Store,
    pub authorizer: &'a Authorizer,
    pub now: Timestamp,
}

/// An object that may be stored. Only `Admission::judge` makes one.
#[derive(Debug)]
pub struct Admitted(Value);

/// A plugin that may change the object.
type Mutate = fn(&Scene<'_>, &Attributes<'_>, &mut Value) -> Result<(), Refusal>;
/// A plugin that only judges the object.
type Judge = fn(&Scene<'_>, &Attributes<'_>, &Value) -> Result<(), Refusal>;

/// Who has a say about the objects of a resource.
#[derive(Clone, Copy, Default)]
struct Plugins {
    mutating: &'static [(Plugin, Mutate)],
    judging: &'static [(Plugin, Judge)],
}

/// Runs the plugins.
pub struct Admission {
    store: Store,
    authorizer: Arc<Authorizer>,
    enabled: PluginSet,
    /// Whether containers may be privileged. No plugin decides it: who asks for it where it is not
    /// so has written an object that is not valid.
    pub(crate) allows_privileged: bool,
    metrics: Arc<Metrics>,
    policies: Policies,
    webhooks: Webhooks,
}

impl Admission {
    pub(crate) fn new(
        store: Store,
        authorizer: Arc<Authorizer>,
        enabled: PluginSet,
        allows_privileged: bool,
        metrics: Arc<Metrics>,
        shelf: Arc<Shelf>,
    ) -> Self {
        let policies = {
            let (authorizer, metrics) = (Arc::clone(&authorizer), Arc::clone(&metrics));
            Policies::new(store.clone(), shelf, authorizer, enabled, metrics)
        };
        let webhooks = {
            let (authorizer, metrics) = (Arc::clone(&authorizer), Arc::clone(&metrics));
            Webhooks::new(store.clone(), authorizer, enabled, metrics)
        };
        Admission { store, authorizer, enabled, allows_privileged, metrics, policies, webhooks }
    }

    /// Lets the plugins change an object. Nothing comes of it that gives away more than the user
    /// has.
    pub(crate) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), Refusal> {
        let completed = async {
            let mut rounds = (policy::Rounds::default(), Rounds::default());
            if self.mutate_once(attributes, object, &mut rounds).await? {
                self.mutate_once(attributes, object, &mut rounds).await?;
            }
            if let Some(managed) = rounds.1.into_managed_fields() {
                restore_managed_fields(attributes, object, managed);
            }
            Ok(())
        };
        self.timed(Step::Admit, attributes.operation, completed).await?;
        self.check_escalation(attributes, object)
    }

    /// One round of changes. Tells whether others may want to see what came of it.
    async fn mutate_once(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        rounds: &mut (policy::Rounds, Rounds),
    ) -> Result<bool, Refusal> {
        let scene = self.scene();
        if self.enabled.has(Plugin::NamespaceLifecycle) {
            namespace_lifecycle::admit(&scene, attributes, Some(&*object))?;
        }
        if self.enabled.has(Plugin::ServiceAccount) {
            service_account::wait_for_default(&scene, attributes, object).await;
        }
        for (_, admit) in self.enabled.of(plugins(attributes.resource).mutating) {
            admit(&scene, attributes, object)?;
        }
        let is_changed = self.policies.mutate(attributes, object, &mut rounds.0).await?;
        self.webhooks.mutate(attributes, Some(object), &mut rounds.1).await?;
        Ok(rounds.1.begin_second(is_changed))
    }

    /// Lets the plugins judge an object that is valid otherwise.
    pub(crate) async fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: Value,
    ) -> Result<Admitted, Refusal> {
        self.policies.check_readable(attributes, &object)?;
        self.judge_shown(attributes, &object).await?;
        Ok(Admitted(object))
    }

    /// Lets the plugins judge an object by what is shown of it: its scale, for one.
    pub(crate) async fn judge_view(
        &self,
        attributes: &Attributes<'_>,
        shown: &Value,
        object: Value,
    ) -> Result<Admitted, Refusal> {
        self.judge_shown(attributes, shown).await?;
        Ok(Admitted(object))
    }

    async fn judge_shown(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Refusal> {
        let judged = async {
            let scene = self.scene();
            for (_, judge) in self.enabled.of(plugins(attributes.resource).judging) {
                judge(&scene, attributes, object)?;
            }
            self.policies.judge(attributes, Some(object)).await?;
            self.webhooks.judge(attributes, Some(object)).await?;
            match self.enabled.has(Plugin::ResourceQuota) {
                true => quota::charge(&scene, attributes, object).await,
                false => Ok(()),
            }
        };
        self.timed(Step::Validate, attributes.operation, judged).await
    }

    /// Lets the plugins judge a deletion.
    pub(crate) async fn judge_delete(&self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        let admitted = async {
            if self.enabled.has(Plugin::NamespaceLifecycle) {
                namespace_lifecycle::admit(&self.scene(), attributes, None)?;
            }
            if self.enabled.has(Plugin::NodeRestriction) {
                node_restriction::judge(&self.scene(), attributes, None)?;
            }
            self.webhooks.mutate(attributes, None, &mut Rounds::default()).await
        };
        self.timed(Step::Admit, attributes.operation, admitted).await?;
        let judged = async {
            self.policies.judge(attributes, None).await?;
            self.webhooks.judge(attributes, None).await
        };
        self.timed(Step::Validate, attributes.operation, judged).await
    }

    /// Lets the plugins judge what somebody wants to be connected to, and how.
    pub(crate) async fn judge_connect(
        &self,
        attributes: &Attributes<'_>,
        options: &mut Value,
    ) -> Result<(), Refusal> {
        let admitted = async {
            let mut rounds = (policy::Rounds::default(), Rounds::default());
            for _ in 0..2 {
                let is_changed = self.policies.mutate(attributes, options, &mut rounds.0).await?;
                self.webhooks.mutate(attributes, Some(options), &mut rounds.1).await?;
                if !rounds.1.begin_second(is_changed) {
                    break;
                }
            }
            Ok(())
        };
        self.timed(Step::Admit, attributes.operation, admitted).await?;
        let judged = async {
            self.policies.judge(attributes, Some(options)).await?;
            self.webhooks.judge(attributes, Some(options)).await
        };
        self.timed(Step::Validate, attributes.operation, judged).await
    }

    /// Takes a step, and notes how long it took.
    async fn timed(
        &self,
        step: Step,
        operation: Operation,
        work: impl Future<Output = Result<(), Refusal>>,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        let done = work.await;
        self.metrics.admitted(step, operation, done.is_err(), begun.elapsed());
        done
    }

    /// Upstream asks this where roles and bindings are stored, before they are validated.
    fn check_escalation(&self, attributes: &Attributes<'_>, new: &Value) -> Result<(), Refusal> {
        let gvr = &attributes.resource.gvr;
        if gvr.group != "rbac.authorization.k8s.io" {
            return Ok(());
        }
        let (verb, name) = match attributes.operation {
            // The path of a create names nothing, so a permission for one name does not help.
            Operation::Create => (Verb::Create, ""),
            _ => (Verb::Update, attributes.name),
        };
        let target = ResourceTarget {
            verb,
            group: gvr.group.clone(),
            version: gvr.version.clone(),
            namespace: attributes.namespace.map(str::to_owned),
            resource: gvr.resource.clone(),
            name: name.to_owned(),
            ..ResourceTarget::default()
        };
        escalation::check(&self.authorizer, attributes.user, &target, new, attributes.old)
    }

    fn scene(&self) -> Scene<'_> {
        Scene { store: &self.store, authorizer: &self.authorizer, now: index::now(&self.store) }
    }
}

/// Whom to ask about a resource, in upstream's order.
fn plugins(resource: &Resource) -> Plugins {
    match (resource.gvr.group.as_str(), resource.gvr.resource.as_str()) {
        ("", "pods") => Plugins {
            mutating: &[
                (Plugin::LimitRanger, limit_ranger::admit),
                (Plugin::ServiceAccount, service_account::admit),
                (Plugin::NodeRestriction, node_restriction::admit),
                (Plugin::Priority, priority::admit),
                (Plugin::DefaultTolerationSeconds, tolerations::admit),
                (Plugin::RuntimeClass, runtime_class::admit),
                (Plugin::PodTopologyLabels, topology_labels::admit),
            ],
            judging: &[
                (Plugin::LimitRanger, limit_ranger::judge),
                (Plugin::ServiceAccount, service_account::judge),
                (Plugin::PodSecurity, pod_security::judge),
                (Plugin::RuntimeClass, runtime_class::judge),
                (Plugin::PodResizeValidator, pod_resize::judge),
            ],
        },
        ("", "namespaces") => Plugins {
            mutating: &[],
            judging: &[(Plugin::PodSecurity, pod_security::judge_namespace)],
        },
        ("", "replicationcontrollers" | "podtemplates")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs" | "cronjobs") => Plugins {
            mutating: &[],
            judging: &[(Plugin::PodSecurity, pod_security::judge_template)],
        },
        ("", "nodes") => Plugins {
            mutating: &[
                (Plugin::NodeRestriction, node_restriction::admit),
                (Plugin::TaintNodesByCondition, node_taint::admit),
            ],
            judging: &[],
        },
        ("", "persistentvolumeclaims") => Plugins {
            mutating: &[
                (Plugin::NodeRestriction, node_restriction::admit),
                (Plugin::DefaultStorageClass, default_class::admit_claim),
                (Plugin::StorageObjectInUseProtection, protection::admit),
            ],
            judging: &[
                (Plugin::LimitRanger, limit_ranger::judge),
                (Plugin::PersistentVolumeClaimResize, volume_resize::judge),
            ],
        },
        ("", "persistentvolumes") | ("storage.k8s.io", "volumeattributesclasses") => Plugins {
            mutating: &[(Plugin::StorageObjectInUseProtection, protection::admit)],
            judging: &[],
        },
        ("networking.k8s.io", "ingresses") => Plugins {
            mutating: &[(Plugin::DefaultIngressClass, default_class::admit_ingress)],
            judging: &[],
        },
        ("scheduling.k8s.io", "priorityclasses") => {
            Plugins { mutating: &[], judging: &[(Plugin::Priority, priority::judge)] }
        }
        ("", "serviceaccounts")
        | ("coordination.k8s.io", "leases")
        | ("resource.k8s.io", "resourceslices")
        | ("storage.k8s.io", "csinodes") => Plugins {
            mutating: &[(Plugin::NodeRestriction, node_restriction::admit)],
            judging: &[],
        },
        ("certificates.k8s.io", "certificatesigningrequests") => Plugins {
            mutating: &[(Plugin::NodeRestriction, node_restriction::admit)],
            judging: &[
                (Plugin::CertificateApproval, certificates::judge_approval),
                (Plugin::CertificateSigning, certificates::judge_signing),
                (Plugin::CertificateSubjectRestriction, certificates::judge_subject),
            ],
        },
        _ => Plugins::default(),
    }
}

impl Options<'_> {
    /// The options as webhooks and policies see them.
    fn tree(self, operation: Operation) -> Value {
        let (kind, options) = match self {
            Options::None => return Value::Null,
            Options::Write(options) => {
                let kind = match operation {
                    Operation::Create => "CreateOptions",
                    _ => "UpdateOptions",
                };
                (kind, serde_json::to_value(&options.stated))
            }
            Options::Delete(options) => ("DeleteOptions", serde_json::to_value(options)),
        };
        let mut tree = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if let (Some(tree), Ok(Value::Object(options))) = (tree.as_object_mut(), options) {
            tree.extend(options);
        }
        tree
    }
}

impl Attributes<'_> {
    /// The namespace of a request, which for a namespace is the one that it is about.
    fn namespace_or_own(&self) -> &str {
        let gvr = &self.resource.gvr;
        match self.namespace {
            Some(namespace) => namespace,
            None if gvr.group.is_empty() && gvr.resource == "namespaces" => self.name,
            None => "",
        }
    }

    /// Refuses what nobody waits for any more.
    fn check_time(&self) -> Result<(), Refusal> {
        match tokio::time::Instant::now() < self.deadline {
            true => Ok(()),
            false => {
                let why = "request did not complete within requested timeout";
                Err(Box::new(Status::timeout(why, 0)))
            }
        }
    }

    /// Whether the object itself is created, rather than something below it.
    fn creates(&self) -> bool {
        self.operation == Operation::Create && self.part.is_none()
    }

    /// A refusal by a plugin.
    fn forbid(&self, object: Option<&Value>, why: impl std::fmt::Display) -> Refusal {
        let of = |field| object.map_or("", |object| meta::text(object, field));
        // A name that is yet to be made is known by what it will begin with.
        let names = [self.name, of("name"), of("generateName"), "Unknown"];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        Box::new(Status::forbidden(&self.resource.group_resource(), name, why))
    }
}

impl Scene<'_> {
    /// The object with this key.
    fn get(&self, key: &str) -> Option<Value> {
        self.store.get(key).and_then(|rev| index::object(&rev))
    }

    /// The objects whose keys begin so.
    fn list(&self, prefix: &str) -> Vec<Value> {
        let found = self.store.snapshot().range(prefix, None, None);
        found.iter().filter_map(|rev| index::object(rev)).collect()
    }
}

impl Admitted {
    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_object(self) -> Value {
        self.0
    }
}

/// Puts managed fields back that a webhook has spoilt.
fn restore_managed_fields(attributes: &Attributes<'_>, object: &mut Value, before: Option<Value>) {
    let Some(entries) = object["metadata"].get("managedFields").and_then(Value::as_array) else {
        return;
    };
    let Err(error) = apply::check_managed_fields(entries) else { return };
    let metadata = meta::of(object);
    match before {
        Some(before) => metadata.insert("managedFields".to_owned(), before),
        None => metadata.shift_remove("managedFields"),
    };
    attributes.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
         outdated mutating admission controller; please fix your requests: {error}"
    ));
}

/// The items of a list, of which there are none when it is absent.
fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a value, empty when it is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The list at a field, which is made where it is missing.
fn list_of<'a>(object: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    let list = &mut object[field];
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().expect("it was made a list")
}
