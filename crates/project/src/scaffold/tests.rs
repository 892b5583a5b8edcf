use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kubewright_apimachinery::builtin;
use serde_json::Value;

use super::*;
use crate::apply::{apply, ordered};
use crate::change::Change;
use crate::elsewhere;
use crate::project::Project;
use crate::source;
use crate::upgrade::COMPANIONS;

/// A project in a folder of its own.
struct Site {
    dir: tempfile::TempDir,
}

type Tree = BTreeMap<String, String>;

impl Site {
    fn new() -> Self {
        let site = Site { dir: tempfile::tempdir().expect("a folder") };
        site.make(&init(site.root(), &begin()).expect("a plan"));
        site
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn make(&self, plan: &Plan) {
        apply(self.root(), plan).expect("applied");
    }

    fn project(&self) -> Project {
        Project::find(&self.root().join("src")).expect("a project")
    }

    fn api(&self, wanted: &NewApi) -> Result<Plan, ScaffoldError> {
        create_api(&self.project(), wanted)
    }

    fn webhook(&self, wanted: &Hooks) -> Result<Plan, ScaffoldError> {
        create_webhook(&self.project(), wanted)
    }

    fn tree(&self) -> Tree {
        tree(self.root())
    }

    /// Says how a file goes on, as an author would.
    fn edit(&self, path: &str, from: &str, to: &str) {
        let path = self.root().join(path);
        let text = fs::read_to_string(&path).expect("a text");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).expect("written");
    }
}

/// All files, by their path.
fn tree(root: &Path) -> Tree {
    let mut files = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a list") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(root).expect("it is below");
                    let text = fs::read_to_string(&path).expect("a text");
                    files.insert(name.display().to_string(), text);
                }
            }
        }
    }
    files
}

fn begin() -> Init {
    Init {
        name: "book-keeper".to_owned(),
        domain: "my.domain".to_owned(),
        repository: None,
        license: License::None,
        owner: None,
        namespaced: false,
        library: Library::Version("0.1.0".to_owned()),
    }
}

fn guestbook() -> NewApi {
    NewApi {
        group: "webapp".to_owned(),
        version: "v1".to_owned(),
        kind: "Guestbook".to_owned(),
        plural: None,
        namespaced: true,
        resource: true,
        controller: true,
    }
}

fn old(api: &NewApi, force: bool) -> OldApi {
    let NewApi { group, version, kind, plural, namespaced, resource, controller } = api.clone();
    let cluster_scoped = !namespaced;
    OldApi { group, version, kind, plural, cluster_scoped, resource, controller, force }
}

fn hooks(api: &NewApi) -> Hooks {
    let NewApi { group, version, kind, .. } = api.clone();
    let spokes = Vec::new();
    Hooks { group, version, kind, defaulting: true, validation: true, conversion: false, spokes }
}

fn told<T: std::fmt::Debug>(outcome: Result<T, ScaffoldError>) -> String {
    outcome.expect_err("it is refused").to_string()
}

#[test]
fn a_project_has_few_files() {
    let wanted = Init { license: License::Mit, owner: Some("Me".to_owned()), ..begin() };
    let dir = tempfile::tempdir().expect("a folder");
    let plan = init(dir.path(), &wanted).expect("a plan");
    assert!(plan.changes.len() < 15, "{}", plan.changes.len());
    apply(dir.path(), &plan).expect("applied");
    let project = Project::find(dir.path()).expect("a project");
    assert_eq!((project.name.as_str(), project.domain.as_str()), ("book-keeper", "my.domain"));
    assert!(project.apis().expect("kinds").is_empty());
    let again = init(dir.path(), &wanted).expect("a plan");
    assert!(again.is_empty(), "twice is once");
    let other = Init { domain: "other".to_owned(), ..wanted };
    assert!(told(init(dir.path(), &other)).contains("here is a project already, \"book-keeper\""));
}

/// It used to say that nothing was to be changed, whatever was asked for.
#[test]
fn a_project_that_is_there_is_not_said_to_be_what_it_is_not() {
    let site = Site::new();
    let again = |wanted: &Init| init(site.root(), wanted);
    assert!(again(&begin()).expect("a plan").is_empty());
    let all = Init {
        repository: Some("https://example.com/it".to_owned()),
        license: License::Mit,
        owner: Some("Me".to_owned()),
        namespaced: true,
        ..begin()
    };
    let expected = "here is the project \"book-keeper\" already, and it is left as it is: if it is \
                    to be as you say, write in Cargo.toml `license = \"MIT\"` into [package], and \
                    its text into LICENSE; `repository = \"https://example.com/it\"` into [package]; \
                    `authors = [\"Me\"]` into [package]; `namespaced = true` into \
                    [package.metadata.kubewright]";
    assert_eq!(told(again(&all)), expected);

    let about = "publish = false\nlicense = \"MIT\"\nrepository = \"https://example.com/it\"\n\
                 authors = [\"You\", \"Me\"]\n";
    site.edit("Cargo.toml", "publish = false\n", about);
    let domain = "domain = \"my.domain\"\n";
    site.edit("Cargo.toml", domain, &format!("{domain}namespaced = true\n"));
    assert!(again(&all).expect("a plan").is_empty());
    // What is not asked for is not compared.
    assert!(again(&begin()).expect("a plan").is_empty());
    let other = Init { license: License::Apache2, ..begin() };
    assert!(told(again(&other)).ends_with("its text into LICENSE"));
}

