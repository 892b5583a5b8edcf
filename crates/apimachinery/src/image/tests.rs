use super::*;

/// `expected` is `tag` and `digest`, or the words of the refusal.
fn check(image: &str, expected: Result<(Option<&str>, Option<&str>), &str>) {
    let found = Reference::parse(image).map(|reference| (reference.tag, reference.digest));
    assert_eq!(
        found.map_err(|error| error.to_string()),
        expected.map_err(str::to_owned),
        "{image}"
    );
}

#[test]
fn names_of_images_are_read_as_docker_reads_them() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    for (image, tag) in [
        ("busybox", None),
        ("busybox:1.36", Some("1.36")),
        ("nginxdemos/hello", None),
        ("registry.example:5000/a/b_c__d-e:v1", Some("v1")),
        ("registry.example:5000/a", None),
        ("localhost/x", None),
        ("[::1]:5000/x", None),
        ("Registry/x", None),
        ("index.docker.io/x", None),
    ] {
        check(image, Ok((tag, None)));
        check(&format!("{image}@{digest}"), Ok((tag, Some(&digest))));
    }
}

#[test]
fn a_name_that_makes_no_sense_is_refused_in_upstreams_words() {
    let lower = "invalid reference format: repository name (library/Busybox) must be lowercase";
    check("Busybox", Err(lower));
    for image in
        ["", "busybox:", "busybox:a b", "a//b", "-x", "-x/y", ":latest", "x@", "x@sha256:12"]
    {
        check(image, Err("invalid reference format"));
    }
    let identifier = "ab".repeat(32);
    let hexadecimal = format!(
        "invalid repository name ({identifier}), cannot specify 64-byte hexadecimal strings"
    );
    check(&identifier, Err(&hexadecimal));
}

#[test]
fn a_path_has_255_bytes_at_most_and_its_registry_does_not_count() {
    let long = Err("repository name must not be more than 255 characters");
    check(&format!("registry.example/{}", "a".repeat(255)), Ok((None, None)));
    check(&format!("registry.example/{}", "a".repeat(256)), long);
    // A folder that is not spelt out does.
    check(&"b".repeat(247), Ok((None, None)));
    check(&"b".repeat(248), long);
}

#[test]
fn a_digest_is_of_a_known_kind_and_as_long_as_that_is() {
    let of = |algorithm: &str, sum: &str| format!("x@{algorithm}:{sum}");
    check(&of("sha256", &"a".repeat(65)), Err("invalid checksum digest length"));
    check(&of("sha512", &"a".repeat(64)), Err("invalid checksum digest length"));
    check(&of("sha256", &"A".repeat(64)), Err("invalid checksum digest format"));
    check(&of("md5", &"a".repeat(32)), Err("unsupported digest algorithm"));
}
