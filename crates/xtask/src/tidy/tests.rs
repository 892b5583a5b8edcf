//! The repository itself is the first test case.

use super::*;

#[test]
fn the_repository_is_tidy() {
    let faults = faults().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_map_lists_each_crate_once_there_is_one() {
    let there = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let faults = compare_map("| crate |\n|---|\n| `a` | x |\n| `c` | y |", &there);
    assert_eq!(
        faults,
        [
            "ARCHITECTURE.md: crate `b` is not in the table",
            "ARCHITECTURE.md: there is no crate `c`",
        ]
    );
}

#[test]
fn a_case_without_recording_is_a_fault() {
    let file =
        |name: &str| (Path::new("crates/apimachinery/fixtures/area").join(name), String::new());
    let files = Files(vec![
        file("a.yaml"),
        file("b.recorded.json"),
        file("c.yaml"),
        file("c.recorded.json"),
    ]);
    assert_eq!(
        recording_faults(&files),
        [
            "crates/apimachinery/fixtures/area/a.yaml: has no recording",
            "crates/apimachinery/fixtures/area/b.recorded.json: has no case",
        ]
    );
}
