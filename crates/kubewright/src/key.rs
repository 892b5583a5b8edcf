//! Which object of its kind.

use std::fmt;
use std::sync::Arc;

use kube::api::ObjectMeta;

/// The name of an object, and of its namespace if it has one.
///
/// ```
/// use kubewright::ObjectKey;
///
/// let key = ObjectKey::new(Some("shop"), "thor");
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "thor"));
/// assert_eq!(key.to_string(), "shop/thor");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(
    /// `namespace/name` or `name`: neither has a slash in it.
    Arc<str>,
);

impl ObjectKey {
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) => ObjectKey(format!("{namespace}/{name}").into()),
            None => ObjectKey(name.into()),
        }
    }

    /// The key of an object. Without a name, which a stored object always has, it is empty.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let name = metadata.name.as_deref().unwrap_or_default();
        ObjectKey::new(metadata.namespace.as_deref(), name)
    }

    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ObjectKey> for Arc<str> {
    fn from(key: ObjectKey) -> Self {
        key.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
