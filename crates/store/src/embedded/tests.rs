//! What only a durable store does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Disk, LAYOUT, OpenError, Sizes, begin_after, check, last_used, layout, start};
use crate::{
    At, Config, Expect, Key, Put, Query, RestoreError, Revision, Start, Store, WatchError, restore,
};

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    put(&store, "/pods/a", "1").await;
    put(&store, "/pods/a", "2").await;
    put(&store, "/pods/b", "gone").await;
    store.delete(&Key::from("/pods/b"), Expect::Anything).await.unwrap();
    store.put(Put::new("/events/e", "3").ttl(Duration::from_secs(60))).await.unwrap();
    put(&store, "/pods/empty", "").await;
    let before = contents(&store);
    store.close().await;
    drop(store);

    let store = open(dir.path());
    assert_eq!(contents(&store), before);
    assert_eq!(store.get("/events/e").unwrap().deadline, Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn a_store_that_was_closed_continues_with_the_next_number() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    assert_eq!(store.revision(), Revision::FIRST);
    let last = put(&store, "/pods/a", "1").await;
    assert_eq!(last, Revision::new(2));
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.revision(), last);
    assert_eq!(put(&store, "/pods/a", "2").await, Revision::new(3));
}

#[tokio::test]
async fn after_a_crash_numbers_continue_above_all_that_may_have_been_seen() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let last = put(&store, "/pods/a", "1").await;
    let crashed = crash(dir.path());
    let again = open(crashed.path());
    assert!(again.revision() > last);
    let next = put(&again, "/pods/a", "2").await;
    assert!(next > again.get("/pods/a").unwrap().created);
    // And again, without anything written in between.
    let crashed = crash(crashed.path());
    let third = open(crashed.path());
    assert!(third.revision() > next);
    assert_eq!(third.get("/pods/a").unwrap().revision, next);
}

