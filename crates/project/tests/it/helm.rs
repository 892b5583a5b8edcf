//! The chart, by `helm` itself: whatever is chosen, it renders what the operator would.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;

use kubewright::manifest::{Certificates, Package, Part};
use kubewright_apimachinery::yaml;
use kubewright_project::package::{self, Model, helm};
use serde_json::{Value, json};

use crate::package::{bare, pets};

/// Names a helm that is not `helm`.
const HELM: &str = "KUBEWRIGHT_HELM";

fn program() -> Option<String> {
    let program = env::var(HELM).unwrap_or_else(|_| "helm".to_owned());
    let works = Command::new(&program).arg("version").output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    eprintln!("skipped: there is no `{program}`; {HELM} may name one");
    None
}

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .expect("helm runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr) + &text(output.stdout)),
    }
}

fn objects(stream: &str) -> BTreeMap<String, Value> {
    let documents = yaml::documents(stream).expect("documents").into_iter();
    let values = documents.map(|it| yaml::decode(it).unwrap_or_else(|e| panic!("{e}: {it}")).value);
    values.filter(|it| !it.is_null()).map(bare).collect()
}

#[test]
fn charts_render_what_operators_render_whatever_is_chosen() {
    let Some(helm) = program() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let model = pets();
    package::write(&helm::render(&model).expect("a chart"), &place.path().join("chart"))
        .expect("written");
    run(&helm, place.path(), &["lint", "--strict", "chart"]).expect("lint is content");
    for bits in 0..8 {
        let chosen = |bit: u32| bits & (1 << bit) != 0;
        let (webhooks, certificates, metrics) = (chosen(0), chosen(1), chosen(2));
        let values = format!(
            "webhooks.enabled={webhooks},certManager.enabled={certificates},\
             metrics.enabled={metrics},networkPolicy.enabled=true,serviceMonitor.enabled=true,\
             dashboards.enabled=true,crds.keep=false"
        );
        let arguments =
            ["template", "pets", "chart", "--namespace", "pets-system", "--set", &values];
        let rendered = objects(&run(&helm, place.path(), &arguments).expect("it renders"));
        let expected = expected(&model, webhooks, certificates, metrics);
        let keys = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&rendered), keys(&expected), "{values}");
        for (key, object) in &rendered {
            assert_eq!(*object, expected[key], "{key} with {values}");
        }
    }
}

/// What the operator renders with the same choices, and what every chart puts in.
fn expected(
    model: &Model,
    webhooks: bool,
    certificates: bool,
    metrics: bool,
) -> BTreeMap<String, Value> {
    let mut package = Package {
        metrics,
        certificates: match certificates {
            true => Certificates::CertManager,
            false => Certificates::SelfMade,
        },
        network_policy: true,
        service_monitor: true,
        dashboards: true,
        ..model.package.clone()
    };
    if !webhooks {
        (package.mutating, package.validating) = (Vec::new(), Vec::new());
        package.converted = Vec::new();
        package.arguments.push("--webhook-bind-address=0".to_owned());
    }
    let manifests = package.render().expect("rendered");
    let is_in_charts = |part| !matches!(part, Part::Namespace | Part::Samples);
    let objects = manifests.into_iter().filter(|it| is_in_charts(it.part)).map(|it| it.object);
    let mut objects: BTreeMap<_, _> = objects.map(bare).collect();
    for (key, object) in &mut objects {
        if key.starts_with("Deployment ") {
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["imagePullPolicy"] = json!("IfNotPresent");
        }
    }
    objects
}

#[test]
fn values_say_what_is_run_and_where() {
    let Some(helm) = program() else { return };
    let place = tempfile::tempdir().expect("a folder");
    package::write(&helm::render(&pets()).expect("a chart"), &place.path().join("chart"))
        .expect("written");
    let template = |values: &[&str]| {
        let mut arguments = vec!["template", "pets", "chart", "--namespace", "zoo"];
        for value in values {
            arguments.extend(["--set-json", value]);
        }
        run(&helm, place.path(), &arguments)
    };
    let rendered = template(&[
        r#"image={"repository":"r/p","tag":"9"}"#,
        r#"replicas=3"#,
        r#"resources={"limits":{"memory":"1Gi"}}"#,
        r#"extraArguments=["--log-level=a: {b}"]"#,
        r#"environment=[{"name":"A","value":"b"}]"#,
        r#"tolerations=[{"operator":"Exists"}]"#,
        r#"podLabels={"team":"x"}"#,
        r#"serviceAccount={"annotations":{"a/b":"c"}}"#,
    ]);
    let rendered = objects(&rendered.expect("it renders"));
    let spec = &rendered["Deployment zoo/pets-controller-manager"]["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!((&spec["replicas"], &container["image"]), (&json!(3), &json!("r/p:9")));
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    let arguments = container["args"].as_array().expect("arguments");
    assert_eq!(arguments.last(), Some(&json!("--log-level=a: {b}")));
    assert_eq!(container["env"], json!([{"name": "A", "value": "b"}]));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(spec["template"]["metadata"]["labels"]["team"], "x");
    let account = &rendered["ServiceAccount zoo/pets-controller-manager"];
    assert_eq!(account["metadata"]["annotations"], json!({"a/b": "c"}));
    let definition = &rendered["CustomResourceDefinition /pets.example.com"];
    assert_eq!(definition["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");

    let misspelt = template(&["replica=3"]).expect_err("there is no such value");
    assert!(misspelt.contains("replica"), "{misspelt}");
    template(&[r#"replicas="many""#]).expect_err("it is no number");
}
