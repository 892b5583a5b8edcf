//! The claims.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::task::JoinSet;

use super::{Lab, Open, Probe, model, state, text};
use crate::{
    At, Change, DeleteError, Durability, Event, Expect, Form, HistoryBounds, PutError, Query,
    RangeError, Revision, Start, Unavailable, UpdateError, Updated, Watch, WatchError,
};

/// Hands the list of claims to a macro, behind `$with`.
macro_rules! for_each_claim {
    ($callback:path, $with:path) => {
        $callback! {
            $with,
            a_value_reads_back_as_it_was_written,
            revisions_rise_from_change_to_change,
            what_must_be_absent_is_created_once,
            a_write_at_an_old_revision_changes_nothing,
            a_key_created_again_has_a_new_creation,
            a_deletion_has_a_revision_of_its_own,
            deleting_what_is_not_there_says_so,
            a_prefix_ends_where_it_ends,
            a_list_is_in_order_and_pages_fit_together,
            what_is_selected_of_a_list_is_walked_in_order,
            a_list_at_a_revision_undoes_what_came_later,
            pages_at_a_revision_fit_together_while_others_write,
            a_revision_to_come_is_neither_listed_nor_watched,
            what_is_older_than_the_history_is_compacted,
            a_revision_grows_old_though_its_resource_rests,
            deleted_values_count_against_the_history,
            a_busy_resource_does_not_shorten_the_history_of_another,
            a_watch_tells_what_was_and_what_is,
            a_watch_from_a_revision_begins_after_it,
            a_watch_sees_only_its_prefix,
            a_watch_shows_nothing_that_readers_do_not_see,
            a_slow_watch_is_compacted_and_blocks_nobody,
            watches_miss_and_repeat_nothing_while_many_write,
            watches_at_one_place_take_the_same_bunch,
            a_bunch_has_an_end_though_there_is_more,
            the_progress_of_an_idle_watch_follows_the_store,
            a_dropped_wait_for_events_loses_none,
            a_key_with_a_time_to_live_goes,
            a_key_written_anew_outlives_its_first_time_to_live,
            a_large_value_is_kept_and_a_larger_one_refused,
            an_empty_value_and_odd_keys_are_kept,
            a_rendering_is_made_once,
            updates_of_one_key_all_count,
            an_update_may_refuse_keep_or_delete,
            an_update_may_create,
            what_anyone_wrote_is_in_the_latest,
            unsynced_writes_are_seen_like_others,
            a_closed_store_reads_but_does_not_write,
            random_operations_agree_with_a_model,
        }
    };
}
pub(crate) use for_each_claim;

const LATEST: At = At::Latest;

pub(crate) async fn a_value_reads_back_as_it_was_written(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    assert!(lab.get("pods/a").is_none());
    let written = lab.put("pods/a", "one").await;
    let read = lab.get("pods/a").unwrap();
    assert_eq!(read.key, lab.key("pods/a"));
    assert_eq!(read.value, "one");
    assert_eq!((read.revision, read.created), (written.revision, written.revision));
    let expected = Probe {
        key_bytes: read.key.as_str().len(),
        value_sum: b"one".iter().map(|&b| u64::from(b)).sum(),
    };
    assert_eq!(read.extracted, expected);
    assert!(lab.store.revision() >= written.revision);
}

pub(crate) async fn revisions_rise_from_change_to_change(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut revisions = vec![lab.store.revision()];
    for n in 0..5 {
        revisions.push(lab.put(&format!("pods/{n}"), "x").await.revision);
        revisions.push(lab.put("nodes/n", "x").await.revision);
    }
    revisions.push(lab.delete("nodes/n").await);
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

pub(crate) async fn what_must_be_absent_is_created_once(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let attempts =
        (0..8).map(|n| lab.store.put(lab.write("pods/a", &format!("{n}")).expect(Expect::Absent)));
    let outcomes = join_all(attempts).await;
    let winners: Vec<_> = outcomes.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0].revision;
    for loser in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        let PutError::Conflict { expected: Expect::Absent, found } = loser else {
            panic!("{loser:?}");
        };
        assert_eq!(*found, Some(winner));
    }
    assert_eq!(lab.get("pods/a").unwrap().revision, winner);
}