#[tokio::test]
async fn a_watch_at_the_last_durable_revision_resumes_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let first = put(&store, "/pods/a", "1").await;
    let last = put(&store, "/pods/a", "2").await;
    let crashed = crash(dir.path());
    store.close().await;
    drop(store);
    for dir in [dir.path(), crashed.path()] {
        let store = open(dir);
        let mut watch = store.watch("/pods/", Start::After(last)).unwrap();
        let query = Query { at: At::Exactly(last), ..Query::prefix("/pods/") };
        assert_eq!(store.range(&query).unwrap().len(), 1);
        put(&store, "/pods/b", "3").await;
        let events = watch.next().await.unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].key.as_str(), "/pods/b");
        // Still possible after more has happened, and still only from there.
        assert_eq!(store.watch("/pods/", Start::After(last)).unwrap().take().unwrap().len(), 1);
        let error = store.watch("/pods/", Start::After(first)).err().unwrap();
        assert!(matches!(error, WatchError::Compacted { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_number_that_a_crash_took_back_is_compacted() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let last = put(&store, "/pods/a", "1").await;
    let crashed = crash(dir.path());
    // Seen by somebody as an unsynced write, say.
    let seen = Revision::new(last.get() + 1);
    let store = open(crashed.path());
    let error = store.watch("/pods/", Start::After(seen)).err().unwrap();
    assert!(matches!(error, WatchError::Compacted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_directory_is_opened_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let error = Store::embedded(dir.path(), config()).unwrap_err();
    assert!(matches!(&error, OpenError::Locked { dir: locked } if locked == dir.path()));
    let sentence = format!("open {}, which another process has open", dir.path().display());
    assert_eq!(error.to_string(), sentence);
    assert!(matches!(check(dir.path()), Err(OpenError::Locked { .. })));
    drop(store);
    open(dir.path());
}

#[tokio::test]
async fn another_layout_is_refused() {
    let dir = TempDir::new().unwrap();
    put(&open(dir.path()), "/pods/a", "1").await;
    for found in [LAYOUT - 1, LAYOUT + 1] {
        let header = dir.path().join("header");
        fs::write(&header, format!("kubewright store, layout {found}\n")).unwrap();
        let error = Store::embedded(dir.path(), config()).unwrap_err();
        let sentence = format!(
            "open {}, whose layout is {found} where this version reads {LAYOUT}; a backup made by \
             the version that wrote it can be restored",
            dir.path().display()
        );
        assert_eq!(error.to_string(), sentence);
    }
    fs::write(dir.path().join("header"), "kubewright store, lay").unwrap();
    let error = Store::embedded(dir.path(), config()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("thesis.txt"), "ten years of work").unwrap();
    for error in [Store::embedded(dir.path(), config()).err(), check(dir.path()).err()] {
        assert!(matches!(error, Some(OpenError::NotAStore { .. })), "{error:?}");
    }
    assert!(dir.path().join("thesis.txt").exists());
    assert!(!dir.path().join("data").exists());
}

#[tokio::test]
async fn a_creation_that_was_interrupted_starts_over() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data").join("1.log"), "half of it").unwrap();
    fs::write(dir.path().join("header.new"), "kubewr").unwrap();
    let store = open(dir.path());
    put(&store, "/pods/a", "1").await;
}

#[tokio::test]
async fn a_torn_tail_is_cut() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for n in 0..10 {
        put(&store, &format!("/pods/{n}"), "value").await;
    }
    let before = contents(&store);
    let end = written_bytes(&log(dir.path()));
    put(&store, "/pods/last", "written but never acknowledged").await;
    let whole = written_bytes(&log(dir.path()));
    for torn in end..whole {
        let crashed = crash(dir.path());
        let log = log(crashed.path());
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(torn).unwrap();
        let store = open(crashed.path());
        assert_eq!(contents(&store), before, "cut at {torn}");
        put(&store, "/pods/next", "1").await;
    }
}

/// A store that was only opened and closed wrote that all numbers were synced that it may have used.
#[tokio::test]
async fn a_torn_word_of_the_end_is_cut() {
    let dir = TempDir::new().unwrap();
    let (backup, data) = (dir.path().join("backup"), dir.path().join("store"));
    let store = open(&dir.path().join("live"));
    put(&store, "/pods/a", "1").await;
    store.backup(&backup).unwrap();
    restore(&backup, &data, Revision::new(1000)).unwrap();
    // The first batch has no records, and ends with zeros.
    let end = written_bytes(&log(&data)).next_multiple_of(56);
    let store = open(&data);
    let before = contents(&store);
    store.close().await;
    drop(store);
    let whole = fs::metadata(log(&data)).unwrap().len();
    assert!(end < whole);
    for torn in end..whole {
        let crashed = crash(&data);
        let log = log(crashed.path());
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(torn).unwrap();
        assert_eq!(contents(&open(crashed.path())), before, "cut at {torn}");
    }
}

#[tokio::test]
async fn a_page_missing_from_an_unsynced_batch_is_a_torn_tail() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    put(&store, "/pods/a", "1").await;
    let before = contents(&store);
    let end = written_bytes(&log(dir.path()));
    put(&store, "/pods/b", &"large ".repeat(3000)).await;
    let crashed = crash(dir.path());
    let log = log(crashed.path());
    let mut bytes = fs::read(&log).unwrap();
    let page = usize::try_from(end.next_multiple_of(4096)).unwrap();
    bytes[page..page + 4096].fill(0);
    fs::write(&log, bytes).unwrap();
    assert_eq!(contents(&open(crashed.path())), before);
}

#[tokio::test]
async fn a_damaged_log_is_refused_and_never_shortened() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for n in 0..8 {
        put(&store, &format!("/pods/{n}"), "value").await;
    }
    let end = written_bytes(&log(dir.path()));
    // The last batch proves that the ones before were synced; nothing proves the last.
    put(&store, "/pods/last", "1").await;
    for at in (0..end).step_by(5) {
        let crashed = crash(dir.path());
        let log = log(crashed.path());
        let mut bytes = fs::read(&log).unwrap();
        bytes[usize::try_from(at).unwrap()] ^= 0x10;
        fs::write(&log, &bytes).unwrap();
        let error = Store::embedded(crashed.path(), config()).expect_err("a flipped bit");
        let OpenError::Damaged { path, what } = error else { panic!("{error:?}") };
        assert_eq!(path, log, "flipped {at}: {what}");
        assert!(fs::read(&log).unwrap() == bytes, "evidence was destroyed");
    }
}

