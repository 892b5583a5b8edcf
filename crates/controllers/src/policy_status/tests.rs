use std::collections::BTreeMap;

use super::*;

fn policy(spec: Value) -> ValidatingAdmissionPolicy {
    serde_json::from_value(json!({ "metadata": { "name": "policy" }, "spec": spec }))
        .expect("a policy")
}

/// Which kinds a policy with these rules is about, of those that a small server has; `Err` if it
/// names others as well.
#[track_caller]
fn check_matched(rules: Value, expected: Result<&[&str], &[&str]>) {
    let resources = |kinds: &[(&str, &str)]| {
        let resource = |(plural, kind): &(&str, &str)| {
            json!({ "resource": plural, "scope": "Namespaced", "verbs": ["list"],
                "responseKind": { "kind": kind } })
        };
        kinds.iter().map(resource).collect::<Vec<_>>()
    };
    let group = |name: &str, kinds: &[(&str, &str)]| {
        let version = json!({ "version": "v1", "resources": resources(kinds) });
        json!({ "metadata": { "name": name }, "versions": [version] })
    };
    let kinds = Kinds::of_groups(json!([
        group("", &[("pods", "Pod"), ("events", "Event")]),
        group("apps", &[("deployments", "Deployment")]),
        group("events.k8s.io", &[("events", "Event")]),
    ]));
    let policy = policy(json!({ "matchConstraints": { "resourceRules": rules } }));
    let show =
        |kinds: Vec<GroupVersionKind>| kinds.iter().map(ToString::to_string).collect::<Vec<_>>();
    let found = matched(&policy, &kinds).map(show).map_err(show);
    let owned = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
    assert_eq!(found, expected.map(owned).map_err(owned));
}

fn rule(groups: &[&str], versions: &[&str], resources: &[&str]) -> Value {
    json!({ "apiGroups": groups, "apiVersions": versions, "resources": resources })
}

#[test]
fn kinds_are_those_that_rules_name() {
    check_matched(
        json!([rule(&["apps"], &["v1"], &["deployments"]), rule(&[""], &["v1"], &["pods"])]),
        Ok(&["/v1, Kind=Pod", "apps/v1, Kind=Deployment"]),
    );
    check_matched(json!([rule(&["apps"], &["v1"], &["deployments/scale"])]), Ok(&[]));
    check_matched(json!([rule(&["*"], &["v1"], &["pods"])]), Ok(&[]));
    check_matched(json!([rule(&[""], &["*"], &["pods"])]), Ok(&[]));
    check_matched(json!([rule(&[""], &["v1"], &["*", "pods"])]), Ok(&["/v1, Kind=Pod"]));
}

#[test]
fn a_resource_of_the_core_group_may_be_that_of_another() {
    check_matched(
        json!([rule(&[""], &["v1"], &["events"])]),
        Ok(&["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"]),
    );
}

#[test]
fn what_is_not_served_is_told_apart() {
    check_matched(json!([rule(&["", "apps"], &["v1"], &["pods"])]), Err(&["/v1, Kind=Pod"]));
}

/// Checks a policy about things that have a `spec.size`.
#[track_caller]
fn check_warnings(spec: Value, params: Option<Type>, expected: &[(&str, &str)]) {
    let fields = |fields: &[(&str, Type)]| {
        let owned = fields.iter().map(|(name, type_)| (Box::from(*name), type_.clone()));
        owned.collect::<BTreeMap<_, _>>()
    };
    let thing = |name: &str, field: &str| {
        let spec = Type::object(format!("{name}.spec"), fields(&[(field, Type::Int)]));
        let kind = GroupVersionKind::new("example.com", "v1", name);
        (kind, Type::object(name, fields(&[("spec", spec)])))
    };
    let seen = Seen { objects: vec![thing("Box", "size"), thing("Line", "length")], params };
    let found = warnings(&policy(spec), &seen);
    let found: Vec<(&str, &str)> =
        found.iter().map(|found| (found.field_ref.as_str(), found.warning.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_kind_that_lacks_a_field_is_named() {
    check_warnings(
        json!({ "validations": [
            { "expression": "has(object.spec)" },
            { "expression": "object.spec.size > 1", "messageExpression": "oldObject.sise" },
        ] }),
        None,
        &[
            (
                "spec.validations[1].expression",
                "example.com/v1, Kind=Line: ERROR: <input>:1:12: undefined field 'size'\n \
                 | object.spec.size > 1\n | ...........^\n",
            ),
            (
                "spec.validations[1].messageExpression",
                "example.com/v1, Kind=Box: ERROR: <input>:1:10: undefined field 'sise'\n \
                 | oldObject.sise\n | .........^\n\n\
                 example.com/v1, Kind=Line: ERROR: <input>:1:10: undefined field 'sise'\n \
                 | oldObject.sise\n | .........^\n",
            ),
        ],
    );
}

#[test]
fn variables_have_the_types_of_their_expressions() {
    check_warnings(
        json!({
            "variables": [
                { "name": "broken", "expression": "object.nowhere" },
                { "name": "spec", "expression": "object.spec" },
                { "name": "text", "expression": "'a'" },
            ],
            "validations": [
                { "expression": "variables.broken > 1 && variables.spec.anything" },
                { "expression": "variables.text + 'b' == 'ab'" },
            ],
        }),
        None,
        &[],
    );
}

#[test]
fn parameters_and_permissions_may_be_asked_for() {
    check_warnings(
        json!({ "validations": [
            { "expression": "params.limit > 1" },
            { "expression": "authorizer.path('/healthz').check('get').allowed()" },
        ] }),
        Some(Type::Dyn),
        &[],
    );
}
