//! Names that are wanted, and what becomes of them.

use kubewright_apimachinery::yaml;

use super::*;
use crate::sample;

fn definition(names: &str, status: &str) -> Value {
    let text = format!(
        "{{metadata: {{name: d}}, spec: {{group: example.com, names: {names}}}, status: {status}}}"
    );
    yaml::decode(&text).expect("it is YAML").value
}

const NEW: &str = "{acceptedNames: {plural: '', kind: ''}, conditions: null}";

/// The conditions after every step that can be taken, as `Type=Status Reason`.
fn check(definition: Value, others: &[Value], expected: &[&str]) {
    let mut definition = definition;
    loop {
        let all: Vec<Value> = others.iter().cloned().chain([definition.clone()]).collect();
        match step(&definition, &all, "now") {
            Some(further) => definition = further,
            None => break,
        }
    }
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    let found: Vec<String> = conditions
        .iter()
        .map(|c| format!("{}={} {}", text(c, "type"), text(c, "status"), text(c, "reason")))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn names_that_nobody_has_are_accepted_and_the_definition_is_established() {
    let widgets =
        definition("{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}", NEW);
    let expected = ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"];
    check(widgets, &[], &expected);
}

#[test]
fn a_kind_that_somebody_has_is_refused() {
    let other = "{acceptedNames: {plural: others, singular: other, kind: Widget, listKind: L}}";
    let other = definition("{}", other);
    let widgets =
        definition("{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}", NEW);
    let expected = ["NamesAccepted=False KindConflict", "Established=False NotAccepted"];
    check(widgets, &[other], &expected);
}

#[test]
fn short_names_that_somebody_has_do_not_undo_what_is_established() {
    let other = definition(
        "{}",
        "{acceptedNames: {plural: others, singular: o, kind: O, listKind: OL, shortNames: [w]}}",
    );
    let names = "plural: widgets, singular: widget, kind: Widget, listKind: WidgetList";
    let status = format!(
        "{{acceptedNames: {{{names}}}, conditions: [{{type: NamesAccepted, status: 'True', reason: R}}, {{type: Established, status: 'True', reason: E}}]}}"
    );
    let widgets = definition(&format!("{{{names}, shortNames: [w]}}"), &status);
    let expected = ["NamesAccepted=False ShortNamesConflict", "Established=True E"];
    check(widgets, &[other], &expected);
}

#[test]
fn a_definition_in_a_group_of_kubernetes_says_whether_it_was_approved() {
    let mut widgets =
        definition("{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}", NEW);
    widgets["spec"]["group"] = "example.k8s.io".into();
    for (annotation, expected) in [
        ("unapproved, a test", "False UnapprovedAnnotation"),
        ("https://example.com/1", "True ApprovedAnnotation"),
        ("yes", "False InvalidAnnotation"),
        ("", "False MissingAnnotation"),
    ] {
        widgets["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": annotation });
        let approval = format!("KubernetesAPIApprovalPolicyConformant={expected}");
        let expected = [
            "NamesAccepted=True NoConflicts",
            "Established=True InitialNamesAccepted",
            approval.as_str(),
        ];
        check(widgets.clone(), &[], &expected);
    }
}

/// A schema may be megabytes, and a server may have hundreds of definitions: when each write read
/// all of them several times, the two hundredth took twenty times as long as the first.
#[tokio::test]
async fn of_definitions_only_those_that_changed_are_read_again() {
    let store = sample::store();
    let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                metadata: {name: NAME.example.com, uid: u, managedFields: [{manager: m}]}, \
                spec: {group: example.com, versions: [{name: v1}]}}";
    let definition = |name: &str| sample::object(&text.replace("NAME", name));
    let resource = Catalog::definitions();
    sample::put(&store, resource, &definition("gadgets")).await;
    sample::put(&store, resource, &definition("widgets")).await;

    let outlines = Outlines::default();
    let read = || {
        let stored = store.snapshot().range(DEFINITIONS, None, None);
        let found = outlines.of(&stored).into_iter();
        found.map(|(_, outline)| outline).collect::<Vec<_>>()
    };
    let first = read();
    assert_eq!(first[0]["spec"], json!({ "group": "example.com" }));
    assert_eq!(first[0]["metadata"]["managedFields"], Value::Null);

    sample::put(&store, resource, &definition("widgets")).await;
    let second = read();
    assert!(Arc::ptr_eq(&first[0], &second[0]));
    assert!(!Arc::ptr_eq(&first[1], &second[1]));
}
