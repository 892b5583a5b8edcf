//! Definitions of an operator's own kinds, checked as the API server will check them.
//!
//! `kube` derives a definition from a type: names, columns, subresources, schema, and CEL rules with
//! `KubeSchema`. It does not say whether the API server takes it; that is learnt when somebody
//! installs it. [`definition`] says it at once. It runs the server's own rules over the definition:
//! whether the schema is structural, whether defaults fit, whether every CEL rule parses, has the
//! right types and stays within its cost. That cannot be done when a type is compiled, since the
//! schema of a field comes from the field's type, wherever that is; so it is done by a test of one
//! line, and whenever manifests are rendered.
//!
//! ```
//! use kube::CustomResource;
//! use kubewright::crd;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
//! struct GreetingSpec {
//!     name: String,
//! }
//!
//! // In a test:
//! crd::definition::<Greeting>().unwrap();
//! ```
//!
//! What Rust says and Kubernetes does not understand is put in Kubernetes' words first, see
//! [`complete`]. An enum whose variants have content becomes a union in the form of Kubernetes' own
//! kinds by [`Union`]; `kube` has an answer only for enums that are tagged by the name of a field.
//!
//! ```
//! use kubewright::crd::Union;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(Union)]
//! enum Strategy {
//!     Recreate,
//!     RollingUpdate(RollingUpdate),
//! }
//!
//! #[derive(Deserialize, Serialize, JsonSchema)]
//! #[serde(rename_all = "camelCase")]
//! struct RollingUpdate {
//!     max_surge: u8,
//! }
//!
//! let strategy = Strategy::RollingUpdate(RollingUpdate { max_surge: 1 });
//! let object = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
//! assert_eq!(serde_json::to_value(strategy).unwrap(), object);
//! ```

mod complete;
#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::CustomResourceExt;
use kube::core::crd::{MergeError, merge_crds};
use kubewright_apimachinery::schema::crd as rules;
use serde_json::json;

pub use complete::complete;
pub use kubewright_derive::Union;

/// Why a definition cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// The server would refuse it; it is the author's to change.
    #[error("define {name}: {}", Faults(faults))]
    Refused {
        name: String,
        /// Where and why, in the server's words.
        faults: Vec<String>,
    },
    /// Versions that cannot be versions of one kind.
    #[error("make one definition of several versions")]
    Versions(#[source] MergeError),
}

/// The definition of a kind, complete and checked.
///
/// # Errors
/// The API server would refuse it.
///
/// # Panics
/// Where `kube` panics: on enums that it cannot make a schema of.
pub fn definition<K: CustomResourceExt>() -> Result<CustomResourceDefinition, CrdError> {
    checked(K::crd())
}

/// One definition of several versions of a kind, of which one is stored; complete and checked.
///
/// ```
/// use kube::CustomResourceExt;
/// use kubewright::crd::{self, CrdError};
///
/// fn definition<V1, V2>() -> Result<(), CrdError>
/// where
///     V1: CustomResourceExt,
///     V2: CustomResourceExt,
/// {
///     let definition = crd::versions(vec![V1::crd(), V2::crd()], "v2")?;
///     assert!(definition.spec.versions[0].storage);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// They are not of one kind, or the API server would refuse the result.
pub fn versions(
    definitions: Vec<CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, CrdError> {
    checked(merge_crds(definitions, stored).map_err(CrdError::Versions)?)
}

fn checked(mut definition: CustomResourceDefinition) -> Result<CustomResourceDefinition, CrdError> {
    complete(&mut definition);
    check(&definition)?;
    Ok(definition)
}

/// Whether the API server takes a new definition.
///
/// # Errors
/// It does not; all that is wrong with it is told.
pub fn check(definition: &CustomResourceDefinition) -> Result<(), CrdError> {
    let mut value = json!(definition);
    rules::default(&mut value);
    let faults: Vec<_> = match rules::Definition::parse(&value) {
        Err(error) => vec![error.to_string()],
        Ok(mut parsed) => {
            rules::prepare_create(&mut parsed);
            rules::validate_create(&parsed).iter().map(ToString::to_string).collect()
        }
    };
    if faults.is_empty() {
        return Ok(());
    }
    let name = definition.metadata.name.clone().unwrap_or_default();
    Err(CrdError::Refused { name, faults })
}

struct Faults<'a>(&'a [String]);

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [fault] => f.write_str(fault),
            faults => faults.iter().try_for_each(|fault| write!(f, "\n  {fault}")),
        }
    }
}