#[tokio::test]
async fn logs_go_when_a_base_stands_for_them() {
    let dir = TempDir::new().unwrap();
    let store = open_small(dir.path());
    let value = "some value ".repeat(100);
    let mut written = 0;
    // What is made beside the committer comes when it comes.
    while count(dir.path(), "base") == 0 {
        put(&store, &format!("/pods/{}", written % 50), &value).await;
        store.delete(&Key::from("/pods/7"), Expect::Anything).await.ok();
        written += 1;
        assert!(written < 20_000, "there is no base yet");
    }
    let before = contents(&store);
    store.close().await;
    drop(store);
    assert!(!dir.path().join("data/1.log").exists());
    let again = crash(dir.path());
    let store = open_small(again.path());
    assert_eq!(contents(&store), before);
    put(&store, "/pods/next", "1").await;
    assert_eq!(count(again.path(), "base"), 1);
}

#[tokio::test]
async fn a_closed_store_has_nothing_made_in_advance() {
    let dir = TempDir::new().unwrap();
    let store = open_small(dir.path());
    put(&store, "/pods/a", &"more than half of the first log".repeat(400)).await;
    store.close().await;
    drop(store);
    assert_eq!(count(dir.path(), "log"), 1);
    let bytes = fs::metadata(log(dir.path())).unwrap().len();
    assert!(bytes < SMALL.first, "{bytes}");
}

#[tokio::test]
async fn what_was_made_in_advance_and_not_used_is_nothing() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    put(&store, "/pods/a", "1").await;
    let before = contents(&store);
    let crashed = crash(dir.path());
    // As a crash leaves it that came while they were made.
    fs::write(crashed.path().join("data/2.log"), [0; 100]).unwrap();
    fs::write(crashed.path().join("data/2.base.new"), "half of it").unwrap();
    assert_eq!(contents(&open(crashed.path())), before);
    assert_eq!((count(crashed.path(), "log"), count(crashed.path(), "new")), (1, 0));
}

#[tokio::test]
async fn a_damaged_base_is_refused() {
    let dir = TempDir::new().unwrap();
    let (backup, data) = (dir.path().join("backup"), dir.path().join("store"));
    let store = open(&dir.path().join("live"));
    put(&store, "/pods/a", &"some value ".repeat(100)).await;
    store.backup(&backup).unwrap();
    restore(&backup, &data, Revision::FIRST).unwrap();
    let whole = fs::read(data.join("data/1.base")).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        for bytes in [&bytes[..], &whole[..at]] {
            let crashed = crash(&data);
            let base = crashed.path().join("data/1.base");
            fs::write(&base, bytes).unwrap();
            let error = Store::embedded(crashed.path(), config()).unwrap_err();
            let OpenError::Damaged { path, .. } = error else { panic!("{error:?}") };
            assert_eq!(path, base);
        }
    }
}

