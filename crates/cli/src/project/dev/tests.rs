use std::fs;

use super::sources::Sources;
use super::*;

#[test]
fn what_a_build_writes_is_no_change() {
    let sources = Sources::of(Path::new("/pets"));
    for path in ["/pets/src/lib.rs", "/pets/src/pet/v1.rs", "/pets/Cargo.toml", "/pets/build.rs"] {
        assert!(sources.have(Path::new(path)), "{path}");
    }
    for path in
        ["/pets/Cargo.lock", "/pets/target", "/pets/Cargo.toml.swp", "/pets/dist/Cargo.toml"]
    {
        assert!(!sources.have(Path::new(path)), "{path}");
    }
}

/// The file itself was watched, and was another after the first change.
#[tokio::test]
async fn a_manifest_that_editors_replace_is_watched_after_the_first_time() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path();
    fs::create_dir(root.join("src")).expect("a folder");
    fs::write(root.join("Cargo.toml"), "one").expect("written");
    let changes = Arc::new(Notify::new());
    let _watch = Watch::begin(root, Arc::clone(&changes)).expect("it is watched");
    for text in ["two", "three"] {
        fs::write(root.join("Cargo.toml.swp"), text).expect("written");
        fs::rename(root.join("Cargo.toml.swp"), root.join("Cargo.toml")).expect("renamed");
        let told = tokio::time::timeout(Duration::from_secs(30), changes.notified()).await;
        told.expect("it is told");
        // One change may be told several times.
        while tokio::time::timeout(SETTLING, changes.notified()).await.is_ok() {}
    }
}

/// Probes had the same port in all of them.
#[test]
fn two_operators_that_are_developed_have_ports_of_their_own() {
    let flags = |said: &[&str]| {
        let said: Vec<String> = said.iter().map(|it| (*it).to_owned()).collect();
        pages(&said).expect("ports").flags
    };
    let both = flags(&[]);
    let ports: Vec<&str> =
        both.iter().filter_map(|it| it.rsplit_once(':')).map(|it| it.1).collect();
    assert!(matches!(ports[..], [one, other] if one != other), "{both:?}");
    let probes = |it: &String| it.starts_with("--health-probe-bind-address=127.0.0.1:");
    assert!(flags(&["--metrics-secure=true"]).iter().all(probes));
    assert_eq!(flags(&["--metrics-bind-address=0", "--health-probe-bind-address=0"]).len(), 0);
}
