//! How etcd says no. Clients go by the code and by the text.

use tonic::{Code, Status};

use crate::RangeError;

pub(super) fn empty_key() -> Status {
    Status::invalid_argument("etcdserver: key is not provided")
}

pub(super) fn key_not_found() -> Status {
    Status::invalid_argument("etcdserver: key not found")
}

pub(super) fn value_provided() -> Status {
    Status::invalid_argument("etcdserver: value is provided")
}

pub(super) fn lease_provided() -> Status {
    Status::invalid_argument("etcdserver: lease is provided")
}

pub(super) fn too_many_operations() -> Status {
    Status::invalid_argument("etcdserver: too many operations in txn request")
}

pub(super) fn duplicate_key() -> Status {
    Status::invalid_argument("etcdserver: duplicate key given in txn request")
}

pub(super) fn too_large() -> Status {
    Status::invalid_argument("etcdserver: request is too large")
}

/// etcd has no such refusal: its keys are any bytes.
pub(super) fn key_not_text() -> Status {
    Status::invalid_argument("etcdserver: key is not UTF-8, as this server's must be")
}

pub(super) fn compacted() -> Status {
    Status::out_of_range("etcdserver: mvcc: required revision has been compacted")
}

pub(super) fn future() -> Status {
    Status::out_of_range("etcdserver: mvcc: required revision is a future revision")
}

pub(super) fn lease_not_found() -> Status {
    Status::not_found("etcdserver: requested lease not found")
}

pub(super) fn lease_exists() -> Status {
    Status::failed_precondition("etcdserver: lease already exists")
}

pub(super) fn lease_too_long() -> Status {
    Status::out_of_range("etcdserver: too large lease TTL")
}

pub(super) fn not_here(what: &str) -> Status {
    Status::new(Code::Unimplemented, format!("etcdserver: {what} is not part of this server"))
}

impl From<RangeError> for Status {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::Compacted { .. } => compacted(),
            RangeError::Future { .. } => future(),
        }
    }
}