pub(crate) async fn a_write_at_an_old_revision_changes_nothing(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let first = lab.put("pods/a", "one").await;
    let at = |revision| lab.write("pods/a", "x").expect(Expect::At(revision));
    let second = lab.store.put(at(first.revision)).await.unwrap();
    assert_eq!(second.created, first.created);

    let before = lab.store.revision();
    let error = lab.store.put(at(first.revision)).await.unwrap_err();
    let PutError::Conflict { expected, found } = error else { panic!("{error:?}") };
    assert_eq!((expected, found), (Expect::At(first.revision), Some(second.revision)));
    let error = lab.store.put(lab.write("pods/b", "x").expect(Expect::At(first.revision))).await;
    assert!(matches!(error, Err(PutError::Conflict { found: None, .. })), "{error:?}");
    let error = lab.store.delete(&lab.key("pods/a"), Expect::At(first.revision)).await.unwrap_err();
    assert!(matches!(error, DeleteError::Conflict { found, .. } if found == second.revision));

    assert_eq!(lab.get("pods/a").unwrap().revision, second.revision);
    assert!(lab.get("pods/b").is_none());
    let after = lab.store.latest().await.unwrap();
    assert_eq!(after.get(lab.key("pods/a").as_str()).unwrap().revision, second.revision);
    assert!(after.revision() >= before);
}

pub(crate) async fn a_key_created_again_has_a_new_creation(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let first = lab.put("pods/a", "one").await;
    lab.delete("pods/a").await;
    assert!(lab.get("pods/a").is_none());
    let again = lab.put("pods/a", "two").await;
    assert!(again.created > first.created);
    assert_eq!(again.created, again.revision);
}

pub(crate) async fn a_deletion_has_a_revision_of_its_own(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let written = lab.put("pods/a", "one").await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    let deleted = lab.store.delete(&lab.key("pods/a"), Expect::At(written.revision)).await.unwrap();
    assert!(deleted.revision > written.revision);
    assert_eq!(deleted.previous.revision, written.revision);
    assert!(lab.store.revision() >= deleted.revision);

    let event = next(&mut watch, 1).await.remove(0);
    assert_eq!(event.revision, deleted.revision);
    assert_eq!(event.previous.as_ref().unwrap().revision, written.revision);
    assert!(event.current.is_none());
}

pub(crate) async fn deleting_what_is_not_there_says_so(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let written = lab.put("pods/a", "one").await;
    lab.delete("pods/a").await;
    for expect in [Expect::Anything, Expect::Absent, Expect::At(written.revision)] {
        let error = lab.store.delete(&lab.key("pods/a"), expect).await.unwrap_err();
        assert!(matches!(error, DeleteError::NotFound), "{error:?}");
    }
}

pub(crate) async fn a_prefix_ends_where_it_ends(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    for path in ["pods/a/x", "pods/a/y", "pods/ab/x", "pods/b/x", "podsets/a/x", "pod/a/x"] {
        lab.put(path, "1").await;
    }
    assert_eq!(lab.list("pods/a/", LATEST).unwrap(), "pods/a/x=1 pods/a/y=1");
    assert_eq!(lab.list("pods/", LATEST).unwrap(), "pods/a/x=1 pods/a/y=1 pods/ab/x=1 pods/b/x=1");
    assert_eq!(lab.list("pods/c", LATEST).unwrap(), "");
    let count = |path| lab.store.count(lab.key(path).as_str());
    assert_eq!([count("pods/"), count("pods/a/"), count("podsets/"), count("none/")], [4, 2, 1, 0]);
}

pub(crate) async fn a_list_is_in_order_and_pages_fit_together(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let writes = (0..700).map(|n| {
        let n = n * 7919 % 700;
        lab.store.put(lab.write(&format!("pods/{n:03}"), "x"))
    });
    join_all(writes).await;
    let prefix = lab.key("pods/");
    let all: Vec<String> = lab
        .store
        .range(&Query::prefix(prefix.as_str()))
        .unwrap()
        .iter()
        .map(|rev| rev.key.to_string())
        .collect();
    assert!(all.is_sorted());
    assert_eq!(all.len(), 700);

    let mut paged: Vec<String> = Vec::new();
    loop {
        let start_after = paged.last().cloned();
        let query = Query {
            start_after: start_after.as_deref(),
            limit: Some(96),
            ..Query::prefix(prefix.as_str())
        };
        let page = lab.store.range(&query).unwrap();
        paged.extend(page.iter().map(|rev| rev.key.to_string()));
        assert_eq!(page.remaining, 700 - paged.len());
        if page.remaining == 0 {
            break;
        }
        assert_eq!(page.len(), 96);
    }
    assert_eq!(paged, all);
}

