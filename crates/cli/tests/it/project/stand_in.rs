//! What `run` and `dev` do around an operator. A script is in the place of cargo, and another one in
//! that of the operator, so nothing is built.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kubewright::connect;
use kubewright::manifest::{Manifest, Package, Part};
use serde_json::{Value, json};

use super::{Background, Workshop, succeed};

/// A kubeconfig of a cluster that nobody asks for anything: an operator without kinds has none to
/// bring there.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
users: [{name: it, user: {}}]
";

/// A project whose operator is a script.
struct Stage {
    shop: Workshop,
    cargo: PathBuf,
    kubeconfig: PathBuf,
}

impl Stage {
    fn new(name: &'static str, operator: &str) -> Self {
        Stage::begun_with(&[], name, operator)
    }

    fn begun_with(more: &[&str], name: &'static str, operator: &str) -> Self {
        let shop = Workshop::new(name);
        shop.run(&[&["init", name, "--domain", "my.domain"], more].concat());
        let program = shop.folder.join("operator");
        // What is rendered only if it is chosen is in a file of its own.
        let manifests = "[ \"$1\" = manifests ] && case \"$*\" in
              *--dashboards*) cat $NOTES/chosen 2>/dev/null; exit 0 ;;
              *) cat $NOTES/manifests 2>/dev/null; exit 0 ;;
            esac";
        script(&program, &format!("{manifests}\n{operator}"));
        let built = format!(r#"{{"target":{{"name":"{name}"}},"executable":{program:?}}}"#);
        let cargo = shop.folder.join("cargo");
        let metadata = "[ \"$1\" = metadata ] && { cat $NOTES/metadata 2>/dev/null; exit 0; }";
        script(&cargo, &format!("{metadata}\necho '{built}'"));
        let kubeconfig = shop.folder.join("theirs");
        fs::write(&kubeconfig, KUBECONFIG).expect("written");
        Stage { shop, cargo, kubeconfig }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.shop.command(env!("CARGO_BIN_EXE_kubewright"), args);
        command.env("CARGO", &self.cargo).env("NOTES", &self.shop.folder);
        // Whoever runs the tests may have settings of their own.
        command.env_remove("KUBEWRIGHT_NAMESPACE").env_remove("WATCH_NAMESPACE");
        command
    }

    /// What the operator renders from now on.
    fn renders(&self, manifests: &[Value]) {
        let documents: Vec<String> = manifests.iter().map(Value::to_string).collect();
        fs::write(self.shop.folder.join("manifests"), documents.join("\n---\n")).expect("written");
    }

    /// What a script has noted; empty if it has not.
    fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.shop.folder.join(name)).unwrap_or_default()
    }

    fn dev(&self, args: &[&str]) -> (Background, Heard) {
        let mut dev = self.command(&[&["dev", "--plain"], args].concat());
        let mut dev = Background(dev.stdout(Stdio::piped()).spawn().expect("it runs"));
        let output = dev.0.stdout.take().expect("it is piped");
        (dev, Heard(BufReader::new(output).lines()))
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// A cluster that does not outlive the test.
struct Site<'a> {
    stage: &'a Stage,
    name: &'static str,
    kubeconfig: PathBuf,
}

impl<'a> Site<'a> {
    fn up(stage: &'a Stage, name: &'static str) -> Self {
        stage.shop.run(&["up", "--detach", "--ephemeral", "--port", "0", "--name", name]);
        Site { stage, name, kubeconfig: stage.shop.folder.join("kubeconfig") }
    }

    /// What a command prints about this cluster if it succeeds.
    fn run(&self, args: &[&str]) -> String {
        let at = ["--kubeconfig", self.kubeconfig.to_str().expect("a path")];
        succeed(&mut self.stage.command(&[args, &at].concat()))
    }

    fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let found = connect::find(Some(&self.kubeconfig), |_: &str| None).await;
            let client = found.expect("a cluster").client(&connect::Options::default());
            work(client.expect("a client")).await
        })
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.stage.shop.output(env!("CARGO_BIN_EXE_kubewright"), &["down", self.name]);
    }
}

