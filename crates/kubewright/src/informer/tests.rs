use std::sync::{LazyLock, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::kept::{Arrival, Kept, Opener, Texts};
use super::objects::Objects;
use super::*;

fn config_map(name: &str, uid: &str, version: u32) -> Arrival<ConfigMap> {
    config_map_in("ns", name, uid, version)
}

fn config_map_in(namespace: &str, name: &str, uid: &str, version: u32) -> Arrival<ConfigMap> {
    let object = json!({"metadata": {
        "namespace": namespace, "name": name, "uid": uid, "resourceVersion": version.to_string(),
        "labels": {"owner": format!("of-{uid}")},
    }});
    let taken = opener().take(&object.to_string(), false);
    taken.unwrap_or_else(|_| panic!("not a ConfigMap: {object}"))
}

/// Texts are kept, so what is told and read has been through them.
fn opener() -> Opener<ConfigMap> {
    // Texts are read by the model that they were written by.
    static TEXTS: LazyLock<Arc<Texts<ConfigMap>>> = LazyLock::new(Arc::default);
    let (texts, panics) = (Some(Arc::clone(&TEXTS)), Panics::of("ConfigMap"));
    Opener { kind: "ConfigMap".into(), project: None, write: None, texts, panics }
}

fn listed<const N: usize>(all: [Arrival<ConfigMap>; N]) -> Vec<(ObjectKey, Kept<ConfigMap>)> {
    all.map(|Arrival { key, kept, .. }| (key, kept)).into()
}

fn metadata(arrival: &Arrival<ConfigMap>) -> ObjectMeta {
    opener().open(&arrival.kept).expect("a ConfigMap").metadata.clone()
}

/// Writes down what it is told.
fn note(shared: &Shared<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&notes);
    shared.subscribe(Box::new(move |key, change| {
        let (what, object) = match change {
            Change::Applied { object, old: None, initial: true } => ("found", object),
            Change::Applied { object, old: None, initial: false } => ("added", object),
            Change::Applied { object, old: Some(_), .. } => ("changed", object),
            Change::Deleted(object) => ("deleted", object),
        };
        assert_eq!(*key, ObjectKey::of(&object.metadata));
        noting
            .lock()
            .expect("nobody panics")
            .push(format!("{what} {key}@{}", version(&object.metadata)));
    }));
    notes
}

fn told(notes: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *notes.lock().expect("nobody panics"))
}

fn shared() -> Shared<ConfigMap> {
    Shared::new(opener(), &BTreeSet::new())
}

#[test]
fn nothing_is_read_before_it_is_listed() {
    let shared = shared();
    let kind = || "ConfigMap".to_owned();
    assert_eq!(shared.read(Objects::all), Err(NotReady::Listing { kind: kind() }));
    shared.sink(0).is(State::Forbidden("no".to_owned()));
    let forbidden = NotReady::Forbidden { kind: kind(), why: "no".to_owned() };
    assert_eq!(shared.read(Objects::all), Err(forbidden));
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    assert_eq!(shared.read(Objects::all).map(|all| all.len()), Ok(1));
    shared.sink(0).is(State::Stale("gone".to_owned()));
    assert_eq!(shared.read(Objects::all).map(|all| all.len()), Ok(1));
    shared.sink(0).is(State::Missing);
    assert_eq!(shared.read(Objects::all), Err(NotReady::Missing { kind: kind() }));
}

#[test]
fn a_list_tells_what_is_new_what_changed_and_what_is_gone() {
    let shared = shared();
    let notes = note(&shared);
    shared.sink(0).replace(listed([config_map("a", "1", 1), config_map("b", "2", 2)]), "5");
    assert_eq!(told(&notes), ["found ns/a@1", "found ns/b@2"]);
    shared.sink(0).replace(listed([config_map("b", "2", 2), config_map("c", "3", 6)]), "7");
    assert_eq!(told(&notes), ["added ns/c@6", "deleted ns/a@1"]);
    shared.sink(0).replace(listed([config_map("b", "2", 8), config_map("c", "4", 9)]), "9");
    assert_eq!(told(&notes), ["changed ns/b@8", "deleted ns/c@6", "added ns/c@9"]);
}

#[test]
fn who_comes_late_is_told_of_what_is_there_once() {
    let shared = shared();
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    shared.sink(0).applied(config_map("b", "2", 6));
    let notes = note(&shared);
    assert_eq!(told(&notes), ["found ns/a@1", "found ns/b@6"]);
    shared.sink(0).applied(config_map("b", "2", 7));
    shared.sink(0).deleted(&ObjectKey::new(Some("ns"), "a"), "8");
    assert_eq!(told(&notes), ["changed ns/b@7", "deleted ns/a@1"]);
}

