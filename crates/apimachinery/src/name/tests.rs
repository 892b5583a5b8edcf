use super::*;

/// `expected` is the start of each message; all of it when it says so with a closing bracket.
fn check(problems: Vec<String>, expected: &[&str]) {
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn labels_and_subdomains_are_told_apart() {
    for good in ["a", "0", "a-b", "0a9", &"a".repeat(63)] {
        check(dns1123_label(good), &[]);
    }
    for bad in ["", "-", "a-", "-a", "A", "a_b", "a b", "é", "a\n"] {
        check(dns1123_label(bad), &["a lowercase RFC 1123 label must consist"]);
    }
    check(dns1123_label("a.b"), &["must not contain dots"]);
    check(dns1123_label(&"a".repeat(64)), &["must be no more than 63 characters"]);
    check(dns1123_subdomain("a.b-c.0"), &[]);
    for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "a/b"] {
        check(dns1123_subdomain(bad), &["a lowercase RFC 1123 subdomain"]);
    }
    check(dns1123_subdomain(&"a".repeat(254)), &["must be no more than 253 characters"]);
    check(dns1035_label("a1"), &[]);
    check(dns1035_label("1a"), &["a DNS-1035 label"]);
    check(wildcard_dns1123_subdomain("*.example.com"), &[]);
    check(wildcard_dns1123_subdomain("*"), &["a wildcard DNS-1123 subdomain"]);
    check(dns1123_subdomain_with_underscore("_a._b_c.d"), &[]);
    check(dns1123_subdomain_with_underscore("__a"), &["a lowercase RFC 1123 subdomain"]);
}

#[test]
fn label_keys_have_a_prefix_and_a_name() {
    for good in ["a", "A.b_c-9", "example.com/a", &"x".repeat(63)] {
        check(label_key(good), &[]);
    }
    check(label_key(""), &["name part must be non-empty", "name part must consist"]);
    check(label_key("/a"), &["prefix part must be non-empty"]);
    check(label_key("A/a"), &["prefix part a lowercase RFC 1123 subdomain"]);
    check(label_key("a/b/c"), &["a valid label key must consist"]);
    check(label_key(&"x".repeat(64)), &["name part must be no more than 63 bytes"]);
    check(label_key("a/-"), &["name part must consist"]);
    check(
        label_key(&format!("{}/a", "x".repeat(254))),
        &["prefix part must be no more than 253 bytes"],
    );
    check(label_value(""), &[]);
    check(label_value("a b"), &["a valid label must be an empty string"]);
    check(label_value(&"x".repeat(64)), &["must be no more than 63 bytes"]);
}

#[test]
fn smaller_names_have_their_rules() {
    check(port_name("http-2"), &[]);
    check(
        port_name("--"),
        &[
            "must contain at least one letter",
            "must not contain consecutive hyphens",
            "must not begin or end with a hyphen",
        ],
    );
    check(port_name(""), &["must contain only alpha-numeric", "must contain at least one letter"]);
    check(port_number(0), &["must be between 1 and 65535, inclusive"]);
    check(env_var_name("A.b-1"), &[]);
    check(env_var_name("1A"), &["a valid environment variable name must consist of"]);
    check(env_var_name(".."), &["must not be '..'"]);
    check(relaxed_env_var_name("1 a~"), &[]);
    check(relaxed_env_var_name("a=b"), &["a valid environment variable name must consist only"]);
    check(relaxed_env_var_name(""), &["environment variable name must be non-empty"]);
    check(config_map_key("..a"), &["must not start with '..'"]);
    check(config_map_key(""), &["a valid config key must consist"]);
    check(c_identifier("_a1"), &[]);
    check(c_identifier("1a"), &["a valid C identifier"]);
    check(http_header_name("X-A"), &[]);
    check(http_header_name("X_A"), &["a valid HTTP header"]);
    check(percent("10%"), &[]);
    check(percent("%"), &["a valid percent string"]);
    check(path_segment("system:a b"), &[]);
    check(path_segment(".."), &["may not be '..'"]);
    check(path_segment("a/%"), &["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    check(Rule::Subdomain.check_prefix("web-"), &[]);
    check(Rule::Label.check_prefix("a-"), &[]);
    check(Rule::Subdomain.check_prefix("-"), &["a lowercase RFC 1123 subdomain"]);
    check(Rule::Subdomain.check_prefix("Web-"), &["a lowercase RFC 1123 subdomain"]);
    check(Rule::Subdomain.check_prefix("é-"), &["a lowercase RFC 1123 subdomain"]);
    check(Rule::PathSegment.check_prefix("."), &[]);
}

#[test]
fn generated_names_fit_a_label() {
    assert_eq!(generate("web-", "x2x4z"), "web-x2x4z");
    assert_eq!(generate(&"a".repeat(100), "x2x4z").len(), 63);
    assert_eq!(generate(&"é".repeat(100), "x2x4z").len(), 63);
}

#[test]
fn domains_in_front_are_checked() {
    let path = Path::new("p");
    let check = |errors: Vec<Error>, expected: &str| {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(texts.join("; ").starts_with(expected), "{texts:?}");
        assert_eq!(texts.is_empty(), expected.is_empty());
    };
    check(fully_qualified(&path, "a.b.c"), "");
    check(fully_qualified(&path, ""), "p: Required value");
    check(
        fully_qualified(&path, "a.b"),
        "p: Invalid value: \"a.b\": should be a domain with at least three segments",
    );
    check(domain_prefixed_path(&path, "acme.io/a/b"), "");
    check(
        domain_prefixed_path(&path, "acme.io"),
        "p: Invalid value: \"acme.io\": must be a domain-",
    );
    check(domain_prefixed_path(&path, "A/b"), "p: Invalid value: \"A\": a lowercase RFC 1123");
    check(
        domain_prefixed_path(&path, "a/b c"),
        "p: Invalid value: \"b c\": Invalid path (regex used for validation is",
    );
}
