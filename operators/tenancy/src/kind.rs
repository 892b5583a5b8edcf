//! The custom resource.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FIXED: &str = "cannot be changed: make another AcmeNamespace";
const OF_CLUSTER: &str =
    "must not begin with kube-, which is the cluster's own: choose another name";
const LABEL: &str = "must be the name of a namespace, as app-y: lower case letters, digits and -, with \
                     a letter or digit first and last";
const USER: &str = "must be a user's name, as sam: letters, digits, -, _ and ., with a letter or digit \
                    first and last, since it becomes a label";

/// A namespace for a team, with an administrator and limits.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "tenancy.acme.com", version = "v1alpha1", kind = "AcmeNamespace")]
#[kube(status = "AcmeNamespaceStatus", derive = "PartialEq")]
#[kube(printcolumn = r#"{"name":"Namespace", "type":"string", "jsonPath":".spec.namespaceName"}"#)]
#[kube(printcolumn = r#"{"name":"Admin", "type":"string", "jsonPath":".spec.adminUsername"}"#)]
#[kube(printcolumn = r#"{"name":"Tier", "type":"string", "jsonPath":".spec.deploymentTier"}"#)]
#[kube(printcolumn = r#"{"name":"Phase", "type":"string", "jsonPath":".status.phase"}"#)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct AcmeNamespaceSpec {
    /// What the namespace is called. It cannot be changed.
    #[schemars(extend("maxLength" = 63, "x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": FIXED},
        {"rule": "!self.startsWith('kube-')", "message": OF_CLUSTER},
        {"rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')", "message": LABEL},
    ]))]
    pub namespace_name: String,
    /// Who may do everything in it: a user that the identity provider knows. It becomes a label,
    /// too, so it looks like one.
    #[schemars(extend("maxLength" = 63, "x-kubernetes-validations" = [
        {"rule": "self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')", "message": USER},
    ]))]
    pub admin_username: String,
    /// How much may run in it: `dev`, which is the default, `stg` or `prod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Tier", extend("default" = "dev"))]
    pub deployment_tier: Option<Tier>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    #[default]
    Dev,
    Stg,
    Prod,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AcmeNamespaceStatus {
    /// `CreationInProgress` until all is there, then `Created`. For people: nothing is decided by
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Phase")]
    pub phase: Option<Phase>,
    /// `Ready` says whether all is there, `Billed` whether billing has heard of the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    CreationInProgress,
    Created,
}

impl AcmeNamespace {
    pub fn tier(&self) -> Tier {
        self.spec.deployment_tier.unwrap_or_default()
    }
}

/// As it is written in the object.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Dev => "dev",
            Tier::Stg => "stg",
            Tier::Prod => "prod",
        })
    }
}
