use super::*;

#[test]
fn the_end_of_a_log_stands_in_for_last_words() {
    assert_eq!(last_lines(b""), None);
    let log = b"2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stderr F two words\n";
    assert_eq!(last_lines(log).as_deref(), Some("one\ntwo words\n"));
    let many: String = (0..100).map(|n| format!("t stdout F {n}\n")).collect();
    let kept = last_lines(many.as_bytes()).expect("it is long");
    assert_eq!((kept.lines().next(), kept.lines().count()), (Some("20"), 80));
    let long = format!("t stdout F {}\n", "x".repeat(5000));
    assert_eq!(last_lines(long.as_bytes()).map(|kept| kept.len()), Some(2048));
}

#[test]
fn parts_of_a_line_are_one_line() {
    let log = b"t stdout P one \nt stdout P and the same\nt stdout F  line\nt stdout P DONE\n";
    assert_eq!(last_lines(log).as_deref(), Some("one and the same line\nDONE"));
}

#[test]
fn last_words_are_cut_off() {
    assert_eq!(beginning(b""), None);
    assert_eq!(beginning(b"gone").as_deref(), Some("gone"));
    assert_eq!(beginning(&[b'x'; 5000]).map(|kept| kept.len()), Some(4096));
}
