use serde_json::json;

use super::*;

fn refused(text: &str) -> String {
    parse(Path::new("crds.yaml"), text).expect_err("it is refused").to_string()
}

/// A document began to count anew.
#[test]
fn mistakes_are_at_their_line_of_the_file_in_whatever_document() {
    let first = "kind: ConfigMap\nmetadata: {}\n---\n";
    let told = refused(&format!("{first}kind: CustomResourceDefinition\nspec:\n\tgroup: x\n"));
    let expected = "\"crds.yaml\", line 6: yaml: found character that cannot start any token";
    assert_eq!(told, expected);
    let told = refused("spec:\n\tgroup: x\n");
    assert!(told.starts_with("\"crds.yaml\", line 2: "), "{told}");
    let told = refused(&format!("{first}{{\n  \"kind\":\n    x\n}}\n"));
    assert!(told.starts_with("\"crds.yaml\", line 6: "), "{told}");
    let told = refused(&format!("{first}kind: ConfigMap\n--- more\nkind: ConfigMap\n"));
    assert!(told.starts_with("\"crds.yaml\", line 5: "), "{told}");
    let told = refused(&format!(
        "{first}apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    ));
    assert_eq!(told, "\"crds.yaml\", line 4: the definition has no spec.group");
}

#[test]
fn a_definition_says_where_it_stands() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                      spec: {group: a.b, names: {kind: C, plural: cs}, versions: [{name: v1}]}\n";
    let text = format!("{definition}---\nkind: ConfigMap\n---\n{definition}");
    let sources = parse(Path::new("crds.yaml"), &text).expect("definitions");
    let lines: Vec<usize> = sources.iter().map(|source| source.line).collect();
    assert_eq!(lines, [1, 7]);
}

#[test]
fn what_stood_beside_versions_stands_in_each_of_them() {
    let text = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
spec:
  group: a.b
  names: {kind: C, plural: cs}
  preserveUnknownFields: false
  validation: {openAPIV3Schema: {type: object}}
  versions:
  - {name: v1, served: true, storage: true}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, description: Its own.}}
    additionalPrinterColumns: [{name: Age, type: date, JSONPath: .metadata.age}]
  conversion:
    strategy: Webhook
    conversionReviewVersions: [v1, v1beta1]
    webhookClientConfig: {url: 'https://c.a.b'}
";
    let sources = parse(Path::new("crds.yaml"), text).expect("a definition");
    let spec = &sources[0].definition["spec"];
    assert_eq!(spec["preserveUnknownFields"], json!(false));
    assert_eq!(spec.get("validation"), None);
    let schema = |index: usize| &spec["versions"][index]["schema"]["openAPIV3Schema"];
    assert_eq!(schema(0), &json!({"type": "object"}));
    assert_eq!(schema(1), &json!({"type": "object", "description": "Its own."}));
    let column = &spec["versions"][1]["additionalPrinterColumns"][0];
    assert_eq!(column, &json!({"name": "Age", "type": "date", "jsonPath": ".metadata.age"}));
    let webhook = json!({
        "clientConfig": {"url": "https://c.a.b"},
        "conversionReviewVersions": ["v1", "v1beta1"],
    });
    assert_eq!(spec["conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
}
