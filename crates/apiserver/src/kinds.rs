//! What is special about each built-in kind: its defaults, what a request may change, and when an
//! object is valid.
//!
//! Everything else about a kind is in the table of built-in types; this is what upstream has as
//! code. Rules work on objects in normal form that say their version and kind. Defaults are filled
//! in by changing the tree, in the version of the request; everything after that happens in the
//! kind's hub version (in which it is stored), and validity is judged on the typed object, so that
//! a misspelt field does not compile. Metadata is the same for all kinds and not looked at.

mod admission;
mod admission_policy;
mod api_service;
mod certificate_signing_request;
mod check;
mod condition;
mod config_map;
mod controller_revision;
mod cron_job;
mod csi;
mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod device;
mod edit;
mod endpoint_slice;
mod endpoints;
mod event;
mod flow_control;
mod horizontal_pod_autoscaler;
mod ingress;
pub(crate) mod internal;
pub(crate) mod ip;
mod ip_address;
mod job;
mod lease;
mod limit_range;
mod namespace;
mod network_policy;
mod node;
mod node_selector;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
pub(crate) mod pod_spec;
mod pod_template;
mod priority_class;
mod rbac;
mod replica_set;
mod replication_controller;
mod resource_name;
mod resource_quota;
mod runtime_class;
mod secret;
pub(crate) mod service;
mod service_account;
mod stateful_set;
mod storage_class;
mod volume_attachment;
mod webhook_configuration;
mod workload;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kubewright_apimachinery::field::Error;
use kubewright_apimachinery::name;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::user::User;
use crate::warnings::Warnings;

pub(crate) use api_service::local_condition;
pub(crate) use job::label as label_job;

/// The rules of one kind.
pub struct Rules {
    /// Fills in what the client left out, in the version that the object says it is.
    pub default: fn(&mut Value),
    /// Why an object cannot be read although it fits its type: some annotations are fields to
    /// upstream.
    pub unreadable: fn(&Value) -> Option<String>,
    /// What makes a name.
    pub name: name::Rule,
    /// Clears what a create may not set, and numbers the first generation where the kind has one.
    /// The object already has its uid and creation time.
    pub prepare_create: fn(&mut Value, &Context<'_>),
    /// Restores what an update through this endpoint may not change, and counts the generation.
    pub prepare_update: fn(&mut Value, &Value, &Context<'_>),
    pub validate: fn(&Value) -> Vec<Error>,
    /// What may not become of the old object, given second; replaces `validate`, which it calls if
    /// need be.
    pub validate_update: fn(&Value, &Value) -> Vec<Error>,
    /// What the client should know although the object is accepted; on updates with the old one.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Endpoints below the object that take the whole object, `status` first of all.
    pub parts: &'static [(&'static str, Part)],
    /// Fields that an apply through this endpoint has no say over, as dotted paths.
    pub reset: &'static [&'static str],
    /// What a field selector may ask for besides the name and the namespace.
    pub fields: &'static [Field],
    /// An update need not say which version of the object it changes.
    pub unconditional_update: bool,
    /// An update of what is not there creates it.
    pub create_on_update: bool,
}

/// The rules of an endpoint below an object: `status`, `finalize`, `approval`.
pub struct Part {
    /// Restores everything but what this endpoint is for.
    pub prepare_update: fn(&mut Value, &Value, &Context<'_>),
    pub validate_update: fn(&Value, &Value) -> Vec<Error>,
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// See [`Rules::reset`].
    pub reset: &'static [&'static str],
}

/// Something a field selector may ask for.
#[derive(Debug)]
pub enum Field {
    /// The field at this dotted path, empty when absent.
    At(&'static str),
    /// Something by this name, which is made from the object in its hub version.
    Made(&'static str, fn(&Value) -> String),
}

/// Who asks, when, and what they are told besides.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub user: &'a User,
    pub now: Timestamp,
    pub warnings: &'a Warnings,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// A kind without any rules of its own.
    pub const PLAIN: Rules = Rules {
        default: |_| (),
        unreadable: |_| None,
        name: name::Rule::Subdomain,
        prepare_create: |_, _| (),
        prepare_update: |_, _, _| (),
        validate: |_| Vec::new(),
        validate_update: |_, _| Vec::new(),
        warnings: |_, _| Vec::new(),
        parts: &[],
        reset: &[],
        fields: &[],
        unconditional_update: true,
        create_on_update: false,
    };

    /// The rules of an endpoint below the object.
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|(part, _)| *part == name).map(|(_, part)| part)
    }
}

impl Part {
    /// An endpoint without any rules of its own.
    pub const PLAIN: Part = Part {
        prepare_update: |_, _, _| (),
        validate_update: |_, _| Vec::new(),
        warnings: |_, _| Vec::new(),
        reset: &[],
    };