struct Heard(Lines<BufReader<ChildStdout>>);

impl Heard {
    /// Waits for a line.
    fn until(&mut self, expected: &str) {
        let mut last = String::new();
        for line in self.0.by_ref().map_while(Result::ok) {
            if line.contains(expected) {
                return;
            }
            last = line;
        }
        panic!("{expected:?} is not told, and at last {last:?}");
    }
}

/// It used to hear of Ctrl-C alone, and to leave the operator behind.
#[test]
fn an_operator_ends_with_whoever_develops_it() {
    let operator = "trap 'echo well > $NOTES/ended; exit 0' TERM
        echo \"looks into $*, of $KUBECONFIG\"
        while :; do sleep 0.1; done";
    let stage = Stage::new("ends", operator);
    let theirs = stage.kubeconfig.to_str().expect("a path");
    let (mut dev, mut heard) = stage.dev(&["--kubeconfig", theirs, "--namespace", "a,b"]);
    heard.until(&format!(" --namespace=a,b, of {theirs}"));
    assert!(dev.stop(), "it ends well");
    assert_eq!(stage.noted("ended"), "well\n");
}

/// What an operator says used to leave no room for what has changed.
#[test]
fn a_change_is_heard_of_however_much_is_said() {
    let operator = "trap 'exit 0' TERM\nwhile :; do echo blah; done";
    let stage = Stage::new("talks", operator);
    let theirs = stage.kubeconfig.to_str().expect("a path");
    let (mut dev, mut heard) = stage.dev(&["--kubeconfig", theirs]);
    heard.until("dev      | running, started 1 times");
    for _ in 0..10_000 {
        heard.until("operator | blah");
    }
    fs::write(stage.shop.root().join("src/lib.rs"), "// Another.\n").expect("written");
    heard.until("dev      | running, started 2 times");
    // Whoever has closed the pipe is not written to.
    drop(heard);
    assert!(dev.stop(), "it ends well");
}

#[test]
fn an_operator_runs_beside_the_cluster_that_it_is_told_of() {
    let stage = Stage::new("beside", "echo \"$* of $KUBECONFIG\"; exit 3");
    let theirs = stage.kubeconfig.to_str().expect("a path");
    let args = ["run", "--kubeconfig", theirs, "--namespace", "a,b", "--", "--more"];
    let output = stage.command(&args).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "it ends as the operator does");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, format!("--namespace=a,b --more of {theirs}\n"));
}

#[test]
fn a_cluster_is_there_for_as_long_as_the_operator() {
    let operator = "[ -s \"$KUBECONFIG\" ] && echo \"$*\" && echo $KUBECONFIG > $NOTES/there
        exit 4";
    let stage = Stage::new("within", operator);
    let args = ["run", "--embedded", "--namespace", "a"];
    let output = stage.command(&args).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "it ends as the operator does: {told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--namespace=a\n");
    assert!(told.contains("cluster ready at https://127.0.0.1:"), "{told}");
    let kubeconfig = stage.noted("there");
    assert!(!Path::new(kubeconfig.trim()).exists(), "{kubeconfig:?} is left behind");
}

/// What an operator that was killed had told the cluster stayed, and every write was refused.
#[test]
fn whoever_uninstalls_a_project_removes_webhooks_of_their_machine() {
    let stage = Stage::new("left", "");
    let configuration = |name: &str, config: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "validate.books.example.com", "clientConfig": config,
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }],
            }],
        })
    };
    let service = || json!({"service": {"namespace": "left-system", "name": "left"}});
    let [killed, deployed] = ["killed", "deployed"];
    stage.renders(&[configuration(killed, service()), configuration(deployed, service())]);
    let site = Site::up(&stage, "left");
    site.ask(async |client| {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
        let here = json!({"url": "https://127.0.0.1:1/validate"});
        for it in [configuration(killed, here), configuration(deployed, service())] {
            let it = serde_json::from_value(it).expect("a configuration");
            api.create(&PostParams::default(), &it).await.expect("created");
        }
    });
    let told = site.run(&["uninstall"]);
    assert_eq!(told, "deleted ValidatingWebhookConfiguration killed\n");
    site.ask(async |client| {
        let there: Api<ValidatingWebhookConfiguration> = Api::all(client);
        assert!(there.get_opt(killed).await.expect("it can be asked").is_none());
        there.get(deployed).await.expect("it is another's");
    });
}