/// What it is begun with, it says of itself.
#[test]
fn a_project_says_what_it_was_begun_with() {
    let dir = tempfile::tempdir().expect("a folder");
    let wanted = Init {
        repository: Some("https://example.com/it".to_owned()),
        license: License::Mit,
        owner: Some("Me \"Myself\"".to_owned()),
        namespaced: true,
        ..begin()
    };
    apply(dir.path(), &init(dir.path(), &wanted).expect("a plan")).expect("applied");
    assert!(Project::find(dir.path()).expect("a project").namespaced);
    let text = fs::read_to_string(dir.path().join("Cargo.toml")).expect("a manifest");
    let manifest: toml_edit::DocumentMut = text.parse().expect("a manifest");
    let package = &manifest["package"];
    assert_eq!(package["repository"].as_str(), Some("https://example.com/it"));
    assert_eq!(package["license"].as_str(), Some("MIT"));
    let author = package["authors"].as_array().and_then(|authors| authors.get(0)?.as_str());
    assert_eq!(author, Some("Me \"Myself\""));
    let license = fs::read_to_string(dir.path().join("LICENSE")).expect("a license");
    assert!(license.contains("Copyright (c) Me \"Myself\"\n"), "{license}");
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("Dockerfile"), "FROM mine").expect("written");
    let refused = told(init(dir.path(), &begin()));
    assert!(refused.starts_with("Dockerfile: is there already"), "{refused}");

    let site = Site::new();
    fs::write(site.root().join("src/guestbook.rs"), "//! Mine.\n").expect("written");
    let refused = told(site.api(&guestbook()));
    assert!(refused.starts_with("src/guestbook.rs: is there already"), "{refused}");
}

/// As hosts make them, with a few words in them.
#[test]
fn a_project_can_begin_in_a_repository_that_was_made_before() {
    let dir = tempfile::tempdir().expect("a folder");
    let theirs =
        [("README.md", "# Mine\n"), ("LICENSE", "Mine.\n"), (".gitignore", "target/\n*.pdb")];
    for (path, text) in theirs {
        fs::write(dir.path().join(path), text).expect("written");
    }
    let wanted = Init { license: License::Mit, ..begin() };
    let plan = init(dir.path(), &wanted).expect("a plan");
    apply(dir.path(), &plan).expect("applied");
    let tree = tree(dir.path());
    assert_eq!(tree["README.md"], "# Mine\n");
    assert_eq!(tree["LICENSE"], "Mine.\n");
    assert_eq!(tree[".gitignore"], "target/\n*.pdb\n/dist\n");
    assert!(tree.contains_key("src/lib.rs"));
    assert!(init(dir.path(), &wanted).expect("a plan").is_empty(), "twice is once");
}

fn conversion(spoke: &str) -> Hooks {
    Hooks {
        defaulting: false,
        validation: false,
        conversion: true,
        spokes: vec![spoke.to_owned()],
        ..hooks(&guestbook())
    }
}

/// One thing that an author adds, and takes back later.
enum Step {
    Api(NewApi),
    Webhook(Hooks),
}

impl Step {
    fn forth(&self, site: &Site) -> Plan {
        let plan = match self {
            Step::Api(api) => site.api(api),
            Step::Webhook(hooks) => site.webhook(hooks),
        };
        plan.expect("a plan")
    }

    fn back(&self, site: &Site) -> Plan {
        let plan = match self {
            Step::Api(api) => delete_api(&site.project(), &old(api, false)),
            Step::Webhook(hooks) => delete_webhook(&site.project(), hooks, false),
        };
        plan.expect("a plan")
    }
}

fn shelf() -> NewApi {
    NewApi {
        kind: "BookShelf".to_owned(),
        version: "v1alpha1".to_owned(),
        plural: Some("bookshelves".to_owned()),
        namespaced: false,
        ..guestbook()
    }
}

fn another(version: &str) -> NewApi {
    NewApi { version: version.to_owned(), controller: false, ..guestbook() }
}

/// Each time the tree is as it was, byte for byte.
#[test]
fn what_is_deleted_was_never_there() {
    let steps = [
        Step::Api(NewApi { controller: false, ..shelf() }),
        Step::Api(NewApi { resource: false, ..shelf() }),
        Step::Api(guestbook()),
        Step::Webhook(hooks(&guestbook())),
        // There is a controller, and it is not theirs.
        Step::Api(NewApi { version: "v2".to_owned(), ..guestbook() }),
        Step::Webhook(conversion("v2")),
        Step::Api(another("v3beta1")),
        Step::Webhook(conversion("v3beta1")),
    ];
    let site = Site::new();
    // What an author writes in between stays.
    site.edit("src/lib.rs", "    Operator::new", "    // Here.\n    Operator::new");
    let mut trees = Vec::new();
    for step in &steps {
        trees.push(site.tree());
        site.make(&step.forth(&site));
        let again = step.forth(&site);
        assert!(again.is_empty(), "twice is once:\n{}", again.diff());
    }
    let versions = |api: &crate::Api| api.versions.clone();
    let apis = site.project().apis().expect("kinds");
    assert_eq!(
        apis.iter().map(versions).collect::<Vec<_>>(),
        [vec!["v1alpha1"], vec!["v1", "v2", "v3beta1"],]
    );
    for (step, before) in steps.iter().zip(trees).rev() {
        let plan = step.back(&site);
        site.make(&plan);
        assert_eq!(site.tree(), before, "{}", plan.diff());
        let again = step.back(&site);
        assert!(again.is_empty(), "twice is once:\n{}", again.diff());
    }
}

