//! What users write, and what they are told.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What users want. Comments become the documentation of the API: `kubectl explain` shows them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "sea.my.domain", version = "v1", kind = "Ferry", namespaced)]
#[kube(status = "FerryStatus", derive = "PartialEq")]
#[serde(rename_all = "camelCase")]
pub struct FerrySpec {
    /// A field to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FerryStatus {
    /// `Ready` says whether all is as the spec has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
