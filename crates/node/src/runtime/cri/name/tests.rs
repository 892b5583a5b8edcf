use super::*;

#[test]
fn names_are_completed_as_docker_does() {
    let check = |name: &str, expected: &str| assert_eq!(whole(name), expected);
    check("busybox", "docker.io/library/busybox:latest");
    check("busybox:1", "docker.io/library/busybox:1");
    check("nginxdemos/hello", "docker.io/nginxdemos/hello:latest");
    check("localhost/app:2", "localhost/app:2");
    check("registry.test:5000/team/app", "registry.test:5000/team/app:latest");
    check("quay.test/a/b@sha256:12", "quay.test/a/b@sha256:12");
}
