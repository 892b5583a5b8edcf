//! The names of types and of the collections that hold them: group, version, kind, resource.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::json::go;

/// The `apiVersion` of an object: `v1`, `apps/v1`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
}

/// A type of object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// A collection of objects, as a path of the API names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    pub group: String,
    pub version: String,
    pub resource: String,
}

/// A type of object in whichever version: `Deployment.apps`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    pub group: String,
    pub kind: String,
}

/// A collection in whichever version: `deployments.apps`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: String,
    pub resource: String,
}

/// An `apiVersion` with more than one slash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct ParseGroupVersionError(pub String);

/// Why an object does not say what type it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpretError {
    /// The document, or one of the two fields, is of the wrong JSON type.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Type(String),
    #[error("{0}")]
    GroupVersion(ParseGroupVersionError),
}

impl GroupVersion {
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        GroupVersion { group: group.into(), version: version.into() }
    }

    /// Reads an `apiVersion`. Empty text is the empty group and version.
    pub fn parse(text: &str) -> Result<Self, ParseGroupVersionError> {
        if text == "/" {
            return Ok(GroupVersion::default());
        }
        match text.split_once('/') {
            None => Ok(GroupVersion::new("", text)),
            Some((group, version)) if !version.contains('/') => {
                Ok(GroupVersion::new(group, version))
            }
            Some(_) => Err(ParseGroupVersionError(text.to_owned())),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.version.is_empty()
    }

    pub fn with_kind(&self, kind: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, &self.version, kind)
    }

    pub fn with_resource(&self, resource: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, &self.version, resource)
    }
}

impl GroupVersionKind {
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// What an object says it is, by its `apiVersion` and `kind`; either may be missing.
    ///
    /// This is the first look that the API server takes at a body. It is taken with Go's own
    /// decoder, which finds fields in any case: `Kind` and `KIND` do for `kind`.
    pub fn interpret(object: &Value) -> Result<Self, InterpretError> {
        const TARGET: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let fields = match object {
            Value::Object(fields) => fields,
            Value::Null => return Ok(GroupVersionKind::default()),
            other => {
                let found = go::word(other);
                return Err(InterpretError::Type(format!(
                    "json: cannot unmarshal {found} into Go value of type {TARGET}"
                )));
            }
        };
        let (mut api_version, mut kind) = ("", "");
        for (key, value) in fields {
            let (field, target) = if key.eq_ignore_ascii_case("apiVersion") {
                ("apiVersion", &mut api_version)
            } else if key.eq_ignore_ascii_case("kind") {
                ("kind", &mut kind)
            } else {
                continue;
            };
            match value {
                Value::String(text) => *target = text,
                Value::Null => {}
                other => {
                    let found = go::word(other);
                    return Err(InterpretError::Type(format!(
                        "json: cannot unmarshal {found} into Go struct field .{field} of type string"
                    )));
                }
            }
        }
        let version = GroupVersion::parse(api_version).map_err(InterpretError::GroupVersion)?;
        Ok(version.with_kind(kind))
    }

    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.version.is_empty() && self.kind.is_empty()
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }

    /// What stands in the `apiVersion` of such an object.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }
}

impl GroupVersionResource {
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        GroupVersionResource {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
        }
    }

    /// Reads `resource.version.group`; `None` when there are fewer than two dots.
    pub fn parse(text: &str) -> Option<Self> {
        let (resource, rest) = text.split_once('.')?;
        let (version, group) = rest.split_once('.')?;
        Some(GroupVersionResource::new(group, version, resource))
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

impl GroupKind {
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        GroupKind { group: group.into(), kind: kind.into() }
    }

    /// Reads `Kind.group`, or `Kind` of the core group.
    pub fn parse(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        GroupKind::new(group, kind)
    }

    pub fn with_version(&self, version: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, version, &self.kind)
    }
}

impl GroupResource {
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        GroupResource { group: group.into(), resource: resource.into() }
    }

    /// Reads `resource.group`, or `resource` of the core group.
    pub fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        GroupResource::new(group, resource)
    }

    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.resource.is_empty()
    }

    pub fn with_version(&self, version: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, version, &self.resource)
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.version),
            group => write!(f, "{group}/{}", self.version),
        }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.resource, &self.group)
    }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    match group {
        "" => f.write_str(name),
        group => write!(f, "{name}.{group}"),
    }
}

/// Orders versions by how far they are from change, the steadiest greatest: `v2`, `v1`,
/// `v1beta2`, `v1alpha1`, then names that are no such versions, `a` before `b`.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    match (Maturity::parse(left), Maturity::parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => right.cmp(left),
    }
}

/// A version such as `v1beta2`, in the order of its fields.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Maturity {
    stage: Stage,
    major: u64,
    minor: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

impl Maturity {
    fn parse(version: &str) -> Option<Self> {
        let digits = version.strip_prefix('v')?;
        let (major, rest) = split_number(digits)?;
        let (stage, rest) = if let Some(rest) = rest.strip_prefix("alpha") {
            (Stage::Alpha, rest)
        } else if let Some(rest) = rest.strip_prefix("beta") {
            (Stage::Beta, rest)
        } else {
            return rest.is_empty().then_some(Maturity { stage: Stage::Stable, major, minor: 0 });
        };
        let (minor, rest) = split_number(rest)?;
        rest.is_empty().then_some(Maturity { stage, major, minor })
    }
}

/// A number, and what follows it.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    // Go reads them as signed.
    let number = digits.parse::<i64>().ok()?;
    Some((number.unsigned_abs(), rest))
}

#[cfg(test)]
mod tests;