pub(crate) async fn what_is_selected_of_a_list_is_walked_in_order(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    for number in 0..100 {
        lab.put(&format!("pods/{number:03}"), &(number % 3).to_string()).await;
    }
    let prefix = lab.key("pods/");
    let selected = |limit: Option<usize>, value: Option<&str>| {
        let mut range = lab.store.range(&Query::prefix(prefix.as_str())).unwrap();
        let seen = range.select(limit, |rev| value.is_none_or(|value| rev.value == value));
        let keys: Vec<_> = range.iter().map(|rev| rev.key.clone()).collect();
        assert_eq!(range.len(), keys.len());
        assert_eq!(range.last().map(|rev| &rev.key), keys.last());
        let mut walk = range.walk();
        for key in &keys {
            assert_eq!(walk.next().map(|rev| &rev.key), Some(key));
        }
        assert!(walk.next().is_none());
        let ends = [keys.first(), keys.last()];
        let ends = ends.map(|key| key.map_or("", |key| &key.as_str()[prefix.as_str().len()..]));
        (seen, keys.len(), ends.join("-"))
    };
    assert_eq!(selected(None, None), (100, 100, "000-099".to_owned()));
    assert_eq!(selected(Some(70), None), (70, 70, "000-069".to_owned()));
    assert_eq!(selected(None, Some("1")), (100, 33, "001-097".to_owned()));
    assert_eq!(selected(Some(30), Some("1")), (89, 30, "001-088".to_owned()));
    assert_eq!(selected(None, Some("3")), (100, 0, "-".to_owned()));
}

pub(crate) async fn a_list_at_a_revision_undoes_what_came_later(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let start = lab.store.revision();
    let one = lab.put("pods/a", "1").await.revision;
    let two = lab.put("pods/b", "1").await.revision;
    let three = lab.put("pods/a", "2").await.revision;
    let four = lab.delete("pods/b").await;
    let five = lab.put("nodes/n", "1").await.revision;
    let six = lab.put("pods/b", "3").await.revision;
    let seven = lab.put("pods/c", "1").await.revision;
    for (revision, expected) in [
        (start, ""),
        (one, "pods/a=1"),
        (two, "pods/a=1 pods/b=1"),
        (three, "pods/a=2 pods/b=1"),
        (four, "pods/a=2"),
        (five, "pods/a=2"),
        (six, "pods/a=2 pods/b=3"),
        (seven, "pods/a=2 pods/b=3 pods/c=1"),
    ] {
        assert_eq!(lab.list("pods/", At::Exactly(revision)).unwrap(), expected, "at {revision}");
    }
    assert_eq!(lab.list("pods/b", At::Exactly(three)).unwrap(), "pods/b=1");
    let prefix = lab.key("pods/");
    let start_after = lab.key("pods/a");
    let query = Query {
        at: At::Exactly(three),
        start_after: Some(start_after.as_str()),
        limit: Some(1),
        prefix: prefix.as_str(),
    };
    let range = lab.store.range(&query).unwrap();
    assert_eq!(range.iter().map(|rev| lab.show(rev)).collect::<Vec<_>>(), ["pods/b=1"]);
    assert_eq!((range.revision, range.remaining), (three, 0));
}

pub(crate) async fn pages_at_a_revision_fit_together_while_others_write(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let writes = (0..100).map(|n| lab.store.put(lab.write(&format!("pods/{n:02}"), "old")));
    join_all(writes).await;
    let expected = state(&lab, "pods/");
    let prefix = lab.key("pods/");
    let mut seen = BTreeMap::new();
    let mut at = LATEST;
    let mut last = None;
    for round in 0.. {
        let query =
            Query { prefix: prefix.as_str(), start_after: last.as_deref(), limit: Some(11), at };
        let page = lab.store.range(&query).unwrap();
        at = At::Exactly(page.revision);
        seen.extend(page.iter().map(|rev| (rev.key.to_string(), text(&rev.value))));
        last = seen.last_key_value().map(|(key, _)| key.clone());
        if page.remaining == 0 {
            break;
        }
        // Between two pages: a change before, a change behind, a deletion, a creation.
        lab.put("pods/00", "new").await;
        lab.put("pods/99", "new").await;
        lab.put(&format!("pods/{:02}a", 95 - round), "new").await;
        lab.delete(&format!("pods/{:02}", 90 - round)).await;
    }
    assert_eq!(seen, expected);
}

pub(crate) async fn a_revision_to_come_is_neither_listed_nor_watched(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let current = lab.put("pods/a", "1").await.revision;
    let requested = Revision::new(current.get() + 1_000_000);
    let error = lab.list("pods/", At::Exactly(requested)).unwrap_err();
    assert!(matches!(error, RangeError::Future { requested: r, .. } if r == requested));
    let error = lab.store.watch(lab.key("pods/").as_str(), Start::After(requested)).err().unwrap();
    assert!(matches!(error, WatchError::Future { requested: r, .. } if r == requested));

    let next = Revision::new(lab.store.revision().get() + 1);
    let (waited, _) = tokio::join!(lab.store.wait_for(next), lab.put("pods/a", "2"));
    waited.unwrap();
    assert!(lab.store.revision() >= next);
}

