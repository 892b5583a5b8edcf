//! The versions of a kind, and the way between them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::schema::Schema;
use crate::gvk::GroupVersion;
use crate::{builtin, conversion};

/// What the field manager must know of a kind besides the objects themselves.
///
/// Managed fields name fields of the version through which they were written. To compare them
/// with a change made through another version, the object is converted to theirs.
pub trait Versions {
    /// The schema of `api_version`.
    ///
    /// # Errors
    /// [`ConvertError::Missing`] when there is no such version any more.
    fn schema(&self, api_version: &str) -> Result<&Schema, ConvertError>;

    /// `object`, which is of any version of this kind, in `api_version`.
    ///
    /// # Errors
    /// As [`Versions::schema`], or when the conversion fails.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;
}

/// Why there is no object in the version asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version is gone. Whoever wrote through it owns nothing any more.
    #[error("find the version {0}")]
    Missing(String),
    /// The write cannot go on.
    #[error("{0}")]
    Failed(String),
}

/// The versions of a built-in kind, by the table of types and the conversions between them.
#[derive(Debug)]
pub struct BuiltinVersions {
    /// By `apiVersion`; a schema is made when it is first asked for.
    schemas: BTreeMap<String, (&'static builtin::Kind, OnceLock<Schema>)>,
}

impl BuiltinVersions {
    /// Of the kind of this name, in whichever groups it is served.
    pub fn new(kind: &str) -> Self {
        let same_kind = builtin::kinds().iter().filter(|known| known.kind == kind);
        let schemas = same_kind.map(|known| {
            let version = GroupVersion::new(known.group, known.version).to_string();
            (version, (known, OnceLock::new()))
        });
        BuiltinVersions { schemas: schemas.collect() }
    }

    fn kind(
        &self,
        api_version: &str,
    ) -> Result<&(&'static builtin::Kind, OnceLock<Schema>), ConvertError> {
        self.schemas.get(api_version).ok_or_else(|| ConvertError::Missing(api_version.to_owned()))
    }
}

impl Versions for BuiltinVersions {
    fn schema(&self, api_version: &str) -> Result<&Schema, ConvertError> {
        let (kind, schema) = self.kind(api_version)?;
        Ok(schema.get_or_init(|| Schema::builtin(kind)))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let missing = || ConvertError::Missing(api_version.to_owned());
        let (kind, _) = self.kind(object["apiVersion"].as_str().unwrap_or_default())?;
        // What merging and pruning left is not in the form that conversions read.
        let object = builtin::decode(kind, object.clone());
        let object = object.map_err(|error| ConvertError::Failed(error.to_string()))?.value;
        let to = GroupVersion::parse(api_version).map_err(|_| missing())?;
        conversion::convert(object, &to).map_err(|_| missing())
    }
}

/// The versions of a custom resource whose CRD converts nothing but `apiVersion`.
#[derive(Debug, Clone)]
pub struct SameInAllVersions {
    schemas: BTreeMap<String, Schema>,
}

impl SameInAllVersions {
    /// From each version, as `group/version`, and its schema.
    pub fn new(schemas: impl IntoIterator<Item = (String, Schema)>) -> Self {
        SameInAllVersions { schemas: schemas.into_iter().collect() }
    }
}

impl Versions for SameInAllVersions {
    fn schema(&self, api_version: &str) -> Result<&Schema, ConvertError> {
        // Upstream's converter of custom resources does not count a version it never heard of as
        // missing: such an entry must be removed before the object can be applied again.
        self.schemas.get(api_version).ok_or_else(|| {
            ConvertError::Failed(format!(
                "request to convert CR to an invalid group/version: {api_version}"
            ))
        })
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        self.schema(api_version)?;
        let mut converted = object.clone();
        if let Some(map) = converted.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::from(api_version));
        }
        Ok(converted)
    }
}

/// An object together with its version.
#[derive(Clone)]
pub(super) struct Versioned<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) object: Cow<'a, Value>,
}

impl<'a> Versioned<'a> {
    pub(super) fn borrowed(api_version: &'a str, object: &'a Value) -> Self {
        Versioned { api_version: Cow::Borrowed(api_version), object: Cow::Borrowed(object) }
    }

    pub(super) fn owned(api_version: &str, object: Value) -> Versioned<'static> {
        Versioned { api_version: Cow::Owned(api_version.to_owned()), object: Cow::Owned(object) }
    }

    pub(super) fn into_owned(self) -> Versioned<'static> {
        Versioned {
            api_version: Cow::Owned(self.api_version.into_owned()),
            object: Cow::Owned(self.object.into_owned()),
        }
    }
}
