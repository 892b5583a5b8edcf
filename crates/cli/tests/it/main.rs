//! The command as a user sees it.

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
3 accepted, 0 refused, 0 skipped
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
        "Thing \"stranger\" is of a kind that is neither built in nor defined here",
        "unexpected end of JSON input",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        let line = line.strip_prefix(&format!("{refused}: ")).expect("a line names its file");
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
    assert_eq!(lines[expected.len()..], ["1 accepted, 6 refused, 0 skipped"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_path_that_is_not_there_is_an_error_of_its_own() {
    let output = kubewright(&["validate", "no/such/folder"]);
    let text = String::from_utf8(output.stderr).expect("it prints text");
    assert!(text.starts_with("error: read no/such/folder: "), "{text}");
    assert_eq!(output.status.code(), Some(2));
}
