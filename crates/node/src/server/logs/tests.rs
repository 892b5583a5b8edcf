use super::*;

const LOG: &str = "\
1970-01-01T00:00:01.000000000Z stdout F one
1970-01-01T00:00:02.000000000Z stderr F two
1970-01-01T00:00:03.000000000Z stdout P thr
1970-01-01T00:00:03.000000000Z stdout F ee
1970-01-01T00:00:04.000000000Z stdout F four
";

fn check(query: &str, expected: &str) {
    let now = Timestamp::from_second(5).expect("a time");
    let options = Options::parse(query, now).expect("a query");
    let tail = options.tail;
    let mut counting = Selection::new(options.clone());
    counting.select(LOG.as_bytes());
    let skipped = tail.map_or(0, |tail| counting.lines().saturating_sub(tail));
    let mut selection = Selection::new(options).skipping(skipped);
    // In pieces that do not end with lines.
    let selected: Vec<u8> =
        LOG.as_bytes().chunks(7).flat_map(|piece| selection.select(piece)).collect();
    assert_eq!(String::from_utf8_lossy(&selected), expected);
}

#[test]
fn a_log_is_given_as_it_is_asked_for() {
    check("", "one\ntwo\nthree\nfour\n");
    check("tailLines=2", "three\nfour\n");
    check("tailLines=0", "");
    check("sinceSeconds=2", "three\nfour\n");
    check("sinceTime=1970-01-01T00:00:02Z&stream=Stdout", "three\nfour\n");
    check("stream=Stderr", "two\n");
    check("limitBytes=6", "one\ntw");
    check("timestamps=true&tailLines=1", "1970-01-01T00:00:04.000000000Z four\n");
    // A line that was written in parts has the time of its beginning.
    check(
        "timestamps=true&tailLines=2",
        "1970-01-01T00:00:03.000000000Z three\n1970-01-01T00:00:04.000000000Z four\n",
    );
}

#[test]
fn what_is_no_number_is_refused() {
    let refused = Options::parse("tailLines=x", Timestamp::UNIX_EPOCH);
    assert_eq!(refused, Err("Invalid value: \"x\" for tailLines".to_owned()));
}