/// A kind whose module comes after `lib` in the alphabet.
fn zoo() -> NewApi {
    NewApi { kind: "Zoo".to_owned(), ..guestbook() }
}

/// Whoever is killed between two changes leaves a program that can be built.
#[test]
fn between_two_changes_nothing_is_named_that_is_not_there() {
    let site = Site { dir: tempfile::tempdir().expect("a folder") };
    let plan = init(site.root(), &begin()).expect("a plan");
    let last = ordered(&plan).pop().expect("a change");
    assert_eq!(last.path, Path::new("Cargo.toml"), "without it there is nothing to be built");
    site.make(&plan);
    let steps = [
        Step::Api(guestbook()),
        Step::Api(zoo()),
        Step::Api(NewApi { version: "v2".to_owned(), controller: false, ..zoo() }),
        Step::Webhook(hooks(&zoo())),
        Step::Webhook(Hooks { kind: "Zoo".to_owned(), ..conversion("v2") }),
        Step::Api(another("v2")),
        Step::Webhook(conversion("v2")),
        Step::Api(another("v3")),
        Step::Webhook(conversion("v3")),
    ];
    for step in &steps {
        let plan = step.forth(&site);
        check_prefixes(site.tree(), &plan);
        site.make(&plan);
    }
    for file in ["src/zoo.rs", "src/zoo/controller.rs", "tests/it/zoo_controller.rs"] {
        let mut broken = site.tree();
        broken.remove(file).expect("it is there");
        assert!(!missing(&broken).is_empty(), "without {file}");
    }
    let mut broken = site.tree();
    let parent = broken.get_mut("src/zoo.rs").expect("it is there");
    *parent = parent.replace("pub mod v2;", "");
    assert_eq!(missing(&broken), ["zoo::v2::Zoo"; 3]);
    for step in steps.iter().rev() {
        let plan = step.back(&site);
        check_prefixes(site.tree(), &plan);
        site.make(&plan);
    }
}

fn check_prefixes(mut tree: Tree, plan: &Plan) {
    assert_eq!(missing(&tree), Vec::<String>::new());
    for change in ordered(plan) {
        let path = change.path.display().to_string();
        match &change.after {
            Some(text) => tree.insert(path.clone(), text.clone()),
            None => tree.remove(&path),
        };
        assert_eq!(missing(&tree), Vec::<String>::new(), "after {path} of\n{}", plan.diff());
    }
}

/// What a program and its tests name that is not there: files of modules, and what is in modules.
fn missing(tree: &Tree) -> Vec<String> {
    let mut missing = Vec::new();
    let library = modules(tree, "src/lib.rs", "src", &mut missing);
    let tests = modules(tree, "tests/it/main.rs", "tests/it", &mut missing);
    for (module, text) in library.iter().chain(&tests) {
        for name in names(text) {
            let (words, item) = name.rsplit_once("::").expect("it has words");
            let mut words: Vec<&str> = words.split("::").collect();
            let first = words.remove(0);
            match first {
                "crate" | "book_keeper" => {}
                "super" => {
                    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
                    words.insert(0, parent);
                }
                "guestbook" | "zoo" => words.insert(0, first),
                // Of other crates, or of the same source.
                _ => continue,
            }
            let is_there = library.get(&words.join("::")).is_some_and(|text| {
                text.contains(&format!("fn {item}(")) || text.contains(&format!("kind = {item:?}"))
            });
            if !is_there {
                missing.push(format!("{}::{item}", words.join("::")));
            }
        }
    }
    missing
}

/// The sources of a crate by the path of their module, which is empty for the root.
fn modules<'t>(
    tree: &'t Tree,
    file: &str,
    folder: &str,
    missing: &mut Vec<String>,
) -> BTreeMap<String, &'t str> {
    let mut modules = BTreeMap::new();
    let mut waiting = vec![(String::new(), file.to_owned(), folder.to_owned())];
    while let Some((module, file, folder)) = waiting.pop() {
        let Some(text) = tree.get(&file) else {
            missing.push(file);
            continue;
        };
        // Tests of a source are in it.
        for child in source::declared(text).expect("it is Rust").iter().filter(|it| *it != "tests")
        {
            let path = format!("{module}::{child}");
            let path = path.trim_start_matches("::").to_owned();
            waiting.push((path, format!("{folder}/{child}.rs"), format!("{folder}/{child}")));
        }
        modules.insert(module, text.as_str());
    }
    modules
}

/// All names of a source that have several words, as `zoo::v1::Zoo`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(move |c: char| !is_word(c));
    words.filter(|word| word.contains("::") && !word.ends_with(':'))
}

#[test]
fn a_controller_can_come_later_than_its_kind() {
    let site = Site::new();
    site.make(&site.api(&NewApi { controller: false, ..guestbook() }).expect("a plan"));
    let without = site.tree();
    site.make(&site.api(&NewApi { resource: false, ..guestbook() }).expect("a plan"));
    assert!(site.tree()["src/lib.rs"].contains(".controller(guestbook::controller::new())"));
    assert_ne!(site.tree(), without);

    let stranger = NewApi { resource: false, kind: "Shelf".to_owned(), ..guestbook() };
    assert!(told(site.api(&stranger)).ends_with("add --resource to define it"));
}