/// Where nothing is, nothing contradicts itself: what follows must.
#[tokio::test]
async fn a_log_that_was_emptied_is_refused() {
    let dir = TempDir::new().unwrap();
    let store = open_small(dir.path());
    let mut written = 0;
    // Of three the second is written to.
    while count(dir.path(), "log") < 3 {
        put(&store, "/pods/a", &"some value ".repeat(100)).await;
        written += 1;
        assert!(written < 20_000, "there are no more logs yet");
    }
    let first = dir.path().join("data/1.log");
    let bytes = fs::read(&first).unwrap();
    for kept in [0, 56, bytes.len() / 2] {
        let crashed = crash(dir.path());
        let mut emptied = bytes.clone();
        emptied[kept..].fill(0);
        fs::write(crashed.path().join("data/1.log"), emptied).unwrap();
        let error = Store::embedded(crashed.path(), config()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{kept}: {error:?}");
    }
}

#[tokio::test]
async fn many_short_lives_leave_few_logs() {
    let mut dir = TempDir::new().unwrap();
    for life in 0..100 {
        let store = open_small(dir.path());
        // The second comes when there is a next log, or does without.
        for _ in 0..3 {
            put(&store, "/pods/a", &life.to_string()).await;
            tokio::task::yield_now().await;
        }
        store.close().await;
        drop(store);
        // Whoever starts a process beside this test holds its locks for a moment.
        dir = crash(dir.path());
    }
    assert!(count(dir.path(), "log") < 60);
}

#[tokio::test]
async fn a_log_that_is_missing_is_named() {
    let dir = TempDir::new().unwrap();
    let store = open_small(dir.path());
    let mut written = 0;
    while count(dir.path(), "log") < 3 {
        put(&store, "/pods/a", &"some value ".repeat(100)).await;
        written += 1;
        assert!(written < 20_000, "there are no more logs yet");
    }
    let crashed = crash(dir.path());
    let data = crashed.path().join("data");
    let mut logs: Vec<u64> = fs::read_dir(&data)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".log")?.parse().ok())
        .collect();
    logs.sort_unstable();
    let missing = data.join(format!("{}.log", logs[0]));
    fs::remove_file(&missing).unwrap();
    let error = Store::embedded(crashed.path(), config()).unwrap_err();
    let OpenError::Damaged { path, .. } = error else { panic!("{error:?}") };
    assert_eq!(path, missing);
}

#[tokio::test]
async fn a_check_counts_what_it_read() {
    let dir = TempDir::new().unwrap();
    let error = check(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
    let store = open(dir.path());
    put(&store, "/pods/a", "12345").await;
    let revision = put(&store, "/pods/b", "1").await;
    drop(store);
    let report = check(dir.path()).unwrap();
    assert_eq!((report.keys, report.bytes, report.revision), (2, 6, revision));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_live_store_is_one_moment_of_it() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir.path().join("live"));
    put(&store, "/pods/counter", "0").await;
    let backup = dir.path().join("backup");
    let (writing, saved) = tokio::join!(
        async {
            // Two keys that a reader at any moment finds equal or one apart.
            for n in 1..200 {
                put(&store, "/pods/counter", &n.to_string()).await;
                put(&store, "/pods/shadow", &n.to_string()).await;
            }
        },
        async {
            store.wait_for(Revision::new(40)).await.unwrap();
            tokio::task::block_in_place(|| store.backup(&backup).unwrap())
        }
    );
    let () = writing;
    restore(&backup, &dir.path().join("restored"), Revision::FIRST).unwrap();
    let restored = open(&dir.path().join("restored"));
    let query = Query { at: At::Exactly(saved), ..Query::prefix("/pods/") };
    let then: Vec<_> = store
        .range(&query)
        .unwrap()
        .iter()
        .map(|rev| (rev.key.to_string(), rev.revision, rev.created, rev.value.clone()))
        .collect();
    assert_eq!(contents(&restored), then);
    assert!(restored.revision() > store.revision(), "no number may come twice");
    let used = put(&restored, "/pods/counter", "new").await;
    drop(restored);

    // The same backup once more, in the place of what was restored and used.
    let again = dir.path().join("again");
    assert!(last_used(&dir.path().join("restored")).unwrap() >= Some(used));
    restore(&backup, &again, used).unwrap();
    assert!(open(&again).revision() > used, "no number may come twice");
    let empty = dir.path().join("empty");
    begin_after(&empty, used).unwrap();
    let empty = open(&empty);
    assert!(put(&empty, "/pods/counter", "newer").await > used);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_reads_a_backup() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().unwrap();
    let backup = dir.path().join("backup");
    open(&dir.path().join("live")).backup(&backup).unwrap();
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn only_a_whole_backup_is_restored_and_never_over_a_store() {
    let dir = TempDir::new().unwrap();
    let live = dir.path().join("live");
    let store = open(&live);
    put(&store, "/pods/a", "1").await;
    let backup = dir.path().join("backup");
    store.backup(&backup).unwrap();
    assert!(store.backup(&backup).is_err(), "a backup does not replace a file");
    drop(store);
    let error = restore(&backup, &live, Revision::FIRST).unwrap_err();
    assert!(matches!(error, RestoreError::Occupied { .. }), "{error:?}");

    let whole = fs::read(&backup).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for bytes in [&flipped[..], &whole[..at]] {
            let bad = dir.path().join("bad");
            fs::write(&bad, bytes).unwrap();
            let error = restore(&bad, &dir.path().join("restored"), Revision::FIRST).unwrap_err();
            assert!(matches!(error, RestoreError::Damaged { .. }), "{error:?}");
        }
    }
    assert!(!dir.path().join("restored").exists());
}

