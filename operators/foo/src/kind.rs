//! The custom resource.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Without it, nobody may define kinds in a group of Kubernetes'.
const APPROVAL: (&str, &str) = (
    "api-approved.kubernetes.io",
    "unapproved, experimental-only; please get an approval from Kubernetes API reviewers if you're \
     trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups",
);

const NAME: &str = "metadata.name: must have at most 63 characters, since it becomes a label of the \
                    pods: choose a shorter one";
const DEPLOYMENT_NAMED: &str =
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
const DEPLOYMENT: &str = "must be the name of a Deployment, as example-foo: lower case letters, \
                          digits, - and ., with a letter or digit first and last";

/// A Deployment of nginx.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced)]
#[kube(status = "FooStatus", derive = "PartialEq")]
#[kube(validation = Rule::new("self.metadata.name.size() <= 63").message(NAME))]
#[kube(
    printcolumn = r#"{"name":"Deployment", "type":"string", "jsonPath":".spec.deploymentName"}"#
)]
#[kube(printcolumn = r#"{"name":"Replicas", "type":"integer", "jsonPath":".spec.replicas"}"#)]
#[kube(
    printcolumn = r#"{"name":"Available", "type":"integer", "jsonPath":".status.availableReplicas"}"#
)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// What the Deployment is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("maxLength" = 253, "x-kubernetes-validations" = [
        {"rule": DEPLOYMENT_NAMED, "message": DEPLOYMENT},
    ]))]
    pub deployment_name: Option<String>,
    /// How many replicas it has, from 1 to 10; one unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many replicas of the Deployment are available.
    #[serde(default)]
    pub available_replicas: i32,
}

/// The definition of Foos.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = Foo::crd();
    let (name, text) = APPROVAL;
    let annotations = definition.metadata.annotations.get_or_insert_default();
    annotations.insert(name.to_owned(), text.to_owned());
    definition
}
