use super::*;

/// What a resolver sends that asks for an address, with room for 1232 bytes.
fn asked(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1];
    write_name(&mut bytes, name);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn a_question_is_read_in_small_letters() {
    let question = Question::read(&asked("Web.Default.svc.cluster.local", A)).expect("a question");
    assert_eq!(question.name, "web.default.svc.cluster.local");
    assert_eq!((question.id, question.kind, question.bytes_max), (0x1234, A, 1232));
    assert!(question.is_recursive);
}

#[test]
fn an_answer_repeats_the_question_and_has_the_records() {
    let question = Question::read(&asked("a.b", A)).expect("a question");
    let record =
        Record { name: "a.b".to_owned(), seconds: 5, data: Data::A(Ipv4Addr::new(10, 0, 0, 1)) };
    let answer = Answer { records: vec![record], ..Answer::default() };
    let expected = [
        &[0x12, 0x34, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0][..],
        &[1, b'a', 1, b'b', 0, 0, 1, 0, 1],
        &[1, b'a', 1, b'b', 0, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, 1],
    ]
    .concat();
    assert_eq!(question.answer(&answer, UDP_BYTES_MAX), expected);
}

#[test]
fn what_does_not_fit_is_asked_for_again_over_a_connection() {
    let question = Question::read(&asked("a.b", A)).expect("a question");
    let record = |last: u8| Record {
        name: "a.b".to_owned(),
        seconds: 5,
        data: Data::A(Ipv4Addr::new(10, 0, 0, last)),
    };
    let answer = Answer { records: (0..100).map(record).collect(), ..Answer::default() };
    let cut = question.answer(&answer, UDP_BYTES_MAX);
    assert_eq!((cut.len(), cut[2] & 2, cut[7]), (21, 2, 0));
    assert!(question.answer(&answer, 65_535).len() > UDP_BYTES_MAX);
}

#[test]
fn what_is_no_question_is_told_from_garbage() {
    assert_eq!(Question::read(b"short"), Err(NoQuestion::Garbage));
    let mut update = asked("a.b", A);
    update[2] = 0x28;
    assert_eq!(Question::read(&update), Err(NoQuestion::Other(0x1234)));
    let mut answer = asked("a.b", A);
    answer[2] = 0x81;
    assert_eq!(Question::read(&answer), Err(NoQuestion::Garbage));
    for length in 0..asked("a.b", A).len() {
        // Whatever is cut off, nothing is read beyond it.
        let _ = Question::read(&asked("a.b", A)[..length]);
    }
}
