use std::collections::BTreeMap;

use super::*;

fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
    let text = |side: Option<&str>| side.map(str::to_owned);
    Change { path: path.into(), before: text(before), after: text(after) }
}

/// A folder with some files, and what is to become of them.
fn site() -> (tempfile::TempDir, Plan) {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("old")).expect("a folder");
    fs::write(dir.path().join("edited"), "one").expect("written");
    fs::write(dir.path().join("old/gone"), "one").expect("written");
    let changes = vec![
        change("new/deep/made", None, Some("two")),
        change("edited", Some("one"), Some("two")),
        change("old/gone", Some("one"), None),
    ];
    (dir, Plan { changes })
}

/// All files, by their path.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a list") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(root).expect("it is below").to_owned();
                    files.insert(name, fs::read_to_string(&path).expect("a text"));
                }
            }
        }
    }
    files
}

#[test]
fn killed_anywhere_it_leaves_the_old_state_or_the_new_one() {
    let (dir, plan) = site();
    let old = tree(dir.path());
    apply(dir.path(), &plan).expect("applied");
    let new = tree(dir.path());
    assert_eq!(new[Path::new("edited")], "two");
    assert!(!dir.path().join("old").exists(), "an empty folder goes");

    let (mut seen_old, mut seen_new) = (0, 0);
    for steps_max in 0.. {
        let (dir, plan) = site();
        let mut steps = 0;
        let died = apply_with(dir.path(), &plan, &mut || {
            steps += 1;
            if steps > steps_max { Err(io::Error::other("killed")) } else { Ok(()) }
        });
        if died.is_ok() {
            break;
        }
        recover(dir.path()).expect("recovered");
        let left = tree(dir.path());
        if left == old {
            seen_old += 1;
        } else {
            assert_eq!(left, new, "after {steps_max} steps");
            seen_new += 1;
        }
    }
    assert!(seen_old > 1 && seen_new > 5, "{seen_old} old, {seen_new} new");
}

#[test]
fn a_file_that_somebody_else_changed_is_not_overwritten() {
    let (dir, plan) = site();
    fs::write(dir.path().join("edited"), "mine").expect("written");
    let refused = apply(dir.path(), &plan).expect_err("it has changed");
    assert_eq!(refused.to_string(), "edited: has changed in the meantime: try again");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn nothing_to_recover_is_no_error() {
    let (dir, _) = site();
    assert!(!recover(dir.path()).expect("looked"));
}