pub(crate) async fn what_is_older_than_the_history_is_compacted(open: &Open) {
    let lab = open(HistoryBounds { window: Duration::from_secs(60), bytes_max: 10_000 }).await;
    let first = lab.put("pods/a", "1").await.revision;
    let value = "x".repeat(1000);
    let mut last = first;
    for _ in 0..30 {
        last = lab.put("pods/b", &value).await.revision;
    }
    let error = lab.list("pods/", At::Exactly(first)).unwrap_err();
    let RangeError::Compacted { requested, oldest } = error else { panic!("{error:?}") };
    assert_eq!(requested, first);
    assert!(first < oldest && oldest < last, "{oldest}");
    let error = lab.store.watch(lab.key("pods/").as_str(), Start::After(first)).err();
    assert_eq!(error, Some(WatchError::Compacted { requested: first, oldest }));
    // The oldest that is kept, and everything since, is still there.
    lab.list("pods/", At::Exactly(oldest)).unwrap();
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::After(oldest)).unwrap();
    let events = watch.take().unwrap();
    assert!(events.iter().all(|event| event.revision > oldest));
    assert_eq!(events.last().unwrap().revision, last);

    lab.pass(Duration::from_secs(61)).await;
    let error = lab.list("pods/", At::Exactly(oldest)).unwrap_err();
    assert!(matches!(error, RangeError::Compacted { .. }), "{error:?}");
    assert_eq!(lab.list("pods/a", At::Exactly(last)).unwrap(), "pods/a=1");
}

/// A list that was begun is not gone on with for ever, though nothing of it has changed.
pub(crate) async fn a_revision_grows_old_though_its_resource_rests(open: &Open) {
    let lab = open(HistoryBounds { window: Duration::from_secs(60), bytes_max: 10_000 }).await;
    let begun = lab.put("pods/a", "1").await.revision;
    let last = lab.put("nodes/n", "1").await.revision;
    lab.pass(Duration::from_secs(30)).await;
    let later = lab.put("nodes/n", "2").await.revision;
    assert_eq!(lab.list("pods/", At::Exactly(begun)).unwrap(), "pods/a=1");
    lab.pass(Duration::from_secs(61)).await;
    for old in [begun, last] {
        let error = lab.list("pods/", At::Exactly(old)).unwrap_err();
        assert!(
            matches!(error, RangeError::Compacted { oldest, .. } if oldest == later),
            "{error:?}"
        );
    }
    assert_eq!(lab.list("pods/", At::Exactly(later)).unwrap(), "pods/a=1");
}

pub(crate) async fn deleted_values_count_against_the_history(open: &Open) {
    let lab = open(HistoryBounds { window: Duration::from_secs(60), bytes_max: 10_000 }).await;
    let value = "x".repeat(5000);
    for path in ["pods/a", "pods/b", "pods/c"] {
        lab.put(path, &value).await;
    }
    let before = lab.store.revision();
    for path in ["pods/a", "pods/b", "pods/c"] {
        lab.delete(path).await;
    }
    let error = lab.list("pods/", At::Exactly(before)).unwrap_err();
    assert!(matches!(error, RangeError::Compacted { .. }), "{error:?}");
}

pub(crate) async fn a_busy_resource_does_not_shorten_the_history_of_another(open: &Open) {
    let lab = open(HistoryBounds { window: Duration::from_secs(60), bytes_max: 10_000 }).await;
    let first = lab.put("nodes/n", "1").await.revision;
    lab.put("nodes/n", "2").await;
    for _ in 0..30 {
        lab.put("pods/b", &"x".repeat(1000)).await;
    }
    assert_eq!(lab.list("nodes/", At::Exactly(first)).unwrap(), "nodes/n=1");
}

pub(crate) async fn a_watch_tells_what_was_and_what_is(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    lab.put("pods/a", "0").await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    lab.put("pods/a", "1").await;
    lab.put("pods/b", "1").await;
    lab.delete("pods/a").await;
    lab.put("pods/a", "2").await;
    assert_eq!(
        shown(&lab, &mut watch, 4).await,
        ["pods/a:0>1", "pods/b:>1", "pods/a:1>", "pods/a:>2"]
    );
    assert!(watch.take().unwrap().is_empty());
}