/// It looked into all namespaces, and into its own alone once it was deployed.
#[test]
fn an_operator_for_its_own_namespace_looks_into_that_of_the_context() {
    let operator = "trap 'exit 0' TERM
        echo \"is told $*\" >&2
        echo \"is told $*\"
        [ \"$STAYS\" ] && while :; do sleep 0.1; done";
    let stage = Stage::begun_with(&["--namespaced"], "own", operator);
    let ours = KUBECONFIG.replace("user: it}}]", "user: it, namespace: ours}}]");
    fs::write(&stage.kubeconfig, ours).expect("written");
    let theirs = stage.kubeconfig.to_str().expect("a path");
    let run = |args: &[&str]| {
        let output = stage.command(&[&["run"], args].concat()).output().expect("it runs");
        String::from_utf8(output.stderr).expect("it prints text")
    };
    let told = run(&["--kubeconfig", theirs]);
    assert!(told.contains("own is for one namespace: it looks into ours"), "{told}");
    assert!(told.contains("is told --namespace=ours\n"), "{told}");
    let told = run(&["--kubeconfig", theirs, "--namespace", "a"]);
    assert!(!told.contains("one namespace") && told.contains("is told --namespace=a\n"), "{told}");
    let told = run(&["--kubeconfig", theirs, "--", "--namespace", "b"]);
    assert!(!told.contains("one namespace") && told.contains("is told --namespace b\n"), "{told}");
    let told = run(&["--embedded"]);
    assert!(told.contains("is told --namespace=default\n"), "{told}");

    let mut dev = stage.command(&["dev", "--plain", "--kubeconfig", theirs]);
    let dev = dev.env("STAYS", "1").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut dev = Background(dev.spawn().expect("it runs"));
    let output = dev.0.stdout.take().expect("it is piped");
    let mut heard = Heard(BufReader::new(output).lines());
    heard.until("dev      | own is for one namespace: it looks into ours");
    heard.until("--namespace=ours");
    assert!(dev.stop(), "it ends well");
}

/// Only its own sources were watched.
#[test]
fn an_operator_is_another_when_what_it_is_built_of_is() {
    let stage = Stage::new("built", "trap 'exit 0' TERM\nwhile :; do sleep 0.1; done");
    let folder = &stage.shop.folder;
    let (sibling, pages) = (folder.join("sibling"), folder.join("pages"));
    for path in [sibling.join("src"), pages.clone()] {
        fs::create_dir_all(path).expect("a folder");
    }
    let manifest = |folder: &Path| folder.join("Cargo.toml");
    let metadata = json!({
        "packages": [
            {"id": "built", "manifest_path": manifest(&stage.shop.root()), "source": null},
            {"id": "sibling", "manifest_path": manifest(&sibling), "source": null},
        ],
        "resolve": {"nodes": [{"id": "built", "dependencies": ["sibling"]}]},
        "workspace_root": stage.shop.root(),
    });
    fs::write(folder.join("metadata"), metadata.to_string()).expect("written");
    let (library, page) = (sibling.join("src/lib.rs"), pages.join("a page.html"));
    fs::write(&page, "one").expect("written");
    let page_noted = page.display().to_string().replace(' ', "\\ ");
    let note = format!("{}: {page_noted}\n", folder.join("operator").display());
    // As cargo would beside what it has built; the program of the stage is not in a folder of such.
    let target = folder.join("target");
    fs::create_dir(&target).expect("a folder");
    fs::rename(folder.join("operator"), target.join("operator")).expect("moved");
    fs::write(target.join("operator.d"), note).expect("written");
    let cargo = fs::read_to_string(&stage.cargo).expect("a script");
    let moved = |path: &Path| path.display().to_string();
    let (from, to) = (moved(&folder.join("operator")), moved(&target.join("operator")));
    script(&stage.cargo, &cargo.replace(&from, &to));

    let theirs = stage.kubeconfig.to_str().expect("a path");
    let (mut dev, mut heard) = stage.dev(&["--kubeconfig", theirs]);
    heard.until("dev      | running, started 1 times");
    fs::write(&library, "// Another.\n").expect("written");
    heard.until("dev      | running, started 2 times");
    fs::write(&page, "two").expect("written");
    heard.until("dev      | running, started 3 times");
    assert!(dev.stop(), "it ends well");
}

/// The Deployment went first, and nobody was left who took finalizers away.
#[test]
fn an_operator_is_there_until_its_objects_are_gone() {
    let stage = Stage::new("leaving", "");
    let package = at::operator().package();
    let manifests = |image: &str| -> Vec<Value> {
        let package = Package { image: image.to_owned(), ..package.clone() };
        let rendered = package.render().expect("manifests").into_iter();
        // Nobody would answer for its webhooks: its program does not really run.
        let is_deployed = |it: &Manifest| !matches!(it.part, Part::Samples | Part::Webhooks);
        rendered.filter(is_deployed).map(|it| it.object).collect()
    };
    stage.renders(&manifests("at:1"));
    // Whatever it may have been deployed with is looked for, also of kinds that no cluster has.
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
        "metadata": {"name": "at", "namespace": "at-system"},
    });
    fs::write(stage.shop.folder.join("chosen"), monitor.to_string()).expect("written");
    let site = Site::up(&stage, "leaving");
    let deploy = ["deploy", "--image", "at:1"];
    let trial = [&deploy[..], &["--dry-run"]].concat();
    let told = site.run(&trial);
    assert!(told.lines().all(|line| line.starts_with("create ")), "{told}");
    let told = site.run(&[&deploy[..], &["--wait"]].concat());
    assert!(told.contains("applied Namespace at-system\n"), "{told}");
    assert!(told.ends_with("available Deployment at-controller-manager\n"), "{told}");
    let told = site.run(&trial);
    assert!(told.lines().all(|line| line.starts_with("same ")), "{told}");
    stage.renders(&manifests("at:2"));
    let told = site.run(&[&trial[..], &["--output", "json"]].concat());
    let lines = told.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let changes: Vec<Value> = lines.filter(|it: &Value| it["outcome"] != "same").collect();
    let change = "spec.template.spec.containers[0].image: \"at:1\" -> \"at:2\"";
    let expected = json!({
        "kind": "Deployment", "namespace": "at-system", "name": "at-controller-manager",
        "outcome": "change", "dryRun": true, "changes": [change],
    });
    assert_eq!(changes, [expected]);

    let kind = ApiResource::erase::<at::At>(&());
    let ats =
        |client: Client| -> Api<DynamicObject> { Api::namespaced_with(client, "default", &kind) };
    let deployment = async |client: Client| {
        let deployments: Api<Deployment> = Api::namespaced(client, "at-system");
        deployments.get_opt("at-controller-manager").await.expect("it can be asked")
    };
    site.ask(async |client| {
        let tea = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"name": "tea", "finalizers": ["example.com/kept"]},
            "spec": {"schedule": "2020-01-01T00:00:00Z", "command": "echo"},
        });
        let tea = serde_json::from_value(tea).expect("an object");
        ats(client).create(&PostParams::default(), &tea).await.expect("created");
    });
    let at = ["--kubeconfig", site.kubeconfig.to_str().expect("a path")];
    let refused = stage.command(&[&["undeploy", "--timeout", "1s"], &at[..]].concat()).output();
    let refused = refused.expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("are still there after 1 seconds: default/tea:"), "{told}");
    assert!(site.ask(deployment).is_some(), "the operator is left alone");

    let mut undeploy = stage.command(&[&["undeploy"], &at[..]].concat());
    let undeploy = undeploy.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut undeploy = Background(undeploy.spawn().expect("it runs"));
    let errors = BufReader::new(undeploy.0.stderr.take().expect("it is piped"));
    let waits = "waiting for the operator to let go of the objects of ats.";
    let told = errors.lines().map_while(Result::ok).find(|line| line.contains(waits));
    assert!(told.expect("it says so").ends_with(": default/tea"));
    site.ask(async |client| {
        assert!(deployment(client.clone()).await.is_some(), "it still lives");
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        ats(client).patch("tea", &PatchParams::default(), &patch).await.expect("let go");
    });
    assert!(undeploy.0.wait().expect("it ends").success());
    // What is in the namespace goes in its own time, the namespace last.
    site.ask(async |client| while deployment(client.clone()).await.is_some() {});
}