#[test]
fn another_version_begins_as_the_first_has_become() {
    let site = Site::new();
    site.make(&site.api(&guestbook()).expect("a plan"));
    site.edit("src/guestbook/v1.rs", "pub foo: Option<String>", "pub bar: Option<u32>");
    site.make(&site.api(&another("v2")).expect("a plan"));
    let text = &site.tree()["src/guestbook/v2.rs"];
    assert!(text.contains("pub bar: Option<u32>") && text.contains("version = \"v2\""), "{text}");
    let library = &site.tree()["src/lib.rs"];
    assert!(library.contains(".version::<guestbook::v2::Guestbook>()"), "{library}");

    let elsewhere = NewApi { namespaced: false, ..another("v3") };
    assert!(told(site.api(&elsewhere)).ends_with("in all versions: leave out --cluster-scoped"));
}

#[test]
fn what_an_author_wrote_goes_only_if_it_is_said() {
    let site = Site::new();
    let before = site.tree();
    site.make(&site.api(&guestbook()).expect("a plan"));
    site.edit("src/guestbook/v1.rs", "pub foo", "pub bar");
    let call = ".controller(guestbook::controller::new())";
    site.edit("src/lib.rs", call, ".controller(guestbook::controller::new().at_once(4))");
    let refused = told(delete_api(&site.project(), &old(&guestbook(), false)));
    let expected = "src/guestbook/v1.rs, src/lib.rs would be lost, which were changed since: add \
                    --force if that is meant";
    assert_eq!(refused, expected);
    site.make(&delete_api(&site.project(), &old(&guestbook(), true)).expect("a plan"));
    assert_eq!(site.tree(), before);
}

/// A second call used to be added, and the first to be left behind.
#[test]
fn how_an_author_arranges_calls_does_not_matter() {
    for (from, to) in [
        (
            "    Operator::new(\"book-keeper\")",
            "    let o = Operator::new(\"book-keeper\");\n    o",
        ),
        (
            "    Operator::new(\"book-keeper\")",
            "    // All of it.\n    let o = Operator::new(\"book-keeper\"); // it\n\n    o",
        ),
    ] {
        let site = Site::new();
        site.edit("src/lib.rs", from, to);
        let before = site.tree();
        site.make(&site.api(&guestbook()).expect("a plan"));
        // From what is given back to where it is made.
        let calls = ".kind::<guestbook::v1::Guestbook>()\n        \
                     .controller(guestbook::controller::new())";
        site.edit("src/lib.rs", &format!("    o{calls}"), "    o");
        let calls = format!("\n        {calls}");
        site.edit("src/lib.rs", "(\"book-keeper\");", &format!("(\"book-keeper\"){calls};"));
        let again = site.api(&guestbook()).expect("a plan");
        assert!(again.is_empty(), "{}", again.diff());
        site.make(&delete_api(&site.project(), &old(&guestbook(), false)).expect("a plan"));
        assert_eq!(site.tree(), before);
    }
}

/// They used to go without a word, with what was deleted.
#[test]
fn what_an_author_says_of_a_part_goes_only_if_it_is_said() {
    for (from, to) in [
        ("pub mod guestbook;", "/// Who was here.\npub mod guestbook;"),
        ("pub mod guestbook;", "#[cfg(feature = \"guests\")]\npub mod guestbook;"),
        ("pub mod guestbook;", "pub mod guestbook; // who was here"),
        ("::Guestbook>()", "::Guestbook>() // who was here"),
        ("::Guestbook>()", "::Guestbook>(\n            // who was here\n        )"),
    ] {
        let site = Site::new();
        let before = site.tree();
        site.make(&site.api(&guestbook()).expect("a plan"));
        site.edit("src/lib.rs", from, to);
        let refused = told(delete_api(&site.project(), &old(&guestbook(), false)));
        let expected = "src/lib.rs would be lost, which was changed since: add --force if that is \
                        meant";
        assert_eq!(refused, expected, "{to}");
        site.make(&delete_api(&site.project(), &old(&guestbook(), true)).expect("a plan"));
        assert_eq!(site.tree(), before, "{to}");
    }
    // What is not about them stays.
    for (from, to) in [
        ("Operator::new(\"book-keeper\")\n", "Operator::new(\"book-keeper\") // it\n"),
        ("        .controller", "        // What follows is alive.\n        .controller"),
        ("pub mod guestbook;", "// Kinds.\npub mod guestbook;"),
    ] {
        let site = Site::new();
        site.make(&site.api(&guestbook()).expect("a plan"));
        site.edit("src/lib.rs", from, to);
        site.make(&delete_api(&site.project(), &old(&guestbook(), false)).expect("a plan"));
        let comment = to.split("//").nth(1).and_then(|it| it.lines().next()).expect("a comment");
        assert!(site.tree()["src/lib.rs"].contains(comment), "{to}");
    }
}

#[test]
fn what_others_need_is_not_deleted() {
    let site = Site::new();
    for step in [
        Step::Api(guestbook()),
        Step::Webhook(hooks(&guestbook())),
        Step::Api(another("v2")),
        Step::Webhook(conversion("v2")),
    ] {
        site.make(&step.forth(&site));
    }
    let delete = |api: &NewApi| told(delete_api(&site.project(), &old(api, true)));
    assert!(delete(&another("v2")).contains("--conversion --spoke v2` first"));
    assert!(delete(&guestbook()).starts_with("v1 is the version that Guestbook is stored in"));
    let elsewhere = NewApi { namespaced: false, ..guestbook() };
    assert!(delete(&elsewhere).ends_with("in all versions: leave out --cluster-scoped"));
    let named = NewApi { plural: Some("books".to_owned()), ..guestbook() };
    assert!(delete(&named).starts_with("--plural: Guestbook has its plural already"));
    site.make(&delete_webhook(&site.project(), &conversion("v2"), false).expect("a plan"));
    site.make(&delete_api(&site.project(), &old(&another("v2"), false)).expect("a plan"));
    let refused = told(delete_api(&site.project(), &old(&guestbook(), true)));
    assert!(refused.contains("has a webhook: `kubewright delete webhook"), "{refused}");
    site.make(&delete_webhook(&site.project(), &hooks(&guestbook()), false).expect("a plan"));
    let kind_alone = NewApi { controller: false, ..guestbook() };
    let refused = told(delete_api(&site.project(), &old(&kind_alone, true)));
    assert!(refused.ends_with("nothing to control: add --controller"), "{refused}");
}

