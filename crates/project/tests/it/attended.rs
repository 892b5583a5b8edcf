//! `deployment`, `node` and `boat` are what the scaffolding makes of kinds that something else
//! defines, to the letter: two of Kubernetes, one of them in no namespace, and one whose types were
//! imported. They are compiled among these tests, so that every run of them says whether that is
//! Rust, and their own tests run.
//!
//! With `KUBEWRIGHT_BLESS` set, they are written anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubewright::Operator;
use kubewright_project::scaffold::{
    Hooks, Init, Library, License, NewApi, create_api, create_webhook, init,
};
use kubewright_project::{Plan, Project, apply};
use serde_json::{Value, json};

use crate::{boat, deployment, node, tree};

const MODULES: [&str; 3] = ["boat", "deployment", "node"];

/// The sources of the kinds, made anew below this repository, whose rules of layout they follow.
fn made() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("attended-golden");
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
    // The imported types are where these tests have them.
    let imported = root.join("src/import/imported");
    fs::create_dir_all(&imported).expect("a folder");
    fs::copy(folder().join("import/imported/boat.rs"), imported.join("boat.rs")).expect("copied");
    fs::write(root.join("src/import/imported.rs"), "pub mod boat;\n").expect("written");
    fs::write(root.join("src/import.rs"), "pub mod imported;\n").expect("written");
    let library = fs::read_to_string(root.join("src/lib.rs")).expect("a source");
    let library = library.replace("use kubewright", "mod import;\n\nuse kubewright");
    fs::write(root.join("src/lib.rs"), library).expect("written");

    let project = Project::find(&root).expect("a project");
    for (group, kind) in [("apps", "Deployment"), ("core", "Node"), ("example.com", "Boat")] {
        let api = NewApi {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: None,
            namespaced: true,
            resource: false,
            controller: true,
        };
        make(create_api(&project, &api).expect("a plan"));
        let hooks = Hooks {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            defaulting: true,
            validation: true,
            conversion: false,
            spokes: Vec::new(),
        };
        make(create_webhook(&project, &hooks).expect("a plan"));
    }
    let sources = theirs(tree(&root.join("src")));
    fs::remove_dir_all(root).expect("removed");
    sources
}

fn theirs(sources: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_theirs =
        |path: &str| MODULES.iter().any(|module| path.split(['/', '.']).next() == Some(module));
    sources.into_iter().filter(|(path, _)| is_theirs(path)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")
}

#[test]
fn kinds_of_others_are_what_the_scaffolding_makes() {
    let made = made();
    if std::env::var_os("KUBEWRIGHT_BLESS").is_some() {
        for (path, text) in &made {
            let path = folder().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        }
    }
    let there = theirs(tree(&folder()));
    assert_eq!(there.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (path, text) in &made {
        assert_eq!(&there[path], text, "{path}: `KUBEWRIGHT_BLESS=1 cargo test` writes it anew");
    }
}

/// What its manifests have of a kind, as the scaffolding has `src/lib.rs` put it together.
#[test]
fn what_an_operator_may_do_with_kinds_of_others_follows_from_their_types() {
    let operator = Operator::new("harbor")
        .controller(boat::controller::new())
        .controller(deployment::controller::new())
        .controller(node::controller::new())
        .webhook(boat::defaulting::webhook())
        .webhook(boat::validation::webhook())
        .webhook(deployment::defaulting::webhook())
        .webhook(deployment::validation::webhook())
        .webhook(node::defaulting::webhook())
        .webhook(node::validation::webhook());
    let manifests = operator.package().render().expect("manifests");
    let objects: Vec<&Value> = manifests.iter().map(|manifest| &manifest.object).collect();
    let of = |kind: &'static str| objects.iter().filter(move |it| it["kind"] == kind).copied();
    assert_eq!(of("CustomResourceDefinition").count(), 0);
    let rules: Vec<&Value> =
        of("ClusterRole").flat_map(|role| role["rules"].as_array().into_iter().flatten()).collect();
    for (group, plural) in [("example.com", "boats"), ("apps", "deployments"), ("", "nodes")] {
        let is_its = |rule: &&Value| {
            rule["apiGroups"] == json!([group]) && rule["resources"] == json!([plural])
        };
        let rule = rules.iter().copied().find(is_its);
        let verbs =
            rule.unwrap_or_else(|| panic!("{plural} are not in {rules:?}"))["verbs"].clone();
        let verbs: Vec<&str> =
            verbs.as_array().expect("verbs").iter().filter_map(Value::as_str).collect();
        assert!(["get", "list", "watch"].iter().all(|verb| verbs.contains(verb)), "{verbs:?}");
        assert!(!verbs.contains(&"create"), "{verbs:?}");
    }
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let webhooks: Vec<&Value> =
            of(kind).flat_map(|it| it["webhooks"].as_array().into_iter().flatten()).collect();
        assert_eq!(webhooks.len(), 3, "{webhooks:?}");
        let asked = json!({"matchLabels": {"harbor.my.domain/webhooks": "enabled"}});
        for webhook in webhooks {
            // Nodes are in no namespace.
            let is_node = webhook["rules"][0]["resources"] == json!(["nodes"]);
            let selector = if is_node { "objectSelector" } else { "namespaceSelector" };
            assert_eq!(webhook[selector], asked, "{webhook}");
        }
    }
}
