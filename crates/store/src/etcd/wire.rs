//! etcd's messages, and stubs of clients and servers, compiled from `proto/etcd.proto`; and the few
//! shapes of messages that a store sends. What an answer means is decided elsewhere.

use bytes::Bytes;

pub use generated::*;

#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "the generator knows no other, and gives no reasons"
)]
mod generated {
    tonic::include_proto!("etcdserverpb");
}

impl ResponseOp {
    /// The key-values of the first answer, when that answer is a read.
    pub fn into_kvs(self) -> Vec<KeyValue> {
        match self.response {
            Some(response_op::Response::ResponseRange(range)) => range.kvs,
            _ => Vec::new(),
        }
    }
}

impl Compare {
    /// Holds while `key` was last written at `revision`; 0 says that it does not exist.
    pub fn mod_revision(key: Bytes, revision: i64) -> Self {
        Self {
            result: compare::CompareResult::Equal.into(),
            target: compare::CompareTarget::Mod.into(),
            key,
            target_union: Some(compare::TargetUnion::ModRevision(revision)),
            range_end: Bytes::new(),
        }
    }

    /// Holds while `key` has been written `version` times since it came to be.
    pub fn version(key: Bytes, version: i64) -> Self {
        Self {
            result: compare::CompareResult::Equal.into(),
            target: compare::CompareTarget::Version.into(),
            key,
            target_union: Some(compare::TargetUnion::Version(version)),
            range_end: Bytes::new(),
        }
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(request: RangeRequest) -> Self {
        Self { request: Some(request_op::Request::RequestRange(request)) }
    }
}

impl From<PutRequest> for RequestOp {
    fn from(request: PutRequest) -> Self {
        Self { request: Some(request_op::Request::RequestPut(request)) }
    }
}

impl From<DeleteRangeRequest> for RequestOp {
    fn from(request: DeleteRangeRequest) -> Self {
        Self { request: Some(request_op::Request::RequestDeleteRange(request)) }
    }
}

impl From<WatchCreateRequest> for WatchRequest {
    fn from(request: WatchCreateRequest) -> Self {
        Self { request_union: Some(watch_request::RequestUnion::CreateRequest(request)) }
    }
}

impl From<WatchProgressRequest> for WatchRequest {
    fn from(request: WatchProgressRequest) -> Self {
        Self { request_union: Some(watch_request::RequestUnion::ProgressRequest(request)) }
    }
}

/// The revision that an answer was given at; etcd puts a header on every answer.
pub fn revision(header: Option<&ResponseHeader>) -> i64 {
    header.map_or(0, |header| header.revision)
}

/// The end of the range that holds exactly the keys starting with `prefix`: the prefix with its last
/// byte that can grow grown by one. etcd reads a single zero byte as "to the end of all keys".
pub fn prefix_end(prefix: &[u8]) -> Bytes {
    let Some(last) = prefix.iter().rposition(|&byte| byte < 0xff) else {
        return Bytes::from_static(&[0]);
    };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Bytes::from(end)
}

/// The first key after `key`.
pub fn key_after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}