#[test]
fn webhooks_that_cannot_be_are_refused_with_what_to_do() {
    let site = Site::new();
    let refused = told(site.webhook(&hooks(&guestbook())));
    assert!(refused.contains("`kubewright create api --group \"webapp\""), "{refused}");
    site.make(&site.api(&guestbook()).expect("a plan"));
    let none = Hooks { defaulting: false, validation: false, ..hooks(&guestbook()) };
    assert!(told(site.webhook(&none)).starts_with("say which webhooks: --defaulting"));
    assert!(told(site.webhook(&hooks(&another("v2")))).contains("Guestbook has only v1"));
    let alone = Hooks { spokes: Vec::new(), ..conversion("v2") };
    assert!(told(site.webhook(&alone)).contains("adds a version to convert"));
    assert!(told(site.webhook(&conversion("v2"))).ends_with("the hub v1: Guestbook has v1"));
    site.make(&site.api(&another("v2")).expect("a plan"));
    assert!(told(site.webhook(&conversion("v3"))).contains("Guestbook has v1, v2"));
    let refused = told(site.webhook(&hooks(&another("v2"))));
    assert!(refused.contains("are for v1, the version it is stored in"), "{refused}");
}

#[test]
fn names_that_are_taken_are_refused() {
    let site = Site::new();
    site.make(&site.api(&guestbook()).expect("a plan"));
    let other = NewApi { group: "other".to_owned(), ..guestbook() };
    let expected = "--kind \"Guestbook\": `src/guestbook.rs` is Guestbook of webapp.my.domain/v1: \
                    choose another";
    assert_eq!(told(site.api(&other)), expected);
}

/// A kind of Kubernetes, or of whoever's definition was imported.
fn of_others(group: &str, version: &str, kind: &str) -> NewApi {
    NewApi {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        resource: false,
        ..guestbook()
    }
}

/// What `kubewright import` makes, in a project.
fn import(site: &Site) {
    let source = include_str!("../../tests/it/import/imported/zoo.rs").to_owned();
    let sources = [("src/imported/zoo.rs".into(), source)];
    site.make(&adopt(&site.project(), &sources).expect("a plan"));
}

#[test]
fn what_is_generated_is_declared_up_to_the_library() {
    let site = Site::new();
    let adopted = |path: &str| {
        let plan = adopt(&site.project(), &[(path.into(), "pub struct Zoo;\n".to_owned())]);
        let plan = plan.expect("a plan");
        site.make(&plan);
        plan.changes.iter().map(|it| it.path.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        adopted("src/kinds/of/zoo.rs"),
        ["src/kinds/of/zoo.rs", "src/kinds/of.rs", "src/kinds.rs", "src/lib.rs"]
    );
    assert!(adopted("src/kinds/of/zoo.rs").is_empty(), "twice is once");
    assert_eq!(adopted("src/kinds/of/boat.rs"), ["src/kinds/of/boat.rs", "src/kinds/of.rs"]);
    assert_eq!(
        site.tree()["src/kinds/of.rs"],
        "//! Kinds that others define.\n\npub mod boat;\npub mod zoo;\n"
    );
    // As an author has it, who may have a file within the folder.
    site.edit("src/lib.rs", "pub mod kinds;", "mod kinds;");
    fs::create_dir(site.root().join("src/others")).expect("a folder");
    fs::write(site.root().join("src/others/mod.rs"), "//! Mine.\n").expect("written");
    assert_eq!(
        adopted("src/others/zoo.rs"),
        ["src/lib.rs", "src/others/mod.rs", "src/others/zoo.rs"]
    );
    assert_eq!(adopted("src/kinds/lion.rs"), ["src/kinds/lion.rs", "src/kinds.rs"]);
    assert!(site.tree()["src/lib.rs"].contains("\nmod kinds;\n"));
    // No module can be called so, and nothing can be within a program or a test.
    assert_eq!(adopted("src/my-kinds/zoo.rs"), ["src/my-kinds/zoo.rs"]);
    assert_eq!(adopted("tests/zoo.rs"), ["tests/zoo.rs"]);
    site.edit("src/lib.rs", "//!", "fn {");
    let error = adopt(&site.project(), &[("src/ape.rs".into(), String::new())]);
    assert!(told(error).starts_with("src/lib.rs:1:4: is no Rust: "));
}

/// Each time the tree is as it was, byte for byte.
#[test]
fn kinds_of_others_are_attended_to_and_left() {
    let pods = Hooks { conversion: false, ..hooks(&of_others("core", "v1", "Pod")) };
    let one = |hooks: &Hooks| Hooks { validation: false, ..hooks.clone() };
    let steps = [
        Step::Api(of_others("apps", "v1", "Deployment")),
        // In either order.
        Step::Webhook(one(&pods)),
        Step::Webhook(pods),
        Step::Api(of_others("core", "v1", "Pod")),
        Step::Api(of_others("networking", "v1", "Ingress")),
        Step::Webhook(hooks(&of_others("", "v1", "Namespace"))),
        Step::Api(of_others("example.com", "v1", "Zoo")),
        Step::Webhook(hooks(&of_others("example.com", "v1", "Zoo"))),
        // Both are of core, or of a group of their own.
        Step::Api(of_others("events.k8s.io", "v1", "Event")),
        Step::Api(of_others("core", "v1", "Event")),
        // A kind of the project's own goes first.
        Step::Api(NewApi { kind: "Job".to_owned(), ..guestbook() }),
        Step::Api(of_others("batch", "v1", "CronJob")),
        Step::Api(of_others("batch", "v1", "Job")),
    ];
    let site = Site::new();
    import(&site);
    let mut trees = Vec::new();
    for step in &steps {
        trees.push(site.tree());
        let plan = step.forth(&site);
        assert!(!plan.is_empty());
        site.make(&plan);
        let again = step.forth(&site);
        assert!(again.is_empty(), "twice is once:\n{}", again.diff());
    }
    let told: Vec<String> =
        site.project().apis().expect("kinds").iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "Job of batch/v1",
            "Event of core/v1",
            "CronJob of batch/v1",
            "Deployment of apps/v1",
            "Event of events.k8s.io/v1",
            "Ingress of networking.k8s.io/v1",
            "Job of webapp.my.domain/v1",
            "Namespace of core/v1",
            "Pod of core/v1",
            "Zoo of example.com/v1",
        ]
    );
    for (at, (step, before)) in steps.iter().zip(trees).enumerate().rev() {
        // Both webhooks go at once.
        if at == 1 {
            assert!(step.back(&site).is_empty());
            continue;
        }
        let plan = step.back(&site);
        site.make(&plan);
        let again = step.back(&site);
        assert!(again.is_empty(), "twice is once:\n{}", again.diff());
        if at != 2 {
            assert_eq!(site.tree(), before, "{}", plan.diff());
        }
    }
    assert!(site.project().apis().expect("kinds").is_empty());
}

