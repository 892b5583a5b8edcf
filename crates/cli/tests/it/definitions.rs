//! `import` and `diff-crd`, as a user and a pipeline see them.

use std::fs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::rust::run_as;
use crate::{UP_ALONE, User, kubewright};

const OLD: &str = "examples/at/crd.yaml";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it prints text")
}

#[test]
fn a_pipeline_learns_what_a_definition_breaks_by_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("crd.yaml");
    let new_path = new.to_str().expect("text");
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/at/crd.yaml");
    let old = fs::read_to_string(old).expect("read");

    let same = kubewright(&["diff-crd", OLD, OLD]);
    assert_eq!(same.status.code(), Some(0));
    assert!(text(same.stdout).ends_with("0 breaking, 0 to look at, 0 compatible\n"));

    fs::write(&new, old.replace("command:", "order:")).expect("written");
    let broken = kubewright(&["diff-crd", OLD, new_path]);
    assert_eq!(broken.status.code(), Some(1));
    let told = text(broken.stdout);
    assert!(told.contains("spec.command: is gone"), "{told}");
    let lenient = kubewright(&["diff-crd", OLD, new_path, "--fail-on", "never", "-o", "json"]);
    assert_eq!(lenient.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&lenient.stdout).expect("JSON");
    assert_eq!(document["worst"], "breaking");
    assert_eq!(document["definitions"][0]["findings"][0]["change"], "field-removed");

    let absent = kubewright(&["diff-crd", OLD, "examples/at/pod.yaml"]);
    assert_eq!(absent.status.code(), Some(2));
    let told = text(absent.stderr);
    assert!(told.contains("has no CustomResourceDefinition; kinds there: [\"Pod\"]"), "{told}");
    fs::write(&new, "kind: [").expect("written");
    let unreadable = kubewright(&["diff-crd", OLD, new_path]);
    assert_eq!(unreadable.status.code(), Some(2));
    assert!(text(unreadable.stderr).contains("line 1"), "the place is told");
}

#[test]
fn an_import_writes_over_what_was_imported_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("at.rs");
    let import = |path: &std::path::Path| {
        kubewright(&["import", "--crd", OLD, "--output", path.to_str().expect("text")])
    };
    for path in [file.as_path(), folder.path()] {
        fs::write(&file, "//! Mine.\n").expect("written");
        let refused = import(path);
        assert_eq!(refused.status.code(), Some(2));
        let told = text(refused.stderr);
        assert!(told.contains("at.rs was not written by `kubewright import`"), "{told}");
        assert_eq!(fs::read_to_string(&file).expect("read"), "//! Mine.\n");

        fs::remove_file(&file).expect("removed");
        assert_eq!(import(path).status.code(), Some(0));
        let written = fs::read_to_string(&file).expect("read");
        fs::write(&file, format!("{written}// A change that is lost.\n")).expect("written");
        assert_eq!(import(path).status.code(), Some(0));
        assert_eq!(fs::read_to_string(&file).expect("read"), written);
    }
    let path = file.to_str().expect("text");
    let told = kubewright(&["import", "--crd", OLD, "--output", path, "--format", "json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let name = "ats.cnat.programming-kubernetes.info";
    assert_eq!(told, json!({"files": [{"definition": name, "path": path}], "declared": []}));
}

#[test]
fn a_definition_is_imported_from_a_file_and_from_a_cluster() {
    let from_file = kubewright(&["import", "--crd", OLD]);
    assert_eq!(from_file.status.code(), Some(0));
    let from_file = text(from_file.stdout);
    assert!(from_file.contains("pub struct AtSpec"), "{from_file}");
    let wrong = kubewright(&["import", "--crd", OLD, "--version", "v9"]);
    assert_eq!(wrong.status.code(), Some(2));
    let told = text(wrong.stderr);
    assert!(told.contains("in version v9: it has v1alpha1"), "{told}");

    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/at/crd.yaml");
    let definition = fs::read_to_string(definition).expect("read");
    let definition = kubewright_apimachinery::yaml::decode(&definition).expect("YAML").value;
    let definition: CustomResourceDefinition =
        serde_json::from_value(definition).expect("a definition");
    let name = definition.metadata.name.clone().expect("a name");
    run_as(&user, |client| async move {
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        definitions.create(&PostParams::default(), &definition).await.expect("created");
        let established = conditions::is_crd_established();
        await_condition(definitions, &name, established).await.expect("it is served");
    });
    let name = "ats.cnat.programming-kubernetes.info";
    let from_cluster = user.run(&["import", "--from-cluster", name]).expect("imported");
    assert_eq!(from_cluster, from_file);
    let absent = user.run(&["import", "--from-cluster", "cats.example.com"]);
    let told = absent.expect_err("there is none");
    assert!(told.contains("kubectl get crds"), "{told}");
    let status = "customresourcedefinitions.apiextensions.k8s.io \"cats.example.com\" not found\n";
    assert!(told.ends_with(&format!(": {status}")), "{told}");
    let told = User::new().run(&["import", "--from-cluster", name]).expect_err("no cluster");
    let step = "error: ask a cluster (`kubewright up` starts one; --crd FILE needs none): find a";
    assert!(told.starts_with(step), "{told}");
}
