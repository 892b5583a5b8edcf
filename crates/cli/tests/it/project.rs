//! An operator project, from its first file to a cluster.
//!
//! What only changes files is always run. What builds the project, by cargo, takes minutes where
//! nothing is built yet: it is run if `KUBEWRIGHT_PROJECTS` is set, as in `cargo xtask long
//! projects`. All projects are built into one folder, so what they have in common is built once.
//! With `KUBEWRIGHT_TEST_EXISTING` set, projects also go to the cluster that the kubeconfig leads to.

mod book;
mod killed;
mod stand_in;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kubewright::connect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::transcript::kubectl;

/// A folder for projects, as far from this repository as a reader's would be: neither its rules of
/// layout nor its configuration of cargo hold there.
pub(crate) struct Workshop {
    _place: tempfile::TempDir,
    folder: PathBuf,
    name: &'static str,
}

impl Workshop {
    fn new(name: &'static str) -> Self {
        Workshop::within(tempfile::tempdir().expect("a folder"), name)
    }

    /// Always at the same path: images have no paths of their machine in them, so a program that is
    /// built for one elsewhere is built anew, with all its libraries.
    pub(crate) fn at_its_place(name: &'static str) -> Self {
        let place = format!("kubewright-{name}");
        // Left behind by a test that was killed.
        let _ = fs::remove_dir_all(std::env::temp_dir().join(&place));
        let place = tempfile::Builder::new().prefix(&place).rand_bytes(0).tempdir();
        Workshop::within(place.expect("a folder"), name)
    }

    fn within(place: tempfile::TempDir, name: &'static str) -> Self {
        // As programs tell it that are asked where they are; and a project may be called after it.
        let folder = place.path().canonicalize().expect("it is there").join("workshop");
        fs::create_dir(&folder).expect("a folder");
        Workshop { _place: place, folder, name }
    }

    /// The repository.
    fn checkout() -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        path.canonicalize().expect("it is there")
    }

    fn root(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    /// The command, in the project, with a home of its own.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        let folder = if self.root().exists() { self.root() } else { self.folder.clone() };
        command.args(args).current_dir(folder);
        command.env("XDG_DATA_HOME", self.folder.join("data"));
        command.env("KUBECONFIG", self.folder.join("kubeconfig"));
        command.env_remove(EXISTING);
        command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("../projects"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only").env("CARGO_NET_OFFLINE", "true");
        // Cargo sets it for tests of this repository, but not whoever starts their program: a
        // library would be built anew each time.
        command.env("AWS_LC_SYS_NO_JITTER_ENTROPY", "1");
        command
    }

    fn output(&self, program: &str, args: &[&str]) -> Output {
        self.command(program, args).output().expect("it runs")
    }

    /// What `kubewright` prints if it succeeds.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        succeed(&mut self.command(env!("CARGO_BIN_EXE_kubewright"), args))
    }

    /// What `cargo` prints if it succeeds.
    fn cargo(&self, args: &[&str]) -> String {
        succeed(&mut self.command("cargo", args))
    }

    /// What `kubewright` complains of.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.output(env!("CARGO_BIN_EXE_kubewright"), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).expect("it prints text")
    }

    /// Begins a project that uses the library of this repository.
    pub(crate) fn init(&self) {
        let checkout = Workshop::checkout();
        let path = checkout.to_str().expect("a path");
        let domain = ["--domain", "my.domain", "--kubewright-path", path];
        self.run(&[&["init", self.name], &domain[..]].concat());
        // The versions that are there.
        fs::copy(checkout.join("Cargo.lock"), self.root().join("Cargo.lock")).expect("copied");
    }

    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a list") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let text = fs::read_to_string(&path).expect("a text");
                        files.insert(path, text);
                    }
                }
            }
        }
        files
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Only matters to a test that failed half-way.
        for name in ["at", "bookshop"] {
            self.output(env!("CARGO_BIN_EXE_kubewright"), &["down", name]);
        }
    }
}

/// What a command prints if it succeeds.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{errors}");
    text
}

/// A program that does not outlive the test.
struct Background(Child);

