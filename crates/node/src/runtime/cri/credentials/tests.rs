use k8s_openapi::ByteString;

use super::*;

fn secret(key: &str, file: &str) -> Secret {
    let data = BTreeMap::from([(key.to_owned(), ByteString(file.as_bytes().to_vec()))]);
    Secret { data: Some(data), ..Secret::default() }
}

fn check(image: &str, secrets: &[Secret], expected: &[(&str, &str)]) {
    let found = find(image, secrets);
    let found: Vec<_> =
        found.iter().map(|it| (it.username.as_str(), it.password.as_str())).collect();
    assert_eq!(found, expected, "{image}");
}

#[test]
fn the_registry_of_an_image_gets_what_is_said_of_it() {
    let secrets = [
        secret(
            ".dockerconfigjson",
            r#"{"auths": {
                "https://index.docker.io/v1/": {"username": "hub", "password": "1"},
                "registry.test:5000": {"auth": "dGVhbTpzZWNyZXQ6MQ=="},
                "registry.test:5000/other": {"username": "other", "password": "2"}
            }}"#,
        ),
        secret(".dockercfg", r#"{"old.test": {"username": "old", "password": "3"}}"#),
    ];
    check("busybox", &secrets, &[("hub", "1")]);
    check("registry.test:5000/app:1", &secrets, &[("team", "secret:1")]);
    check("registry.test:5000/other/app:1", &secrets, &[("other", "2"), ("team", "secret:1")]);
    check("registry.test:5000/others:1", &secrets, &[("team", "secret:1")]);
    check("old.test/app", &secrets, &[("old", "3")]);
    check("elsewhere.test/app", &secrets, &[]);
    check("busybox", &[secret(".dockerconfigjson", "garbage")], &[]);
}

/// Only one was tried, and of two Secrets for a registry it could be the wrong one.
#[test]
fn all_that_is_said_of_a_registry_is_tried_in_the_order_of_the_pod() {
    let of = |user: &str| {
        let file =
            format!(r#"{{"auths": {{"r.test": {{"username": "{user}", "password": "1"}}}}}}"#);
        secret(".dockerconfigjson", &file)
    };
    check("r.test/app", &[of("z"), of("a")], &[("z", "1"), ("a", "1")]);
}
