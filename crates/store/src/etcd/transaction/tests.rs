use bytes::Bytes;

use super::super::wire::{
    Compare, DeleteRangeResponse, KeyValue, RangeResponse, ResponseHeader, ResponseOp, TxnRequest,
    TxnResponse, compare, request_op, response_op,
};
use super::{Act, Outcome, outcome, request};
use crate::{Expect, Revision};

const PUT: fn() -> Act = || Act::Put { value: Bytes::from_static(b"v"), lease: 7 };
const DELETE: fn() -> Act = || Act::Delete;

/// A transaction as one line: what is compared, then what is done.
fn summary(request: &TxnRequest) -> String {
    let compare = |compare: &Compare| {
        let operator = match compare.result() {
            compare::CompareResult::Equal => "==",
            compare::CompareResult::NotEqual => "!=",
            other => panic!("{other:?}"),
        };
        let Some(compare::TargetUnion::ModRevision(revision)) = compare.target_union else {
            panic!("only revisions are compared");
        };
        format!("mod{operator}{revision}")
    };
    let compared: Vec<_> = request.compare.iter().map(compare).collect();
    let done = match request.success[0].request.as_ref().expect("there is an operation") {
        request_op::Request::RequestPut(put) => format!("put lease={}", put.lease),
        request_op::Request::RequestDeleteRange(delete) => {
            assert!(delete.range_end.is_empty() && delete.prev_kv);
            "delete".to_owned()
        }
        other => panic!("{other:?}"),
    };
    format!("{} -> {done}", compared.join(" "))
}

#[test]
fn expectations_become_comparisons() {
    let check = |expect, act: fn() -> Act, expected: &str| {
        let request = request(Bytes::from_static(b"/k"), expect, act());
        assert_eq!(summary(&request).trim_start(), expected);
        assert!(matches!(
            &request.failure[0].request,
            Some(request_op::Request::RequestRange(range)) if range.key == "/k"
        ));
    };
    check(Expect::Anything, PUT, "-> put lease=7");
    check(Expect::Absent, PUT, "mod==0 -> put lease=7");
    check(Expect::At(Revision::new(5)), PUT, "mod==5 mod!=0 -> put lease=7");
    check(Expect::At(Revision::new(0)), PUT, "mod==0 mod!=0 -> put lease=7");
    check(Expect::Anything, DELETE, "mod!=0 -> delete");
    check(Expect::Absent, DELETE, "mod==0 mod!=0 -> delete");
    check(Expect::At(Revision::new(5)), DELETE, "mod==5 mod!=0 -> delete");
}

#[test]
fn answers_become_outcomes() {
    let check = |succeeded, response, expected| {
        let answer = TxnResponse {
            header: Some(ResponseHeader { revision: 9, ..ResponseHeader::default() }),
            succeeded,
            responses: vec![ResponseOp { response: Some(response) }],
        };
        assert_eq!(outcome(answer), expected);
    };
    let kv = || KeyValue { mod_revision: 4, ..KeyValue::default() };
    let read = |kvs| {
        response_op::Response::ResponseRange(RangeResponse { kvs, ..RangeResponse::default() })
    };
    let put = response_op::Response::ResponsePut(Default::default());
    let deleted = response_op::Response::ResponseDeleteRange(DeleteRangeResponse {
        deleted: 1,
        prev_kvs: vec![kv()],
        ..DeleteRangeResponse::default()
    });
    check(true, put, Outcome::Written { revision: 9, deleted: None });
    check(true, deleted, Outcome::Written { revision: 9, deleted: Some(kv()) });
    check(false, read(vec![kv()]), Outcome::Conflict { found: Some(kv()), revision: 9 });
    check(false, read(vec![]), Outcome::Conflict { found: None, revision: 9 });
}
