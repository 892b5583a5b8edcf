use super::is_latest;

fn check(image: &str, expected: bool) {
    assert_eq!(is_latest(image), expected, "{image}");
}

#[test]
fn an_image_without_tag_and_digest_is_the_latest() {
    check("busybox", true);
    check("library/busybox", true);
    check("localhost/busybox", true);
    check("registry.example.com:5000/team/app", true);
    check("Registry/app", true);
    check("[fd00::1]:5000/app", true);
    check("busybox:latest", true);
    check("busybox:1.36", false);
    check("registry:5000/app:v1", false);
}

#[test]
fn a_digest_says_which_image_it_is() {
    let digest = format!("sha256:{}", "a".repeat(64));
    check(&format!("busybox@{digest}"), false);
    check(&format!("busybox:latest@{digest}"), true);
    check(&format!("busybox:latest@{digest}0"), false);
}

#[test]
fn a_name_that_makes_no_sense_is_not_the_latest() {
    for image in ["", "Busybox", "a b", "busybox:", "busybox@", ":latest", "a//b", "-x/y"] {
        check(image, false);
    }
    check(&"a".repeat(64), false);
    check(&"b".repeat(248), false);
    check(&"b".repeat(247), true);
}
