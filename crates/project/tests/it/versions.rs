//! `ferry` is what the scaffolding makes of a kind in two versions that are converted, to the
//! letter. It is compiled among these tests, so that every run of them says whether that is Rust.
//!
//! With `KUBEWRIGHT_BLESS` set, it is written anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubewright::Operator;
use kubewright_project::scaffold::{
    Hooks, Init, Library, License, NewApi, create_api, create_webhook, init,
};
use kubewright_project::{Plan, Project, apply};

use crate::{ferry, tree};

/// The sources of the kind, made anew below this repository, whose rules of layout they follow.
fn made() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ferry-golden");
    // Of an earlier run.
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("a folder");
    let make = |plan: Plan| apply(&root, &plan).expect("applied");
    let begin = Init {
        name: "harbor".to_owned(),
        domain: "my.domain".to_owned(),
        repository: None,
        license: License::None,
        owner: None,
        namespaced: false,
        library: Library::Path("../../crates".into()),
    };
    make(init(&root, &begin).expect("a plan"));
    let project = Project::find(&root).expect("a project");
    for version in ["v1", "v2"] {
        let api = NewApi {
            group: "sea".to_owned(),
            version: version.to_owned(),
            kind: "Ferry".to_owned(),
            plural: None,
            namespaced: true,
            resource: true,
            controller: false,
        };
        make(create_api(&project, &api).expect("a plan"));
    }
    let conversion = Hooks {
        group: "sea".to_owned(),
        version: "v1".to_owned(),
        kind: "Ferry".to_owned(),
        defaulting: false,
        validation: false,
        conversion: true,
        spokes: Vec::new(),
    };
    make(create_webhook(&project, &conversion).expect("a plan"));
    let sources = tree(&root.join("src")).into_iter().filter(|(path, _)| path.starts_with("ferry"));
    let sources = sources.collect();
    fs::remove_dir_all(root).expect("removed");
    sources
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")
}

#[test]
fn a_kind_in_two_versions_is_what_the_scaffolding_makes() {
    let made = made();
    if std::env::var_os("KUBEWRIGHT_BLESS").is_some() {
        for (path, text) in &made {
            let path = folder().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        }
    }
    let there = tree(&folder()).into_iter().filter(|(path, _)| path.starts_with("ferry"));
    let there: BTreeMap<_, _> = there.collect();
    assert_eq!(there.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (path, text) in &made {
        assert_eq!(&there[path], text, "{path}: `KUBEWRIGHT_BLESS=1 cargo test` writes it anew");
    }
}

/// Called as the scaffolding has `src/lib.rs` call it.
#[test]
fn its_definition_has_both_versions_and_who_converts_them() {
    let operator = Operator::new("harbor")
        .kind::<ferry::v1::Ferry>()
        .version::<ferry::v2::Ferry>()
        .converting(ferry::conversion::new());
    let text = kubewright_project::package::yaml(&operator.package()).expect("manifests");
    for part in ["name: ferries.sea.my.domain\n", "name: v2\n", "strategy: Webhook\n"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
