use serde_json::json;

use super::*;

fn check(error: Error, expected: &str) {
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_error_reads_as_upstream_writes_it() {
    let spec = Path::new("spec");
    let containers = spec.child("containers");
    let first = containers.index(0);
    check(Error::required(&first.child("name"), ""), "spec.containers[0].name: Required value");
    check(
        Error::invalid(&first.child("name"), "A", "must be lower case"),
        r#"spec.containers[0].name: Invalid value: "A": must be lower case"#,
    );
    check(
        Error::not_supported(&spec.child("restartPolicy"), "Maybe", &["Always", "Never"]),
        r#"spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "Never""#,
    );
    check(
        Error::duplicate(&spec.child("ports").index(1), json!({"port": 1})),
        r#"spec.ports[1]: Duplicate value: {"port":1}"#,
    );
    check(
        Error::too_long(&Path::new("metadata").child("annotations"), 262144),
        "metadata.annotations: Too long: may not be more than 262144 bytes",
    );
    check(
        Error::too_many(&spec.child("ports"), 3, 1),
        "spec.ports: Too many: 3: must have at most 1 item",
    );
    check(
        Error::forbidden(&spec.child("selector").key("a.b/c"), "field is immutable"),
        "spec.selector[a.b/c]: Forbidden: field is immutable",
    );
}

#[test]
fn the_root_prints_as_nil() {
    check(Error::required(&Path::ROOT, "name"), "<nil>: Required value: name");
}

#[test]
fn bounds_from_below_read_as_upstream_writes_them() {
    let names = Path::new("names");
    check(Error::too_few(&names, 0, 1), "names: Too few: 0: must have at least 1 item");
    check(Error::too_few(&names, 0, 2), "names: Too few: 0: must have at least 2 items");
    check(Error::too_short(&names, "a", 2), "names: Too short: must be at least 2 characters");
    check(
        Error::too_long_characters(&names, 1),
        "names: Too long: may not be more than 1 character",
    );
}

#[test]
fn floats_print_as_go_prints_values() {
    let check = |value: f64, expected: &str| {
        let error = Error::invalid(&Path::new("f"), value, "");
        assert_eq!(error.to_string(), format!("f: Invalid value: {expected}"));
    };
    check(1.5, "1.5");
    check(1.0, "1");
    check(0.00001, "1e-05");
    check(0.0001, "0.0001");
    check(999999.5, "999999.5");
    check(1e6, "1e+06");
    check(0.0, "0");
    check(-2.5e-7, "-2.5e-07");
}
