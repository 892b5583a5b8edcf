use super::*;

fn check(image: &str, expected: Option<&str>) {
    assert_eq!(fault(image).as_deref(), expected, "{image}");
}

#[test]
fn names_of_images_are_read_as_docker_reads_them() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    for image in [
        "busybox",
        "busybox:1.36",
        "nginxdemos/hello",
        "registry.example:5000/a/b_c__d-e:v1",
        "localhost/x",
        "[::1]:5000/x",
        "Registry/x",
        "index.docker.io/x",
    ] {
        check(image, None);
        check(&format!("{image}@{digest}"), None);
    }
    let lower = "invalid reference format: repository name (library/Busybox) must be lowercase";
    check("Busybox", Some(lower));
    check("busybox:", Some("invalid reference format"));
    check("busybox:a b", Some("invalid reference format"));
    check("a//b", Some("invalid reference format"));
    check("-x", Some("invalid reference format"));
    check("x@sha256:12", Some("invalid reference format"));
    let identifier = "ab".repeat(32);
    let hexadecimal = format!(
        "invalid repository name ({identifier}), cannot specify 64-byte hexadecimal strings"
    );
    check(&identifier, Some(&hexadecimal));
    let long = "repository name must not be more than 255 characters";
    check(&format!("registry.example/{}", "a".repeat(256)), Some(long));
    check(&format!("registry.example/{}", "a".repeat(255)), None);
}
