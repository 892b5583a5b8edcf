//! `operators/guestbook` is what the scaffolding makes, to the letter; its logic is a patch on top.
//!
//! With `KUBEWRIGHT_BLESS` set, the folder is written anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubewright_project::scaffold::{
    Hooks, Init, Library, License, NewApi, create_api, create_webhook, init,
};
use kubewright_project::{Plan, Project, apply};

use crate::patch::patched;
use crate::tree;

/// What is in the folder besides.
const LOGIC: &str = "logic.patch";

/// The smallest operator, made anew. It is below this repository, whose rules of layout it follows.
fn made(place: &str) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
    // Of an earlier run.
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("a folder");
    let make = |plan: Plan| apply(&root, &plan).expect("applied");
    let begin = Init {
        name: "guestbook".to_owned(),
        domain: "my.domain".to_owned(),
        repository: None,
        license: License::None,
        owner: None,
        namespaced: false,
        library: Library::Path("../../crates".into()),
    };
    make(init(&root, &begin).expect("a plan"));
    let project = Project::find(&root).expect("a project");
    let api = NewApi {
        group: "webapp".to_owned(),
        version: "v1".to_owned(),
        kind: "Guestbook".to_owned(),
        plural: None,
        namespaced: true,
        resource: true,
        controller: true,
    };
    make(create_api(&project, &api).expect("a plan"));
    let hooks = Hooks {
        group: api.group,
        version: api.version,
        kind: api.kind,
        defaulting: true,
        validation: true,
        conversion: false,
        spokes: Vec::new(),
    };
    make(create_webhook(&project, &hooks).expect("a plan"));
    let files = tree(&root);
    fs::remove_dir_all(root).expect("removed");
    files
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operators/guestbook")
}

#[test]
fn the_smallest_operator_is_what_the_scaffolding_makes() {
    let made = made("guestbook-golden");
    if std::env::var_os("KUBEWRIGHT_BLESS").is_some() {
        for (path, text) in &made {
            let path = folder().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        }
    }
    let mut there = tree(&folder());
    there.remove(LOGIC);
    assert_eq!(there.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (path, text) in &made {
        assert_eq!(&there[path], text, "{path}: `KUBEWRIGHT_BLESS=1 cargo test` writes it anew");
    }
}

#[test]
fn its_logic_fits_what_the_scaffolding_makes() {
    let patch = fs::read_to_string(folder().join(LOGIC)).expect("a patch");
    let patched = patched(made("guestbook-patched"), &patch);
    let controller = &patched["src/guestbook/controller.rs"];
    assert!(controller.contains(".owns::<ConfigMap>()"), "{controller}");
}

/// Builds it, which takes minutes where nothing is built yet: only if `KUBEWRIGHT_PROJECTS` is set.
#[test]
fn its_logic_passes_its_own_tests() {
    if std::env::var_os("KUBEWRIGHT_PROJECTS").is_none() {
        eprintln!("skipped: set KUBEWRIGHT_PROJECTS to build projects");
        return;
    }
    let checkout = folder().join("../..").canonicalize().expect("it is there");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guestbook-logic");
    let patch = fs::read_to_string(folder().join(LOGIC)).expect("a patch");
    for (path, text) in patched(made("guestbook-made"), &patch) {
        // Seen from elsewhere.
        let text = text.replace("../../crates", &checkout.join("crates").display().to_string());
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let text = cargo_test(&root);
    assert!(text.contains("a_guestbook_has_one_config_map_under_whatever_name ... ok"), "{text}");
    fs::remove_dir_all(root).expect("removed");
}

/// Runs the tests of a project, with the versions of this repository's lock. All projects that tests
/// build are built into one folder, so what they have in common is built once.
pub(crate) fn cargo_test(root: &Path) -> String {
    let checkout = folder().join("../..").canonicalize().expect("it is there");
    fs::copy(checkout.join("Cargo.lock"), root.join("Cargo.lock")).expect("copied");
    let output = Command::new("cargo")
        .args(["test", "--offline"])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("../projects"))
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        // Set for this repository: a library would be built anew for whoever is elsewhere.
        .env("AWS_LC_SYS_NO_JITTER_ENTROPY", "1")
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}
