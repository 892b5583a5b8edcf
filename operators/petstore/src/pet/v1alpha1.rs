//! Pets as they are stored.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NAMELESS, PetStatus, PetType};

/// Of what the format `date-time` takes, that which is a moment.
const MOMENT: &str = r"^[0-8]\d{3}-.{8}:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$";

/// A pet that is kept in the store.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "petstore.example.com", version = "v1alpha1", kind = "Pet", namespaced)]
#[kube(status = "PetStatus", derive = "PartialEq")]
#[kube(printcolumn = r#"{"name":"Pet", "type":"string", "jsonPath":".spec.name"}"#)]
#[kube(printcolumn = r#"{"name":"Type", "type":"string", "jsonPath":".spec.type"}"#)]
#[kube(printcolumn = r#"{"name":"Birthday", "type":"string", "jsonPath":".spec.birthday"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"ID", "type":"string", "jsonPath":".status.id", "priority":1}"#)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
pub struct PetSpec {
    /// What the pet is called.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": NAMELESS}]))]
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: PetType,
    /// When it was born, as `2021-04-01T00:00:00Z`.
    // The format alone lets through what nobody can read: offsets of days, picoseconds.
    #[schemars(with = "Time", extend("pattern" = MOMENT))]
    pub birthday: Timestamp,
}
