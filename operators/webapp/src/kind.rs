//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of its parts follow from it: those of Services and of a StatefulSet's pods are short.
const NAMED: &str =
    "self.metadata.name.size() <= 43 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')";
const NAME: &str = "metadata.name: must have at most 43 lower case letters, digits and -, with a \
                    letter first, since Services and pods are named after it: choose another one";
const HOST_NAMED: &str =
    r"self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
const HOST: &str = "must be the name of a host in lower case, as app.acme.com";
const IMAGE: &str = "must be an image, as registry.acme.com/app/app:v1.4, without spaces";

/// A web application with its database.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "workloads.apps.acme.com", version = "v1alpha1", kind = "WebApp", namespaced)]
#[kube(status = "WebAppStatus", derive = "PartialEq")]
#[kube(validation = Rule::new(NAMED).message(NAME))]
#[kube(scale(
    spec_replicas_path = ".spec.webAppReplicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn = r#"{"name":"Tier", "type":"string", "jsonPath":".spec.deploymentTier"}"#)]
#[kube(printcolumn = r#"{"name":"Host", "type":"string", "jsonPath":".spec.webAppHostname"}"#)]
#[kube(printcolumn = r#"{"name":"Replicas", "type":"integer", "jsonPath":".spec.webAppReplicas"}"#)]
#[kube(
    printcolumn = r#"{"name":"Available", "type":"integer", "jsonPath":".status.availableReplicas"}"#
)]
#[kube(
    printcolumn = r#"{"name":"Ready", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
// By the schema and not by a webhook: it holds for the scale, too, and while nobody is there.
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.deploymentTier != 'stg' || self.webAppReplicas >= 2",
        "message": "the tier stg needs at least 2 replicas",
        "fieldPath": ".webAppReplicas",
    },
    {
        "rule": "self.deploymentTier != 'prod' || self.webAppReplicas >= 3",
        "message": "the tier prod needs at least 3 replicas",
        "fieldPath": ".webAppReplicas",
    },
]))]
pub struct WebAppSpec {
    /// How much it gets, and how many replicas it needs at least: `dev` 1, `stg` 2, `prod` 3.
    pub deployment_tier: Tier,
    /// Where it is reached, as `app.acme.com`.
    #[schemars(extend("maxLength" = 253, "x-kubernetes-validations" = [
        {"rule": HOST_NAMED, "message": HOST},
    ]))]
    pub web_app_hostname: String,
    /// What runs. It listens at port 8080.
    #[schemars(extend("maxLength" = 512, "x-kubernetes-validations" = [
        {"rule": r"self.matches('^\\S+$')", "message": IMAGE},
    ]))]
    pub web_app_image: String,
    /// How often it runs.
    #[serde(default = "two")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000))]
    pub web_app_replicas: i32,
}

fn two() -> i32 {
    2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Dev,
    Stg,
    Prod,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    /// Whether all that it consists of was made.
    #[serde(default)]
    pub created: bool,
    /// How many pods run it, of whatever version.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// How many of them have the version that is wanted.
    #[serde(default)]
    pub updated_replicas: i32,
    /// How many of them have been ready for long enough.
    #[serde(default)]
    pub available_replicas: i32,
    /// Whether the database answers.
    #[serde(default)]
    pub database_ready: bool,
    /// Which pods they are, for those who scale it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// `Ready` says whether all replicas of the version that is wanted are available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
