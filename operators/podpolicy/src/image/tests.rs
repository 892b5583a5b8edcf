use super::*;

#[test]
fn what_is_left_out_is_what_runtimes_add() {
    let check = |image: &str, expected: &str| assert_eq!(qualified(image), expected);
    check("nginx", "docker.io/library/nginx:latest");
    check("nginx:1.25", "docker.io/library/nginx:1.25");
    check("nginxdemos/hello", "docker.io/nginxdemos/hello:latest");
    check("localhost/app", "localhost/app:latest");
    check("registry.acme.com/app", "registry.acme.com/app:latest");
    check("registry:5000/app:1", "registry:5000/app:1");
    check("acme.com/app@sha256:0f", "acme.com/app@sha256:0f");
}

#[test]
fn images_are_allowed_by_whole_parts_of_their_path() {
    let list = ["registry.acme.com/team/", "docker.io/library/busybox"].map(str::to_owned);
    let list = AllowList::new(&list);
    let check = |image: &str, is_allowed: bool| assert_eq!(list.has(image), is_allowed, "{image}");
    check("registry.acme.com/team/app:1", true);
    check("registry.acme.com/team", true);
    check("registry.acme.com/team2/app:1", false);
    check("registry.acme.com.evil.com/team/app", false);
    check("busybox", true);
    check("busybox:1.36", true);
    check("busybox2", false);
    check("nginx", false);
}
