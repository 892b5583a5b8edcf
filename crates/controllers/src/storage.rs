//! Claims and the volumes that they are bound to.
//!
//! `claims` finds each claim a volume or has one provided, `volumes` says what a volume is worth when
//! its claim comes or goes, `local_path` provides volumes that are directories of this machine, and
//! `ephemeral` makes claims for pods that bring them along.
//! What is in use and may not go is `protection`'s.

mod claims;
mod ephemeral;
mod local_path;
mod matching;
mod volumes;

pub(crate) use claims::controller as claims;
pub(crate) use ephemeral::controller as ephemeral;
pub use local_path::standard_class;
pub(crate) use local_path::{cleanup as local_path_cleanup, controller as local_path};
pub(crate) use volumes::controller as volumes;

/// That a claim, or the binding of a volume, is of this controller's making and not of a person's.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// That a claim was bound once: it is not bound anew if it loses its volume.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Who is to provide a volume for a claim; the second is the older word for it.
const PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// Who has provided a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The node that the scheduler has chosen for the first pod with a claim.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The older word for a storage class.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