impl Background {
    fn stop(&mut self) -> bool {
        // It may have ended.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        self.0.wait().expect("it ends").success()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
        }
    }
}

/// Whether projects are to be built; says so if they are not.
pub(crate) fn builds(test: &str) -> bool {
    let is_asked = std::env::var_os("KUBEWRIGHT_PROJECTS").is_some();
    if !is_asked {
        eprintln!("{test}: skipped, set KUBEWRIGHT_PROJECTS to build projects");
    }
    is_asked
}

/// The kubeconfig of a cluster that is there, if there is to be one.
fn existing() -> Option<PathBuf> {
    std::env::var_os(EXISTING)?;
    Some(std::env::var_os("KUBECONFIG").expect("KUBECONFIG says which cluster").into())
}

/// Set, there is a cluster for tests; the library for tests calls it the same.
const EXISTING: &str = "KUBEWRIGHT_TEST_EXISTING";

const SHELF: [&str; 6] = ["--group", "library", "--version", "v1", "--kind", "Shelf"];
pub(crate) const BOOK: [&str; 6] = ["--group", "library", "--version", "v1", "--kind", "Book"];
const DEPLOYMENT: [&str; 6] = ["--group", "apps", "--version", "v1", "--kind", "Deployment"];
const POD: [&str; 6] = ["--group", "core", "--version", "v1", "--kind", "Pod"];
const ZOO: [&str; 6] = ["--group", "example.com", "--version", "v1", "--kind", "Zoo"];
const BOOK_V2: [&str; 6] = ["--group", "library", "--version", "v2", "--kind", "Book"];

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let shop = Workshop::new("dry");
    shop.init();
    let before = shop.tree();
    let create = [&["create", "api"], &BOOK[..], &["--resource", "--controller"]].concat();
    let diff = shop.run(&[&create[..], &["--dry-run"]].concat());
    assert!(diff.contains("+++ b/src/book/v1.rs\n"), "{diff}");
    assert_eq!(shop.tree(), before);

    let told = shop.run(&[&create[..], &["--output", "json"]].concat());
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["changes"][0], json!({"change": "create", "path": "src/book/controller.rs"}));
    let twice = shop.run(&create);
    assert_eq!(twice, "nothing to change: it is so already\n");
    shop.run(&[&["delete", "api"], &BOOK[..], &["--controller"]].concat());
    assert!(!shop.root().join("src/book/controller.rs").exists());
    assert!(shop.root().join("src/book/v1.rs").exists());
    let delete = [&["delete", "api"], &BOOK[..], &["--resource", "--controller"]].concat();
    shop.run(&delete);
    assert_eq!(shop.tree(), before);
    assert_eq!(shop.run(&delete), "nothing to change: it is so already\n");
}

/// Whoever has made operators with other tools types what they take, into a repository that its host
/// has made.
#[test]
fn what_other_tools_take_is_understood() {
    let shop = Workshop::new("newcomer");
    fs::create_dir(shop.root()).expect("a folder");
    fs::write(shop.root().join("README.md"), "# Mine\n").expect("written");
    let repo = ["--repo", "github.com/me/newcomer", "--license", "Apache-2.0"];
    let mut init =
        shop.command(env!("CARGO_BIN_EXE_kubewright"), &["init", "--domain", "my.domain"]);
    let output = init.args(repo).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("README.md is there already, and stays as it is\n"), "{told}");
    let manifest = fs::read_to_string(shop.root().join("Cargo.toml")).expect("a manifest");
    assert!(manifest.contains("\nrepository = \"https://github.com/me/newcomer\"\n"), "{manifest}");
    assert!(manifest.contains("\nlicense = \"Apache-2.0\"\n"), "{manifest}");
    let create = [&["create", "api"], &SHELF[..], &["--resource", "--controller=false"]].concat();
    shop.run(&[&create[..], &["--namespaced=false"]].concat());
    let kind = fs::read_to_string(shop.root().join("src/shelf/v1.rs")).expect("a text");
    assert!(kind.contains("kind = \"Shelf\")]"), "{kind}");
    let refused = shop.refused(&[&create[..], &["--namespaced"]].concat());
    assert!(refused.contains("add --cluster-scoped"), "{refused}");
}

