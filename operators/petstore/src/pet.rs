//! Pets as objects of a cluster.
//!
//! There are two versions. [`v1alpha1`] is stored and is what the operator works with: the hub.
//! [`v1beta1`] says the same in other fields.

pub mod v1alpha1;
pub mod v1beta1;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResourceExt as _;
use kube::core::crd::merge_crds;
use kubewright::webhook::Conversion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is said of a pet without a name.
const NAMELESS: &str = "must not be empty: say what the pet is called";

/// What a pet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PetType {
    Dog,
    Cat,
    Bird,
    Reptile,
}

/// What has become of a pet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PetStatus {
    /// What the store calls the pet: a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `Ready` says whether the store has the pet as it is described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What converts one version to the other.
pub fn conversion() -> Conversion {
    Conversion::hub::<v1alpha1::Pet>().spoke::<v1beta1::Pet>().into()
}

/// The definition of both versions. Until it is said who converts, none is.
pub fn definition() -> CustomResourceDefinition {
    let versions = vec![v1alpha1::Pet::crd(), v1beta1::Pet::crd()];
    merge_crds(versions, "v1alpha1").expect("two versions of one kind")
}
