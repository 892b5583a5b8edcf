//! Where a cluster is looked for, and what is said when there is none.

use std::fs;

use super::*;

fn path(text: &str) -> PathBuf {
    PathBuf::from(text)
}

/// Variables as `NAME=value`.
fn environment(variables: &[&str]) -> impl Fn(&str) -> Option<OsString> {
    let variables: Vec<_> = variables.iter().filter_map(|it| it.split_once('=')).collect();
    let variables: Vec<_> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    move |name| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| OsString::from(value))
    }
}

fn check(flag: Option<&str>, variables: &[&str], expected: &[Source]) {
    let flag = flag.map(path);
    assert_eq!(sources(flag.as_deref(), &environment(variables)), expected);
}

#[test]
fn flags_go_before_variables_before_the_pod_before_home() {
    let all = ["KUBECONFIG=/a:/b", "KUBERNETES_SERVICE_HOST=10.0.0.1", "HOME=/people/thor"];
    check(Some("/flag"), &all, &[Source::Flag(path("/flag"))]);
    check(None, &all, &[Source::Variable(vec![path("/a"), path("/b")])]);
    check(None, &all[1..], &[Source::Pod, Source::Home(path("/people/thor/.kube/config"))]);
    check(None, &[], &[Source::Pod]);
}

#[test]
fn an_empty_variable_names_nothing() {
    check(None, &["KUBECONFIG=:"], &[Source::Pod]);
}

async fn refusal(flag: Option<&Path>, variables: &[&str]) -> String {
    find(flag, environment(variables)).await.expect_err("there is no cluster").to_string()
}

#[tokio::test]
async fn an_error_names_everything_that_was_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().display();
    let error = refusal(None, &[&format!("HOME={home}")]).await;
    let start = format!(
        "find a cluster: the pod's service account: KUBERNETES_SERVICE_HOST is not set; \
         {home}/.kube/config: failed to read kubeconfig"
    );
    assert!(error.starts_with(&start), "{error}");
}

#[tokio::test]
async fn what_is_named_is_not_passed_over() {
    let error = refusal(Some(Path::new("/nowhere/config")), &["HOME=/root"]).await;
    assert!(error.starts_with("find a cluster: --kubeconfig /nowhere/config: "), "{error}");
    assert!(!error.contains(';'), "{error}");
}

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me, namespace: shop}}]
clusters: [{name: here, cluster: {server: 'https://127.0.0.1:6443'}}]
users: [{name: me, user: {token: secret}}]
";

#[tokio::test]
async fn of_the_files_of_a_variable_one_must_exist() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config");
    fs::write(&file, KUBECONFIG).expect("written");
    let variable = format!("KUBECONFIG=/nowhere/config:{}", file.display());
    let connection = find(None, environment(&[&variable])).await.expect("a cluster");
    assert_eq!(connection.namespace(), "shop");
    assert!(!connection.is_in_cluster());
    assert!(!connection.config.default_retry);
    assert_eq!(connection.config.cluster_url.to_string(), "https://127.0.0.1:6443/");

    let error = refusal(None, &["KUBECONFIG=/nowhere/config"]).await;
    assert!(error.starts_with("find a cluster: $KUBECONFIG /nowhere/config: "), "{error}");
}
