use super::*;

fn check(judged: Result<(), NameError>, expected: &str) {
    let text = judged.map_or_else(|refused| refused.to_string(), |()| String::new());
    match expected {
        "" => assert_eq!(text, ""),
        _ => assert!(text.contains(expected), "{text:?}\ndoes not say\n{expected:?}"),
    }
}

#[test]
fn kinds_that_cannot_be_are_refused_with_what_to_do() {
    check(kind("Guestbook"), "");
    check(kind("HTTPRoute"), "");
    check(kind("guestbook"), "--kind \"guestbook\": must begin with a capital letter");
    check(kind("Gästebuch"), "letters and digits of ASCII, as \"Guestbook\"");
    check(kind("Type"), "its module would be `type`, a word of Rust: choose another");
    check(kind("Self"), "a word of Rust");
    check(kind("Gen"), "a word of Rust");
    check(kind("Main"), "`src/main.rs` is something else");
    check(kind("Option"), "is a type that its own source uses");
    check(kind("PetList"), "is what a list of another kind is called");
    check(kind("Kubewright"), "`kubewright` is the library in `src/lib.rs`: choose another");
    check(kind("Test"), "");
    for part in ["Validation", "Defaulting", "V1", "V2beta1"] {
        check(kind(part), "is what a part of a kind is called: choose another");
    }
    check(kind("V1x"), "");
    // Its list is a kind, too.
    check(kind(&"A".repeat(59)), "");
    check(kind(&"A".repeat(60)), "List` would be too long: take at most 59");
    check(kind(""), "must begin with a capital letter");
}

#[test]
fn operators_that_cannot_be_are_refused_with_what_to_do() {
    check(operator("cert-keeper"), "");
    check(operator("Keeper"), "--name \"Keeper\": must begin with a letter");
    check(operator("1keeper"), "must begin with a letter");
    check(operator("keeper-"), "must begin with a letter");
    check(operator("hüter"), "of ASCII");
    check(operator("fn"), "is a word of Rust and names no crate");
    check(operator("serde"), "is a crate that the operator is made of");
    for folder in ["build", "deps", "examples", "incremental"] {
        check(operator(folder), "is a folder that cargo has beside programs");
    }
    check(operator(&"a".repeat(29)), "has 29 characters");
}

#[test]
fn groups_and_versions_that_cannot_be_are_refused_with_what_to_do() {
    check(domain("my.domain"), "");
    check(domain("My.Domain"), "--domain \"My.Domain\": must be parts of lower-case letters");
    check(domain("a..b"), "must be parts");
    check(domain(&"a.".repeat(130)), "has 260 characters: take at most 253");
    check(group("webapp", "my.domain"), "");
    check(group("", "my.domain"), "");
    check(group("apps", "k8s.io"), "apps.k8s.io is reserved for Kubernetes itself");
    check(group("apps", "mak8s.io"), "");
    check(group("", "internal"), "--group \"\": \"internal\" would be all of the group");
    check(group("webapp", "internal"), "");
    let long = vec!["a".repeat(60); 4].join(".");
    check(definition("guests", &long), "");
    check(
        definition("guestbooks", &long),
        "which has 254 characters: take names that have at most",
    );
    check(group("web app", "my.domain"), "--group");
    for good in ["v1", "v10", "v1alpha1", "v2beta13"] {
        check(version("version", good), "");
    }
    for bad in ["1", "v", "v0", "v1gamma1", "v1alpha", "v1.0", "V1", "v01"] {
        check(version("spoke", bad), "is no version: write it as v1, v1beta1 or v2alpha1");
    }
    check(plural("guestbooks"), "");
    check(plural("Guestbooks"), "--plural");
}

#[test]
fn modules_have_the_words_of_kinds() {
    for (kind, expected) in [
        ("Guestbook", "guestbook"),
        ("CronTab", "cron_tab"),
        ("HTTPRoute", "http_route"),
        ("WebAPI", "web_api"),
        ("V2Thing", "v2_thing"),
    ] {
        assert_eq!(module(kind), expected);
    }
}

#[test]
fn several_of_a_kind_are_called_as_the_derive_macro_has_it() {
    for (kind, expected) in [
        ("Guestbook", "guestbooks"),
        ("CronTab", "crontabs"),
        ("Fox", "foxes"),
        ("Bus", "buses"),
        ("Batch", "batches"),
        ("Policy", "policies"),
        ("Day", "days"),
    ] {
        assert_eq!(plural_of(kind), expected);
    }
}
