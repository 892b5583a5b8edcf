//! By value, and once on disk.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn user() -> Pair {
    Pair { certificate: "cert".to_owned(), key: "key".to_owned() }
}

fn access<'a>(user: &'a Pair, name: &'a str, server: &'a str) -> Access<'a> {
    Access { name, server, ca_pem: "ca", user }
}

fn parse(text: &str) -> Value {
    yaml::decode(text).expect("YAML").value
}

const OURS: &str = "\
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: Y2E=
    extensions:
    - extension: {}
      name: kubewright
    server: https://127.0.0.1:6443
  name: kubewright
contexts:
- context:
    cluster: kubewright
    extensions:
    - extension: {}
      name: kubewright
    user: kubewright
  name: kubewright
users:
- name: kubewright
  user:
    client-certificate-data: Y2VydA==
    client-key-data: a2V5
    extensions:
    - extension: {}
      name: kubewright
current-context: kubewright
";

const THEIRS: &str = "\
apiVersion: v1
clusters:
- cluster:
    server: https://example.com
  name: prod
contexts:
- context:
    cluster: prod
    namespace: web
    user: me
  name: prod
current-context: prod
kind: Config
preferences: {}
users:
- name: me
  user:
    token: secret
";

#[test]
fn a_kubeconfig_of_its_own_has_one_of_each() {
    let user = user();
    let text = access(&user, "kubewright", "https://127.0.0.1:6443").alone();
    assert_eq!(parse(&text), parse(OURS));
}

#[test]
fn the_rest_of_a_file_stays_when_entries_come_and_go() {
    let user = user();
    let mut config = parse(THEIRS);
    let add = |config: &mut Value, server: &str| {
        access(&user, "kubewright", server).merge_into(config).expect("free");
    };
    add(&mut config, "https://127.0.0.1:1");
    assert_eq!(config["current-context"], "kubewright");
    assert_eq!(config["clusters"][0], parse(THEIRS)["clusters"][0]);
    assert_eq!(config["contexts"][0]["context"]["namespace"], "web");

    add(&mut config, "https://127.0.0.1:2");
    assert_eq!(config["clusters"].as_array().expect("a list").len(), 2);
    assert_eq!(config["clusters"][1]["cluster"]["server"], "https://127.0.0.1:2");

    assert!(remove_from(config.as_object_mut().expect("a mapping"), "kubewright"));
    let mut expected = parse(THEIRS);
    expected["current-context"] = "".into();
    assert_eq!(config, expected);
}

#[test]
fn the_current_context_stays_unless_it_is_the_removed_one() {
    let user = user();
    let mut config = parse(THEIRS);
    access(&user, "kubewright", "s").merge_into(&mut config).expect("free");
    config["current-context"] = "prod".into();
    assert!(remove_from(config.as_object_mut().expect("a mapping"), "kubewright"));
    assert_eq!(config, parse(THEIRS));
}

#[test]
fn nobody_elses_entries_are_overwritten_or_removed() {
    let user = user();
    let mut config = parse(THEIRS);
    assert!(access(&user, "prod", "s").merge_into(&mut config).is_err());
    assert!(access(&user, "me", "s").merge_into(&mut config).is_err(), "a user is enough");
    assert!(!remove_from(config.as_object_mut().expect("a mapping"), "prod"));
    assert_eq!(config, parse(THEIRS));
}

#[test]
fn empty_lists_may_be_null() {
    let user = user();
    let mut config = parse("apiVersion: v1\nkind: Config\nclusters: null\nusers:\n");
    access(&user, "kubewright", "https://127.0.0.1:6443").merge_into(&mut config).expect("free");
    assert_eq!(config, parse(OURS));
}

#[test]
fn the_file_is_the_one_kubectl_would_read_first() {
    let paths = |kubeconfig: Option<&str>| paths(kubeconfig.map(Into::into), Some("h".into()));
    let check = |found: &[PathBuf], expected: &[&str]| {
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
    };
    check(&paths(None), &["h/.kube/config"]);
    check(&paths(Some("")), &["h/.kube/config"]);
    check(&paths(Some("a:b::a")), &["a", "b"]);

    let dir = tempfile::tempdir().expect("a directory");
    let files = ["x", "y", "z"].map(|name| dir.path().join(name));
    assert_eq!(choose(&files), Some(files[2].as_path()), "none exists");
    std::fs::write(&files[1], "").expect("a file");
    assert_eq!(choose(&files), Some(files[1].as_path()));
}

#[test]
fn a_file_is_made_for_its_owner_alone_and_links_stay_links() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(".kube").join("config");
    let user = user();
    let access = access(&user, "kubewright", "https://127.0.0.1:6443");
    access.add_to(&path).expect("written");
    let read = || std::fs::read_to_string(&path).expect("a file");
    assert_eq!(parse(&read()), parse(OURS));
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    assert!(remove(&link, "kubewright").expect("changed"));
    assert!(std::fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert_eq!(parse(&read())["clusters"], json!([]));
    assert!(!remove(&link, "kubewright").expect("unchanged"));
    assert!(!remove(&dir.path().join("none"), "kubewright").expect("nothing"));
}

#[test]
fn what_is_no_kubeconfig_is_not_touched() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config");
    let user = user();
    for text in ["- a\n", "a: [\n"] {
        std::fs::write(&path, text).expect("a file");
        let error = access(&user, "kubewright", "s").add_to(&path).expect_err("refused");
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
    }
}
