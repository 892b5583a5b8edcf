//! What `kubewright package` writes, and where; installed by the tools it is for. Read the same on
//! upstream.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kubewright_project::package::{self, About, Model, helm};
use serde_json::{Value, json};

use crate::project::succeed;
use crate::rust::run_as;
use crate::{UP_ALONE, User};

/// Names a helm that is not `helm`.
const HELM: &str = "KUBEWRIGHT_HELM";
const KIND: &str = "ats.cnat.programming-kubernetes.info";

#[test]
fn the_chart_of_an_operator_is_installed_changed_and_removed() {
    let program = std::env::var(HELM).unwrap_or_else(|_| "helm".to_owned());
    if !Command::new(&program).arg("version").output().is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: there is no `{program}`; {HELM} may name one");
        return;
    }
    let about = About { version: "0.1.0".to_owned(), ..About::default() };
    let model = Model { package: at::operator().package(), about };
    let place = tempfile::tempdir().expect("a folder");
    let chart = place.path().join("chart");
    package::write(&helm::render(&model).expect("a chart"), &chart).expect("written");

    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let helm = |arguments: &[&str]| run(&program, &user, &chart, arguments);
    run_as(&user, |client| async move { live(&helm, client).await });
}

/// A program that says what `at` says of itself, and notes in `asked` how it was asked.
fn stand_in(folder: &Path) -> PathBuf {
    let (program, model) = (folder.join("operator"), folder.join("model.json"));
    fs::write(&model, at::operator().package().to_model()).expect("written");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > '{}'\ncat '{}'\n",
        folder.join("asked").display(),
        model.display()
    );
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    program
}

fn kubewright(folder: &Path, args: &[&str]) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_kubewright")).args(args).current_dir(folder))
}

/// In a folder of a project it used to forget what the project says, and to write beside it.
#[test]
fn a_project_is_packaged_from_any_of_its_folders() {
    let place = tempfile::tempdir().expect("a folder");
    let program = stand_in(place.path());
    let program = program.to_str().expect("a path");
    kubewright(place.path(), &["init", "clock", "--domain", "my.domain", "--namespaced"]);
    let root = place.path().join("clock");
    kubewright(&root.join("src"), &["package", "yaml", "--binary", program]);
    let asked = fs::read_to_string(place.path().join("asked")).expect("it was asked");
    assert_eq!(asked, "manifests --model --namespaced\n");
    let text = fs::read_to_string(root.join("dist/install.yaml")).expect("it is at the root");
    assert!(text.contains(&format!("name: {KIND}\n")), "{text}");
    let kustomize = ["package", "kustomize", "--binary", program, "--format", "json"];
    let told: Value =
        serde_json::from_str(&kubewright(&root.join("src"), &kustomize)).expect("JSON");
    let files = told["files"].as_array().expect("files");
    assert!(files.contains(&json!("base/kustomization.yaml")), "{told}");
    let written = told["path"].as_str().map(Path::new).expect("a path");
    assert!(written.ends_with("clock/dist/kustomize"), "{told}");
    assert!(written.join("base/kustomization.yaml").is_file());
    assert!(!root.join("src/dist").exists());
}

/// A chart or a bundle with such a version was written, and refused by whoever was to install it.
#[test]
fn what_is_no_version_no_image_and_no_namespace_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
        let output = command.args(args).current_dir(place.path()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).expect("it prints text")
    };
    let told = refused(&["package", "olm", "--release", "next"]);
    assert!(told.contains("'next' for '--release <VERSION>': write it as 0."), "{told}");
    let told = refused(&["package", "olm", "--min-kube-version", "1.30"]);
    assert!(told.contains("'1.30' for '--min-kube-version <VERSION>'"), "{told}");
    let told = refused(&["package", "yaml", "--namespace", "My_own"]);
    assert!(told.contains("a lowercase RFC 1123 label must consist of"), "{told}");
    for command in [["package", "helm"].as_slice(), &["deploy"]] {
        let told = refused(&[command, &["--image", "Pets:1"]].concat());
        assert!(told.contains("\"Pets:1\" names no image: a repository has lower-case"), "{told}");
    }
}

fn run(program: &str, user: &User, chart: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .args(["--namespace", "clock"])
        .current_dir(chart)
        .env("HOME", user.home.path())
        .env("KUBECONFIG", user.home.path().join(".kube/config"))
        .output()
        .expect("helm runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

async fn live(helm: &dyn Fn(&[&str]) -> String, client: Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "clock");
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let deployment = async || {
        let found = deployments.get("at-controller-manager").await.expect("it is there");
        let spec = found.spec.expect("a spec");
        let container = spec.template.spec.expect("a pod").containers.remove(0);
        (spec.replicas, container.image, container.args.unwrap_or_default())
    };
    helm(&["install", "at", ".", "--create-namespace", "--set", "image.repository=r/at"]);
    let (replicas, image, arguments) = deployment().await;
    assert_eq!((replicas, image.as_deref()), (Some(1), Some("r/at:latest")));
    assert!(!arguments.contains(&"--webhook-bind-address=0".to_owned()));
    let kind = definitions.get(KIND).await.expect("it is defined");

    helm(&["upgrade", "at", ".", "--set", "replicas=2,webhooks.enabled=false"]);
    let (replicas, _, arguments) = deployment().await;
    assert_eq!(replicas, Some(2));
    assert!(arguments.contains(&"--webhook-bind-address=0".to_owned()), "{arguments:?}");

    helm(&["uninstall", "at", "--wait"]);
    assert!(deployments.get_opt("at-controller-manager").await.expect("read").is_none());
    let kept = definitions.get(KIND).await.expect("definitions stay");
    assert_eq!(kept.metadata.uid, kind.metadata.uid);
}
