use serde_json::{Value, json};

use super::{EvalError, Template};

fn object() -> Value {
    json!({
        "kind": "Widget",
        "metadata": {"name": "w", "annotations": {"a.b/c": "dotted"}},
        "spec": {
            "replicas": 3,
            "ratio": 0.5,
            "big": 1e21,
            "on": true,
            "none": null,
            "list": [10, 11, 12, 13, 14],
            "ports": [
                {"name": "http", "port": 80, "up": true, "weight": 1.5},
                {"name": "https", "port": 443, "up": false, "weight": 2.5},
                {"port": 22},
            ],
            "map": {"b": 1, "a": ["<x>", null]},
        },
    })
}

/// Renders a column's path against [`object`]; failures show as `parse: …` or `eval: …`.
fn check(path: &str, expected: &str) {
    let found = match Template::parse_column(path) {
        Err(error) => format!("parse: {error}"),
        Ok(template) => match template.render(&object()) {
            Err(error) => format!("eval: {error}"),
            Ok(text) => text,
        },
    };
    assert_eq!(found, expected, "{path}");
}

#[test]
fn fields_are_found_by_name() {
    check(".metadata.name", "w");
    check(".spec.replicas", "3");
    check(".spec.ratio", "0.5");
    check(".spec.big", "1e+21");
    check(".spec.on", "true");
    check(".spec.none", "null");
    check(".spec.missing", "");
    check(".spec.missing.deeper", "");
    check(".metadata.name.deeper", "");
    check("$.metadata.name", "w");
    check("@.metadata.name", "w");
}

#[test]
fn dots_in_keys_are_escaped() {
    check(r".metadata.annotations.a\.b/c", "dotted");
    check(r"['metadata']['annotations']['a\.b/c']", "dotted");
    check(".metadata['annotations']", r#"{"a.b/c":"dotted"}"#);
}

#[test]
fn objects_and_lists_print_as_json() {
    check(".spec.map", r#"{"a":["\u003cx\u003e",null],"b":1}"#);
    check(".spec.list", "[10,11,12,13,14]");
}

#[test]
fn lists_are_indexed_and_sliced() {
    check(".spec.list[0]", "10");
    check(".spec.list[-1]", "14");
    check(".spec.list[1:3]", "11 12");
    check(".spec.list[:2]", "10 11");
    check(".spec.list[3:]", "13 14");
    check(".spec.list[-2:]", "13 14");
    check(".spec.list[::2]", "10 12 14");
    check(".spec.list[1:1]", "");
    check(".spec.list[*]", "10 11 12 13 14");
    check(".spec.list[0,-1]", "10 14");
    check(".spec.ports[0]['name','port']", "http 80");
    check(".spec.list[5]", "eval: array index out of bounds: index 5, length 5");
    check(".spec.list[0:9]", "eval: array index out of bounds: index 8, length 5");
    check(".spec.list[3:1]", "eval: starting index 3 is greater than ending index 1");
    check(".spec.list[0:3:0]", "eval: step must be > 0");
    check(".spec.replicas[0]", "eval: int64 is not array or slice");
    check(".spec.none[0]", "");
}

#[test]
fn wildcards_reach_everything_inside() {
    check(".spec.ports[*].name", "http https");
    check(".spec.ports[*].port", "80 443 22");
    check(".spec.map.*", r#"1 ["\u003cx\u003e",null]"#);
    check(".metadata.name.*", "119");
}

#[test]
fn descent_finds_fields_at_any_depth() {
    check("..port", "80 443 22");
    check(".metadata..name", "w");
    check("....name", "parse: invalid multiple recursive descent");
}

#[test]
fn filters_compare_values_of_one_kind() {
    check(r#".spec.ports[?(@.name=="http")].port"#, "80");
    check(".spec.ports[?(@.name=='http')].port", "80");
    check(r#".spec.ports[?(@.name!="http")].port"#, "443");
    check(".spec.ports[?(@.port>80)].port", "443");
    check(".spec.ports[?(@.port>=80)].port", "80 443");
    check(".spec.ports[?(@.port<80)].port", "22");
    check(".spec.ports[?(@.port<=80)].port", "80 22");
    check(".spec.ports[?(@.up==true)].name", "http");
    check(".spec.ports[?(@.weight==2.5)].name", "https");
    check(".spec.ports[?(@.up)].name", "http https");
    check(".spec.list[?(@>12)]", "13 14");
    check(r#".spec.ports[?(@.port=="80")].name"#, "eval: incompatible types for comparison");
    check(".spec.ports[?(@.up<true)].name", "eval: invalid type for comparison");
    check(".spec.ports[?(@.port=80)].name", "eval: unrecognized filter operator =");
    check(
        ".spec.map[?(@.a)]",
        "eval: map[string]interface {} is not array or slice and cannot be filtered",
    );
    check(r#".spec.ports[?(@.name=="a)b")].port"#, "");
}

#[test]
fn what_is_not_a_path_is_refused_in_upstreams_words() {
    check(".spec[", "parse: unterminated array");
    check(".spec[x]", "parse: invalid array index x");
    check(".spec[1:2:3:4]", "parse: invalid array index 1:2:3:4");
    check(".spec[99999999999999999999]", "parse: array index 99999999999999999999 is not a number");
    check(".spec[?(@.a", "parse: unterminated filter");
    check(".spec[?(@.a)x", "parse: unclosed array expect ]");
    check(".spec#", "");
    check("#", "parse: unrecognized character in action: U+0023 '#'");
    check("'a", "parse: unterminated quoted string");
    check("1.2.3", "parse: cannot parse number 1.2.3");
    check(r"'\q'", r"parse: unquote string '\q' error invalid syntax");
    check("range", "eval: unrecognized identifier range");
}

#[test]
fn a_template_mixes_text_and_expressions() {
    let template = Template::parse("{.kind}/{.metadata.name}: {.spec.list[0:2]}!").unwrap();
    assert_eq!(template.render(&object()).unwrap(), "Widget/w: 10 11!");
    assert_eq!(Template::parse("{.kind").unwrap_err().to_string(), "unclosed action");
}

#[test]
fn hostile_paths_end_soon() {
    let nested = format!(".a{}1{}", "[?(@.b==".repeat(200), ")]".repeat(200));
    assert!(Template::parse_column(&nested).is_err());
    let value = json!(vec![vec![vec![0; 100]; 100]; 100]);
    let wide = Template::parse_column(&"..[*]".repeat(8)).unwrap();
    assert!(wide.find(&value).is_err());

    // The same list a thousand times over, to be looked through for what is not there.
    let value = json!({"a": [vec![json!({}); 100_000]]});
    let union = format!(".a[{}0]", "0,".repeat(999));
    for end in ["[?(@.b)]", "[?(@.b==1)]", "[0:1]", ".*", "[*]", "..c", "[0,1]"] {
        let path = Template::parse_column(&format!("{union}{end}")).unwrap();
        assert_eq!(path.find(&value).unwrap_err(), EvalError::TooMany, "{end}");
    }
}

#[test]
fn simple_paths_have_no_syntax() {
    let object = object();
    assert_eq!(super::simple(&object, ".spec.replicas"), Some(&json!(3)));
    assert_eq!(super::simple(&object, ".spec.list[0]"), None);
    assert_eq!(super::simple(&object, "spec.replicas"), None);
}