/// Those of Kubernetes, and those whose types were imported.
#[test]
fn kinds_of_others_have_controllers_and_webhooks_here() {
    let shop = Workshop::new("others");
    shop.init();
    let control = [&["create", "api"], &ZOO[..], &["--resource=false", "--controller"]].concat();
    let refused = shop.refused(&control);
    assert!(refused.contains("`kubewright import --crd FILE --output src/imported`"), "{refused}");
    import_zoo(&shop);
    let before = shop.tree();
    shop.run(&control);
    let judge = [&["create", "webhook"], &POD[..], &["--validation"]].concat();
    let told = shop.run(&judge);
    assert_eq!(told, "edit   src/lib.rs\ncreate src/pod/validation.rs\ncreate src/pod.rs\n");
    assert_eq!(shop.run(&judge), "nothing to change: it is so already\n");
    let library = fs::read_to_string(shop.root().join("src/lib.rs")).expect("a text");
    assert!(library.contains(".controller(zoo::controller::new())"), "{library}");
    let kind = fs::read_to_string(shop.root().join("src/zoo.rs")).expect("a text");
    assert!(kind.contains("pub use crate::imported::zoo::v1::Zoo;"), "{kind}");
    shop.run(&[&["delete", "webhook"], &POD[..], &["--validation"]].concat());
    shop.run(&[&["delete", "api"], &ZOO[..]].concat());
    assert_eq!(shop.tree(), before);
}

/// Brings the types of a definition into a project.
fn import_zoo(shop: &Workshop) {
    let crd = Workshop::checkout().join("crates/project/tests/it/import/crds/zoo.yaml");
    let import = ["import", "--crd", crd.to_str().expect("a path"), "--output", "src/imported"];
    let told: Value =
        serde_json::from_str(&shop.run(&[&import[..], &["--format", "json"]].concat()))
            .expect("JSON");
    assert_eq!(told["declared"], json!(["src/imported.rs", "src/lib.rs"]));
    // The project's own CI looks at its layout.
    for file in ["src/imported/zoo.rs", "src/imported.rs", "src/lib.rs"] {
        succeed(&mut shop.command("rustfmt", &["--edition", "2024", "--check", file]));
    }
    let before = shop.tree();
    shop.run(&import);
    assert_eq!(shop.tree(), before);
}

/// Whoever says nothing on a terminal is asked, and what is no answer is asked again.
#[test]
fn a_person_is_asked_what_to_create() {
    if !Command::new("script").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: there is no `script` to make a terminal");
        return;
    }
    let shop = Workshop::new("asked");
    shop.init();
    let create = [&[env!("CARGO_BIN_EXE_kubewright"), "create", "api"], &BOOK[..]].concat();
    let mut terminal = shop.command("script", &["-qec", &create.join(" "), "/dev/null"]);
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = terminal.spawn().expect("it runs");
    // The terminal is there for as long as there may be input.
    let mut input = terminal.stdin.take().expect("it is piped");
    input.write_all(b"perhaps\ny\nno\n").expect("it is read");
    let output = std::io::read_to_string(terminal.stdout.take().expect("it is piped"));
    let said = output.expect("it prints text");
    assert!(terminal.wait().expect("it ends").success(), "{said}");
    drop(input);
    assert_eq!(said.matches("Define the kind Book here? [y/n]").count(), 2, "{said}");
    assert_eq!(said.matches("Add a controller for Book? [y/n]").count(), 1, "{said}");
    assert!(shop.root().join("src/book/v1.rs").exists(), "{said}");
    assert!(!shop.root().join("src/book/controller.rs").exists(), "{said}");
}

