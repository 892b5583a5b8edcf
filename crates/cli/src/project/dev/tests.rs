use std::fs;

use super::*;

#[test]
fn what_a_build_writes_is_no_change() {
    let root = Path::new("/pets");
    for path in ["/pets/src/lib.rs", "/pets/src/pet/v1.rs", "/pets/Cargo.toml", "/pets/build.rs"] {
        assert!(is_source(root, Path::new(path)), "{path}");
    }
    for path in
        ["/pets/Cargo.lock", "/pets/target", "/pets/Cargo.toml.swp", "/pets/dist/Cargo.toml"]
    {
        assert!(!is_source(root, Path::new(path)), "{path}");
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
    let _watcher = watch(root, Arc::clone(&changes)).expect("it is watched");
    for text in ["two", "three"] {
        fs::write(root.join("Cargo.toml.swp"), text).expect("written");
        fs::rename(root.join("Cargo.toml.swp"), root.join("Cargo.toml")).expect("renamed");
        let told = tokio::time::timeout(Duration::from_secs(30), changes.notified()).await;
        told.expect("it is told");
        // One change may be told several times.
        while tokio::time::timeout(SETTLING, changes.notified()).await.is_ok() {}
    }
}
