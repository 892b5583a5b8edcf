//! Two definitions against what is said of the step from one to the other.

use serde_json::json;

use super::*;

/// A definition with one version and this schema of `spec`, in YAML.
fn definition(spec: &str) -> Value {
    let spec = kubewright_apimachinery::yaml::decode(spec).expect("YAML").value;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets", "singular": "pet", "listKind": "PetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// What is found, a line each: severity, change, place.
fn lines(old: &Value, new: &Value) -> Vec<String> {
    let findings = compare(old, new).expect("both are read");
    let line = |finding: &Finding| {
        let severity = match finding.severity {
            Severity::Compatible => "compatible",
            Severity::Warning => "warning",
            Severity::Breaking => "breaking",
        };
        let place = finding.version.iter().chain([&finding.path]).map(String::as_str);
        let words = [severity, finding.change].into_iter().chain(place);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    findings.iter().map(line).collect()
}

/// From one schema of the field `x` to another.
fn check(old: &str, new: &str, expected: &[&str]) {
    let field = |schema: &str| format!("type: object\nproperties:\n  x: {schema}\n");
    check_spec(&field(old), &field(new), expected);
}

fn check_spec(old: &str, new: &str, expected: &[&str]) {
    let found = lines(&definition(old), &definition(new));
    assert_eq!(found, expected, "\nfrom {old}\nto {new}");
}

/// From a definition to what `change` makes of it.
fn check_definition(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let old = definition("type: object");
    let mut new = old.clone();
    change(&mut new);
    assert_eq!(lines(&old, &new), expected);
}

#[test]
fn a_definition_is_compatible_with_itself() {
    let spec = "
type: object
required: [a]
properties:
  a: {type: string, enum: [x, y], default: x}
  b: {type: array, items: {type: integer, minimum: 1}, x-kubernetes-list-type: set}
x-kubernetes-validations: [{rule: self.b.size() > 1}]
";
    check_spec(spec, spec, &[]);
}

#[test]
fn fields_come_and_go() {
    let none = "type: object";
    let optional = "type: object\nproperties: {x: {type: string}}";
    let required = "type: object\nrequired: [x]\nproperties: {x: {type: string}}";
    let defaulted = "type: object\nrequired: [x]\nproperties: {x: {type: string, default: a}}";
    check_spec(none, optional, &["compatible field-added v1 spec.x"]);
    check_spec(optional, none, &["breaking field-removed v1 spec.x"]);
    check_spec(none, required, &["breaking required-added v1 spec.x"]);
    check_spec(optional, required, &["breaking required-added v1 spec.x"]);
    check_spec(none, defaulted, &["compatible required-added v1 spec.x"]);
    check_spec(required, optional, &["warning required-removed v1 spec.x"]);
    check_spec(
        defaulted,
        required,
        &["breaking required-added v1 spec.x", "warning default-removed v1 spec.x"],
    );
    let open = "type: object\nx-kubernetes-preserve-unknown-fields: true";
    check_spec(open, none, &["breaking pruning-began v1 spec"]);
    check_spec(none, open, &["compatible pruning-ended v1 spec"]);
    let open_with_field = format!("{open}\nproperties: {{x: {{type: string}}}}");
    check_spec(open, &open_with_field, &["breaking field-described v1 spec.x"]);
    check_spec(&open_with_field, open, &["warning field-removed v1 spec.x"]);
}

#[test]
fn types_change() {
    check("{type: string}", "{type: integer}", &["breaking type-changed v1 spec.x"]);
    check("{type: integer}", "{type: number}", &["warning type-widened v1 spec.x"]);
    check("{type: number}", "{type: integer}", &["breaking type-changed v1 spec.x"]);
    let either = "{x-kubernetes-int-or-string: true}";
    check("{type: string}", either, &["warning type-widened v1 spec.x"]);
    check(either, "{type: string}", &["breaking type-changed v1 spec.x"]);
    // What is below a type that changed is not told: it has nothing in common.
    check(
        "{type: object, properties: {a: {type: string}}}",
        "{type: array, items: {type: string}}",
        &["breaking type-changed v1 spec.x"],
    );
    check(
        "{type: string, nullable: true}",
        "{type: string}",
        &["breaking nullable-removed v1 spec.x"],
    );
    check(
        "{type: string}",
        "{type: string, nullable: true}",
        &["warning nullable-added v1 spec.x"],
    );
}

#[test]
fn values_are_restricted_or_set_free() {
    let string = "{type: string}";
    check(string, "{type: string, enum: [a]}", &["breaking enum-added v1 spec.x"]);
    check("{type: string, enum: [a]}", string, &["warning enum-removed v1 spec.x"]);
    check(
        "{type: string, enum: [a, b]}",
        "{type: string, enum: [b, c]}",
        &["breaking enum-narrowed v1 spec.x", "warning enum-widened v1 spec.x"],
    );
    check(string, "{type: string, pattern: ^a}", &["breaking pattern-added v1 spec.x"]);
    check(
        "{type: string, pattern: ^a}",
        "{type: string, pattern: ^b}",
        &["breaking pattern-changed v1 spec.x"],
    );
    check("{type: string, pattern: ^a}", string, &["compatible pattern-removed v1 spec.x"]);
    check(string, "{type: string, format: ipv4}", &["breaking format-changed v1 spec.x"]);
    check(string, "{type: string, format: whatever}", &[]);
    check(
        "{type: integer, format: int32}",
        "{type: integer, format: int64}",
        &["warning format-widened v1 spec.x"],
    );
}

#[test]
fn limits_move() {
    let check_limit = |old: &str, new: &str, expected: &[&str]| {
        check(&format!("{{type: integer{old}}}"), &format!("{{type: integer{new}}}"), expected);
    };
    check_limit("", ", minimum: 1", &["breaking limit-added v1 spec.x"]);
    check_limit(", minimum: 1", ", minimum: 2", &["breaking limit-tightened v1 spec.x"]);
    check_limit(", minimum: 2", ", minimum: 1", &["compatible limit-loosened v1 spec.x"]);
    check_limit(", minimum: 2", "", &["compatible limit-removed v1 spec.x"]);
    check_limit(", maximum: 2", ", maximum: 1", &["breaking limit-tightened v1 spec.x"]);
    check_limit(
        ", maximum: 2",
        ", maximum: 2, exclusiveMaximum: true",
        &["breaking limit-tightened v1 spec.x"],
    );
    check_limit(", multipleOf: 4", ", multipleOf: 2", &[]);
    check_limit(", multipleOf: 2", ", multipleOf: 4", &["breaking limit-tightened v1 spec.x"]);
    check("{type: string}", "{type: string, minLength: 0}", &[]);
    check(
        "{type: string, maxLength: 9}",
        "{type: string, maxLength: 8}",
        &["breaking limit-tightened v1 spec.x"],
    );
}

#[test]
fn defaults_change_what_objects_mean() {
    let of = |default: &str| format!("{{type: string{default}}}");
    check(&of(""), &of(", default: a"), &["warning default-added v1 spec.x"]);
    check(&of(", default: a"), &of(", default: b"), &["warning default-changed v1 spec.x"]);
    check(&of(", default: a"), &of(""), &["warning default-removed v1 spec.x"]);
}

#[test]
fn lists_and_maps_change_owners() {
    let of = |rest: &str| {
        format!(
            "{{type: array, items: {{type: object, required: [k], \
             properties: {{k: {{type: string}}, l: {{type: string, default: z}}}}}}{rest}}}"
        )
    };
    let map = of(", x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]");
    check(&of(""), &map, &["breaking list-type-changed v1 spec.x"]);
    check(&map, &of(""), &["breaking list-type-changed v1 spec.x"]);
    let other = of(", x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l]");
    check(&map, &other, &["breaking list-keys-changed v1 spec.x"]);
    let of = |rest: &str| format!("{{type: object{rest}}}");
    let atomic = of(", x-kubernetes-map-type: atomic");
    check(&of(""), &atomic, &["breaking map-type-changed v1 spec.x"]);
    check(&atomic, &of(""), &["warning map-type-changed v1 spec.x"]);
    // What lists and maps are of is compared as well.
    check(
        "{type: object, additionalProperties: {type: array, items: {type: string}}}",
        "{type: object, additionalProperties: {type: array, items: {type: integer}}}",
        &["breaking type-changed v1 spec.x[][]"],
    );
}

#[test]
fn rules_are_added_and_taken_away() {
    let of = |rules: &str| format!("{{type: integer, x-kubernetes-validations: [{rules}]}}");
    let (rule, reworded) = ("{rule: self > 0}", "{rule: self > 0, message: too small}");
    check("{type: integer}", &of(rule), &["breaking rule-added v1 spec.x"]);
    check(&of(rule), "{type: integer}", &["compatible rule-removed v1 spec.x"]);
    check(&of(rule), &of(reworded), &["compatible rule-reworded v1 spec.x"]);
    let find = |new: &str| {
        let field = |schema: &str| format!("type: object\nproperties:\n  x: {schema}\n");
        let (old, new) = (definition(&field("{type: integer}")), definition(&field(new)));
        compare(&old, &new).expect("both are read").remove(0)
    };
    assert_eq!(find(&of(rule)).hurts, [Hurt::Clients], "what stays may stay");
    assert_eq!(find(&of("{rule: self == oldSelf}")).hurts, [Hurt::Stored, Hurt::Clients]);
    check(
        "{type: string}",
        "{type: string, anyOf: [{pattern: a}, {pattern: b}]}",
        &["breaking combination-changed v1 spec.x"],
    );
    check(
        "{type: string, anyOf: [{pattern: a}]}",
        "{type: string, anyOf: [{pattern: a}, {pattern: b}]}",
        &["compatible combination-widened v1 spec.x"],
    );
}

#[test]
fn names_and_scope_are_for_good() {
    check_definition(
        |new| new["spec"]["scope"] = json!("Cluster"),
        &["breaking refused", "breaking scope-changed spec.scope"],
    );
    let mut old = definition("type: object");
    old["spec"]["names"]["shortNames"] = json!(["pt"]);
    let new = definition("type: object");
    assert_eq!(lines(&old, &new), ["warning name-removed spec.names.shortNames"]);
}

#[test]
fn versions_come_and_go() {
    let two = |first_served: bool, stored: &str| {
        let mut two = definition("type: object");
        let mut version = two["spec"]["versions"][0].clone();
        version["name"] = json!("v2");
        version["storage"] = json!(stored == "v2");
        two["spec"]["versions"][0]["storage"] = json!(stored == "v1");
        two["spec"]["versions"][0]["served"] = json!(first_served);
        two["spec"]["versions"].as_array_mut().expect("versions").push(version);
        two
    };
    let one = definition("type: object");
    assert_eq!(lines(&one, &two(true, "v1")), ["compatible version-added v2"]);
    assert_eq!(
        lines(&one, &two(true, "v2")),
        ["warning storage-version-changed spec.versions", "compatible version-added v2"]
    );
    assert_eq!(lines(&two(true, "v1"), &two(false, "v1")), ["breaking version-unserved v1"]);
    assert_eq!(lines(&two(true, "v1"), &one), ["breaking version-removed v2"]);
    // Of the second version there are objects, so the server refuses as well.
    assert_eq!(
        lines(&two(true, "v2"), &one),
        [
            "breaking refused",
            "breaking version-removed v2",
            "warning storage-version-changed spec.versions",
        ]
    );
    let mut recorded = two(true, "v1");
    recorded["status"]["storedVersions"] = json!(["v2", "v1"]);
    let findings = compare(&recorded, &one).expect("both are read");
    let removed = findings.iter().find(|it| it.change == "version-removed").expect("found");
    assert_eq!(removed.hurts, [Hurt::Stored, Hurt::Clients]);
}

#[test]
fn conversion_and_subresources_are_part_of_the_contract() {
    let webhook = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://example.com/convert"},
        "conversionReviewVersions": ["v1"],
    }});
    check_definition(
        |new| new["spec"]["conversion"] = webhook.clone(),
        &["warning conversion-added spec.conversion"],
    );
    let mut old = definition("type: object");
    old["spec"]["conversion"] = webhook;
    let new = definition("type: object");
    assert_eq!(lines(&old, &new), ["breaking conversion-removed spec.conversion"]);
    check_definition(
        |new| new["spec"]["versions"][0]["subresources"] = json!({"status": {}}),
        &["breaking subresource-added v1 status"],
    );
}

#[test]
fn the_report_says_who_is_hurt_and_counts() {
    let old = definition("type: object\nproperties: {x: {type: string}}");
    let new = definition("type: object\nproperties: {z: {type: string}}");
    let findings = compare(&old, &new).expect("both are read");
    assert_eq!(
        text(&findings),
        "breaking   v1 spec.x: is gone: stored values are dropped when objects are next written, \
         and not shown before [stored objects, clients]\n\
         compatible v1 spec.z: is new, and may be left out\n\
         1 breaking, 0 to look at, 1 compatible\n"
    );
    let document = json(&findings);
    assert_eq!(document["worst"], "breaking");
    assert_eq!(document["findings"][0]["change"], "field-removed");
    assert_eq!(document["findings"][0]["hurts"], json!(["stored", "clients"]));
}
