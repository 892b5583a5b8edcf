use super::*;

fn check(dependencies: &str, library: &Library, expected: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let manifest = |dependencies: &str| {
        format!(
            "[package]\nname = \"one\"\n\n[package.metadata.kubewright]\ndomain = \"a.b\"\n\n\
             [dependencies]\n# Mine.\n{dependencies}\n"
        )
    };
    std::fs::write(dir.path().join(MANIFEST), manifest(dependencies)).expect("written");
    let project = Project::find(dir.path()).expect("a project");
    let plan = upgrade(&project, library).expect("a plan");
    let after = plan.changes.into_iter().next().and_then(|change| change.after);
    assert_eq!(after, (dependencies != expected).then(|| manifest(expected)));
}

#[test]
fn an_upgrade_changes_where_the_library_comes_from_and_nothing_else() {
    let version = Library::Version("0.2.0".to_owned());
    check("kubewright = \"0.1.0\" # Why.", &version, "kubewright = \"0.2.0\" # Why.");
    check("kubewright = \"0.2.0\"", &version, "kubewright = \"0.2.0\"");
    check("kubewright = { path = \"../x\" }", &version, "kubewright = \"0.2.0\"");
    check(
        "kubewright = { path = \"../x\", features = [\"otlp\"] }",
        &version,
        "kubewright = { features = [\"otlp\"], version = \"0.2.0\" }",
    );
    check(
        "kubewright = \"0.1.0\"\nserde = \"1\"",
        &Library::Path("../crates".into()),
        "kubewright = { path = \"../crates/kubewright\" }\nserde = \"1\"",
    );
}

#[test]
fn what_must_go_along_goes_along() {
    check(
        "kubewright = \"0.1.0\"\nkube = { version = \"4.0\", features = [\"ws\"] } # Mine.",
        &Library::Version("0.1.0".to_owned()),
        "kubewright = \"0.1.0\"\nkube = { version = \"5.0\", features = [\"ws\"] } # Mine.",
    );
}