    /// The status of a kind that keeps it apart from the spec.
    const STATUS: Part = Part { prepare_update: edit::keep_spec, reset: &["spec"], ..Part::PLAIN };
}

/// The rules of a built-in kind, or `None` where it has none of its own.
pub fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, kind) {
        ("", "ConfigMap") => &config_map::RULES,
        ("", "Endpoints") => &endpoints::RULES,
        ("", "Event") => &event::RULES,
        ("", "LimitRange") => &limit_range::RULES,
        ("", "Namespace") => &namespace::RULES,
        ("", "Node") => &node::RULES,
        ("", "PersistentVolume") => &persistent_volume::RULES,
        ("", "PersistentVolumeClaim") => &persistent_volume_claim::RULES,
        ("", "Pod") => &pod::RULES,
        ("", "PodTemplate") => &pod_template::RULES,
        ("", "ReplicationController") => &replication_controller::RULES,
        ("", "ResourceQuota") => &resource_quota::RULES,
        ("", "Secret") => &secret::RULES,
        ("", "Service") => &service::RULES,
        ("", "ServiceAccount") => &service_account::RULES,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &admission_policy::MUTATING,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            &admission_policy::binding::MUTATING
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            &webhook_configuration::MUTATING
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            &admission_policy::VALIDATING
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            &admission_policy::binding::VALIDATING
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            &webhook_configuration::VALIDATING
        }
        ("apiregistration.k8s.io", "APIService") => &api_service::RULES,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &custom_resource_definition::RULES,
        ("apps", "ControllerRevision") => &controller_revision::RULES,
        ("apps", "DaemonSet") => &daemon_set::RULES,
        ("apps", "Deployment") => &deployment::RULES,
        ("apps", "ReplicaSet") => &replica_set::RULES,
        ("apps", "StatefulSet") => &stateful_set::RULES,
        ("autoscaling", "HorizontalPodAutoscaler") => &horizontal_pod_autoscaler::RULES,
        ("batch", "CronJob") => &cron_job::RULES,
        ("batch", "Job") => &job::RULES,
        ("certificates.k8s.io", "CertificateSigningRequest") => &certificate_signing_request::RULES,
        ("coordination.k8s.io", "Lease") => &lease::RULES,
        ("discovery.k8s.io", "EndpointSlice") => &endpoint_slice::RULES,
        ("events.k8s.io", "Event") => &event::STRICT,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &flow_control::SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &flow_control::LEVEL,
        ("networking.k8s.io", "IPAddress") => &ip_address::RULES,
        ("networking.k8s.io", "Ingress") => &ingress::RULES,
        ("networking.k8s.io", "IngressClass") => &ingress::CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &network_policy::RULES,
        ("networking.k8s.io", "ServiceCIDR") => &ip_address::CIDR,
        ("node.k8s.io", "RuntimeClass") => &runtime_class::RULES,
        ("policy", "PodDisruptionBudget") => &pod_disruption_budget::RULES,
        ("rbac.authorization.k8s.io", "ClusterRole") => &rbac::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => &rbac::CLUSTER_ROLE_BINDING,
        ("rbac.authorization.k8s.io", "Role") => &rbac::ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding") => &rbac::ROLE_BINDING,
        ("resource.k8s.io", "DeviceClass") => &device::CLASS,
        ("resource.k8s.io", "ResourceClaim") => &device::CLAIM,
        ("resource.k8s.io", "ResourceClaimTemplate") => &device::CLAIM_TEMPLATE,
        ("resource.k8s.io", "ResourceSlice") => &device::SLICE,
        ("scheduling.k8s.io", "PriorityClass") => &priority_class::RULES,
        ("storage.k8s.io", "CSIDriver") => &csi::DRIVER,
        ("storage.k8s.io", "CSINode") => &csi::NODE,
        ("storage.k8s.io", "CSIStorageCapacity") => &csi::CAPACITY,
        ("storage.k8s.io", "StorageClass") => &storage_class::RULES,
        ("storage.k8s.io", "VolumeAttachment") => &volume_attachment::RULES,
        ("storage.k8s.io", "VolumeAttributesClass") => &storage_class::ATTRIBUTES,
        _ => return None,
    })
}

/// The typed form of an object in normal form.
fn typed<K: DeserializeOwned>(object: &Value) -> K {
    K::deserialize(object).unwrap_or_else(|_| {
        let mut object = object.clone();
        date(&mut object);
        K::deserialize(object).expect("an object in normal form has the form of its type")
    })
}

/// Puts Go's first moment where a time should be and is not. Upstream takes such objects; the types
/// of conditions and of series of events know no lack of time.
fn date(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(date),
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "lastTransitionTime" | "lastObservedTime" if value.is_null() => {
                        *value = "0001-01-01T00:00:00Z".into();
                    }
                    _ => date(value),
                }
            }
        }
        _ => {}
    }
}