/// What was begun is finished, but neither by a dry run nor over what its author has written since.
#[test]
fn what_was_interrupted_is_finished_by_the_next_command() {
    let shop = Workshop::new("interrupted");
    shop.init();
    let library = shop.root().join("src/lib.rs");
    let text = fs::read_to_string(&library).expect("a text");
    let change =
        json!({"path": "src/lib.rs", "before": text, "after": format!("{text}// More.\n")});
    let journal = shop.root().join(".kubewright-journal");
    fs::write(&journal, json!({"changes": [change]}).to_string()).expect("written");
    let before = shop.tree();
    let create = [&["create", "api"], &BOOK[..], &["--resource"]].concat();
    let dry = [&create[..], &["--dry-run"]].concat();
    let output = shop.output(env!("CARGO_BIN_EXE_kubewright"), &dry);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("an interrupted command has begun to change src/lib.rs"), "{told}");
    assert_eq!(shop.tree(), before);

    fs::write(&library, "//! Mine.\n").expect("written");
    let refused = shop.refused(&create);
    assert!(refused.starts_with("error: src/lib.rs: was changed since a command"), "{refused}");
    assert_eq!(fs::read_to_string(&library).expect("a text"), "//! Mine.\n");
    fs::write(&library, text).expect("written");
    shop.run(&create);
    assert!(fs::read_to_string(&library).expect("a text").contains("// More.\n"));
    assert!(!journal.exists());
}

#[test]
fn refusals_say_what_to_do() {
    let shop = Workshop::new("refused");
    let refused = shop.refused(&[&["create", "api"], &BOOK[..], &["--resource"]].concat());
    assert!(refused.contains("`kubewright init --domain my.domain` makes one"), "{refused}");
    let refused = shop.refused(&["init", "--domain", "My Domain"]);
    assert!(refused.starts_with("error: --domain \"My Domain\": must be parts"), "{refused}");
    shop.init();
    let refused = shop.refused(&[&["create", "api"], &BOOK[..]].concat());
    assert_eq!(refused, "error: say what to create: --resource, --controller, or both\n");
    let keyword = ["--version", "v1", "--kind", "Type", "--resource"];
    let refused = shop.refused(&[&["create", "api"], &keyword[..]].concat());
    assert!(refused.contains("its module would be `type`, a word of Rust"), "{refused}");
}

#[test]
fn shells_and_manuals_know_all_commands() {
    let shop = Workshop::new("manual");
    for shell in ["bash", "zsh", "fish"] {
        assert!(shop.run(&["completions", shell]).contains("webhook"), "{shell}");
    }
    shop.run(&["man", "--output", "pages"]);
    let page = fs::read_to_string(shop.folder.join("pages/kubewright-create-api.1"));
    assert!(page.expect("a page").contains("cluster\\-scoped"));
    assert!(shop.run(&["man"]).contains("Exit codes"));
}