pub(crate) async fn a_watch_from_a_revision_begins_after_it(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let start = lab.store.revision();
    let one = lab.put("pods/a", "1").await.revision;
    let two = lab.put("pods/a", "2").await.revision;
    let three = lab.put("pods/a", "3").await.revision;
    for (revision, expected) in [
        (start, &["pods/a:>1", "pods/a:1>2", "pods/a:2>3"][..]),
        (one, &["pods/a:1>2", "pods/a:2>3"]),
        (two, &["pods/a:2>3"]),
        (three, &[]),
    ] {
        let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::After(revision)).unwrap();
        assert_eq!(shown(&lab, &mut watch, expected.len()).await, expected);
        assert!(watch.take().unwrap().is_empty());
        assert!(watch.progress() >= three);
    }
}

pub(crate) async fn a_watch_sees_only_its_prefix(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let watch = |path: &str| lab.store.watch(lab.key(path).as_str(), Start::Now).unwrap();
    let (mut all, mut some, mut one) = (watch("pods/"), watch("pods/a/"), watch("pods/a/x"));
    for path in ["pods/a/x", "podsets/a/x", "pods/ab/x", "pods/a/y", "nodes/a/x", "pods/a/x"] {
        lab.put(path, "1").await;
    }
    assert_eq!(
        shown(&lab, &mut all, 4).await,
        ["pods/a/x:>1", "pods/ab/x:>1", "pods/a/y:>1", "pods/a/x:1>1"]
    );
    assert_eq!(shown(&lab, &mut some, 3).await, ["pods/a/x:>1", "pods/a/y:>1", "pods/a/x:1>1"]);
    assert_eq!(shown(&lab, &mut one, 2).await, ["pods/a/x:>1", "pods/a/x:1>1"]);
}

