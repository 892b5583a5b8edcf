//! How a request is refused.

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_store::{Unavailable, UpdateError};

/// What the client is told instead of an object.
pub(crate) type Refusal = Box<Status>;

/// The store cannot take or prove a write now.
pub(crate) fn unavailable(error: &Unavailable) -> Refusal {
    tracing::warn!(%error, "the store is unavailable");
    Box::new(Status::service_unavailable("the storage is unavailable, try again later"))
}

/// The object is larger than the storage takes; in upstream's words, which are etcd's.
pub(crate) fn too_large() -> Refusal {
    let why = "etcdserver: request is too large";
    Box::new(Status::failure(500, Reason::Unknown, why))
}

/// Why an update did not happen, when the caller's own refusals are answers already.
pub(crate) fn of_update(error: UpdateError<Refusal>) -> Refusal {
    match error {
        UpdateError::Refused(refusal) => refusal,
        UpdateError::TooLarge { .. } => too_large(),
        UpdateError::Unavailable(error) => unavailable(&error),
    }
}

/// What upstream's storage says when a uid is expected that the object does not have.
pub(crate) fn precondition(
    resource: &GroupResource,
    name: &str,
    key: &str,
    what: &str,
    expected: &str,
    found: &str,
) -> Refusal {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {what} in precondition: {expected}, {what} in \
         object meta: {found}"
    );
    Box::new(Status::conflict(resource, name, why))
}