/// All that a developer sees is on one screen, which needs a terminal.
#[test]
fn a_screen_shows_how_an_operator_is_doing() {
    if !Command::new("script").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: there is no `script` to make a terminal");
        return;
    }
    let operator = "trap 'exit 0' TERM
        echo \"$*\" > $NOTES/told.new && mv $NOTES/told.new $NOTES/told
        echo hello from the operator
        while :; do sleep 0.1; done";
    let stage = Stage::new("seen", operator);
    let theirs = stage.kubeconfig.to_str().expect("a path");
    let dev = [env!("CARGO_BIN_EXE_kubewright"), "dev", "--kubeconfig", theirs].join(" ");
    let mut terminal = stage.command(&[]);
    let sized = format!("stty rows 40 cols 120; exec {dev}");
    let mut script = Command::new("script");
    script.args(["-qec", &sized, "/dev/null"]).current_dir(stage.shop.root());
    script.envs(terminal.get_envs().filter_map(|(name, value)| Some((name, value?))));
    terminal = script;
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = Background(terminal.spawn().expect("it runs"));
    let mut input = terminal.0.stdin.take().expect("it is piped");
    let output = terminal.0.stdout.take().expect("it is piped");

    let mut lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
    let greets = |line: &Vec<u8>| String::from_utf8_lossy(line).contains("| hello from");
    lines.by_ref().find(greets).expect("it runs");
    // The stage's operator says nothing of itself, so that is said here, where it was told to.
    let told = stage.noted("told");
    let metrics = told.split(' ').find_map(|it| it.strip_prefix("--metrics-bind-address="));
    let listener = TcpListener::bind(metrics.expect("a place")).expect("it is free");
    std::thread::spawn(move || {
        let page = json!({
            "controllers": [{
                "name": "book", "running": true, "waiting": 2, "reconciles": 12, "failures": 1,
                "lastFailure": "default/first: Error: no paper",
            }],
            "kinds": [{"kind": "Book.library.my.domain", "state": "live", "objects": 3}],
            "webhooks": ["/convert"],
        });
        for mut stream in listener.incoming().map_while(Result::ok) {
            let asked = BufReader::new(&stream).lines().map_while(Result::ok);
            asked.take_while(|line| !line.is_empty()).for_each(drop);
            // Whoever asks may have gone.
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{page}");
        }
    });
    let mut seen = String::new();
    for line in lines.by_ref() {
        seen += &String::from_utf8_lossy(&line);
        seen.push('\n');
        // The last screen, as far as it is drawn.
        let screen = seen.rsplit("\x1b[H\x1b[J").next().unwrap_or_default();
        let is_whole = [
            "seen, again after every change; Ctrl-C ends it",
            "running, started 1 times",
            "book: 12 reconciles, 1 failed, 2 waiting",
            "  failed last: default/first: Error: no paper",
            "kinds: Book.library.my.domain (3)",
            "webhooks: /convert",
            "operator | hello from the operator",
        ];
        if is_whole.iter().all(|line| screen.contains(line)) {
            break;
        }
    }
    assert!(seen.contains("hello from the operator"), "{seen}");
    assert!(seen.contains("webhooks: /convert"), "{seen}");
    input.write_all(b"\x03").expect("Ctrl-C");
    // Whoever draws wants to be read until the end.
    lines.for_each(drop);
    assert!(terminal.0.wait().expect("it ends").success(), "{seen}");
}