#[test]
fn what_is_asked_of_kinds_of_others_must_make_sense() {
    let site = Site::new();
    let check = |wanted: NewApi, expected: &str| assert_eq!(told(site.api(&wanted)), expected);
    check(
        of_others("apps", "v1beta1", "Deployment"),
        "--version \"v1beta1\": Deployment of apps has v1",
    );
    check(
        NewApi { plural: Some("deploys".to_owned()), ..of_others("apps", "v1", "Deployment") },
        "--plural: Deployment has its plural already, in all versions: leave it out",
    );
    let unknown = told(site.api(&of_others("apps", "v1", "Deploymint")));
    assert!(unknown.starts_with("Deploymint of apps.my.domain is no kind of this"), "{unknown}");
    assert!(unknown.contains("none of Kubernetes that is called apps/v1"), "{unknown}");
    assert!(unknown.contains("`kubewright import --crd FILE --output src/imported`"), "{unknown}");
    let unknown = told(site.webhook(&hooks(&of_others("apps", "v1", "Deploymint"))));
    assert!(unknown.contains("`kubewright import --crd FILE --output src/imported`"), "{unknown}");
    let converted = Hooks { conversion: true, ..hooks(&of_others("core", "v1", "Pod")) };
    assert_eq!(
        told(site.webhook(&converted)),
        "--conversion: versions of Pod are converted by whoever defines it: leave it out"
    );

    import(&site);
    check(
        of_others("example.com", "v9", "Zoo"),
        "--version \"v9\": Zoo of example.com has v1, v1alpha1",
    );
    site.edit("src/imported.rs", "pub mod", "mod");
    check(
        of_others("example.com", "v1", "Zoo"),
        "src/imported.rs: nothing else sees `mod zoo`, where Zoo is: make it `pub mod zoo`",
    );

    let autoscaler = of_others("autoscaling", "v2", "HorizontalPodAutoscaler");
    site.make(&site.api(&autoscaler).expect("a plan"));
    check(
        NewApi { version: "v1".to_owned(), ..autoscaler.clone() },
        "--version \"v1\": `src/horizontal_pod_autoscaler.rs` is HorizontalPodAutoscaler of \
         autoscaling/v2: change what it uses, or leave the version as it is",
    );
    let kind = OldApi { controller: false, resource: true, ..old(&autoscaler, false) };
    assert_eq!(
        told(delete_api(&site.project(), &kind)),
        "HorizontalPodAutoscaler is not defined here, and cannot be deleted: its controller can, \
         with --controller"
    );
    // What its author wrote goes only if it is said.
    site.edit("src/horizontal_pod_autoscaler/controller.rs", "Action::Done", "Action::Never");
    let refused = told(delete_api(&site.project(), &old(&autoscaler, false)));
    assert!(refused.starts_with("src/horizontal_pod_autoscaler/controller.rs would"), "{refused}");
}

/// Whatever is kept and can be listed has a row.
#[test]
fn all_kinds_of_kubernetes_are_known() {
    let known = elsewhere::built_in();
    for version in builtin::versions() {
        for resource in version.resources.iter().filter(|it| it.storage.is_some()) {
            let is_there = known.iter().any(|it| {
                (it.group.as_str(), it.version.as_str()) == (version.group, version.version)
                    && it.plural == resource.name
                    && it.kind == resource.kind
                    && it.namespaced == resource.namespaced
            });
            assert!(is_there, "{} of {}/{}", resource.kind, version.group, version.version);
        }
    }
}

