use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

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

/// A folder in which a plan was begun: its first change is made, the others are not.
fn interrupted() -> (tempfile::TempDir, Plan) {
    let (dir, plan) = site();
    let mut steps = 0;
    // A journal takes three steps, and so does a file.
    let killed = apply_with(dir.path(), &plan, &mut || {
        steps += 1;
        if steps > 6 { Err(io::Error::other("killed")) } else { Ok(()) }
    });
    killed.expect_err("it was killed");
    assert_eq!(fs::read_to_string(dir.path().join("new/deep/made")).expect("a text"), "two");
    assert_eq!(fs::read_to_string(dir.path().join("edited")).expect("a text"), "one");
    (dir, plan)
}

/// It used to write the new text over whatever was there.
#[test]
fn what_was_changed_since_is_not_overwritten_by_what_was_begun() {
    for (path, left) in [("edited", "mine"), ("new/deep/made", "mine"), ("old/gone", "mine")] {
        let (dir, plan) = interrupted();
        fs::write(dir.path().join(path), left).expect("written");
        let before = tree(dir.path());
        let refused = recover(dir.path()).expect_err("it has changed");
        let expected = format!(
            "{path}: was changed since a command that changes it was interrupted: put it back as \
             it was, or delete .kubewright-journal to keep it, and see what git says of the rest"
        );
        assert_eq!(refused.to_string(), expected);
        assert_eq!(tree(dir.path()), before, "nothing is written");
        apply(dir.path(), &plan).expect_err("first what was begun");

        fs::remove_file(dir.path().join(JOURNAL)).expect("removed");
        assert!(!recover(dir.path()).expect("looked"), "it is given up");
        assert_eq!(fs::read_to_string(dir.path().join(path)).expect("a text"), left);
    }
}

#[test]
fn what_was_begun_can_be_looked_at() {
    let (dir, plan) = interrupted();
    let before = tree(dir.path());
    assert_eq!(begun(dir.path()).expect("looked"), Some(plan));
    assert_eq!(tree(dir.path()), before, "nothing is written");
    assert!(recover(dir.path()).expect("recovered"));
    assert_eq!(begun(dir.path()).expect("looked"), None);
}

#[test]
fn callers_are_last_to_come_and_first_to_go() {
    let order = |changes: Vec<Change>| -> Vec<String> {
        let plan = Plan { changes };
        ordered(&plan).iter().map(|change| change.path.display().to_string()).collect()
    };
    let come = order(vec![
        change("Cargo.toml", None, Some("1")),
        change("src/lib.rs", Some("1"), Some("12")),
        change("src/zoo.rs", Some("1"), Some("12")),
        change("src/zoo/v2.rs", None, Some("1")),
        change("tests/it/main.rs", Some("1"), Some("12")),
    ]);
    let expected = ["src/zoo/v2.rs", "Cargo.toml", "src/zoo.rs", "src/lib.rs", "tests/it/main.rs"];
    assert_eq!(come, expected);
    let go = order(vec![
        change("src/ant.rs", Some("12"), Some("1")),
        change("src/ant/v2.rs", Some("1"), None),
        change("src/lib.rs", Some("12"), Some("1")),
        change("tests/it/main.rs", Some("12"), Some("1")),
    ]);
    assert_eq!(go, ["tests/it/main.rs", "src/lib.rs", "src/ant.rs", "src/ant/v2.rs"]);
}

/// Whoever has it open reads on in what it was, so there is no moment with half of it.
#[test]
fn a_file_is_replaced_and_not_written_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let (file, link) = (dir.path().join("dist/image.tar"), dir.path().join("link"));
    replace(&file, b"one").expect("written");
    let open = File::open(&file).expect("it is there");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    replace(&link, b"two, and more").expect("written");
    assert_eq!(io::read_to_string(open).expect("a text"), "one");
    assert_eq!(fs::read(&file).expect("bytes"), b"two, and more");
    assert!(link.is_symlink());
    assert_eq!(fs::read_dir(dir.path().join("dist")).expect("a list").count(), 1);
    replace(Path::new("/dev/null"), b"three").expect("written to");
    assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
}

#[test]
fn whoever_comes_second_waits_and_nothing_is_left() {
    let (dir, _) = site();
    let before = tree(dir.path());
    let first = take_turn(dir.path(), || panic!("nobody else is there")).expect("a turn");
    let (told, waits) = mpsc::channel();
    let path = dir.path().to_owned();
    let second =
        thread::spawn(move || take_turn(&path, || told.send(()).expect("somebody listens")));
    waits.recv().expect("it waits");
    assert!(!second.is_finished());
    drop(first);
    second.join().expect("it ends").expect("a turn");
    assert_eq!(tree(dir.path()), before);
    take_turn(&dir.path().join("absent"), || ()).expect_err("there is no folder");
}
