use k8s_openapi::ByteString;

use super::*;

fn secret(key: &str, file: &str) -> Secret {
    let data = BTreeMap::from([(key.to_owned(), ByteString(file.as_bytes().to_vec()))]);
    Secret { data: Some(data), ..Secret::default() }
}

fn check(image: &str, secrets: &[Secret], expected: Option<(&str, &str)>) {
    let found = find(image, secrets);
    let found = found.as_ref().map(|it| (it.username.as_str(), it.password.as_str()));
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
    check("busybox", &secrets, Some(("hub", "1")));
    check("registry.test:5000/app:1", &secrets, Some(("team", "secret:1")));
    check("registry.test:5000/other/app:1", &secrets, Some(("other", "2")));
    check("registry.test:5000/others:1", &secrets, Some(("team", "secret:1")));
    check("old.test/app", &secrets, Some(("old", "3")));
    check("elsewhere.test/app", &secrets, None);
    check("busybox", &[secret(".dockerconfigjson", "garbage")], None);
}