pub(crate) async fn a_watch_shows_nothing_that_readers_do_not_see(open: &Open) {
    let lab = Arc::new(open(HistoryBounds::default()).await);
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    let mut writers = write_from_all_sides(&lab, 4, 50);
    let mut seen = 0;
    while seen < 4 * 50 {
        for event in watch.next().await.unwrap() {
            assert!(lab.store.revision() >= event.revision);
            let read = lab.store.get(event.key.as_str()).unwrap();
            assert!(read.revision >= event.revision);
            seen += 1;
        }
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
}

pub(crate) async fn a_slow_watch_is_compacted_and_blocks_nobody(open: &Open) {
    let lab = open(HistoryBounds { window: Duration::from_secs(60), bytes_max: 10_000 }).await;
    let mut slow = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    let mut last = lab.put("pods/a", "first").await.revision;
    for _ in 0..30 {
        last = lab.put("pods/a", &"x".repeat(1000)).await.revision;
    }
    let error = slow.next().await.unwrap_err();
    assert!(matches!(error, WatchError::Compacted { oldest, .. } if oldest < last), "{error:?}");
    // It stays so; a new one sees what comes.
    assert!(matches!(slow.next().await, Err(WatchError::Compacted { .. })));
    let mut again = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    lab.put("pods/b", "1").await;
    assert_eq!(shown(&lab, &mut again, 1).await, ["pods/b:>1"]);
}

pub(crate) async fn watches_miss_and_repeat_nothing_while_many_write(open: &Open) {
    const WRITERS: usize = 8;
    const WRITES: usize = 60;

    let lab = Arc::new(open(HistoryBounds::default()).await);
    let before = lab.store.revision();
    let mut watchers = JoinSet::new();
    for start in [Start::Now, Start::After(before)] {
        let watch = lab.store.watch(lab.key("pods/").as_str(), start).unwrap();
        watchers.spawn(collect(watch, WRITERS * WRITES));
    }
    let mut writers = write_from_all_sides(&lab, WRITERS, WRITES);
    // One that comes late and one that keeps starting over.
    let late = lab.store.watch(lab.key("pods/").as_str(), Start::After(before)).unwrap();
    watchers.spawn(collect(late, WRITERS * WRITES));
    let restless = Arc::clone(&lab);
    watchers.spawn(async move {
        let mut events = Vec::new();
        let mut at = before;
        while events.len() < WRITERS * WRITES {
            let prefix = restless.key("pods/");
            let mut watch = restless.store.watch(prefix.as_str(), Start::After(at)).unwrap();
            events.extend(watch.next().await.unwrap());
            at = watch.progress();
        }
        events
    });
    let mut written = Vec::new();
    while let Some(writer) = writers.join_next().await {
        written.extend(writer.unwrap());
    }
    written.sort_unstable();
    while let Some(events) = watchers.join_next().await {
        let events = events.unwrap();
        let seen: Vec<Revision> = events.iter().map(|event| event.revision).collect();
        assert_eq!(seen, written);
        let mut replayed = BTreeMap::new();
        for event in &events {
            let current = event.current.as_ref().unwrap();
            let previous = replayed.insert(event.key.to_string(), text(&current.value));
            assert_eq!(previous, event.previous.as_ref().map(|rev| text(&rev.value)));
        }
        assert_eq!(replayed, state(&lab, "pods/"));
    }
}

pub(crate) async fn watches_at_one_place_take_the_same_bunch(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let watch = |path| lab.store.watch(lab.key(path).as_str(), Start::Now).unwrap();
    let (mut one, mut other, mut narrow) = (watch("pods/"), watch("pods/"), watch("pods/b"));
    lab.put("pods/a", "1").await;
    lab.put("pods/b", "1").await;
    let bunch = one.take_bunch().unwrap();
    assert_eq!(bunch.len(), 2);
    assert!(Arc::ptr_eq(&bunch, &other.take_bunch().unwrap()));
    assert_eq!(narrow.take_bunch().unwrap().len(), 1);

    // Who waits longer takes more, and does not find less because others took less.
    lab.put("pods/c", "1").await;
    assert_eq!(one.take_bunch().unwrap().len(), 1);
    lab.put("pods/d", "1").await;
    assert_eq!(other.take_bunch().unwrap().len(), 2);
    assert_eq!(one.take_bunch().unwrap().len(), 1);
    assert!(one.take_bunch().unwrap().is_empty() && other.take_bunch().unwrap().is_empty());
}

pub(crate) async fn a_bunch_has_an_end_though_there_is_more(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let watch = || lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    let (mut one, mut other) = (watch(), watch());
    let mut revisions = Vec::new();
    for name in ["pods/a", "pods/b", "pods/c"] {
        revisions.push(lab.put(name, &"x".repeat(100_000)).await.revision);
    }
    let bunch = one.take_bunch().unwrap();
    assert_eq!(bunch.len(), 2);
    assert_eq!(one.progress(), revisions[1]);
    lab.put("pods/d", "1").await;
    assert!(Arc::ptr_eq(&bunch, &other.take_bunch().unwrap()));
    assert_eq!(other.take_bunch().unwrap().len(), 2);
}

pub(crate) async fn the_progress_of_an_idle_watch_follows_the_store(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    let elsewhere = lab.put("nodes/n", "1").await.revision;
    assert!(watch.progress() >= elsewhere);
    let here = lab.put("pods/a", "1").await.revision;
    lab.put("nodes/n", "2").await;
    assert!(watch.progress() < here, "an event is not delivered yet");
    next(&mut watch, 1).await;
    assert!(watch.progress() >= here);
    // Where the bookmark says, one can resume.
    let at = watch.progress();
    let mut resumed = lab.store.watch(lab.key("pods/").as_str(), Start::After(at)).unwrap();
    lab.put("pods/b", "1").await;
    assert_eq!(shown(&lab, &mut resumed, 1).await, ["pods/b:>1"]);
}

pub(crate) async fn a_dropped_wait_for_events_loses_none(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    for n in 0..5 {
        assert!(futures::FutureExt::now_or_never(watch.next()).is_none());
        lab.put("pods/a", &n.to_string()).await;
        let events = next(&mut watch, 1).await;
        assert_eq!(text(&events[0].current.as_ref().unwrap().value), n.to_string());
    }
}

pub(crate) async fn a_key_with_a_time_to_live_goes(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("events/").as_str(), Start::Now).unwrap();
    lab.put("events/stays", "1").await;
    let goes = lab.write("events/goes", "1").ttl(Duration::from_secs(2));
    let written = lab.store.put(goes).await.unwrap();
    lab.pass(Duration::from_secs(1)).await;
    assert_eq!(lab.list("events/", LATEST).unwrap(), "events/goes=1 events/stays=1");
    lab.pass(Duration::from_secs(2)).await;
    let events = next(&mut watch, 3).await;
    assert_eq!(lab.show_event(&events[2]), "events/goes:1>");
    assert!(events[2].revision > written.revision);
    assert_eq!(lab.list("events/", LATEST).unwrap(), "events/stays=1");
}

pub(crate) async fn a_key_written_anew_outlives_its_first_time_to_live(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let short = Duration::from_secs(1);
    for path in ["events/kept", "events/longer", "events/gone"] {
        lab.store.put(lab.write(path, "1").ttl(short)).await.unwrap();
    }
    lab.put("events/kept", "2").await;
    lab.store.put(lab.write("events/longer", "2").ttl(Duration::from_secs(3600))).await.unwrap();
    let mut watch = lab.store.watch(lab.key("events/").as_str(), Start::Now).unwrap();
    lab.pass(2 * short).await;
    assert_eq!(shown(&lab, &mut watch, 1).await, ["events/gone:1>"]);
    assert_eq!(lab.list("events/", LATEST).unwrap(), "events/kept=2 events/longer=2");
}