#[test]
fn an_index_follows_its_objects() {
    let shared = shared();
    let values = |object: &ConfigMap| {
        object.metadata.labels.clone().unwrap_or_default().into_values().collect()
    };
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    shared.index("owner", Box::new(values));
    shared.sink(0).applied(config_map("b", "1", 6));
    let find = |value: &str| -> Vec<String> {
        let found = shared.read(|objects| objects.by_index("owner", value)).expect("it is ready");
        let show = |object: &Arc<ConfigMap>| {
            format!("{}@{}", ObjectKey::of(&object.metadata), version(&object.metadata))
        };
        found.iter().map(show).collect()
    };
    assert_eq!(find("of-1"), ["ns/a@1", "ns/b@6"]);
    shared.sink(0).applied(config_map("b", "2", 7));
    assert_eq!((find("of-1"), find("of-2")), (vec!["ns/a@1".into()], vec!["ns/b@7".into()]));
    // Found by the same value, it is found as it is now.
    shared.sink(0).applied(config_map("b", "2", 8));
    assert_eq!(find("of-2"), ["ns/b@8"]);
    shared.sink(0).deleted(&ObjectKey::new(Some("ns"), "a"), "9");
    assert_eq!(find("of-1"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_can_wait_for_what_it_wrote() {
    let shared = shared();
    let (long, written) = (Duration::from_secs(1), metadata(&config_map("a", "1", 6)));
    assert!(!shared.caught_up(&written, long).await);
    let (caught_up, ()) = tokio::join!(shared.caught_up(&written, long), async {
        shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
        shared.sink(0).applied(config_map("a", "1", 6));
    });
    assert!(caught_up);
}

#[tokio::test(start_paused = true)]
async fn a_reader_can_wait_until_what_it_deleted_is_gone() {
    let (shared, key) = (shared(), || ObjectKey::new(Some("ns"), "a"));
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    shared.expect_gone(key(), "1");
    let begun = tokio::time::Instant::now();
    tokio::join!(shared.fresh(Duration::from_secs(10)), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        shared.sink(0).deleted(&key(), "6");
    });
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    // Another one of the same name is not what was deleted.
    shared.expect_gone(key(), "1");
    shared.sink(0).applied(config_map("a", "2", 7));
    shared.fresh(Duration::from_secs(10)).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_gives_up_nothing_that_was_written_since() {
    let (shared, long) = (shared(), Duration::from_secs(10));
    shared.sink(0).replace(listed([config_map("a", "1", 1), config_map("b", "2", 2)]), "5");
    let begun = tokio::time::Instant::now();
    shared.expect(&metadata(&config_map("a", "1", 6)));
    shared.expect_gone(ObjectKey::new(Some("ns"), "a"), "1");
    tokio::join!(shared.fresh(long), async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        shared.expect(&metadata(&config_map("b", "2", 7)));
        shared.expect_gone(ObjectKey::new(Some("ns"), "b"), "2");
    });
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    // What was written while the first waited is waited for as long as ever, or until it is seen.
    tokio::join!(shared.fresh(long), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        shared.sink(0).deleted(&ObjectKey::new(Some("ns"), "b"), "7");
    });
    assert_eq!(begun.elapsed(), Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_another_has_given_up() {
    let (shared, long) = (shared(), Duration::from_secs(10));
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    shared.expect(&metadata(&config_map("a", "1", 6)));
    let begun = tokio::time::Instant::now();
    tokio::join!(shared.fresh(long), async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        shared.fresh(long).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
    });
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_one_object_waits_for_no_other() {
    let (shared, long) = (shared(), Duration::from_secs(10));
    let key = |name: &str| ObjectKey::new(Some("ns"), name);
    shared.sink(0).replace(listed([config_map("a", "1", 1), config_map("b", "2", 2)]), "5");
    shared.expect(&metadata(&config_map("a", "1", 6)));
    shared.expect_gone(key("b"), "2");
    let begun = tokio::time::Instant::now();
    shared.fresh_of(&key("c"), long).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let seconds = |seconds| begun + Duration::from_secs(seconds);
    let telling = async {
        tokio::time::sleep_until(seconds(1)).await;
        shared.sink(0).applied(config_map("a", "1", 6));
        tokio::time::sleep_until(seconds(2)).await;
        shared.sink(0).deleted(&key("b"), "7");
    };
    let reading = async |name: &str, after| {
        shared.fresh_of(&key(name), long).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(after), "{name}");
    };
    let reading_all = async {
        shared.fresh(long).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    };
    tokio::join!(telling, reading("a", 1), reading("b", 2), reading_all);

    // Who waits in vain gives up nothing that others wait for.
    shared.expect(&metadata(&config_map("a", "1", 8)));
    shared.expect(&metadata(&config_map("c", "3", 9)));
    shared.fresh_of(&key("a"), long).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(12));
    shared.fresh_of(&key("a"), long).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(12));
    shared.fresh_of(&key("c"), long).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(22));
}