/// Both would be one definition, or a cluster would refuse the second.
#[test]
fn kinds_of_a_group_have_no_name_in_common() {
    let site = Site::new();
    site.make(&site.api(&guestbook()).expect("a plan"));
    let named = |kind: &str, plural: Option<&str>| NewApi {
        kind: kind.to_owned(),
        plural: plural.map(str::to_owned),
        ..guestbook()
    };
    let check = |wanted: NewApi, expected: &str| assert_eq!(told(site.api(&wanted)), expected);
    check(
        named("GuestBook", None),
        "--kind \"GuestBook\": \"guestbook\" is a name of Guestbook of webapp.my.domain/v1 already: \
         choose another",
    );
    check(
        named("Visitors", Some("guestbooks")),
        "--plural \"guestbooks\": \"guestbooks\" is a name of Guestbook of webapp.my.domain/v1 \
         already: choose another",
    );
    check(
        named("Guestbooks", Some("many")),
        "--kind \"Guestbooks\": \"guestbooks\" is a name of Guestbook of webapp.my.domain/v1 \
         already: choose another",
    );
    site.make(&site.api(&named("Page", Some("leafs"))).expect("a plan"));
    check(
        named("Leaf", None),
        "--kind \"Leaf\": \"leafs\" is a name of Page of webapp.my.domain/v1 already: choose \
         another, or add --plural",
    );
    site.make(&site.api(&named("Leaf", Some("leaves"))).expect("a plan"));
    // In another group it is another name.
    let elsewhere = NewApi { group: "other".to_owned(), ..named("GuestBook", None) };
    site.api(&elsewhere).expect("a plan");
}

#[test]
fn sources_that_are_no_rust_are_refused_with_their_place() {
    let site = Site::new();
    site.edit("src/lib.rs", "pub fn", "pub fnord fn");
    let refused = told(site.api(&guestbook()));
    assert!(refused.starts_with("src/lib.rs:6:5: is no Rust: "), "{refused}");

    let site = Site::new();
    site.edit("src/lib.rs", "pub fn operator", "pub fn program");
    let refused = told(site.api(&guestbook()));
    assert!(refused.starts_with("src/lib.rs:8: there is no `fn operator`"), "{refused}");
}

/// What a diff shows is what is done.
#[test]
fn a_diff_names_every_file() {
    let site = Site::new();
    let plan = site.api(&guestbook()).expect("a plan");
    let diff = plan.diff();
    for line in [
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n",
        "--- /dev/null\n+++ b/src/guestbook/v1.rs\n",
        "+pub mod guestbook;\n",
        "+mod guestbook_controller;\n",
    ] {
        assert!(diff.contains(line), "{diff}");
    }
}

/// Has git make the changes of a plan, in a folder that may be below a repository.
fn git_apply(folder: &Path, plan: &Plan) {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(folder);
    let mut git = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("git runs");
    let mut input = git.stdin.take().expect("it is piped");
    input.write_all(plan.diff().as_bytes()).expect("git reads it");
    drop(input);
    let output = git.wait_with_output().expect("git ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{}", plan.diff());
}

/// What `--dry-run` prints is what is done, whoever does it.
#[test]
fn git_makes_of_a_diff_what_is_made() {
    if !Command::new("git").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: there is no git");
        return;
    }
    // Below a repository, and below none.
    for is_repository in [false, true] {
        let by_git = tempfile::tempdir().expect("a folder");
        if is_repository {
            let mut init = Command::new("git");
            let init = init.args(["init", "--quiet"]).current_dir(by_git.path());
            assert!(init.status().expect("git runs").success());
        }
        let folder = by_git.path().join("book-keeper");
        fs::create_dir(&folder).expect("a folder");
        let theirs = |path: &str| folder.join(path);
        let site = Site { dir: tempfile::tempdir().expect("a folder") };
        let check = |plan: Plan| {
            assert!(!plan.is_empty());
            git_apply(&folder, &plan);
            site.make(&plan);
            assert_eq!(tree(&folder), site.tree(), "{}", plan.diff());
        };
        let both = |path: &str, text: &str| {
            for path in [site.root().join(path), theirs(path)] {
                fs::write(path, text).expect("written");
            }
        };
        check(init(site.root(), &begin()).expect("a plan"));
        // Without an end of its last line, and with ends as some editors make them.
        let text = site.tree()["src/lib.rs"].clone();
        both("src/lib.rs", text.trim_end());
        both("tests/it/main.rs", &site.tree()["tests/it/main.rs"].replace('\n', "\r\n"));
        check(site.api(&guestbook()).expect("a plan"));
        check(site.webhook(&hooks(&guestbook())).expect("a plan"));
        check(delete_webhook(&site.project(), &hooks(&guestbook()), false).expect("a plan"));
        // Nothing is left of it.
        both("src/guestbook/v1.rs", "");
        both("src/guestbook.rs", "");
        both("src/guestbook/controller.rs", "//! Mine.");
        let change = |before: Option<&str>, after: Option<&str>| {
            let text = |side: Option<&str>| side.map(str::to_owned);
            let change = Change {
                path: "src/guestbook/v1.rs".into(),
                before: text(before),
                after: text(after),
            };
            Plan { changes: vec![change] }
        };
        // A diff without lines is about the whole repository, wherever git is asked.
        if !is_repository {
            check(change(Some(""), None));
            check(change(None, Some("")));
        }
        check(change(Some(""), Some("//! Anew.")));
        check(change(Some("//! Anew."), Some("//! Anew.\n")));
        check(change(Some("//! Anew.\n"), Some("")));
    }
}

