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

/// It used to become a dependency with two sources, which Cargo refuses.
#[test]
fn what_a_workspace_decides_is_changed_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let (outer, inner) = (dir.path().join(MANIFEST), dir.path().join("one").join(MANIFEST));
    std::fs::create_dir(dir.path().join("one")).expect("a folder");
    std::fs::write(&outer, "[workspace]\nmembers = [\"one\"]\n").expect("written");
    let text = "[package]\nname = \"one\"\nmetadata.kubewright.domain = \"a.b\"\n\n\
                [dependencies]\nkubewright = { workspace = true, features = [\"otlp\"] }\n";
    std::fs::write(&inner, text).expect("written");
    let project = Project::find(&dir.path().join("one")).expect("a project");
    let refused = upgrade(&project, &Library::Version("0.2.0".to_owned()));
    let expected = format!(
        "Cargo.toml: `kubewright` is taken from the workspace: say in {} where it comes from",
        outer.display()
    );
    assert_eq!(refused.expect_err("it is refused").to_string(), expected);
}
