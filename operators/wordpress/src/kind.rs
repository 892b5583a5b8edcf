//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of its parts may begin with it, and those of Services are short.
const NAMED: &str =
    "self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')";
const NAME: &str = "metadata.name: must have at most 47 lower case letters, digits and -, with a \
                    letter first, since Services are named after it: choose another one";

/// A site of WordPress, with its database.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Wordpress", plural = "wordpresses")]
#[kube(namespaced, status = "WordpressStatus", derive = "PartialEq")]
#[kube(validation = Rule::new(NAMED).message(NAME))]
#[kube(printcolumn = r#"{"name":"Service", "type":"string", "jsonPath":".status.service"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.sqlRootPasswordSecretRef) || has(self.sqlrootpassword)",
    "message": "say where the password of the database is: sqlRootPasswordSecretRef",
}]))]
pub struct WordpressSpec {
    /// The password of the database's root, for everybody to read. Better is
    /// `sqlRootPasswordSecretRef`, which counts if both are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("minLength" = 1))]
    pub sqlrootpassword: Option<String>,
    /// Where the password of the database's root is: in a Secret of the same namespace.
    #[serde(default, rename = "sqlRootPasswordSecretRef", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretKey")]
    pub sql_root_password_secret_ref: Option<SecretKey>,
}

/// A value in a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SecretKey {
    /// The Secret.
    #[schemars(extend("minLength" = 1))]
    pub name: String,
    /// The key in it.
    #[serde(default = "password")]
    #[schemars(extend("minLength" = 1))]
    pub key: String,
}

fn password() -> String {
    "password".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct WordpressStatus {
    /// The Service at which the site is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// `Ready` says whether the site can be visited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
