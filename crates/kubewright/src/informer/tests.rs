use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::objects::Objects;
use super::shared::Read;
use super::*;

fn config_map(name: &str, uid: &str, version: u32) -> Read<ConfigMap> {
    let object = json!({"metadata": {
        "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string(),
        "labels": {"owner": format!("of-{uid}")},
    }});
    let bytes = object.to_string().len();
    Read { object: serde_json::from_value(object).expect("a ConfigMap"), bytes }
}

/// Writes down what it is told.
fn note(shared: &Shared<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&notes);
    shared.subscribe(Box::new(move |change| {
        let (what, object) = match change {
            Change::Applied { object, old: None, initial: true } => ("found", object),
            Change::Applied { object, old: None, initial: false } => ("added", object),
            Change::Applied { object, old: Some(_), .. } => ("changed", object),
            Change::Deleted(object) => ("deleted", object),
        };
        let key = ObjectKey::of(&object.metadata);
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
    Shared::new("ConfigMap".to_owned())
}

#[test]
fn nothing_is_read_before_it_is_listed() {
    let shared = shared();
    let kind = || "ConfigMap".to_owned();
    assert_eq!(shared.read(Objects::all), Err(NotReady::Listing { kind: kind() }));
    shared.is(State::Forbidden("no".to_owned()));
    let forbidden = NotReady::Forbidden { kind: kind(), why: "no".to_owned() };
    assert_eq!(shared.read(Objects::all), Err(forbidden));
    shared.replace(vec![config_map("a", "1", 1)], "5");
    assert_eq!(shared.read(Objects::all).map(|all| all.len()), Ok(1));
    shared.is(State::Stale("gone".to_owned()));
    assert_eq!(shared.read(Objects::all).map(|all| all.len()), Ok(1));
    shared.is(State::Missing);
    assert_eq!(shared.read(Objects::all), Err(NotReady::Missing { kind: kind() }));
}

#[test]
fn a_list_tells_what_is_new_what_changed_and_what_is_gone() {
    let shared = shared();
    let notes = note(&shared);
    shared.replace(vec![config_map("a", "1", 1), config_map("b", "2", 2)], "5");
    assert_eq!(told(&notes), ["found ns/a@1", "found ns/b@2"]);
    shared.replace(vec![config_map("b", "2", 2), config_map("c", "3", 6)], "7");
    assert_eq!(told(&notes), ["found ns/c@6", "deleted ns/a@1"]);
    shared.replace(vec![config_map("b", "2", 8), config_map("c", "4", 9)], "9");
    assert_eq!(told(&notes), ["changed ns/b@8", "deleted ns/c@6", "found ns/c@9"]);
}

#[test]
fn who_comes_late_is_told_of_what_is_there_once() {
    let shared = shared();
    shared.replace(vec![config_map("a", "1", 1)], "5");
    shared.applied(config_map("b", "2", 6));
    let notes = note(&shared);
    assert_eq!(told(&notes), ["found ns/a@1", "found ns/b@6"]);
    shared.applied(config_map("b", "2", 7));
    shared.deleted(&ObjectKey::new(Some("ns"), "a"), "8");
    assert_eq!(told(&notes), ["changed ns/b@7", "deleted ns/a@1"]);
}

#[test]
fn an_index_follows_its_objects() {
    let shared = shared();
    let values = |object: &ConfigMap| {
        object.metadata.labels.clone().unwrap_or_default().into_values().collect()
    };
    shared.replace(vec![config_map("a", "1", 1)], "5");
    shared.index("owner", Box::new(values));
    shared.applied(config_map("b", "1", 6));
    let find = |value: &str| -> Vec<String> {
        let found = shared.read(|objects| objects.by_index("owner", value)).expect("it is ready");
        found.iter().map(|object| ObjectKey::of(&object.metadata).to_string()).collect()
    };
    assert_eq!(find("of-1"), ["ns/a", "ns/b"]);
    shared.applied(config_map("b", "2", 7));
    assert_eq!((find("of-1"), find("of-2")), (vec!["ns/a".into()], vec!["ns/b".into()]));
    shared.deleted(&ObjectKey::new(Some("ns"), "a"), "8");
    assert_eq!(find("of-1"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_can_wait_for_what_it_wrote() {
    let shared = shared();
    let long = Duration::from_secs(1);
    assert!(!shared.caught_up("6", long).await);
    let (caught_up, ()) = tokio::join!(shared.caught_up("6", long), async {
        shared.replace(vec![config_map("a", "1", 1)], "5");
        shared.applied(config_map("a", "1", 6));
    });
    assert!(caught_up);
}
