//! The command as a user sees it.

mod audit;
#[cfg(target_os = "linux")]
mod book;
#[cfg(target_os = "linux")]
mod build;
mod client;
mod conformance;
mod crash;
mod cri;
mod definitions;
#[cfg(target_os = "linux")]
mod demo;
mod drop_in;
mod golang;
mod handover;
mod helm;
mod hostile;
#[cfg(target_os = "linux")]
mod in_pod;
mod java;
mod machine;
mod outbound;
mod package;
mod pair;
mod project;
mod python;
mod rust;
mod server;
mod site;
mod transcript;

use std::process::{Command, Output};

fn kubewright(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubewright"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("the command runs")
}

#[test]
fn the_examples_would_be_accepted() {
    let output = kubewright(&["validate", "examples"]);
    let text = String::from_utf8(output.stdout).expect("it prints text");
    assert_eq!(
        text,
        "\
examples/at/at.yaml: At \"cnat/example-at\" ok
examples/at/crd.yaml: CustomResourceDefinition \"ats.cnat.programming-kubernetes.info\" ok
examples/at/pod.yaml: Pod \"cnat/example-at-pod\" ok
examples/crontab/crd.yaml: CustomResourceDefinition \"crontabs.stable.example.com\" ok
examples/crontab/crontab.yaml: CronTab \"my-new-cron-object\" ok
5 accepted, 0 refused, 0 skipped
"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn refusals_name_the_field_and_the_reason() {
    let refused = "crates/cli/tests/it/refused.yaml";
    let output = kubewright(&["validate", "examples/at/crd.yaml", refused]);
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let expected = [
        "At \"typo\" strict decoding error: unknown field \"spec.comand\"",
        "At \"Bad_One\" metadata.name: Invalid value: \"Bad_One\": a lowercase RFC 1123 subdomain",
        "At \"Bad_One\" spec.command: Invalid value: \"integer\": spec.command in body must be of",
        "At \"Bad_One\" spec.schedule: Invalid value: \"tomorrow\": spec.schedule in body must be",
        "Pod \"typo\" strict decoding error: unknown field \"spec.contaners\"",
        "Pod \"no-list\" json: cannot unmarshal object into Go struct field PodSpec.spec.containers",
        "Deployment \"mismatch\" spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `sel",
        "Deployment \"mismatch\" spec.template.spec.containers[0].image: Required value",
        "Thing \"stranger\" is of a kind that is neither built in nor defined here",
        "unexpected end of JSON input",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        let line = line.strip_prefix(&format!("{refused}: ")).expect("a line names its file");
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
    assert_eq!(lines[expected.len()..], ["1 accepted, 7 refused, 0 skipped"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_path_that_is_not_there_is_an_error_of_its_own() {
    let output = kubewright(&["validate", "no/such/folder"]);
    let text = String::from_utf8(output.stderr).expect("it prints text");
    assert!(text.starts_with("error: read no/such/folder: "), "{text}");
    assert_eq!(output.status.code(), Some(2));
}

/// Starts a cluster whose workloads stay as they are written.
const UP_ALONE: [&str; 9] = [
    "up",
    "--ephemeral",
    "--detach",
    "--port",
    "0",
    "--node",
    "none",
    "--controllers",
    HOUSEKEEPING,
];

/// The controllers that keep the API itself in order: as on upstream, when it was asked, workloads
/// stay as they were written.
const HOUSEKEEPING: &str = "namespace-controller,garbage-collector-controller,\
                            serviceaccount-controller,\
                            root-ca-certificate-publisher-controller,\
                            clusterrole-aggregation-controller,resourcequota-controller,\
                            persistentvolumeclaim-protection-controller,\
                            persistentvolume-protection-controller,\
                            validatingadmissionpolicy-status-controller";

/// A user with nothing yet.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        User { home: tempfile::tempdir().expect("a directory") }
    }

    /// What the command prints, if it succeeds, or its complaint.
    fn run(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_kubewright"))
            .args(args)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env_remove("XDG_DATA_HOME")
            .env_remove("KUBECONFIG")
            .output()
            .expect("the command runs");
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.run(args).expect("it succeeds")).expect("it prints JSON")
    }

    fn kubeconfig(&self) -> String {
        std::fs::read_to_string(self.home.path().join(".kube/config")).expect("a kubeconfig")
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Only matters to a test that failed half-way.
        for name in ["kubewright", "other"] {
            let _ = self.run(&["down", name]);
        }
    }
}

#[test]
fn a_cluster_comes_up_is_found_and_goes_down() {
    let user = User::new();
    let up = user.json(&["up", "--detach", "--port", "0", "--output", "json"]);
    let (name, server) = (&up["name"], up["server"].as_str().expect("a URL"));
    assert_eq!(name, "kubewright");
    let list = user.json(&["clusters", "--output", "json"]);
    assert_eq!((&list[0]["server"], &list[0]["running"]), (&up["server"], &true.into()));
    assert!(user.kubeconfig().contains(server));
    assert!(user.kubeconfig().contains("current-context: kubewright"));
    assert!(user.run(&["kubeconfig"]).expect("printed").contains(server));

    let twice = user.run(&["up"]).expect_err("it runs");
    assert!(twice.starts_with("error: cluster \"kubewright\" is running: "), "{twice}");
    let port = server.rsplit(':').next().expect("a port");
    let taken = user.run(&["up", "--name", "other", "--port", port]).expect_err("it is taken");
    assert!(
        taken.contains(&format!("port {port} is in use: choose another with --port")),
        "{taken}"
    );

    assert_eq!(user.run(&["snapshot", "file"]).expect("written"), "wrote file\n");
    user.run(&["reset"]).expect("reset");
    user.run(&["restore", "file"]).expect("restored");
    assert!(user.run(&["snapshot", "file"]).is_err(), "a snapshot is never overwritten");
    let damaged = user.run(&["restore", ".kube/config"]).expect_err("it is no snapshot");
    assert!(damaged.contains("which is no whole backup"), "{damaged}");

    assert_eq!(user.run(&["down"]).expect("down"), "cluster \"kubewright\" has stopped\n");
    assert!(!user.kubeconfig().contains(server));
    let list = user.json(&["clusters", "--output", "json"]);
    assert_eq!(list[0]["running"], false);

    let again = user.json(&["up", "--detach", "--output", "json"]);
    assert_eq!(again["server"], up["server"], "it comes up where it was");
    user.run(&["down", "--delete"]).expect("deleted");
    assert_eq!(user.json(&["clusters", "--output", "json"]), serde_json::json!([]));
}

/// A log in a file was full of what only terminals understand.
#[test]
fn colours_are_for_terminals() {
    let user = User::new();
    user.run(&["up", "--detach", "--port", "0", "--verbose"]).expect("up");
    user.run(&["snapshot", "file"]).expect("written");
    user.run(&["down"]).expect("down");
    let log = user.home.path().join(".local/share/kubewright/kubewright/log");
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains(" INFO "), "{log}");
    assert!(!log.contains('\x1b'), "{log:?}");
}

#[test]
fn an_ephemeral_cluster_leaves_nothing_behind() {
    let user = User::new();
    user.run(&["up", "--ephemeral", "--detach", "--port", "0", "--name", "other"]).expect("up");
    user.run(&["reset", "other"]).expect("reset");
    user.run(&["down", "--name", "other"]).expect("down");
    let home = user.home.path().join(".local/share/kubewright");
    assert_eq!(std::fs::read_dir(home).expect("a directory").count(), 0);
    let gone = user.run(&["down", "other"]).expect_err("it is gone");
    assert!(gone.starts_with("error: there is no cluster \"other\": "), "{gone}");
}