/// Whether `docker build` sees a file: of the rules that fit, the last one counts.
fn is_in_context(ignored: &str, path: &str) -> bool {
    let fits = |pattern: &str, name: &str| match pattern.split_once('*') {
        Some((start, end)) => {
            name.starts_with(start) && name[start.len()..].ends_with(end) && !name.contains('/')
        }
        None => name == pattern,
    };
    // What fits a folder fits all that is in it.
    let folders = || path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
    ignored.lines().fold(true, |is_seen, rule| {
        let (pattern, is_seen_then) = match rule.strip_prefix('!') {
            Some(pattern) => (pattern, true),
            None => (rule, false),
        };
        if folders().any(|name| fits(pattern, name)) { is_seen_then } else { is_seen }
    })
}

/// What cargo would build in a folder: the name and the source of each target.
fn targets(root: &Path) -> Vec<(String, String)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = cargo.current_dir(root).output().expect("cargo runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let root = root.canonicalize().expect("it is there");
    let targets = metadata["packages"][0]["targets"].as_array().expect("targets").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let target = |it: &Value| {
        let source = PathBuf::from(text(&it["src_path"]));
        let source = source.strip_prefix(&root).expect("it is below").display().to_string();
        (text(&it["kind"][0]), source)
    };
    targets.map(target).filter(|(kind, _)| kind != "test").collect()
}

/// Whatever the program is built of is where the image is built, and nothing else: neither tests nor
/// what was built here.
#[test]
fn an_image_is_built_of_all_that_the_program_is_built_of() {
    let site = Site::new();
    site.make(&site.api(&guestbook()).expect("a plan"));
    site.make(&site.webhook(&hooks(&guestbook())).expect("a plan"));
    for folder in ["src/bin", "src/words", "target/release"] {
        fs::create_dir_all(site.root().join(folder)).expect("a folder");
    }
    let more = ["Cargo.lock", "build.rs", "src/bin/more.rs", "src/words/en.txt"];
    for path in more.iter().chain(&["target/release/book-keeper", "notes.md", ".env"]) {
        fs::write(site.root().join(path), "").expect("written");
    }
    let tree = site.tree();
    let ignored = &tree[".dockerignore"];
    let (seen, unseen): (Tree, Tree) =
        tree.clone().into_iter().partition(|(path, _)| is_in_context(ignored, path));
    let is_needed = |path: &str| {
        path.starts_with("src/") || ["Cargo.toml", "Cargo.lock", "build.rs"].contains(&path)
    };
    assert!(seen.keys().all(|path| is_needed(path)), "{seen:?}");
    assert!(!unseen.keys().any(|path| is_needed(path)), "{unseen:?}");
    assert_eq!(missing(&seen).into_iter().filter(|it| it != "tests/it/main.rs").count(), 0);

    let context = tempfile::tempdir().expect("a folder");
    for (path, text) in &seen {
        let path = context.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    assert_eq!(targets(context.path()), targets(site.root()));
    assert_eq!(targets(site.root()).len(), 4);

    // All of it comes before cargo, whose program is what is left in the end.
    let lines: Vec<&str> = tree["Dockerfile"].lines().collect();
    let at = |start: &str| {
        let found = lines.iter().position(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("{start:?} is not in {lines:?}"))
    };
    let order = [
        at("COPY . ."),
        at("cargo build --release --bin book-keeper && cp target/release/book-keeper /book-keeper"),
        at("FROM gcr.io/distroless/static:nonroot"),
        at("COPY --from=build /book-keeper /book-keeper"),
        at("ENTRYPOINT [\"/book-keeper\"]"),
    ];
    assert!(order.is_sorted(), "{lines:?}");
}

/// It is there twice, because a crate that is published has nothing from outside its folder.
#[test]
fn the_apache_license_of_projects_is_the_one_of_this_repository() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE");
    let ours = fs::read_to_string(ours).expect("a license");
    let dir = tempfile::tempdir().expect("a folder");
    let wanted = Init { license: License::Apache2, ..begin() };
    apply(dir.path(), &init(dir.path(), &wanted).expect("a plan")).expect("applied");
    assert_eq!(fs::read_to_string(dir.path().join("LICENSE")).expect("a license"), ours);
}

#[test]
fn versions_of_what_it_is_made_of_are_those_of_this_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    let workspace: toml_edit::DocumentMut = text.parse().expect("a manifest");
    let site = Site::new();
    let manifest: toml_edit::DocumentMut = site.tree()["Cargo.toml"].parse().expect("a manifest");
    let version = |item: &toml_edit::Item| {
        let version = item.as_str().or_else(|| item.get("version")?.as_str());
        version.unwrap_or_default().to_owned()
    };
    for (name, dependency) in manifest["dependencies"].as_table().expect("a table") {
        if name != "kubewright" {
            let ours = &workspace["workspace"]["dependencies"][name];
            assert_eq!(version(dependency), version(ours), "{name}");
        }
    }
    for (name, companion) in COMPANIONS {
        let ours = &workspace["workspace"]["dependencies"][*name];
        assert_eq!(*companion, version(ours), "an upgrade sets {name}");
        assert!(manifest["dependencies"].get(*name).is_some(), "a project has {name}");
    }
    let rust = &workspace["workspace"]["package"]["rust-version"];
    assert_eq!(manifest["package"]["rust-version"].as_str(), rust.as_str());
}