#[tokio::test(start_paused = true)]
async fn each_of_several_namespaces_is_known_by_itself() {
    let namespaces = BTreeSet::from(["lab".to_owned(), "shop".to_owned()]);
    let shared = Shared::new(opener(), &namespaces);
    let (lab, shop) = (shared.sink(0), shared.sink(1));
    let notes = note(&shared);
    shop.replace(listed([config_map_in("shop", "a", "1", 1)]), "5");
    let read = |namespace| {
        let found = shared.read_in(Some(namespace), |objects| objects.in_namespace(namespace));
        found.map(|found: Vec<_>| found.len())
    };
    let all = || shared.read(Objects::all).map(|all| all.len());
    let kind = || "ConfigMap".to_owned();
    assert_eq!(read("shop"), Ok(1));
    assert_eq!(read("lab"), Err(NotReady::Listing { kind: kind() }));
    assert_eq!(all(), Err(NotReady::Listing { kind: kind() }));
    let unwatched = NotReady::Unwatched { kind: kind(), namespace: "home".to_owned() };
    assert_eq!(read("home"), Err(unwatched));
    lab.is(State::Forbidden("no".to_owned()));
    assert_eq!(shared.state(), State::Forbidden("no".to_owned()));
    lab.replace(listed([config_map_in("lab", "b", "2", 9)]), "9");
    assert_eq!(told(&notes), ["found shop/a@1", "found lab/b@9"]);

    // What is listed again of one is not gone from the other.
    shop.replace(Vec::new(), "9");
    assert_eq!(told(&notes), ["deleted shop/a@1"]);
    assert_eq!(all(), Ok(1));

    // What one lacks, the other need not, and what was seen is not forgotten.
    shop.applied(config_map_in("shop", "a", "1", 10));
    assert_eq!(told(&notes), ["added shop/a@10"]);
    lab.is(State::Forbidden("no".to_owned()));
    let keys = |found: Vec<Arc<ConfigMap>>| -> Vec<String> {
        found.iter().map(|object| ObjectKey::of(&object.metadata).to_string()).collect()
    };
    assert_eq!(keys(shared.readable()), ["shop/a"]);
    assert_eq!(keys(shared.open(Objects::all)), ["lab/b", "shop/a"]);
    lab.is(State::Live);

    // That one has passed a version says nothing of the other.
    let written = metadata(&config_map_in("shop", "c", "3", 20));
    shared.expect(&written);
    lab.applied(config_map_in("lab", "b", "2", 21));
    assert!(!shared.caught_up(&written, Duration::from_secs(1)).await);
    let begun = tokio::time::Instant::now();
    let (_, ()) = tokio::join!(shared.fresh(Duration::from_secs(5)), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        shop.applied(config_map_in("shop", "c", "3", 20));
    });
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[test]
fn a_scope_is_within_those_that_ask_for_less() {
    let labelled = |labels: &str| Scope { labels: Some(labels.to_owned()), ..Scope::default() };
    let check = |left: &Scope, right: &Scope, expected: [bool; 2]| {
        let found = [left.is_within(right), right.is_within(left)];
        assert_eq!(found, expected, "{left:?} and {right:?}");
    };
    let all = Scope::default();
    check(&all, &all, [true, true]);
    check(&labelled("app=a"), &all, [true, false]);
    check(&labelled("app=a"), &labelled("app=b"), [false, false]);
    check(&Scope::within(["lab"]), &all, [true, false]);
    check(&Scope::within(["lab"]), &Scope::within(["lab", "shop"]), [true, false]);
    let labelled_there = Scope { labels: Some("app=a".to_owned()), ..Scope::within(["lab"]) };
    check(&labelled_there, &labelled("app=a"), [true, false]);
    check(&labelled("app=a"), &Scope::within(["lab"]), [false, false]);
}

#[test]
fn an_index_that_panics_costs_only_what_it_was_asked_of() {
    let shared = shared();
    let values = |object: &ConfigMap| {
        assert_ne!(object.metadata.name.as_deref(), Some("a"), "a test asked for it");
        vec!["any".to_owned()]
    };
    shared.index("any", Box::new(values));
    let notes = note(&shared);
    shared.sink(0).replace(listed([config_map("a", "1", 1), config_map("b", "2", 2)]), "5");
    assert_eq!(told(&notes), ["found ns/a@1", "found ns/b@2"]);
    let found = shared.read(|objects| objects.by_index("any", "any")).expect("it is ready");
    assert_eq!(found.len(), 1);
    assert_eq!(shared.report().panics, 1);
    shared.sink(0).deleted(&ObjectKey::new(Some("ns"), "a"), "6");
    assert_eq!(told(&notes), ["deleted ns/a@1"]);
}

#[test]
fn a_subscriber_that_panics_keeps_nothing_from_the_others() {
    let shared = shared();
    shared.subscribe(Box::new(|key, _| assert_ne!(key.name(), "a", "a test asked for it")));
    let notes = note(&shared);
    shared.sink(0).replace(listed([config_map("a", "1", 1)]), "5");
    shared.sink(0).applied(config_map("a", "1", 6));
    assert_eq!(told(&notes), ["found ns/a@1", "changed ns/a@6"]);
    assert_eq!(shared.report().panics, 2);
}
