//! Records and holds, in a directory of their own.

use super::*;

fn record(name: &str) -> Record {
    Record {
        name: name.to_owned(),
        server: "https://127.0.0.1:6443".to_owned(),
        port: 6443,
        pid: 7,
        data_dir: None,
        store: "memory".to_owned(),
        kubeconfig: None,
        ingress: None,
        cri: None,
        control: "socket".into(),
    }
}

#[test]
fn a_cluster_runs_as_long_as_its_directory_is_held() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = Home::new(dir.path().to_owned());
    assert_eq!(home.find("a").expect("readable"), None);
    let dir = home.dir("a").expect("a name");
    let hold = Hold::take(&dir).expect("free");
    assert_eq!(home.find("a").expect("readable"), None, "it has no record yet");
    record("a").write(&dir).expect("written");
    let found = home.find("a").expect("readable").expect("there");
    assert_eq!(found, Found { record: record("a"), running: true });
    let error = Hold::take(&dir).expect_err("held");
    assert!(matches!(error, HoldError::Taken { .. }), "{error}");

    drop(hold);
    assert!(!home.find("a").expect("readable").expect("there").running);
}

#[test]
fn clusters_are_listed_by_name_and_nothing_else_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = Home::new(dir.path().join("none"));
    assert_eq!(home.clusters().expect("nothing"), []);

    let home = Home::new(dir.path().to_owned());
    for name in ["b", "a"] {
        let dir = home.dir(name).expect("a name");
        make_dir(&dir).expect("made");
        record(name).write(&dir).expect("written");
    }
    make_dir(&dir.path().join("Not-A-Name")).expect("made");
    make_dir(&dir.path().join("no-record")).expect("made");
    let names: Vec<String> =
        home.clusters().expect("readable").into_iter().map(|found| found.record.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_name_cannot_lead_elsewhere() {
    let home = Home::new("home".into());
    for name in ["", ".", "..", "a/b", "A", "-a", "a-", "a b", &"a".repeat(64)] {
        assert!(home.dir(name).is_err(), "{name:?}");
    }
    assert_eq!(home.dir("a-1").expect("a name"), Path::new("home/a-1"));
}

#[test]
fn data_goes_where_the_user_keeps_data() {
    let dir = |xdg: Option<&str>, home: Option<&str>| {
        Home::of_user(xdg.map(Into::into), home.map(Into::into)).map(|Home(dir)| dir)
    };
    assert_eq!(dir(Some("/x"), Some("/h")), Some("/x/kubewright".into()));
    assert_eq!(dir(None, Some("/h")), Some("/h/.local/share/kubewright".into()));
    assert_eq!(dir(Some("relative"), Some("/h")), Some("/h/.local/share/kubewright".into()));
    assert_eq!(dir(None, None), None);
}