pub(crate) async fn a_large_value_is_kept_and_a_larger_one_refused(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let limit = lab.store.config().value_bytes_max;
    let large: Bytes = (0..limit).map(|n| b'a' + (n % 23) as u8).collect();
    // etcd counts the whole request, so a value of exactly the limit may be refused there.
    let kept = large.slice(..limit - 4096);
    let put = crate::Put::new(lab.key("pods/large"), kept.clone());
    lab.store.put(put).await.unwrap();
    assert_eq!(lab.get("pods/large").unwrap().value, kept);

    let larger = Bytes::from([&large[..], b"!"].concat());
    let error = lab.store.put(crate::Put::new(lab.key("pods/b"), larger.clone())).await;
    assert!(
        matches!(error, Err(PutError::TooLarge { bytes, limit: l }) if (bytes, l) == (limit + 1, limit))
    );
    let error = lab
        .store
        .update(&lab.key("pods/b"), async |_| Ok::<_, ()>(Change::put(larger.clone())))
        .await;
    assert!(matches!(error, Err(UpdateError::TooLarge { .. })));
    let key = lab.key(&format!("pods/{}", "k".repeat(70_000)));
    let error = lab.store.put(crate::Put::new(key, "")).await;
    assert!(matches!(error, Err(PutError::TooLarge { .. })));
    assert_eq!(lab.store.count(lab.key("pods/").as_str()), 1);
}

pub(crate) async fn an_empty_value_and_odd_keys_are_kept(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    for path in ["pods/", "pods/ü", "pods/a b", "pods/\u{1}", "pods/\u{10ffff}", "pods/a/"] {
        lab.put(path, "").await;
        assert_eq!(lab.get(path).unwrap().value, "");
    }
    assert_eq!(
        lab.list("pods/", LATEST).unwrap(),
        "pods/= pods/\u{1}= pods/a b= pods/a/= pods/ü= pods/\u{10ffff}="
    );
}

pub(crate) async fn a_rendering_is_made_once(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    lab.put("pods/a", "1").await;
    let made = AtomicUsize::new(0);
    let form = Form { version: 1, schema: 2, encoding: 3 };
    let make = || {
        made.fetch_add(1, Ordering::SeqCst);
        Ok::<_, ()>(Bytes::from_static(b"rendered"))
    };
    let first = lab.get("pods/a").unwrap().rendered(form, make).unwrap();
    let again = lab.get("pods/a").unwrap().rendered(form, make).unwrap();
    assert_eq!(first.as_ptr(), again.as_ptr());
    assert_eq!(made.load(Ordering::SeqCst), 1);
    let other = Form { schema: 3, ..form };
    assert_eq!(lab.get("pods/a").unwrap().rendered(other, || Err("no")), Err("no"));
    lab.get("pods/a").unwrap().rendered(other, make).unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 2);

    let event = next(&mut watch, 1).await.remove(0);
    event.rendered(form, make).unwrap();
    let second = event.rendered(form, make).unwrap();
    assert_eq!(second.as_ptr(), event.rendered(form, make).unwrap().as_ptr());
    assert_eq!(made.load(Ordering::SeqCst), 4, "what one watcher sees is not kept");

    lab.put("pods/a", "2").await;
    lab.get("pods/a").unwrap().rendered(form, make).unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 5, "a new revision has its own");
}

