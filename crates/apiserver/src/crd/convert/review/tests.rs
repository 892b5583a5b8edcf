use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::yaml;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{accept, read};
use crate::outbound::review::Reviewed;

fn object(text: &str) -> Value {
    yaml::decode(text).expect("it is YAML").value
}

fn raw(text: &str) -> Box<RawValue> {
    let text = kubewright_apimachinery::json::to_string(&object(text));
    RawValue::from_string(text).expect("it is JSON")
}

/// What comes of an object that a webhook answered instead of this one.
fn check(answered: &str, expected: Result<&str, &str>) {
    let original = object(
        "
        apiVersion: g/v1
        kind: K
        metadata: {name: a, namespace: ns, uid: u, generation: 3, labels: {l: '1'}}
        ",
    );
    let accepted = accept(&original, &raw(answered), "g/v2", 0);
    assert_eq!(accepted, expected.map(object).map_err(str::to_owned), "{answered}");
}

#[test]
fn only_labels_and_annotations_are_the_webhooks_to_change() {
    check(
        "{apiVersion: g/v2, kind: K, spec: {b: 1}, metadata: {name: a, namespace: ns, uid: u,
          generation: 9, finalizers: [f], labels: {m: '2'}, annotations: {x: z}}}",
        Ok("{apiVersion: g/v2, kind: K, spec: {b: 1}, metadata: {name: a, namespace: ns, uid: u,
          generation: 3, labels: {m: '2'}, annotations: {x: z}}}"),
    );
    check(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: u}}",
        Ok(
            "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: u, generation: 3}}",
        ),
    );
}

/// Recorded from upstream.
#[test]
fn an_object_must_stay_what_it_is() {
    let place = "metadata: {name: a, namespace: ns, uid: u}";
    let what = "conversion webhook for g/v1, Kind=K returned invalid";
    let refused = |answered: &str, why: &str| check(answered, Err(&format!("{what} {why}")));
    refused(
        &format!("{{apiVersion: h/v9, kind: K, {place}}}"),
        "object at index 0: invalid groupVersion (expected g/v2, received h/v9)",
    );
    refused(
        &format!("{{apiVersion: g/v2, kind: L, {place}}}"),
        "object at index 0: invalid kind (expected K, received L)",
    );
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: b, namespace: ns, uid: u}}",
        "object: must have the same name: a != b",
    );
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: o, uid: u}}",
        "object: must have the same namespace: ns != o",
    );
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: v}}",
        "object: must have the same UID: u != v",
    );
    refused("{apiVersion: g/v2, kind: K}", "object: must have the same name: a != ");
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: u, labels: {a: 1}}}",
        "metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    );
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: u, labels: x}}",
        "metadata: invalid metadata.labels of type string in converted object",
    );
    refused(
        "{apiVersion: g/v2, kind: K, metadata: {name: a, namespace: ns, uid: u,
          annotations: {'a b': c}}}",
        "metadata: metadata.annotation: Invalid value: \"a b\": name part must consist of \
         alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    );
    check("x", Err("json: cannot unmarshal string into Go value of type map[string]interface {}"));
    check("{apiVersion: g/v2}", Err(r#"Object 'Kind' is missing in '{"apiVersion":"g/v2"}'"#));
}

/// How many objects a review brings that answers one with the uid `1`, or why it brings none.
fn check_review(version: &str, said: &str, response: &str, expected: Result<usize, &str>) {
    let review = object(&format!("{{response: {response}}}"));
    let (api_version, kind) = said.split_once(' ').unwrap_or_default();
    let (group, said_version) = api_version.split_once('/').unwrap_or_default();
    let reviewed = Reviewed {
        said: GroupVersionKind::new(group, said_version, kind),
        text: kubewright_apimachinery::json::to_vec(&review),
        review,
    };
    let brought = read(version, "1", &reviewed).map(|objects| objects.len());
    assert_eq!(brought, expected.map_err(str::to_owned), "{version} {said} {response}");
}

#[test]
fn a_review_of_the_newer_version_must_be_the_answer_to_the_question() {
    let said = "apiextensions.k8s.io/v1 ConversionReview";
    let good = "{uid: '1', result: {status: Success}, convertedObjects: [{}, {}]}";
    check_review("v1", said, good, Ok(2));
    check_review("v1", said, "{uid: '1', result: {status: Success}}", Ok(0));
    check_review(
        "v1",
        "",
        good,
        Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, \
             Kind="),
    );
    let other = "{uid: x, result: {status: Success}}";
    check_review("v1", said, other, Err("expected response.uid=\"1\", got \"x\""));
    check_review("v1beta1", "", other, Ok(0));
}

#[test]
fn a_review_says_why_nothing_was_converted() {
    let said = "apiextensions.k8s.io/v1 ConversionReview";
    for version in ["v1", "v1beta1"] {
        let failed = "{uid: '1', result: {status: Failure, message: no way}}";
        check_review(version, said, failed, Err("no way"));
        let silent = "{uid: '1', result: {status: Failure}}";
        let expected = "response.result.status was 'Failure', not 'Success'";
        check_review(version, said, silent, Err(expected));
        let empty = "{uid: '1', result: {}}";
        check_review(version, said, empty, Err("response.result.status was '', not 'Success'"));
        check_review(version, said, "null", Err("no response provided"));
    }
}
