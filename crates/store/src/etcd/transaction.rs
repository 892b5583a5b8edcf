//! A write as etcd understands it: a transaction that compares what is expected, then writes, else
//! reads what is there instead. Pure; sending it is the writer's work.

use bytes::Bytes;

use super::wire::{
    Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp, ResponseOp,
    TxnRequest, TxnResponse, compare, response_op, revision,
};
use crate::Expect;

#[cfg(test)]
mod tests;

/// What to do to a key.
pub(super) enum Act {
    Put { value: Bytes, lease: i64 },
    Delete,
}

/// What etcd did.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// For a deletion, with what was deleted.
    Written { revision: i64, deleted: Option<KeyValue> },
    /// Nothing; this is what was there at `revision`.
    Conflict { found: Option<KeyValue>, revision: i64 },
}

pub(super) fn request(key: Bytes, expect: Expect, act: Act) -> TxnRequest {
    let compare = comparisons(&key, expect, &act);
    let read = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    let write: RequestOp = match act {
        Act::Put { value, lease } => {
            PutRequest { key, value, lease, ..PutRequest::default() }.into()
        }
        Act::Delete => DeleteRangeRequest { key, prev_kv: true, range_end: Bytes::new() }.into(),
    };
    TxnRequest { compare, success: vec![write], failure: vec![read.into()] }
}

pub(super) fn outcome(answer: TxnResponse) -> Outcome {
    let revision = revision(answer.header.as_ref());
    let response = answer.responses.into_iter().next();
    if !answer.succeeded {
        let found = response.and_then(|response| response.into_kvs().into_iter().next());
        return Outcome::Conflict { found, revision };
    }
    let deleted = match response {
        Some(ResponseOp {
            response: Some(response_op::Response::ResponseDeleteRange(deleted)),
        }) => deleted.prev_kvs.into_iter().next(),
        _ => None,
    };
    Outcome::Written { revision, deleted }
}

fn comparisons(key: &Bytes, expect: Expect, act: &Act) -> Vec<Compare> {
    let absent = || Compare::mod_revision(key.clone(), 0);
    let present = || Compare { result: compare::CompareResult::NotEqual.into(), ..absent() };
    match (expect, act) {
        (Expect::Anything, Act::Put { .. }) => Vec::new(),
        (Expect::Absent, Act::Put { .. }) => vec![absent()],
        (Expect::Anything, Act::Delete) => vec![present()],
        // Cannot hold: deleting what is not there is a conflict, too.
        (Expect::Absent, Act::Delete) => vec![absent(), present()],
        // etcd takes revision 0 for absence; nothing was ever written at it.
        (Expect::At(expected), _) => {
            vec![Compare::mod_revision(key.clone(), expected.get()), present()]
        }
    }
}
