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