#[test]
fn a_marker_reads_back_and_notices_damage() {
    let marker = layout::Marker {
        revision: Revision::new(7),
        ceiling: Revision::new(70_000),
        synced: Revision::new(5),
    };
    let bytes = marker.encode();
    assert_eq!(layout::Marker::decode(&bytes), Some(marker));
    for at in 0..bytes.len() {
        let mut flipped = bytes;
        flipped[at] ^= 0x40;
        assert_eq!(layout::Marker::decode(&flipped), None);
    }
}

fn config() -> Config<()> {
    fn resource(key: &str) -> &str {
        let end = key.match_indices('/').nth(1).map_or(key.len(), |(at, _)| at + 1);
        &key[..end]
    }
    Config::new(|_, _| (), resource, || Duration::ZERO)
}

fn open(dir: &Path) -> Store<()> {
    Store::embedded(dir, config()).unwrap()
}

const SMALL: Sizes = Sizes { first: 16 << 10, log: 32 << 10, logs: 100 << 10 };

/// One whose logs end soon, and are soon too long.
fn open_small(dir: &Path) -> Store<()> {
    let (disk, loaded) = Disk::open(dir, SMALL).unwrap();
    let (image, writer) = start(disk, loaded, config()).unwrap();
    Store::new(image, Arc::new(writer))
}

async fn put(store: &Store<()>, key: &str, value: &str) -> Revision {
    store.put(Put::new(key, value.to_owned())).await.unwrap().revision
}

fn contents(store: &Store<()>) -> Vec<(String, Revision, Revision, bytes::Bytes)> {
    let all = store.range(&Query::prefix("")).unwrap();
    all.iter()
        .map(|rev| (rev.key.to_string(), rev.revision, rev.created, rev.value.clone()))
        .collect()
}

/// What a crash at this moment would leave, in a directory of its own.
fn crash(dir: &Path) -> TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                fs::create_dir(&to).unwrap();
                copy(&entry.path(), &to);
            } else {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let crashed = TempDir::new().unwrap();
    copy(dir, crashed.path());
    crashed
}

/// The log that is written to, or was.
fn log(dir: &Path) -> PathBuf {
    let data = dir.join("data");
    let places = layout::places(&data).unwrap().into_iter();
    let logs = places.filter(|place| matches!(place, layout::Place::Log(_)));
    let mut used = logs.map(|log| log.path(&data)).filter(|path| written_bytes(path) > 0);
    used.next_back().unwrap()
}

/// How much of a log is in use; the rest is blank.
fn written_bytes(log: &Path) -> u64 {
    let bytes = fs::read(log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    u64::try_from(used).unwrap()
}

/// How many files of data there are whose name ends so.
fn count(dir: &Path, extension: &str) -> usize {
    let entries = fs::read_dir(dir.join("data")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|own| own == extension)).count()
}