pub(crate) async fn updates_of_one_key_all_count(open: &Open) {
    const CLIENTS: u32 = 12;
    const UPDATES: u32 = 8;

    let lab = Arc::new(open(HistoryBounds::default()).await);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let lab = Arc::clone(&lab);
        clients.spawn(async move {
            for _ in 0..UPDATES {
                let updated = lab
                    .store
                    .update(&lab.key("pods/counter"), |found| async move {
                        let count = found.map_or(0, |rev| text(&rev.value).parse::<u32>().unwrap());
                        Ok::<_, ()>(Change::put((count + 1).to_string()))
                    })
                    .await
                    .unwrap();
                let Updated::Put(rev) = updated else { panic!("{updated:?}") };
                assert!(lab.store.revision() >= rev.revision);
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let total = text(&lab.get("pods/counter").unwrap().value);
    assert_eq!(total, (CLIENTS * UPDATES).to_string());
}

pub(crate) async fn an_update_may_refuse_keep_or_delete(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let written = lab.put("pods/a", "1").await;
    let key = lab.key("pods/a");
    let refused = lab.store.update(&key, async |_| Err("no")).await;
    assert!(matches!(refused, Err(UpdateError::Refused("no"))));
    let kept = lab.store.update(&key, async |_| Ok::<_, ()>(Change::Keep)).await.unwrap();
    assert!(matches!(kept, Updated::Kept(Some(rev)) if rev.revision == written.revision));
    assert_eq!(lab.get("pods/a").unwrap().revision, written.revision);
    let deleted = lab.store.update(&key, async |_| Ok::<_, ()>(Change::Delete)).await.unwrap();
    let Updated::Deleted(deleted) = deleted else { panic!("{deleted:?}") };
    assert_eq!(deleted.previous.revision, written.revision);
    assert!(lab.get("pods/a").is_none());
    let kept = lab.store.update(&key, async |_| Ok::<_, ()>(Change::Delete)).await.unwrap();
    assert!(matches!(kept, Updated::Kept(None)));
}

pub(crate) async fn an_update_may_create(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let updated = lab
        .store
        .update(&lab.key("pods/a"), async |found| {
            assert!(found.is_none());
            Ok::<_, ()>(Change::put("1"))
        })
        .await
        .unwrap();
    let Updated::Put(rev) = updated else { panic!("{updated:?}") };
    assert_eq!(rev.created, rev.revision);
    assert_eq!(lab.list("pods/", LATEST).unwrap(), "pods/a=1");
}

pub(crate) async fn what_anyone_wrote_is_in_the_latest(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let other = lab.store.clone();
    let written = other.put(lab.write("pods/a", "1")).await.unwrap();
    let latest = lab.store.latest().await.unwrap();
    assert!(latest.revision() >= written.revision);
    assert_eq!(latest.get(written.key.as_str()).unwrap().revision, written.revision);
    // A snapshot stays what it was.
    lab.put("pods/a", "2").await;
    assert_eq!(latest.get(written.key.as_str()).unwrap().revision, written.revision);
}

pub(crate) async fn unsynced_writes_are_seen_like_others(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("events/").as_str(), Start::Now).unwrap();
    for n in 0..3 {
        let put = lab.write("events/e", &n.to_string()).durability(Durability::Written);
        let rev = lab.store.put(put).await.unwrap();
        assert_eq!(lab.get("events/e").unwrap().revision, rev.revision);
    }
    assert_eq!(shown(&lab, &mut watch, 3).await, ["events/e:>0", "events/e:0>1", "events/e:1>2"]);
}

pub(crate) async fn a_closed_store_reads_but_does_not_write(open: &Open) {
    let lab = open(HistoryBounds::default()).await;
    let mut watch = lab.store.watch(lab.key("pods/").as_str(), Start::Now).unwrap();
    lab.put("pods/a", "1").await;
    lab.store.close().await;
    let error = lab.store.put(lab.write("pods/a", "2")).await.unwrap_err();
    assert!(matches!(error, PutError::Unavailable(Unavailable::Closed)), "{error:?}");
    let error = lab.store.delete(&lab.key("pods/a"), Expect::Anything).await.unwrap_err();
    assert!(matches!(error, DeleteError::Unavailable(Unavailable::Closed)), "{error:?}");
    assert_eq!(lab.list("pods/", LATEST).unwrap(), "pods/a=1");
    // What was published is still delivered, then the watch ends.
    assert_eq!(shown(&lab, &mut watch, 1).await, ["pods/a:>1"]);
    assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
    lab.store.close().await;
}

pub(crate) async fn random_operations_agree_with_a_model(open: &Open) {
    for seed in 1..=4 {
        let lab = open(HistoryBounds::default()).await;
        model::check(&lab, seed, 120).await;
    }
}

/// The next `count` events.
async fn next(watch: &mut Watch<Probe>, count: usize) -> Vec<Arc<Event<Probe>>> {
    let mut events = Vec::new();
    while events.len() < count {
        events.extend(watch.next().await.unwrap());
    }
    assert_eq!(events.len(), count);
    events
}

async fn shown(lab: &Lab, watch: &mut Watch<Probe>, count: usize) -> Vec<String> {
    next(watch, count).await.iter().map(|event| lab.show_event(event)).collect()
}

async fn collect(mut watch: Watch<Probe>, count: usize) -> Vec<Arc<Event<Probe>>> {
    next(&mut watch, count).await
}

/// Each writer writes to keys of its own and to keys of all; returns the revisions.
fn write_from_all_sides(lab: &Arc<Lab>, writers: usize, writes: usize) -> JoinSet<Vec<Revision>> {
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let lab = Arc::clone(lab);
        tasks.spawn(async move {
            let mut revisions = Vec::new();
            for n in 0..writes {
                let path = if n % 3 == 0 {
                    format!("pods/shared/{}", n % 7)
                } else {
                    format!("pods/{writer}/{n}")
                };
                revisions.push(lab.put(&path, &format!("{writer}-{n}")).await.revision);
            }
            revisions
        });
    }
    tasks
}
