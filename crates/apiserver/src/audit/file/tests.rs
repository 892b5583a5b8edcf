//! Files on a real disk.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;

/// A clock of our own, which only a store's configuration makes.
fn clock(seconds: &Arc<AtomicU64>) -> Clock {
    use crate::index;
    let seconds = Arc::clone(seconds);
    let now = move || Duration::from_secs(seconds.load(Relaxed));
    kubewright_store::Config::new(index::extract, index::resource_of, now).clock
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn lines(texts: &[&str]) -> impl Iterator<Item = Vec<u8>> {
    texts.iter().map(|text| format!("{text}\n").into_bytes())
}

#[test]
fn a_file_that_would_grow_too_large_is_put_aside_and_old_ones_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    let now = Arc::new(AtomicU64::new(1_700_000_000));
    let day = Duration::from_hours(24);
    let rotation = Rotation { bytes_max: 8, kept_max: 2, age_max: 10 * day };
    let mut file = File::open(path.clone(), rotation, clock(&now)).expect("opened");
    file.append(lines(&["one", "two", "three", "a longer line than fits"])).expect("written");
    assert_eq!(
        names(dir.path()),
        ["audit-2023-11-14T22-13-20.000.log", "audit-2023-11-14T22-13-20.001.log", "audit.log"]
    );
    assert_eq!(fs::read_to_string(&path).expect("text"), "a longer line than fits\n");
    let first = dir.path().join("audit-2023-11-14T22-13-20.000.log");
    assert_eq!(fs::read_to_string(first).expect("text"), "one\ntwo\n");

    fs::write(dir.path().join("audit-notes.log"), "mine").expect("written");
    now.fetch_add(5 * day.as_secs(), Relaxed);
    file.append(lines(&["four"])).expect("written");
    let kept = ["audit-2023-11-14T22-13-20.001.log", "audit-2023-11-19T22-13-20.000.log"];
    assert_eq!(names(dir.path()), [kept[0], kept[1], "audit-notes.log", "audit.log"]);
    now.fetch_add(6 * day.as_secs(), Relaxed);
    file.append(lines(&["five"])).expect("written");
    let kept = ["audit-2023-11-19T22-13-20.000.log", "audit-2023-11-25T22-13-20.000.log"];
    assert_eq!(names(dir.path()), [kept[0], kept[1], "audit-notes.log", "audit.log"]);
    now.fetch_add(20 * day.as_secs(), Relaxed);
    file.append(lines(&["six"])).expect("written");
    let kept = "audit-2023-12-15T22-13-20.000.log";
    assert_eq!(names(dir.path()), [kept, "audit-notes.log", "audit.log"]);
}

#[test]
fn a_file_goes_on_where_it_was_and_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a/b/audit.log");
    let now = Arc::new(AtomicU64::new(0));
    for text in ["one", "two"] {
        let rotation = Rotation { bytes_max: 0, ..Rotation::default() };
        let mut file = File::open(path.clone(), rotation, clock(&now)).expect("opened");
        file.append(lines(&[text])).expect("written");
    }
    assert_eq!(fs::read_to_string(&path).expect("text"), "one\ntwo\n");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let now = Arc::new(AtomicU64::new(0));
    let rotation = Rotation { bytes_max: 0, ..Rotation::default() };
    let mut file = File::open("/dev/full".into(), rotation, clock(&now)).expect("opened");
    let error = file.append(lines(&["one"])).expect_err("it is full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