/// The help said that what is refused ends with 1, which only answers do.
#[test]
fn exit_codes_are_what_the_help_says() {
    let shop = Workshop::new("codes");
    let code = |args: &[&str]| {
        shop.output(env!("CARGO_BIN_EXE_kubewright"), args).status.code().expect("it ends")
    };
    let help = shop.run(&["--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("1 if a command whose answer may be no says so (`validate`,"), "{help}");
    assert!(help.contains("2 if it is not done: the question makes no sense"), "{help}");
    shop.init();
    assert_eq!(code(&["upgrade"]), 0);
    fs::write(shop.root().join("pod.yaml"), "{apiVersion: v1, kind: Pod}").expect("written");
    assert_eq!(code(&["validate", "pod.yaml"]), 1);
    assert_eq!(code(&["create", "api"]), 2);
    assert_eq!(code(&["create", "api", "--group", "G", "--version", "v1", "--kind", "K"]), 2);
}

/// As whoever presses the tabulator sees it.
#[test]
fn bash_completes_commands_and_flags() {
    let shop = Workshop::new("completed");
    if !Command::new("bash").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: there is no bash");
        return;
    }
    let script = shop.folder.join("kubewright.bash");
    fs::write(&script, shop.run(&["completions", "bash"])).expect("written");
    let script = script.to_str().expect("a path");
    succeed(&mut shop.command("bash", &["-n", script]));
    // `complete -p` says which function bash calls; that is called as bash does.
    let asked = r#"
        source "$1"; shift
        how=$(complete -p kubewright); how=${how##*-F }; function=${how%% *}
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        "$function" kubewright "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let check = |words: &[&str], expected: &[&str]| {
        let args = [&["--norc", "-c", asked, "bash", script], words].concat();
        let told = succeed(&mut shop.command("bash", &args));
        let told: Vec<&str> = told.lines().collect();
        for word in expected {
            assert!(told.contains(word), "{words:?}: {word} is not in {told:?}");
        }
        let last = words.last().expect("a word");
        assert!(told.iter().all(|word| word.starts_with(last)), "{words:?}: {told:?}");
    };
    check(&["kubewright", "cre"], &["create"]);
    check(&["kubewright", "create", ""], &["api", "webhook"]);
    check(&["kubewright", "create", "api", "--c"], &["--cluster-scoped", "--controller"]);
    check(&["kubewright", "delete", "webhook", "--conv"], &["--conversion"]);
    check(&["kubewright", "init", "--license", ""], &["apache2", "mit", "none"]);
}

#[test]
fn an_upgrade_is_a_version() {
    let shop = Workshop::new("upgrade");
    shop.run(&["init", shop.name, "--domain", "my.domain"]);
    let before = fs::read_to_string(shop.root().join("Cargo.toml")).expect("a manifest");
    assert_eq!(shop.run(&["upgrade"]), "nothing to change: it is so already\n");
    shop.run(&["upgrade", "--kubewright-version", "9.9.9"]);
    let after = fs::read_to_string(shop.root().join("Cargo.toml")).expect("a manifest");
    // The project's own version stays.
    let of = |name: &str, version: &str| format!("\n{name} = \"{version}\"");
    let expected = ["kubewright", "kubewright-testing"].iter().fold(before, |text, name| {
        text.replace(&of(name, env!("CARGO_PKG_VERSION")), &of(name, "9.9.9"))
    });
    assert_eq!(after, expected);
    let refused = shop.refused(&["upgrade", "--kubewright-version", "newest"]);
    assert!(
        refused.contains("'newest' for '--kubewright-version <VERSION>': write it as 0."),
        "{refused}"
    );
}

/// A manifest's paths are seen from its own folder, and those of a command from where it is given.
#[test]
fn an_upgrade_to_a_checkout_is_the_same_from_any_folder() {
    let shop = Workshop::new("checkout");
    shop.run(&["init", shop.name, "--domain", "my.domain"]);
    let library = shop.folder.join("library");
    fs::create_dir_all(library.join("crates/kubewright")).expect("a folder");
    fs::write(library.join("crates/kubewright/Cargo.toml"), "").expect("written");
    let upgrade = |folder: &str, path: &str| {
        let args = ["upgrade", "--kubewright-path", path];
        let mut command = shop.command(env!("CARGO_BIN_EXE_kubewright"), &args);
        succeed(command.current_dir(shop.root().join(folder)));
        let manifest = fs::read_to_string(shop.root().join("Cargo.toml")).expect("a manifest");
        let line = manifest.lines().find_map(|line| line.strip_prefix("kubewright = "));
        line.expect("it is a dependency").to_owned()
    };
    assert_eq!(upgrade("", "../library"), "{ path = \"../library/crates/kubewright\" }");
    let whole = format!("{{ path = {:?} }}", library.join("crates/kubewright"));
    assert_eq!(upgrade("src", "../../library"), whole);
}

/// Two kinds, one of them in no namespace, three webhooks, and a second version with conversion: it
/// builds, its own tests pass, it is packaged in every form, its manifests go into a cluster; and
/// when all is deleted, the tree is as it was.
#[test]
fn a_project_goes_from_its_first_file_to_a_cluster() {
    if !builds("a_project_goes_from_its_first_file_to_a_cluster") {
        return;
    }
    let shop = Workshop::new("bookshop");
    shop.init();
    // The lock is cut down to what the project uses.
    shop.cargo(&["tree"]);
    let first = shop.tree();
    let both = ["--resource", "--controller"];
    shop.run(&[&["create", "api"], &BOOK[..], &both].concat());
    shop.run(&[&["create", "api"], &SHELF[..], &both, &["--cluster-scoped"]].concat());
    let admission = ["--defaulting", "--validation"];
    shop.run(&[&["create", "webhook"], &BOOK[..], &admission].concat());
    let one_version = shop.tree();
    shop.run(&[&["create", "api"], &BOOK_V2[..], &["--resource"]].concat());
    let conversion = ["--conversion", "--spoke", "v2"];
    shop.run(&[&["create", "webhook"], &BOOK[..], &conversion].concat());
    let without_others = shop.tree();
    let controller = ["--resource=false", "--controller"];
    shop.run(&[&["create", "api"], &DEPLOYMENT[..], &controller].concat());
    shop.run(&[&["create", "webhook"], &POD[..], &admission].concat());

    check_tests(&shop);
    let whole = shop.tree();
    check_packages(&shop);
    let up = ["up", "--detach", "--ephemeral", "--port", "0", "--name", "bookshop"];
    shop.run(&up);
    check_deployment(&shop, &shop.folder.join("kubeconfig"), &[]);
    check_conversion(&shop, &shop.folder.join("kubeconfig"));
    shop.run(&["down", "bookshop"]);
    if let Some(kubeconfig) = existing() {
        // There its own tests have left definitions whose webhooks were theirs.
        check_deployment(&shop, &kubeconfig, &["--force"]);
    }
    assert_eq!(shop.tree(), whole);

    shop.run(&[&["delete", "webhook"], &POD[..], &admission].concat());
    shop.run(&[&["delete", "api"], &DEPLOYMENT[..]].concat());
    assert_eq!(shop.tree(), without_others);
    shop.run(&[&["delete", "webhook"], &BOOK[..], &conversion].concat());
    shop.run(&[&["delete", "api"], &BOOK_V2[..]].concat());
    assert_eq!(shop.tree(), one_version);
    shop.run(&[&["delete", "webhook"], &BOOK[..], &admission].concat());
    shop.run(&[&["delete", "api"], &SHELF[..]].concat());
    shop.run(&[&["delete", "api"], &BOOK[..]].concat());
    assert_eq!(shop.tree(), first);
}

/// It passes what its own CI asks for, command by command.
fn check_tests(shop: &Workshop) {
    let workflow = fs::read_to_string(shop.root().join(".github/workflows/ci.yaml"));
    let workflow = workflow.expect("a workflow");
    let commands = workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: cargo "));
    let commands: Vec<Vec<&str>> =
        commands.map(|command| command.split_whitespace().collect()).collect();
    let asked: Vec<&str> = commands.iter().map(|command| command[0]).collect();
    assert_eq!(asked, ["fmt", "clippy", "test", "run"], "{workflow}");
    let said: Vec<String> = commands.iter().map(|command| shop.cargo(command)).collect();
    let (passed, manifests) = (&said[2], &said[3]);
    assert!(manifests.contains("kind: CustomResourceDefinition\n"), "{manifests}");
    for test in [
        "book::conversion::v2::tests::an_object_comes_back_as_it_was",
        "book::defaulting::tests::a_label_that_is_missing_is_added_and_one_that_is_there_stays",
        "book::validation::tests::a_name_that_is_no_label_is_refused",
        "book::validation::tests::what_is_there_can_be_changed_and_deleted",
        "book_controller::an_object_becomes_ready",
        "pod::defaulting::tests::a_label_that_is_missing_is_added_and_one_that_is_there_stays",
        "pod::validation::tests::a_name_that_is_no_label_is_refused",
        "shelf_controller::an_object_becomes_ready",
        "the_operator_can_be_installed",
    ] {
        assert!(passed.contains(&format!("test {test} ... ok\n")), "{passed}");
    }
    if let Some(kubeconfig) = existing() {
        let mut again = shop.command("cargo", &["test"]);
        succeed(again.env(EXISTING, "1").env("KUBECONFIG", kubeconfig));
    }
}

/// All forms have the definitions of both kinds.
fn check_packages(shop: &Workshop) {
    let output = |form: &str| shop.folder.join("packages").join(form);
    for form in ["yaml", "kustomize", "helm", "olm"] {
        let path = output(form);
        let path = path.to_str().expect("text");
        shop.run(&["package", form, "--image", "bookshop:1", "--output", path]);
        let text = text_below(&output(form));
        for name in ["books.library.my.domain", "shelfs.library.my.domain"] {
            assert!(text.contains(&format!("name: {name}\n")), "{form}: {name} is not in\n{text}");
        }
    }
    let Some(kubectl) = kubectl() else {
        eprintln!("without kubectl nobody builds the customization");
        return;
    };
    let folder = output("kustomize").join("base");
    let kubectl = kubectl.to_str().expect("text");
    let built = succeed(&mut shop.command(kubectl, &["kustomize", folder.to_str().expect("text")]));
    assert!(built.contains("image: bookshop:1\n"), "{built}");
}

/// All that is in a file, or in the files of a folder.
fn text_below(path: &Path) -> String {
    if !path.is_dir() {
        return fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
    let entries = fs::read_dir(path).expect("a list");
    entries.map(|entry| text_below(&entry.expect("an entry").path())).collect()
}

/// What it consists of is accepted by a cluster, and goes again.
fn check_deployment(shop: &Workshop, kubeconfig: &Path, how: &[&str]) {
    let at = ["--kubeconfig", kubeconfig.to_str().expect("text")];
    let installed = shop.run(&[&["install"], &at[..], how].concat());
    let kinds = ["books", "shelfs"];
    for kind in kinds {
        let line = format!("applied CustomResourceDefinition {kind}.library.my.domain\n");
        assert!(installed.contains(&line), "{installed}");
    }
    let deployed = shop.run(&[&["deploy", "--image", "bookshop:1"], &at[..], how].concat());
    for object in [
        "Namespace bookshop-system",
        "Deployment bookshop-controller-manager",
        "Service bookshop-webhook-service",
        "MutatingWebhookConfiguration bookshop-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration bookshop-validating-webhook-configuration",
    ] {
        assert!(deployed.contains(&format!("applied {object}\n")), "{deployed}");
    }
    let manifests = shop.run(&["manifests", "--only", "crds"]);
    for part in ["name: v2", "strategy: Webhook", "scope: Cluster"] {
        assert!(manifests.contains(part), "{part} is not in\n{manifests}");
    }
    let undeployed = shop.run(&[&["undeploy", "--output", "json"], &at[..]].concat());
    assert!(undeployed.lines().all(|line| line.contains("\"deleted\"")), "{undeployed}");
    let again = shop.run(&[&["uninstall"], &at[..]].concat());
    assert_eq!(again.lines().count(), kinds.len(), "{again}");
}

/// What is written in one version is read in the other: the cluster asks the operator, which runs
/// beside it.
fn check_conversion(shop: &Workshop, kubeconfig: &Path) {
    let path = kubeconfig.to_str().expect("text");
    shop.run(&["install", "--kubeconfig", path]);
    let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let args = [&["run", "--kubeconfig", path, "--"], &nowhere[..]].concat();
    let mut operator = shop.command(env!("CARGO_BIN_EXE_kubewright"), &args);
    let operator = operator.stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut operator = Background(operator.spawn().expect("it runs"));
    let book = json!({
        "apiVersion": "library.my.domain/v2",
        "kind": "Book",
        "metadata": {"name": "converted"},
        "spec": {"foo": "written in v2"},
    });
    let book: DynamicObject = serde_json::from_value(book).expect("a book");
    on_books_in(kubeconfig, "v2", async |books| {
        // It is stored in v1, and until the operator is there nobody can say what that would be.
        while let Err(refused) = books.create(&PostParams::default(), &book).await {
            eprintln!("not yet: {refused}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    on_books_in(kubeconfig, "v1", async |books| {
        let read = books.get("converted").await.expect("it is converted");
        assert_eq!(read.types.as_ref().expect("a kind").api_version, "library.my.domain/v1");
        assert_eq!(read.data["spec"]["foo"], "written in v2");
        // Whatever the controller writes meanwhile.
        let change = Patch::Merge(json!({"spec": {"foo": "changed in v1"}}));
        books.patch("converted", &PatchParams::default(), &change).await.expect("changed");
        let listed = books.list(&ListParams::default()).await.expect("a list");
        assert_eq!(listed.items.len(), 1);
    });
    on_books_in(kubeconfig, "v2", async |books| {
        let read = books.get("converted").await.expect("it is converted");
        assert_eq!(read.types.as_ref().expect("a kind").api_version, "library.my.domain/v2");
        assert_eq!(read.data["spec"]["foo"], "changed in v1");
        books.delete("converted", &DeleteParams::default()).await.expect("deleted");
    });
    assert!(operator.stop(), "it ends well");
    shop.run(&["uninstall", "--kubeconfig", path]);
}

/// The cluster stays with all that is in it, the operator is another, and Ctrl-C ends both.
#[test]
fn a_change_of_a_source_starts_the_operator_again() {
    if !builds("a_change_of_a_source_starts_the_operator_again") {
        return;
    }
    let shop = Workshop::new("kiosk");
    shop.init();
    shop.run(&[&["create", "api"], &BOOK[..], &["--resource", "--controller"]].concat());
    shop.run(&[&["create", "webhook"], &BOOK[..], &["--validation"]].concat());
    let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let args = [&["dev", "--plain", "--"], &nowhere[..]].concat();
    let mut dev = shop.command(env!("CARGO_BIN_EXE_kubewright"), &args);
    let dev = dev.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("it runs");
    let mut dev = Background(dev);
    let mut heard = Vec::new();
    let mut lines = BufReader::new(dev.0.stdout.take().expect("it is piped")).lines();
    let mut hear = |text: &str| -> String {
        for line in lines.by_ref().map_while(Result::ok) {
            heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
        panic!("{text:?} is not told, but\n{}", heard.join("\n"));
    };
    let told = hear("dev      | export KUBECONFIG=");
    let (_, kubeconfig) = told.split_once('=').expect("a path");
    let kubeconfig = Path::new(kubeconfig);
    hear("dev      | running, started 1 times");
    hear("operator | ");
    let book = |name: &str| {
        let book = json!({
            "apiVersion": "library.my.domain/v1",
            "kind": "Book",
            "metadata": {"name": name},
            "spec": {"foo": "of the first operator"},
        });
        serde_json::from_value(book).expect("a book")
    };
    let made = on_books(kubeconfig, async |books| {
        // The cluster asks the operator on this machine, as soon as it has been told where that is.
        let (long, dry) =
            (book(&"a".repeat(64)), PostParams { dry_run: true, ..Default::default() });
        let refused = loop {
            match books.create(&dry, &long).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(refused) => break refused.to_string(),
            }
        };
        assert!(refused.contains("must have no more than 63 characters"), "{refused}");
        books.create(&PostParams::default(), &book("first")).await.expect("created")
    });
    let library = shop.root().join("src/lib.rs");
    let text = fs::read_to_string(&library).expect("a text");
    fs::write(&library, text.replace("Operator::new", "Operaator::new")).expect("written");
    hear("it does not build; the former one goes on");
    fs::write(&library, text + "// Another line.\n").expect("written");
    hear("dev      | running, started 2 times");
    hear("operator | ");
    let read = on_books(kubeconfig, async |books| books.get("first").await.expect("it stays"));
    assert_eq!(read.metadata.uid, made.metadata.uid);
    assert_eq!(read.data["spec"], made.data["spec"]);
    assert!(dev.stop(), "it ends well");
}

/// Does something with the books of a cluster.
fn on_books<T>(kubeconfig: &Path, work: impl AsyncFnOnce(Api<DynamicObject>) -> T) -> T {
    on_books_in(kubeconfig, "v1", work)
}

/// The same in a version of them.
fn on_books_in<T>(
    kubeconfig: &Path,
    version: &str,
    work: impl AsyncFnOnce(Api<DynamicObject>) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let found = connect::find(Some(kubeconfig), |_: &str| None).await.expect("a cluster");
        let client = found.client(&connect::Options::default()).expect("a client");
        let kind = GroupVersionKind::gvk("library.my.domain", version, "Book");
        let books = Api::namespaced_with(client, "default", &ApiResource::from_gvk(&kind));
        work(books).await
    })
}
