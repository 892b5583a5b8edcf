//! The program, as whoever judges a cluster with it sees it.

use std::process::{Command, Output};

fn conformance(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conformance"))
        .args(args)
        .env("KUBECONFIG", "/nowhere/config")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("the program runs")
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let output = conformance(&["run"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/nowhere/config"), "{said}");
}

#[test]
fn every_scenario_is_listed_with_what_it_proves() {
    let output = conformance(&["list"]);
    assert!(output.status.success());
    let list = String::from_utf8(output.stdout).expect("it prints text");
    let proves = |line: &str| {
        line.split_once(' ').is_some_and(|(name, ids)| name.contains("::") && !ids.is_empty())
    };
    assert!(list.lines().count() > 400, "{list}");
    assert!(list.lines().all(proves), "{list}");
}
