//! The object that is reconciled, as others refer to it.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

#[derive(Debug, Clone)]
pub(crate) struct Subject {
    reference: ObjectReference,
    /// Where objects of its kind are.
    path: String,
    deleting: bool,
    generation: Option<i64>,
}

impl Subject {
    pub(crate) fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let metadata = object.meta();
        let reference = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            ..ObjectReference::default()
        };
        Subject {
            reference,
            path: K::url_path(&(), metadata.namespace.as_deref()),
            deleting: metadata.deletion_timestamp.is_some(),
            generation: metadata.generation,
        }
    }

    pub(super) fn reference(&self) -> &ObjectReference {
        &self.reference
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn name(&self) -> &str {
        self.reference.name.as_deref().unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deleting
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.reference.namespace.as_deref()
    }

    pub(super) fn uid(&self) -> &str {
        self.reference.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// What makes it the controller of another object. Its deletion in the foreground waits for
    /// that one.
    pub(super) fn owner(&self) -> OwnerReference {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        OwnerReference {
            api_version: part(&self.reference.api_version),
            kind: part(&self.reference.kind),
            name: part(&self.reference.name),
            uid: part(&self.reference.uid),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}
