use super::super::wire::{
    KeyValue, RangeResponse, ResponseHeader, ResponseOp, TxnResponse, response_op,
};
use super::Turn;

fn moved(revision: i64) -> TxnResponse {
    TxnResponse {
        header: Some(ResponseHeader { revision, ..ResponseHeader::default() }),
        succeeded: true,
        responses: Vec::new(),
    }
}

fn beaten(revision: i64, version: i64) -> TxnResponse {
    let range = RangeResponse {
        kvs: vec![KeyValue { version, ..KeyValue::default() }],
        ..RangeResponse::default()
    };
    let answer = ResponseOp { response: Some(response_op::Response::ResponseRange(range)) };
    TxnResponse { succeeded: false, responses: vec![answer], ..moved(revision) }
}

#[track_caller]
fn check(turn: Turn, answer: TxnResponse, next: Turn, compact_to: Option<i64>) {
    assert_eq!(turn.advance(answer), (next, compact_to));
}

#[test]
fn the_first_turn_only_starts_the_clock() {
    check(Turn::default(), moved(100), Turn { version: 1, revision: 100 }, None);
}

#[test]
fn a_turn_compacts_to_the_revision_of_the_turn_before() {
    let turn = Turn { version: 1, revision: 100 };
    check(turn, moved(250), Turn { version: 2, revision: 250 }, Some(100));
}

#[test]
fn a_server_that_was_beaten_waits_for_its_next_turn() {
    let turn = Turn { version: 1, revision: 100 };
    let next = Turn { version: 7, revision: 250 };
    check(turn, beaten(250, 7), next, None);
    check(next, moved(400), Turn { version: 8, revision: 400 }, Some(250));
}
