use super::super::wire::{Event, KeyValue, ResponseHeader, WatchResponse, event::EventType};
use super::{Ended, Feed, Step};

fn at(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..ResponseHeader::default() })
}

fn put(key: &'static str, revision: i64) -> Event {
    let kv = KeyValue { key: key.into(), mod_revision: revision, ..KeyValue::default() };
    Event { r#type: EventType::Put.into(), kv: Some(kv), prev_kv: None }
}

fn events(header: i64, events: Vec<Event>) -> WatchResponse {
    WatchResponse { header: at(header), events, ..WatchResponse::default() }
}

fn fragment(answer: WatchResponse) -> WatchResponse {
    WatchResponse { fragment: true, ..answer }
}

fn progress(revision: i64) -> WatchResponse {
    // A requested progress answer speaks for all watches of the stream.
    WatchResponse { header: at(revision), watch_id: -1, ..WatchResponse::default() }
}

/// Feeds `answers` to a stream that started after revision 10.
fn check<const N: usize>(answers: [WatchResponse; N], expected: [Result<Step, Ended>; N]) {
    let mut feed = Feed::after(10);
    let steps = answers.map(|answer| feed.accept(answer));
    assert_eq!(steps, expected);
}

#[test]
fn the_first_answer_only_says_that_the_watch_exists() {
    let created = WatchResponse { header: at(40), created: true, ..WatchResponse::default() };
    check([created], [Ok(Step::Wait)]);
}

#[test]
fn events_are_handed_out_as_they_come() {
    check(
        [events(11, vec![put("a", 11)]), events(13, vec![put("b", 12), put("c", 13)])],
        [Ok(Step::Events(vec![put("a", 11)])), Ok(Step::Events(vec![put("b", 12), put("c", 13)]))],
    );
}

#[test]
fn the_header_of_an_answer_with_events_is_not_progress() {
    check(
        [events(500, vec![put("a", 11)]), events(500, vec![put("b", 300)])],
        [Ok(Step::Events(vec![put("a", 11)])), Ok(Step::Events(vec![put("b", 300)]))],
    );
}

#[test]
fn fragments_are_one_answer() {
    check(
        [
            fragment(events(12, vec![put("a", 11), put("b", 12)])),
            fragment(events(12, vec![put("c", 12)])),
            events(12, vec![put("d", 12)]),
            events(13, vec![put("e", 13)]),
        ],
        [
            Ok(Step::Wait),
            Ok(Step::Wait),
            Ok(Step::Events(vec![put("a", 11), put("b", 12), put("c", 12), put("d", 12)])),
            Ok(Step::Events(vec![put("e", 13)])),
        ],
    );
}

#[test]
fn several_events_share_a_revision() {
    check(
        [events(11, vec![put("a", 11), put("b", 11)])],
        [Ok(Step::Events(vec![put("a", 11), put("b", 11)]))],
    );
}

#[test]
fn events_already_handed_out_are_dropped() {
    check(
        [events(11, vec![put("a", 9), put("b", 10)]), events(12, vec![put("b", 10), put("c", 12)])],
        [Ok(Step::Wait), Ok(Step::Events(vec![put("c", 12)]))],
    );
}

#[test]
fn progress_moves_forward_only() {
    check(
        [progress(15), progress(15), progress(12), progress(16)],
        [Ok(Step::Progress(15)), Ok(Step::Wait), Ok(Step::Wait), Ok(Step::Progress(16))],
    );
}

#[test]
fn a_stream_that_goes_back_in_time_is_left() {
    check(
        [events(14, vec![put("a", 13), put("b", 12)])],
        [Err(Ended::OutOfOrder { applied: 13, revision: 12 })],
    );
}

#[test]
fn compaction_is_told_apart_from_other_cancellations() {
    let compacted = WatchResponse {
        canceled: true,
        compact_revision: 20,
        cancel_reason: "etcdserver: mvcc: required revision has been compacted".into(),
        ..WatchResponse::default()
    };
    let canceled = WatchResponse {
        canceled: true,
        cancel_reason: "etcdserver: no leader".into(),
        ..WatchResponse::default()
    };
    check(
        [compacted, canceled],
        [
            Err(Ended::Compacted { compacted: 20 }),
            Err(Ended::Canceled { reason: "etcdserver: no leader".into() }),
        ],
    );
}
