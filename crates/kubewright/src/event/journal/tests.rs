use k8s_openapi::api::core::v1::ObjectReference;

use super::*;

fn record(note: &str) -> Record {
    let regarding = ObjectReference { uid: Some("1".to_owned()), ..ObjectReference::default() };
    Record { controller: "pet".into(), regarding, event: Event::normal("Fed", note) }
}

/// Tells the journal these notes, so many seconds after its start, and gives what it decides.
fn check(told: &[(u64, &str)], expected: &[&str]) {
    let (mut journal, start) = (Journal::default(), Instant::now());
    let steps = told.iter().map(|(second, note)| {
        let (record, now) = (record(note), start + Duration::from_secs(*second));
        match journal.step(&record, now) {
            Step::Nothing => "nothing".to_owned(),
            Step::Count { name, count } => format!("{name} {count}"),
            Step::Create => {
                journal.created(&record, format!("{note}@{second}"), now);
                "create".to_owned()
            }
        }
    });
    assert_eq!(steps.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_is_told_again_is_counted_but_not_written_each_time() {
    check(
        &[(0, "a"), (1, "a"), (2, "a"), (3, "a"), (40, "a"), (41, "b")],
        &["create", "a@0 2", "nothing", "nothing", "a@0 5", "create"],
    );
}

#[tokio::test]
async fn what_is_told_after_a_long_time_is_another_event() {
    check(&[(0, "a"), (400, "a"), (401, "a")], &["create", "create", "a@400 2"]);
}

#[tokio::test]
async fn of_one_object_no_more_is_told_than_a_person_could_read() {
    let notes: Vec<String> = (0..28).map(|number| number.to_string()).collect();
    let mut told: Vec<(u64, &str)> = notes.iter().map(|note| (1, note.as_str())).collect();
    told[26].0 = 301;
    told[27].0 = 302;
    let mut expected = vec!["create"; 25];
    expected.extend(["nothing", "create", "nothing"]);
    check(&told, &expected);
}
